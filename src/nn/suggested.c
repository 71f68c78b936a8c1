#include "nn/net.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { WHOLE, REAL, TEXT, SWITCH } value_type;

/* What the lines say; NaN or empty where they are silent. */
typedef struct lines {
    int batch;
    bool decay_all;
    double epochs, lr, momentum, weight_decay, clip, label_smoothing, ema;
    char optimizer[TUTTI_OPTIMIZER_TEXT], lr_schedule[64], warmup[32], precision[16];
} lines;

/* What a net may suggest with a line "default KEY VALUE". */
static const struct suggestion {
    const char *key;
    value_type type;
    size_t offset, size;
    double min, max;
} suggestions[] = {
    {"batch-size", WHOLE, offsetof(lines, batch), 0, 1, 1 << 24},
    {"epochs", REAL, offsetof(lines, epochs), 0, 1e-6, 1e6},
    {"lr", REAL, offsetof(lines, lr), 0, 0, 1e6},
    {"momentum", REAL, offsetof(lines, momentum), 0, 0, 1},
    {"weight-decay", REAL, offsetof(lines, weight_decay), 0, 0, 1},
    {"decay-all", SWITCH, offsetof(lines, decay_all), 0, 0, 0},
    {"clip", REAL, offsetof(lines, clip), 0, 0, 1e9},
    {"label-smoothing", REAL, offsetof(lines, label_smoothing), 0, 0, 1},
    {"ema", REAL, offsetof(lines, ema), 0, 0, 0.9999999},
    {"optimizer", TEXT, offsetof(lines, optimizer), sizeof((lines *)0)->optimizer, 0, 0},
    {"lr-schedule", TEXT, offsetof(lines, lr_schedule), sizeof((lines *)0)->lr_schedule, 0, 0},
    {"warmup", TEXT, offsetof(lines, warmup), sizeof((lines *)0)->warmup, 0, 0},
    {"precision", TEXT, offsetof(lines, precision), sizeof((lines *)0)->precision, 0, 0},
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

static tutti_status set_switch(const struct suggestion *s, bool *field, const char *value,
                               const char *where)
{
    *field = !strcmp(value, "on");
    if (*field || !strcmp(value, "off")) return TUTTI_OK;
    return tutti_fail(TUTTI_PARSE, "%s: default %s is on or off, not '%s'", where, s->key, value);
}

static tutti_status set_suggestion(lines *out, const char *key, const char *value,
                                   const char *where)
{
    for (size_t i = 0; i < sizeof suggestions / sizeof *suggestions; i++) {
        const struct suggestion *s = &suggestions[i];
        if (strcmp(s->key, key)) continue;
        char *field = (char *)out + s->offset;
        if (s->type == SWITCH) return set_switch(s, (bool *)field, value, where);
        if (s->type != TEXT) return set_number(s, field, value, where);
        if (strlen(value) >= s->size)
            return tutti_fail(TUTTI_PARSE, "%s: default %s: '%s' is too long", where, key, value);
        strcpy(field, value);
        return TUTTI_OK;
    }
    return tutti_fail(
        TUTTI_PARSE,
        "%s: 'default %s' is unknown: batch-size, epochs, lr, optimizer, momentum, "
        "weight-decay, decay-all, clip, label-smoothing, ema, lr-schedule, warmup and "
        "precision are not",
        where, key);
}

static const char *where_is(const tutti_net *net, const char *key)
{
    for (int i = 0; i < net->setting_count; i++)
        if (!strcmp(net->settings[i].key, key)) return net->settings[i].where;
    return "";
}

static tutti_status set_optimizer(tutti_chosen_optimizer *out, const lines *said,
                                  const tutti_net *net)
{
    TUTTI_TRY(
        tutti_optimizer_parse(out, said->optimizer, where_is(net, "optimizer"), tutti_optimizers));
    if (isnan(said->momentum) || tutti_optimizer_set(out, "momentum", said->momentum))
        return TUTTI_OK;
    return tutti_fail(TUTTI_PARSE, "%s: default momentum: %s has none", where_is(net, "momentum"),
                      out->is->name);
}

static tutti_status set_precision(tutti_precision *out, const lines *said, const tutti_net *net)
{
    char what[600];
    snprintf(what, sizeof what, "%s: default precision", where_is(net, "precision"));
    if (tutti_precision_named(said->precision, what, out) == TUTTI_OK) return TUTTI_OK;
    return tutti_fail(TUTTI_PARSE, "%s", tutti_message());
}

tutti_status tutti_net_suggested(tutti_suggested *out, const tutti_net *net)
{
    lines said = {.batch = 64,
                  .epochs = 10,
                  .lr = NAN,
                  .momentum = NAN,
                  .decay_all = true,
                  .weight_decay = NAN,
                  .optimizer = "sgd",
                  .lr_schedule = "fixed",
                  .precision = "fp32"};
    for (int i = 0; i < net->setting_count; i++)
        TUTTI_TRY(set_suggestion(&said, net->settings[i].key, net->settings[i].value,
                                 net->settings[i].where));
    *out = (tutti_suggested){.batch = said.batch,
                             .epochs = said.epochs,
                             .clip = said.clip,
                             .label_smoothing = said.label_smoothing,
                             .ema = said.ema,
                             .decay_all = said.decay_all};
    TUTTI_TRY(set_optimizer(&out->optimizer, &said, net));
    TUTTI_TRY(set_precision(&out->precision, &said, net));
    const tutti_optimizer *is = out->optimizer.is;
    out->lr = isnan(said.lr) ? is->usual_lr : said.lr;
    out->weight_decay = isnan(said.weight_decay) ? is->usual_decay : said.weight_decay;
    strcpy(out->lr_schedule, said.lr_schedule);
    strcpy(out->warmup, said.warmup);
    return TUTTI_OK;
}

tutti_status tutti_net_batch_size(const tutti_net *net, int *batch)
{
    tutti_suggested suggested;
    TUTTI_TRY(tutti_net_suggested(&suggested, net));
    *batch = suggested.batch;
    return TUTTI_OK;
}
