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
    return power_int(s->factors[0], n);
}

static double multistep_fraction(const tutti_schedule *s, int64_t step, double done,
                                 const tutti_pace *pace)
{
    (void)done;
    int passed = 0;
    for (int i = 0; i < s->time_count; i++) passed += tutti_span_steps(&s->times[i], pace) <= step;
    return power_int(s->factors[0], passed);
}

static double exp_fraction(const tutti_schedule *s, int64_t step, double done,
                           const tutti_pace *pace)
{
    (void)done;
    return power_int(s->factors[0], tutti_pace_epoch(pace, step));
}

static double poly_fraction(const tutti_schedule *s, int64_t step, double done,
                            const tutti_pace *pace)
{
    (void)step, (void)pace;
    return power(1 - done, s->factors[0]);
}

static double cosine_fraction(const tutti_schedule *s, int64_t step, double done,
                              const tutti_pace *pace)
{
    (void)step, (void)pace;
    return s->factors[0] + (1 - s->factors[0]) * 0.5 * (1 + tutti_series_cos_pi(done));
}

/* From 'from' to 'to' in half a cosine wave. */
static double annealed(double from, double to, double part)
{
    return to + (from - to) / 2 * (tutti_series_cos_pi(part) + 1);
}

/* PyTorch's OneCycleLR: the peak is at step START * steps - 1, which need not be whole, the lowest
 * rate at the last step. */
static double onecycle_fraction(const tutti_schedule *s, int64_t step, double done,
                                const tutti_pace *pace)
{
    (void)done;
    const double first = 1 / s->factors[1], last = first / s->factors[2];
    const double end = (double)pace->steps - 1, at = fmin((double)step, end);
    const double peak = s->factors[0] * (double)pace->steps - 1;
    if (at > peak) return annealed(1, last, (at - peak) / (end - peak));
    return peak > 0 ? annealed(first, 1, at / peak) : 1;
}

/* A number of the text: its range, and its value where it may be left out. */
typedef struct bounds {
    double least, most, otherwise;
} bounds;

struct tutti_schedule_kind {
    const char *name;
    fraction_fn *fraction;
    int least_times, most_times; /* how many times stand in the first field */
    int factor_count;            /* fields behind it */
    bounds factors[TUTTI_SCHEDULE_FACTORS];
    const char *help;
    bool warms_up; /* by itself */
};

// clang-format off
static const tutti_schedule_kind kinds[] = {
    {"fixed",     fixed_fraction,     0, 0, 0, {{0, 0, 0}},
     "fixed: the rate stays", false},
    {"step",      step_fraction,      1, 1, 1, {{1e-6, 1, NAN}},
     "step:30:0.1 times 0.1 every 30 epochs", false},
    {"multistep", multistep_fraction, 1, TUTTI_SCHEDULE_MILESTONES, 1, {{1e-6, 1, NAN}},
     "multistep:30,60:0.1 times 0.1 after 30 and 60 epochs", false},
    {"exp",       exp_fraction,       0, 0, 1, {{1e-6, 1, NAN}},
     "exp:0.95 times 0.95 every epoch", false},
    {"poly",      poly_fraction,      0, 0, 1, {{0.01, 100, NAN}},
     "poly:0.9 falls as (1 - t/T)^0.9 to 0 at the end", false},
    {"cosine",    cosine_fraction,    0, 0, 1, {{0, 1, 0}},
     "cosine[:0.01] half a wave, to 0.01 of the rate", false},
    {"onecycle",  onecycle_fraction,  0, 0, 3, {{0.01, 0.99, 0.3}, {1, 1e6, 25}, {1, 1e9, 1e4}},
     "onecycle[:0.3[:25[:1e4]]] up from 1/25 of the rate in the first 0.3 of the run, then down to "
     "1/1e4 of that", true},
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
                      "poly, cosine and onecycle",
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

/* One field, up to a colon; NULL: there is none. */
static tutti_status parse_factor(tutti_schedule *s, int which, const char *at, const char *text)
{
    const tutti_schedule_kind *kind = s->kind;
    const bounds *f = &kind->factors[which];
    char *end = NULL;
    const double value = s->factors[which] = at ? strtod(at, &end) : f->otherwise;
    if (isnan(value) || (at && (end == at || (*end && *end != ':'))))
        return bad_schedule(text, kind->help);
    if (at && !(value >= f->least && value <= f->most))
        return tutti_fail(TUTTI_ARGUMENT, "--lr-schedule: %s takes %g to %g, not '%.*s'",
                          kind->name, f->least, f->most, (int)strcspn(at, ":"), at);
    return TUTTI_OK;
}

/* KIND [':' times] {':' factor} */
tutti_status tutti_schedule_parse(tutti_schedule *out, const char *text)
{
    tutti_schedule s = {.warmup = {0, TUTTI_SPAN_STEPS}};
    const size_t name = strcspn(text, ":");
    TUTTI_TRY(find_kind(&s, text, name));

    const char *rest = text[name] ? text + name + 1 : NULL;
    if (s.kind->least_times > 0) {
        if (!rest) return bad_schedule(text, s.kind->help);
        const size_t length = strcspn(rest, ":");
        TUTTI_TRY(parse_times(&s, rest, length));
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    for (int i = 0; i < s.kind->factor_count; i++) {
        TUTTI_TRY(parse_factor(&s, i, rest, text));
        rest = rest && rest[strcspn(rest, ":")] ? rest + strcspn(rest, ":") + 1 : NULL;
    }
    if (rest) return bad_schedule(text, s.kind->help);
    *out = s;
    return TUTTI_OK;
}

bool tutti_schedule_warms_up(const tutti_schedule *schedule)
{
    return schedule->kind->warms_up;
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
