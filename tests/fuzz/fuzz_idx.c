/* Any bytes as the images of an idx set, plain or gzipped; the labels fit where they can. */
#define _GNU_SOURCE
#include "in_memory.h"

#include "data/idx.h"

/* As many labels as there seem to be images, so that the rest of the reader is reached. */
static void set_labels(int fd, const uint8_t *bytes, size_t size)
{
    static uint8_t labels[8 + (1 << 16)] = {0, 0, 8, 1};
    tutti_file file;
    tutti_idx idx;
    int count = 0;
    if (tutti_file_wrap(&file, "input", bytes, size)) abort();
    if (!tutti_idx_read(&idx, &file) && idx.size[0] <= 1 << 16) count = idx.size[0];
    tutti_file_close(&file);
    if (!count) count = 3; /* what the packed seed holds */
    for (int i = 0; i < 4; i++) labels[4 + i] = (uint8_t)(count >> (24 - 8 * i));
    set_content(fd, labels, 8 + (size_t)count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int images[2], labels[2];
    if (!folder.path[0]) {
        images[0] = make_file("train-images"), images[1] = make_file("t10k-images");
        labels[0] = make_file("train-labels"), labels[1] = make_file("t10k-labels");
    }
    for (int split = 0; split < 2; split++) {
        set_content(images[split], bytes, size);
        set_labels(labels[split], bytes, size);
    }
    char spec[300];
    snprintf(spec, sizeof spec, "idx:%s,resize=40%s", folder.path, size % 5 ? "" : ",val=50");
    try_data(spec, size % 2);
    return 0;
}
