/* A folder of files whose content is the fuzzer's input: links into memory, made once. */
#ifndef TUTTI_TESTS_FUZZ_IN_MEMORY_H
#define TUTTI_TESTS_FUZZ_IN_MEMORY_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE first"
#endif
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "../scratch.h"
#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static scratch folder;

static inline void remove_folder(void)
{
    scratch_close(&folder);
}

/* A file of that name; returns its descriptor, to be given to set_content. */
static inline int make_file(const char *name)
{
    char target[64];
    if (!folder.path[0]) {
        scratch_open(&folder);
        atexit(remove_folder);
    }
    const int fd = memfd_create(name, MFD_CLOEXEC);
    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), fd);
    if (fd < 0 || symlink(target, scratch_file(&folder, name))) abort();
    return fd;
}

static inline void set_content(int fd, const void *bytes, size_t size)
{
    if (ftruncate(fd, 0) || pwrite(fd, bytes, size, 0) != (ssize_t)size) abort();
}

/* Opens the data set and fetches its first samples; every failure must have a sentence. */
static inline void try_data(const char *spec, bool skip_bad)
{
    enum { MOST = 40, FLOATS = 1 << 20 };
    static float sample[FLOATS];
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.skip_bad = skip_bad;
    tutti_status s = tutti_data_open(&data, spec, &o);
    if (!s && tutti_data_stride(data) <= FLOATS) s = tutti_reader_create(&reader, data);
    for (int split = 0; reader && split < TUTTI_SPLITS; split++)
        for (uint32_t id = 0; id < MOST && id < (uint32_t)tutti_data_count(data, split); id++) {
            int label = 0;
            s = tutti_reader_fetch(reader, split, 0, id, sample, &label);
            if (!s && (label < TUTTI_LABEL_NONE || label >= tutti_data_classes(data))) abort();
            if (s && !*tutti_message()) abort();
        }
    if (s && !*tutti_message()) abort();
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

#endif
