/* Any bytes as a Kaldi archive, taken by utterances and by frames. */
#define _GNU_SOURCE
#include "in_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int archive;
    if (!folder.path[0]) {
        const char *labels = "a 0\nb 1\nc 2\nd 0\ne 1\n";
        archive = make_file("feats_train.ark");
        set_content(make_file("utt2label_train.txt"), labels, strlen(labels));
    }
    set_content(archive, bytes, size);
    char spec[300];
    snprintf(spec, sizeof spec, "kaldi:%s,holdout=30%s%s", folder.path,
             size % 3 ? "" : ",context=2", size % 5 ? "" : ",val=50");
    try_data(spec, size % 2);
    return 0;
}
