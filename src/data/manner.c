/* A data set without samples: how a file becomes one, for those who have only the model. */
#define _GNU_SOURCE
#include "data/source.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static tutti_status no_samples(tutti_reader *reader, tutti_split split, uint32_t id,
                               const tutti_fit *fit, int *label)
{
    (void)reader, (void)split, (void)id, (void)fit, (void)label;
    return tutti_fail(TUTTI_DATA, "there are no samples");
}

static void close_nothing(tutti_data *data)
{
    (void)data;
}

static const tutti_source pictures = {
    .kind = "trained", .pixels = no_samples, .close = close_nothing};

tutti_manner tutti_data_manner(const tutti_data *data)
{
    const bool shows = data->source->pixels != NULL;
    return (tutti_manner){.shape = data->shape,
                          .picture = shows ? data->picture : (tutti_sample_shape){0},
                          .zoom = shows ? data->augment.zoom : 0};
}

static tutti_status fill(tutti_data *data, const tutti_manner *manner,
                         const tutti_normalisation *normalise, const char *const *classes,
                         int count)
{
    const size_t frame = (size_t)normalise->count;
    TUTTI_ASSERT(manner->picture.channels > 0);
    data->source = &pictures;
    data->picture = data->native = manner->picture;
    data->shape = manner->shape;
    data->augment = (tutti_augment){.zoom = manner->zoom};
    data->frame = normalise->count;
    data->classes = count;
    TUTTI_TRY(tutti_alloc(&data->mean, frame, sizeof(float)));
    TUTTI_TRY(tutti_alloc(&data->std, frame, sizeof(float)));
    memcpy(data->mean, normalise->mean, frame * sizeof(float));
    memcpy(data->std, normalise->std, frame * sizeof(float));
    for (int i = 0; i < count; i++) TUTTI_TRY(tutti_names_add(&data->names, classes[i]));
    snprintf(data->description, sizeof data->description, "%d classes, no samples", count);
    return TUTTI_OK;
}

tutti_status tutti_data_open_manner(tutti_data **out, const tutti_manner *manner,
                                    const tutti_normalisation *normalise,
                                    const char *const *classes, int count, const tutti_log *log)
{
    tutti_data *data = NULL;
    TUTTI_TRY(tutti_alloc(&data, 1, sizeof *data));
    data->options.log = log;
    CPU_ZERO(&data->cpus);
    const tutti_status s = fill(data, manner, normalise, classes, count);
    if (s != TUTTI_OK) tutti_data_close(&data);
    else *out = data;
    return s;
}
