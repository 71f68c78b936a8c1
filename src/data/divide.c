/* A validation set drawn from the training set: val=PERCENT.
 *
 * Which samples it takes depends on their number alone, not on --seed, ranks or the day: the first
 * places of one fixed permutation. Evenly spaced ones would be all of one class where classes take
 * turns. What belongs together (the frames of an utterance) is drawn together. */
#define _GNU_SOURCE
#include "data/source.h"

#include <stdlib.h>

#include "base/memory.h"
#include "data/order.h"

static const uint64_t drawing = 0x76616c; /* "val" */

static uint32_t unit_of(const tutti_data *data, uint32_t id)
{
    return data->source->unit ? data->source->unit(data, id) : id;
}

static tutti_status draw(const tutti_data *data, bool **drawn)
{
    const uint32_t samples = (uint32_t)data->count[TUTTI_SPLIT_TRAIN];
    const uint32_t units = unit_of(data, samples - 1) + 1;
    const uint32_t wanted = (uint32_t)((uint64_t)units * (uint64_t)data->val_percent / 100);
    if (!wanted)
        return tutti_fail(TUTTI_DATA,
                          "--data %s: val=%d: %d %% of %u %s is none; take more, or leave val= out",
                          data->source->kind, data->val_percent, data->val_percent, units,
                          data->source->unit ? "utterances" : "training samples");
    TUTTI_TRY(tutti_alloc(drawn, units, sizeof **drawn));
    for (uint32_t place = 0; place < wanted; place++)
        (*drawn)[tutti_order_id(drawing, 0, units, place)] = true;
    return TUTTI_OK;
}

/* The ids of both parts, each in the order of the training set. */
static tutti_status list(tutti_data *data, const bool *drawn)
{
    const uint32_t samples = (uint32_t)data->count[TUTTI_SPLIT_TRAIN];
    static const tutti_split parts[] = {TUTTI_SPLIT_TRAIN, TUTTI_SPLIT_VAL};
    int count[TUTTI_SPLITS] = {0};
    for (uint32_t id = 0; id < samples; id++) count[parts[drawn[unit_of(data, id)]]]++;
    for (int i = 0; i < 2; i++) {
        data->count[parts[i]] = 0;
        TUTTI_TRY(
            tutti_alloc(&data->part[parts[i]], (size_t)count[parts[i]] + 1, sizeof(uint32_t)));
    }
    for (uint32_t id = 0; id < samples; id++) {
        const tutti_split to = parts[drawn[unit_of(data, id)]];
        data->part[to][data->count[to]++] = id;
    }
    return TUTTI_OK;
}

tutti_status tutti_data_divide(tutti_data *data)
{
    bool *drawn = NULL;
    if (!data->val_percent) return TUTTI_OK;
    tutti_status s = draw(data, &drawn);
    if (!s) s = list(data, drawn);
    tutti_free(drawn);
    return s;
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
