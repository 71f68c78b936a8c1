/* Any bytes as a safetensors file: refused with a sentence, or every tensor can be read. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Reads a tensor in two halves; its values only have to be readable. */
static void read_tensor(const tutti_safetensors *file, int tensor)
{
    static float values[1 << 16];
    const tutti_tensor_info *info = tutti_safetensors_tensor(file, tensor);
    const int64_t n = tutti_tensor_elements(&info->spec);
    if (n < 0 || tutti_safetensors_find(file, info->spec.name) < 0) abort();
    if (n > 1 << 16) return;
    tutti_status s = tutti_safetensors_read(file, tensor, 0, values, n / 2);
    if (!s) s = tutti_safetensors_read(file, tensor, n / 2, values + n / 2, n - n / 2);
    if (s && s != TUTTI_DATA) abort(); /* DATA: a type that weights cannot have */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    const int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);

    tutti_safetensors *file = NULL;
    const tutti_status s = tutti_safetensors_open(&file, path);
    if (s && (s != TUTTI_DATA || !strstr(tutti_message(), path))) abort();
    for (int i = 0; !s && i < tutti_safetensors_count(file); i++) read_tensor(file, i);
    tutti_safetensors_close(&file);
    close(fd);
    return 0;
}
