/* Any bytes as one of CIFAR-10's files; the others are sound. */
#define _GNU_SOURCE
#include "in_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint8_t record[3073] = {1};
    static int any;
    if (!folder.path[0]) {
        any = make_file("data_batch_3.bin");
        static const char *const sound[] = {"data_batch_1.bin", "data_batch_2.bin",
                                            "data_batch_4.bin", "data_batch_5.bin",
                                            "test_batch.bin"};
        for (int i = 0; i < 5; i++) set_content(make_file(sound[i]), record, sizeof record);
    }
    set_content(any, bytes, size);
    char spec[300];
    snprintf(spec, sizeof spec, "cifar10:%s%s", folder.path, size % 5 ? "" : ",val=50");
    try_data(spec, size % 2);
    return 0;
}
