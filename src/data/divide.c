/* Samples to validate on or to test on, drawn from the training set: val=PERCENT, holdout=PERCENT.
 *
 * Which samples it takes depends on their number alone, not on --seed, ranks or the day: the first
 * places of one fixed permutation. Evenly spaced ones would be all of one class where classes take
 * turns. What belongs together (the frames of an utterance) is drawn together. */
#define _GNU_SOURCE
#include "data/source.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/order.h"

/* Which part is drawn, how many percent, and what makes its permutation another than others'. */
typedef struct drawing {
    tutti_split to;
    int percent;
    uint64_t seed;
} drawing;

static uint32_t unit_of(const tutti_data *data, uint32_t id)
{
    return data->source->unit ? data->source->unit(data, id) : id;
}

static tutti_status draw(const tutti_data *data, const drawing *d, bool **drawn)
{
    const uint32_t samples = (uint32_t)data->count[TUTTI_SPLIT_TRAIN];
    const uint32_t units = unit_of(data, samples - 1) + 1;
    const uint32_t wanted = (uint32_t)((uint64_t)units * (uint64_t)d->percent / 100);
    if (!wanted && d->to == TUTTI_SPLIT_VAL)
        return tutti_fail(TUTTI_DATA,
                          "--data %s: val=%d: %d %% of %u %s is none; take more, or leave val= out",
                          data->source->kind, d->percent, d->percent, units,
                          data->source->unit ? "utterances" : "training samples");
    TUTTI_TRY(tutti_alloc(drawn, units, sizeof **drawn));
    for (uint32_t place = 0; place < wanted; place++)
        (*drawn)[tutti_order_id(d->seed, 0, units, place)] = true;
    return TUTTI_OK;
}

/* The ids of both parts, each in the order of the training set. */
static tutti_status list(tutti_data *data, const drawing *d, const bool *drawn)
{
    const uint32_t samples = (uint32_t)data->count[TUTTI_SPLIT_TRAIN];
    uint32_t *part[2] = {NULL, NULL};
    int count[2] = {0, 0};
    tutti_status s = tutti_alloc(&part[0], samples, sizeof(uint32_t));
    if (!s) s = tutti_alloc(&part[1], samples, sizeof(uint32_t));
    for (uint32_t id = 0; !s && id < samples; id++) {
        const int to = drawn[unit_of(data, id)];
        part[to][count[to]++] = tutti_data_stored_id(data, TUTTI_SPLIT_TRAIN, id);
    }
    if (!s) {
        tutti_free(data->part[TUTTI_SPLIT_TRAIN]);
        data->part[TUTTI_SPLIT_TRAIN] = part[0], data->part[d->to] = part[1];
        data->count[TUTTI_SPLIT_TRAIN] = count[0], data->count[d->to] = count[1];
    } else tutti_free(part[0]);
    return s;
}

static tutti_status divide(tutti_data *data, const drawing *d)
{
    bool *drawn = NULL;
    tutti_status s = draw(data, d, &drawn);
    if (!s) s = list(data, d, drawn);
    tutti_free(drawn);
    return s;
}

tutti_status tutti_data_divide(tutti_data *data)
{
    const drawing d = {TUTTI_SPLIT_VAL, data->val_percent, 0x76616c}; /* "val" */
    return d.percent ? divide(data, &d) : TUTTI_OK;
}

tutti_status tutti_data_hold_out(tutti_data *data, int percent)
{
    const drawing d = {TUTTI_SPLIT_TEST, percent, 0x74657374}; /* "test" */
    if (!percent || data->count[TUTTI_SPLIT_TRAIN] < 1) return TUTTI_OK;
    snprintf(data->note, sizeof data->note, "%d %% held out", percent);
    return divide(data, &d);
}

/* ------------------------------------------------------------------------------ val= */

tutti_status tutti_data_read_val(tutti_data *data, tutti_spec *spec)
{
    const char *text = tutti_spec_value(spec, "val");
    if (!text) return TUTTI_OK;
    char *end = NULL;
    const double percent = strtod(text, &end);
    if (end == text || *end) {
        data->val_place = text;
        return TUTTI_OK;
    }
    if (!(percent >= 1 && percent <= 90 && percent == (int)percent))
        return tutti_fail(TUTTI_ARGUMENT,
                          "--data %s: val=%s must be a whole number of percent from 1 to 90%s",
                          spec->kind, text, percent > 0 && percent < 1 ? " (val=10: a tenth)" : "");
    data->val_percent = (int)percent;
    return TUTTI_OK;
}

tutti_status tutti_data_check_val(const tutti_data *data)
{
    if (!data->val_place || data->count[TUTTI_SPLIT_VAL]) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT,
                      "--data %s: val=%s must be a whole number of percent from 1 to 90",
                      data->source->kind, data->val_place);
}
