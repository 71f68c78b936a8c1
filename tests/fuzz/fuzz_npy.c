/* Any bytes as an array of samples, with as many labels as there seem to be samples; and as labels
 * of three samples. */
#define _GNU_SOURCE
#include "in_memory.h"

#include "data/npy.h"

static size_t put_labels(uint8_t *out, int64_t count)
{
    const int used =
        sprintf((char *)out + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (%lld,), }",
                (long long)count);
    memcpy(out, "\x93NUMPY\1", 8);
    out[8] = (uint8_t)used;
    out[9] = 0;
    return 10 + (size_t)used + (size_t)count;
}

static void set_labels(int fd, const uint8_t *bytes, size_t size)
{
    static uint8_t labels[256 + (1 << 16)];
    tutti_file file;
    tutti_npy npy;
    int64_t count = 3;
    if (tutti_file_wrap(&file, "input", bytes, size)) abort();
    if (!tutti_npy_read(&npy, &file) && npy.size[0] <= 1 << 16) count = npy.size[0];
    tutti_file_close(&file);
    set_content(fd, labels, put_labels(labels, count));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int input, labels, samples;
    if (!folder.path[0]) {
        input = make_file("x.npy"), labels = make_file("y.npy"), samples = make_file("s.npy");
        static uint8_t three[256];
        set_content(samples, three, put_labels(three, 3));
    }
    set_content(input, bytes, size);
    set_labels(labels, bytes, size);
    char spec[900];
    static const char *const keys[] = {"", ",layout=chw", ",val=50", ",mean=0.5,std=0.25"};
    snprintf(spec, sizeof spec, "npy:%s/x.npy,%s/y.npy%s", folder.path, folder.path,
             keys[size % 4]);
    try_data(spec, size % 3);
    snprintf(spec, sizeof spec, "npy:%s/s.npy,%s/x.npy", folder.path, folder.path);
    try_data(spec, false);
    return 0;
}
