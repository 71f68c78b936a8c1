/* How often each class occurs among the training samples. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "data/source.h"

/* Of a kind that keeps labels with its samples: all of them are read. */
static tutti_status count_by_fetching(tutti_data *data, int64_t *counts)
{
    tutti_reader *reader = NULL;
    float *sample = NULL;
    tutti_status s = tutti_reader_create(&reader, data);
    if (!s) s = tutti_alloc(&sample, tutti_data_stride(data), sizeof *sample);
    for (uint32_t id = 0; !s && id < (uint32_t)data->count[TUTTI_SPLIT_TRAIN]; id++) {
        int label = 0;
        s = tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, id, sample, &label);
        if (!s) counts[label]++;
    }
    tutti_free(sample);
    tutti_reader_destroy(&reader);
    return s;
}

tutti_status tutti_data_count_labels(tutti_data *data, int64_t *counts)
{
    if (!data->source->label) return count_by_fetching(data, counts);
    for (uint32_t id = 0; id < (uint32_t)data->count[TUTTI_SPLIT_TRAIN]; id++)
        counts[data->source->label(data, tutti_data_stored_id(data, TUTTI_SPLIT_TRAIN, id))]++;
    return TUTTI_OK;
}
