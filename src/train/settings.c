#include "train/settings.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model.h"

enum { MOST_STEPS = 1 << 30 };

tutti_train_options tutti_train_defaults(void)
{
    return (tutti_train_options){
        .lr = -1,
        .momentum = -1,
        .weight_decay = -1,
        .clip = -1,
        .shuffle = true,
        .augment = true,
        .dropout = true,
        .overlap = true,
        .priority = true,
        .comm_core = -1,
        .stall_warn = 60,
        .stall_abort = 600,
        .keep = 3,
    };
}

/* ---- what the net suggests ---- */

typedef enum { WHOLE, REAL, TEXT } value_type;

/* What a net may suggest with a line "default KEY VALUE". */
static const struct suggestion {
    const char *key;
    value_type type;
    size_t offset, size;
    double min, max;
} suggestions[] = {
    {"batch-size", WHOLE, offsetof(tutti_settings, batch), 0, 1, 1 << 24},
    {"epochs", REAL, offsetof(tutti_settings, epochs), 0, 0, 1e6},
    {"lr", REAL, offsetof(tutti_settings, lr), 0, 0, 1e6},
    {"momentum", REAL, offsetof(tutti_settings, momentum), 0, 0, 1},
    {"weight-decay", REAL, offsetof(tutti_settings, weight_decay), 0, 0, 1},
    {"clip", REAL, offsetof(tutti_settings, clip), 0, 0, 1e9},
    {"lr-schedule", TEXT, offsetof(tutti_settings, lr_schedule),
     sizeof((tutti_settings *)0)->lr_schedule, 0, 0},
    {"warmup", TEXT, offsetof(tutti_settings, warmup), sizeof((tutti_settings *)0)->warmup, 0, 0},
};

static tutti_status set_number(const struct suggestion *s, void *field, const char *value,
                               const char *where)
{
    char *end;
    errno = 0;
    const double number = strtod(value, &end);
    if (errno || *end || end == value || !(number >= s->min && number <= s->max) ||
        (s->type == WHOLE && number != floor(number)))
        return tutti_fail(TUTTI_PARSE, "%s: default %s: '%s' is not a%s number from %g to %g",
                          where, s->key, value, s->type == WHOLE ? " whole" : "", s->min, s->max);
    if (s->type == WHOLE) *(int *)field = (int)number;
    else *(double *)field = number;
    return TUTTI_OK;
}

static tutti_status set_suggestion(tutti_settings *out, const char *key, const char *value,
                                   const char *where)
{
    for (size_t i = 0; i < sizeof suggestions / sizeof *suggestions; i++) {
        const struct suggestion *s = &suggestions[i];
        if (strcmp(s->key, key)) continue;
        char *field = (char *)out + s->offset;
        if (s->type != TEXT) return set_number(s, field, value, where);
        if (strlen(value) >= s->size)
            return tutti_fail(TUTTI_PARSE, "%s: default %s: '%s' is too long", where, key, value);
        strcpy(field, value);
        return TUTTI_OK;
    }
    return tutti_fail(TUTTI_PARSE,
                      "%s: 'default %s' is unknown: batch-size, epochs, lr, momentum, "
                      "weight-decay, clip, lr-schedule and warmup are not",
                      where, key);
}

static tutti_status take_suggestions(tutti_settings *out, const tutti_net *net)
{
    const char *key, *value, *where;
    for (int i = 0; tutti_net_default(net, i, &key, &value, &where); i++)
        TUTTI_TRY(set_suggestion(out, key, value, where));
    return TUTTI_OK;
}

/* ---- what the user says ---- */

static void take_options(tutti_settings *out, const tutti_train_options *o)
{
    if (o->batch_size) out->batch = o->batch_size;
    if (o->epochs > 0) out->epochs = o->epochs;
    if (o->lr >= 0) out->lr = o->lr;
    if (o->momentum >= 0) out->momentum = o->momentum;
    if (o->weight_decay >= 0) out->weight_decay = o->weight_decay;
    if (o->clip >= 0) out->clip = o->clip;
    if (o->lr_schedule) snprintf(out->lr_schedule, sizeof out->lr_schedule, "%s", o->lr_schedule);
    if (o->warmup) snprintf(out->warmup, sizeof out->warmup, "%s", o->warmup);
    out->nesterov = o->nesterov;
    out->grains = o->grains ? o->grains : tutti_default_grains(out->batch);
}

static tutti_status check_grains(const tutti_settings *s)
{
    if (s->grains < 1 || s->grains & (s->grains - 1))
        return tutti_fail(TUTTI_ARGUMENT, "--grains %d is not a power of two", s->grains);
    if (s->grains > s->batch)
        return tutti_fail(TUTTI_ARGUMENT, "--grains %d is more than the %d samples of a minibatch",
                          s->grains, s->batch);
    return TUTTI_OK;
}

static tutti_status set_pace(tutti_settings *out, const tutti_train_options *o, int64_t samples)
{
    if (samples < 1) return tutti_fail(TUTTI_DATA, "%s: there are no training samples", o->data);
    out->pace = (tutti_pace){.samples = samples, .batch = out->batch};
    out->pace.steps = o->steps > 0 ? o->steps : tutti_pace_steps(&out->pace, out->epochs);
    if (out->pace.steps > MOST_STEPS)
        return tutti_fail(TUTTI_ARGUMENT, "%lld steps are more than %d", (long long)out->pace.steps,
                          MOST_STEPS);
    return TUTTI_OK;
}

static tutti_status set_rhythm(tutti_settings *out, const tutti_train_options *o)
{
    const char *every = o->checkpoint_every ? o->checkpoint_every : "1epoch";
    TUTTI_TRY(
        tutti_span_parse(&out->checkpoint_every, every, TUTTI_SPAN_STEPS, "--checkpoint-every"));
    every = o->eval_every ? o->eval_every : "1epoch";
    out->evaluates = strcmp(every, "never") != 0;
    if (out->evaluates)
        TUTTI_TRY(tutti_span_parse(&out->eval_every, every, TUTTI_SPAN_STEPS, "--eval-every"));
    TUTTI_TRY(tutti_schedule_parse(&out->schedule, out->lr_schedule));
    if (*out->warmup)
        TUTTI_TRY(
            tutti_span_parse(&out->schedule.warmup, out->warmup, TUTTI_SPAN_STEPS, "--warmup"));
    if (out->schedule.warmup.unit == TUTTI_SPAN_SECONDS && out->schedule.warmup.count > 0)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--warmup %s: seconds differ from machine to machine; "
                          "give steps or epochs",
                          out->warmup);
    return TUTTI_OK;
}

tutti_status tutti_settings_resolve(tutti_settings *out, const tutti_train_options *options,
                                    const tutti_net *net, int64_t samples)
{
    *out = (tutti_settings){
        .batch = 64, .epochs = 10, .lr = 0.01, .momentum = 0.9, .lr_schedule = "fixed"};
    TUTTI_TRY(take_suggestions(out, net));
    take_options(out, options);
    TUTTI_TRY(check_grains(out));
    TUTTI_TRY(set_pace(out, options, samples));
    return set_rhythm(out, options);
}
