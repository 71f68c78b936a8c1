#include "nn/net.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { WHOLE, REAL, TEXT } value_type;

/* What a net may suggest with a line "default KEY VALUE". */
static const struct suggestion {
    const char *key;
    value_type type;
    size_t offset, size;
    double min, max;
} suggestions[] = {
    {"batch-size", WHOLE, offsetof(tutti_suggested, batch), 0, 1, 1 << 24},
    {"epochs", REAL, offsetof(tutti_suggested, epochs), 0, 0, 1e6},
    {"lr", REAL, offsetof(tutti_suggested, lr), 0, 0, 1e6},
    {"momentum", REAL, offsetof(tutti_suggested, momentum), 0, 0, 1},
    {"weight-decay", REAL, offsetof(tutti_suggested, weight_decay), 0, 0, 1},
    {"clip", REAL, offsetof(tutti_suggested, clip), 0, 0, 1e9},
    {"lr-schedule", TEXT, offsetof(tutti_suggested, lr_schedule),
     sizeof((tutti_suggested *)0)->lr_schedule, 0, 0},
    {"warmup", TEXT, offsetof(tutti_suggested, warmup), sizeof((tutti_suggested *)0)->warmup, 0, 0},
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

static tutti_status set_suggestion(tutti_suggested *out, const char *key, const char *value,
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

tutti_status tutti_net_suggested(tutti_suggested *out, const tutti_net *net)
{
    *out = (tutti_suggested){
        .batch = 64, .epochs = 10, .lr = 0.01, .momentum = 0.9, .lr_schedule = "fixed"};
    for (int i = 0; i < net->setting_count; i++)
        TUTTI_TRY(set_suggestion(out, net->settings[i].key, net->settings[i].value,
                                 net->settings[i].where));
    return TUTTI_OK;
}

tutti_status tutti_net_batch_size(const tutti_net *net, int *batch)
{
    tutti_suggested suggested;
    TUTTI_TRY(tutti_net_suggested(&suggested, net));
    *batch = suggested.batch;
    return TUTTI_OK;
}
