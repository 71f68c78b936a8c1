/* How often each class occurs among the training samples. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "data/source.h"

/* Room for a sample whose answer is a label, or a class for each pixel. */
typedef struct counting {
    tutti_reader *reader;
    float *sample;
    int32_t *classes; /* [pixels]; NULL: the label counts */
    size_t pixels;
} counting;

static tutti_status open_counting(counting *c, tutti_data *data)
{
    const tutti_data_options *o = &data->options;
    const tutti_target *target = &o->targets[o->answer];
    TUTTI_TRY(tutti_reader_create(&c->reader, data));
    TUTTI_TRY(tutti_alloc(&c->sample, tutti_data_stride(data), sizeof *c->sample));
    if (!tutti_data_has_goals(data) || tutti_target_is_values(target)) return TUTTI_OK;
    c->pixels = tutti_target_words(target);
    return tutti_alloc(&c->classes, c->pixels, sizeof *c->classes);
}

static void close_counting(counting *c)
{
    tutti_free(c->sample);
    tutti_free(c->classes);
    tutti_reader_destroy(&c->reader);
}

static tutti_status count_sample(const counting *c, int answer, uint32_t id, int64_t *counts)
{
    int label = 0;
    tutti_sample_room room = {.sample = c->sample, .label = &label};
    room.targets[answer] = c->classes;
    TUTTI_TRY(tutti_reader_fetch_all(c->reader, TUTTI_SPLIT_TRAIN, 0, id, &room));
    if (!c->classes) counts[label]++;
    for (size_t p = 0; p < c->pixels; p++)
        if (c->classes[p] != TUTTI_IGNORED) counts[c->classes[p]]++;
    return TUTTI_OK;
}

/* Of a kind that keeps labels with its samples: all of them are read. */
static tutti_status count_by_fetching(tutti_data *data, int64_t *counts)
{
    counting c = {0};
    tutti_status s = open_counting(&c, data);
    for (uint32_t id = 0; !s && id < (uint32_t)data->count[TUTTI_SPLIT_TRAIN]; id++)
        s = count_sample(&c, data->options.answer, id, counts);
    close_counting(&c);
    return s;
}

tutti_status tutti_data_count_labels(tutti_data *data, int64_t *counts)
{
    if (!data->source->label || tutti_data_has_goals(data)) return count_by_fetching(data, counts);
    for (uint32_t id = 0; id < (uint32_t)data->count[TUTTI_SPLIT_TRAIN]; id++)
        counts[data->source->label(data, tutti_data_stored_id(data, TUTTI_SPLIT_TRAIN, id))]++;
    return TUTTI_OK;
}
