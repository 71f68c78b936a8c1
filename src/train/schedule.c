/* Learning rates must have the same bits on every machine of a cluster: powers with whole
 * exponents are products, all else is made of base/series.h. */
#include "train/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/series.h"

static double power_int(double base, int64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

/* base in [0, 1] */
static double power(double base, double exponent)
{
    if (exponent == floor(exponent)) return power_int(base, (int64_t)exponent);
    return base > 0 ? tutti_series_exp(exponent * tutti_series_log(base)) : 0;
}

/* ---- The kinds ---------------------------------------------------------------------------- */

/* The fraction of the base rate at 'step'; 'done' is the part of the run behind it, 0 .. 1. */
typedef double fraction_fn(const tutti_schedule *s, int64_t step, double done,
                           const tutti_pace *pace);

static double fixed_fraction(const tutti_schedule *s, int64_t step, double done,
                             const tutti_pace *pace)
{
    (void)s, (void)step, (void)done, (void)pace;
    return 1;
}

/* How many periods have passed, by the same rounding as milestones at 1, 2, 3... periods. */
static double step_fraction(const tutti_schedule *s, int64_t step, double done,
                            const tutti_pace *pace)
{
    (void)done;
    const tutti_span *period = &s->times[0];
    int64_t n = period->unit == TUTTI_SPAN_STEPS
                    ? step / (int64_t)period->count
                    : (int64_t)((double)tutti_pace_epoch(pace, step) / period->count);
    if (period->unit == TUTTI_SPAN_EPOCHS)
        while (tutti_pace_steps(pace, (double)(n + 1) * period->count) <= step) n++;
    return power_int(s->factor, n);
}

static double multistep_fraction(const tutti_schedule *s, int64_t step, double done,
                                 const tutti_pace *pace)
{
    (void)done;
    int passed = 0;
    for (int i = 0; i < s->time_count; i++) passed += tutti_span_steps(&s->times[i], pace) <= step;
    return power_int(s->factor, passed);
}

static double exp_fraction(const tutti_schedule *s, int64_t step, double done,
                           const tutti_pace *pace)
{
    (void)done;
    return power_int(s->factor, tutti_pace_epoch(pace, step));
}

static double poly_fraction(const tutti_schedule *s, int64_t step, double done,
                            const tutti_pace *pace)
{
    (void)step, (void)pace;
    return power(1 - done, s->factor);
}

static double cosine_fraction(const tutti_schedule *s, int64_t step, double done,
                              const tutti_pace *pace)
{
    (void)step, (void)pace;
    return s->factor + (1 - s->factor) * 0.5 * (1 + tutti_series_cos_pi(done));
}

struct tutti_schedule_kind {
    const char *name;
    fraction_fn *fraction;
    int least_times, most_times;   /* how many times stand in the first field */
    double least, most, otherwise; /* range of the last field; its value if it may be left out */
    const char *help;
};

// clang-format off
static const tutti_schedule_kind kinds[] = {
    {"fixed",     fixed_fraction,     0, 0, 0,    0,   1,
     "fixed: the rate stays"},
    {"step",      step_fraction,      1, 1, 1e-6, 1,   NAN,
     "step:30:0.1 times 0.1 every 30 epochs"},
    {"multistep", multistep_fraction, 1, TUTTI_SCHEDULE_MILESTONES, 1e-6, 1, NAN,
     "multistep:30,60:0.1 times 0.1 after 30 and 60 epochs"},
    {"exp",       exp_fraction,       0, 0, 1e-6, 1,   NAN,
     "exp:0.95 times 0.95 every epoch"},
    {"poly",      poly_fraction,      0, 0, 0.01, 100, NAN,
     "poly:0.9 falls as (1 - t/T)^0.9 to 0 at the end"},
    {"cosine",    cosine_fraction,    0, 0, 0,    1,   0,
     "cosine[:0.01] half a wave, to 0.01 of the rate"},
};
// clang-format on
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *tutti_schedule_help(int kind)
{
    return kind >= 0 && kind < KINDS ? kinds[kind].help : NULL;
}

/* ---- Text --------------------------------------------------------------------------------- */

static tutti_status bad_schedule(const char *text, const char *help)
{
    return tutti_fail(TUTTI_ARGUMENT, "--lr-schedule: '%s' does not fit; write %s", text, help);
}

static tutti_status find_kind(tutti_schedule *s, const char *text, size_t length)
{
    for (int k = 0; k < KINDS; k++)
        if (strlen(kinds[k].name) == length && strncmp(kinds[k].name, text, length) == 0) {
            s->kind = &kinds[k];
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_ARGUMENT,
                      "--lr-schedule: no schedule '%.*s'; there are fixed, step, multistep, exp, "
                      "poly and cosine",
                      (int)length, text);
}

/* "30,60,80": increasing times, none of them in seconds. */
static tutti_status parse_times(tutti_schedule *s, const char *field, size_t length)
{
    char copy[256];
    if (length >= sizeof copy) return bad_schedule(field, s->kind->help);
    memcpy(copy, field, length);
    copy[length] = 0;
    for (char *at = copy, *next = NULL; at; at = next) {
        if ((next = strchr(at, ','))) *next++ = 0;
        if (s->time_count == s->kind->most_times) return bad_schedule(field, s->kind->help);
        tutti_span *span = &s->times[s->time_count++];
        TUTTI_TRY(tutti_span_parse(span, at, TUTTI_SPAN_EPOCHS, "--lr-schedule"));
        if (span->unit == TUTTI_SPAN_SECONDS || span->count <= 0)
            return tutti_fail(TUTTI_ARGUMENT,
                              "--lr-schedule: '%s' is not a number of epochs or steps", at);
        if (s->time_count > 1 && span[-1].unit == span->unit && span[-1].count >= span->count)
            return tutti_fail(TUTTI_ARGUMENT,
                              "--lr-schedule: the times before '%s' must be smaller", at);
    }
    return TUTTI_OK;
}

static tutti_status parse_factor(tutti_schedule *s, const char *field, const char *text)
{
    const tutti_schedule_kind *kind = s->kind;
    char *end = NULL;
    s->factor = field ? strtod(field, &end) : kind->otherwise;
    if (isnan(s->factor) || (field && (end == field || *end)))
        return bad_schedule(text, kind->help);
    if (field && !(s->factor >= kind->least && s->factor <= kind->most))
        return tutti_fail(TUTTI_ARGUMENT, "--lr-schedule: %s takes %g to %g, not '%s'", kind->name,
                          kind->least, kind->most, field);
    return TUTTI_OK;
}

/* KIND [':' times] [':' factor] */
tutti_status tutti_schedule_parse(tutti_schedule *out, const char *text)
{
    tutti_schedule s = {.warmup = {0, TUTTI_SPAN_STEPS}};
    const size_t name = strcspn(text, ":");
    TUTTI_TRY(find_kind(&s, text, name));

    const char *field = text[name] ? text + name + 1 : NULL;
    if (s.kind->least_times > 0) {
        if (!field) return bad_schedule(text, s.kind->help);
        const size_t length = strcspn(field, ":");
        TUTTI_TRY(parse_times(&s, field, length));
        field = field[length] ? field + length + 1 : NULL;
    }
    if (s.kind->fraction == fixed_fraction && field) return bad_schedule(text, s.kind->help);
    TUTTI_TRY(parse_factor(&s, field, text));
    *out = s;
    return TUTTI_OK;
}

/* ---- The rate ----------------------------------------------------------------------------- */

double tutti_schedule_rate(const tutti_schedule *schedule, double lr, int64_t step,
                           const tutti_pace *pace)
{
    const int64_t warmup = tutti_span_steps(&schedule->warmup, pace);
    const int64_t at = step < warmup ? warmup : step;
    const int64_t length = pace->steps - warmup;
    const double past = length > 0 ? fmin((double)(at - warmup) / (double)length, 1) : 1;
    const double done = step < warmup ? 0 : past;
    const double rate = lr * schedule->kind->fraction(schedule, at, done, pace);
    return step < warmup ? rate * (double)(step + 1) / (double)warmup : rate;
}
