#include "data/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static tutti_status add_part(tutti_spec *spec, char *part)
{
    char *equals = strchr(part, '=');
    if (!equals || memchr(part, '/', (size_t)(equals - part))) { /* a path may hold a '=' */
        if (spec->pairs)
            return tutti_fail(TUTTI_ARGUMENT, "--data %s: '%s' is not KEY=VALUE", spec->kind, part);
        if (spec->places == TUTTI_SPEC_PLACES)
            return tutti_fail(TUTTI_ARGUMENT, "--data %s: one place too many: '%s'", spec->kind,
                              part);
        spec->place[spec->places++] = part;
        return TUTTI_OK;
    }
    if (spec->pairs == TUTTI_SPEC_KEYS)
        return tutti_fail(TUTTI_ARGUMENT, "--data %s: more than %d keys", spec->kind,
                          (int)TUTTI_SPEC_KEYS);
    *equals = 0;
    for (int i = 0; i < spec->pairs; i++)
        if (!strcmp(spec->pair[i].key, part))
            return tutti_fail(TUTTI_ARGUMENT, "--data %s: %s= is given twice", spec->kind, part);
    spec->pair[spec->pairs].key = part;
    spec->pair[spec->pairs++].value = equals + 1;
    return TUTTI_OK;
}

/* The first ':' or ',' ends the kind: synthetic,classes=10 needs no colon. */
static tutti_status cut(tutti_spec *spec)
{
    char *rest = spec->text + strcspn(spec->text, ":,");
    if (*rest) *rest++ = 0;
    while (*rest) {
        char *part = rest;
        rest += strcspn(rest, ",");
        if (*rest) *rest++ = 0;
        if (*part) TUTTI_TRY(add_part(spec, part));
    }
    return TUTTI_OK;
}

tutti_status tutti_spec_init(tutti_spec *spec, const char *text)
{
    *spec = (tutti_spec){0};
    TUTTI_TRY(tutti_strdup(&spec->text, text));
    spec->kind = spec->text;
    const tutti_status s = cut(spec);
    if (s) tutti_spec_deinit(spec);
    return s;
}

void tutti_spec_deinit(tutti_spec *spec)
{
    tutti_free(spec->text);
    *spec = (tutti_spec){0};
}

const char *tutti_spec_value(tutti_spec *spec, const char *key)
{
    TUTTI_ASSERT(spec->asks < TUTTI_SPEC_ASKED);
    spec->asked[spec->asks++] = key;
    for (int i = 0; i < spec->pairs; i++)
        if (!strcmp(spec->pair[i].key, key)) {
            spec->pair[i].used = true;
            return spec->pair[i].value;
        }
    return NULL;
}

tutti_status tutti_spec_finish(const tutti_spec *spec)
{
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; i < spec->asks && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 spec->asked[i]);
    for (int i = 0; i < spec->pairs; i++)
        if (!spec->pair[i].used)
            return tutti_fail(TUTTI_ARGUMENT, "--data %s: '%s' is not a key; known: %s", spec->kind,
                              spec->pair[i].key, known);
    return TUTTI_OK;
}

static tutti_status not_a(const tutti_spec *spec, const char *key, const char *what)
{
    return tutti_fail(TUTTI_ARGUMENT, "--data %s: %s= must be %s", spec->kind, key, what);
}

tutti_status tutti_spec_real(tutti_spec *spec, const char *key, double *value, double least,
                             double most)
{
    const char *text = tutti_spec_value(spec, key);
    if (!text) return TUTTI_OK;
    char *end = NULL, range[80];
    const double parsed = strtod(text, &end);
    if (end == text || *end || !(parsed >= least && parsed <= most)) {
        snprintf(range, sizeof range, "a number from %g to %g, not '%.20s'", least, most, text);
        return not_a(spec, key, range);
    }
    *value = parsed;
    return TUTTI_OK;
}

tutti_status tutti_spec_int(tutti_spec *spec, const char *key, int *value, int least, int most)
{
    double real = *value;
    TUTTI_TRY(tutti_spec_real(spec, key, &real, least, most));
    if (real != floor(real)) return not_a(spec, key, "a whole number");
    *value = (int)real;
    return TUTTI_OK;
}

tutti_status tutti_spec_flag(tutti_spec *spec, const char *key, bool *value)
{
    const char *text = tutti_spec_value(spec, key);
    if (!text) return TUTTI_OK;
    const bool on = !strcmp(text, "on") || !strcmp(text, "1");
    if (!on && strcmp(text, "off") && strcmp(text, "0")) return not_a(spec, key, "on or off");
    *value = on;
    return TUTTI_OK;
}

tutti_status tutti_spec_holdout(tutti_spec *spec, const char *tests, int *percent)
{
    int given = -1;
    TUTTI_TRY(tutti_spec_int(spec, "holdout", &given, 0, 90));
    if (given >= 0 && tests)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--data %s: holdout= is for data without samples to test on, but these "
                          "are in %s: leave it out",
                          spec->kind, tests);
    *percent = given < 0 ? 10 : given;
    return TUTTI_OK;
}

tutti_status tutti_spec_reals(tutti_spec *spec, const char *key, float *values, int *count,
                              int most)
{
    const char *text = tutti_spec_value(spec, key);
    if (!text) return TUTTI_OK;
    int n = 0;
    for (;;) {
        char *end = NULL;
        const float value = strtof(text, &end);
        if (end == text || (*end && *end != '/') || !isfinite(value) || n == most)
            return not_a(spec, key, "a number for each channel, like 0.5/0.5/0.5");
        values[n++] = value;
        if (!*end) break;
        text = end + 1;
    }
    *count = n;
    return TUTTI_OK;
}
