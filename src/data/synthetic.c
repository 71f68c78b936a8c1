/* Samples out of nothing, for benchmarks and tests: noise plus a pattern for each class, so that a
 * net can learn them. Noise and patterns are windows into one table of normally distributed
 * numbers, which makes a sample as cheap as a copy. */
#define _GNU_SOURCE
#include "data/source.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

enum { TABLE = 1 << 16 };

static float *table_of(const tutti_data *data)
{
    return data->state;
}

static tutti_status read_shape(tutti_data *data, tutti_spec *spec)
{
    const char *text = tutti_spec_value(spec, "shape");
    tutti_sample_shape *s = &data->shape;
    int end = 0;
    *s = data->options.shape.channels ? data->options.shape : (tutti_sample_shape){3, 224, 224};
    if (!text) return TUTTI_OK;
    tutti_sample_shape given = {0, 1, 1};
    const int read =
        sscanf(text, "%5dx%5dx%5d%n", &given.height, &given.width, &given.channels, &end);
    if (read != 3 || text[end] || given.height < 1 || given.width < 1 || given.channels < 1)
        return tutti_fail(TUTTI_ARGUMENT, "--data synthetic: shape= must be like 224x224x3");
    if (data->options.shape.channels &&
        (s->height != given.height || s->width != given.width || s->channels != given.channels))
        return tutti_fail(TUTTI_SHAPE, "--data synthetic: shape=%s, but the net takes %dx%dx%d",
                          text, s->height, s->width, s->channels);
    *s = given;
    return TUTTI_OK;
}

static tutti_status synthetic_open(tutti_data *data, tutti_spec *spec)
{
    data->classes = data->options.classes ? data->options.classes : 10;
    data->count[TUTTI_SPLIT_TRAIN] = 60000;
    data->count[TUTTI_SPLIT_TEST] = 1000;
    data->frame = 1;
    TUTTI_TRY(read_shape(data, spec));
    TUTTI_TRY(tutti_spec_int(spec, "classes", &data->classes, 1, TUTTI_MAX_CLASSES));
    TUTTI_TRY(tutti_spec_int(spec, "train", &data->count[TUTTI_SPLIT_TRAIN], 1, INT32_MAX));
    TUTTI_TRY(tutti_spec_int(spec, "test", &data->count[TUTTI_SPLIT_TEST], 0, INT32_MAX));
    float *table = NULL;
    TUTTI_TRY(tutti_alloc(&table, TABLE, sizeof *table));
    data->state = table;
    const tutti_random_key key = {.purpose = TUTTI_RANDOM_SYNTHETIC};
    for (uint64_t i = 0; i < TABLE; i++) table[i] = (float)tutti_random_normal(&key, i);
    return TUTTI_OK;
}

static void synthetic_close(tutti_data *data)
{
    tutti_free(data->state);
}

static uint32_t place_in_table(uint32_t what, uint32_t number)
{
    const tutti_random_key key = {
        .purpose = TUTTI_RANDOM_SYNTHETIC, .layer = what, .sample = number};
    return tutti_random_below(&key, 0, TABLE);
}

static int synthetic_label(const tutti_data *data, uint32_t id)
{
    return (int)(id % (uint32_t)data->classes);
}

static tutti_status synthetic_numbers(tutti_reader *r, tutti_split split, uint32_t id,
                                      const uint32_t random[4], float *sample, int *label)
{
    (void)random;
    const tutti_data *data = r->data;
    const float *table = table_of(data);
    const tutti_sample_shape s = data->shape;
    const uint32_t count = (uint32_t)(s.channels * s.height * s.width);
    *label = synthetic_label(data, id);
    const uint32_t noise = place_in_table(1 + split, id);
    const uint32_t pattern = place_in_table(3, (uint32_t)*label);
    for (uint32_t i = 0; i < count; i++)
        sample[i] = 0.9f * table[(noise + i) % TABLE] + 0.4f * table[(pattern + i) % TABLE];
    return TUTTI_OK;
}

/* Stripes of classes and waves of values, which begin where the label says. */
static tutti_status synthetic_goal(tutti_reader *r, tutti_split split, uint32_t id, int number,
                                   const tutti_view *view, void *words)
{
    const tutti_target *t = &r->data->options.targets[number];
    const float *table = table_of(r->data);
    const int label = synthetic_label(r->data, id), pixels = t->h * t->w;
    float *values = words;
    int32_t *classes = words;
    (void)split, (void)view;
    if (!tutti_target_is_values(t)) {
        const int count = t->form == TUTTI_TARGET_PIXELS ? pixels : 1;
        for (int p = 0; p < count; p++) classes[p] = (label + p / t->w) % t->c;
        return TUTTI_OK;
    }
    memset(words, 0, tutti_target_words(t) * sizeof *values);
    for (int c = 0; c < t->c; c++)
        for (int p = 0; p < pixels; p++) {
            float *to = values + (c / 16 * pixels + p) * 16 + c % 16;
            const float value = table[(label * 64 + c * 8 + p) % TABLE];
            *to = t->form == TUTTI_TARGET_SHARES ? value > 0 : value;
        }
    return TUTTI_OK;
}

const tutti_source tutti_source_synthetic = {
    .kind = "synthetic",
    .open = synthetic_open,
    .close = synthetic_close,
    .numbers = synthetic_numbers,
    .goal = synthetic_goal,
    .label = synthetic_label,
};
