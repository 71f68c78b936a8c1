/* Runs a fuzz target without a fuzzer: on the seeds given as arguments, and on mutations of them
 * that are the same every time. Finds the shallow mistakes in a second; libFuzzer (meson option
 * 'fuzz') finds the deep ones. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { ROUNDS = 3000, MAX_BYTES = 1 << 20, MAX_EDITS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static size_t read_file(const char *path, uint8_t *data)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    const size_t size = fread(data, 1, MAX_BYTES / 2, f);
    fclose(f);
    return size;
}

/* Changes a byte, drops a run of bytes or repeats one somewhere else. */
static void edit(input *in, const tutti_random_key *key, uint64_t number)
{
    const uint32_t size = (uint32_t)in->size;
    if (!size) return;
    const uint32_t at = tutti_random_below(key, number, size);
    const uint32_t other = tutti_random_below(key, number + 1, size);
    const uint32_t left = size - (at > other ? at : other);
    const uint32_t run = left > 1 ? tutti_random_below(key, number + 2, left < 40 ? left : 40) : 0;
    switch (tutti_random_below(key, number + 3, 3)) {
    case 0: in->data[at] = (uint8_t)tutti_random_u32(key, number + 4); break;
    case 1:
        memmove(in->data + at, in->data + at + run, size - at - run);
        in->size -= run;
        break;
    default: memmove(in->data + at, in->data + other, run);
    }
}

int main(int argc, char **argv)
{
    uint8_t *seed = calloc(MAX_BYTES, 1), *copy = calloc(MAX_BYTES, 1);
    long runs = 0;
    LLVMFuzzerTestOneInput(seed, 0);
    for (int i = 1; i < argc; i++) {
        const size_t size = read_file(argv[i], seed);
        LLVMFuzzerTestOneInput(seed, size);
        for (uint32_t round = 0; round < ROUNDS; round++, runs++) {
            const tutti_random_key key = {.seed = (uint64_t)i, .when = round};
            const uint32_t edits = 1 + tutti_random_below(&key, 1000, MAX_EDITS);
            input in = {copy, size};
            memcpy(copy, seed, size);
            for (uint32_t e = 0; e < edits; e++) edit(&in, &key, 8 * (uint64_t)e);
            LLVMFuzzerTestOneInput(in.data, in.size);
        }
    }
    printf("%ld mutations of %d seeds\n", runs, argc - 1);
    free(seed);
    free(copy);
    return 0;
}
