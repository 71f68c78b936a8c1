#include "watch/series.h"

#include <math.h>
#include <string.h>

#include "watch/scan.h"

enum { DIGITS = 5 };

static const struct {
    const char *name;
    bool extremes;
} quantities[] = {
#define X(name, extremes) {#name, extremes},
    TUTTI_SERIES_MAP(X)
#undef X
};

void tutti_series_clear(tutti_series *s)
{
    memset(s, 0, sizeof *s);
    s->width = 1;
}

static void add_value(tutti_bucket *b, int q, double value)
{
    b->least[q] = b->count[q] ? fmin(b->least[q], value) : value;
    b->most[q] = b->count[q] ? fmax(b->most[q], value) : value;
    b->sum[q] += value;
    b->count[q]++;
}

static void join(tutti_bucket *into, const tutti_bucket *b)
{
    for (int q = 0; q < TUTTI_QUANTITIES; q++) {
        if (!b->count[q]) continue;
        into->least[q] = into->count[q] ? fmin(into->least[q], b->least[q]) : b->least[q];
        into->most[q] = into->count[q] ? fmax(into->most[q], b->most[q]) : b->most[q];
        into->sum[q] += b->sum[q];
        into->count[q] += b->count[q];
    }
}

static void widen(tutti_series *s)
{
    for (int i = 0; i < TUTTI_BUCKETS / 2; i++) {
        tutti_bucket both = s->bucket[2 * i];
        join(&both, &s->bucket[2 * i + 1]);
        s->bucket[i] = both;
    }
    memset(&s->bucket[TUTTI_BUCKETS / 2], 0, sizeof s->bucket / 2);
    s->width *= 2;
}

void tutti_series_add(tutti_series *s, int64_t step, const char *line)
{
    if (step < 1 || step > INT64_C(1) << 53) return;
    while ((step - 1) / s->width >= TUTTI_BUCKETS) widen(s);
    tutti_bucket *b = &s->bucket[(step - 1) / s->width];
    if (step > s->last) s->last = step;
    for (int q = 0; q < TUTTI_QUANTITIES; q++) {
        const double value = tutti_scan_number(line, quantities[q].name);
        if (isfinite(value)) add_value(b, q, value);
        else if (q == TUTTI_SERIES_loss && !s->odd++) s->first_odd = step;
    }
}

double tutti_series_mean(const tutti_series *s, int bucket, tutti_quantity q)
{
    const tutti_bucket *b = &s->bucket[bucket];
    return b->count[q] ? b->sum[q] / (double)b->count[q] : NAN;
}

/* ---- out ---- */

static bool has_any(const tutti_bucket *b)
{
    for (int q = 0; q < TUTTI_QUANTITIES; q++)
        if (b->count[q]) return true;
    return false;
}

static bool is_known(const tutti_series *s, int q)
{
    for (int i = 0; i < TUTTI_BUCKETS; i++)
        if (s->bucket[i].count[q]) return true;
    return false;
}

typedef double value_of(const tutti_series *s, int bucket, tutti_quantity q);

static double least_of(const tutti_series *s, int bucket, tutti_quantity q)
{
    return s->bucket[bucket].count[q] ? s->bucket[bucket].least[q] : NAN;
}

static double most_of(const tutti_series *s, int bucket, tutti_quantity q)
{
    return s->bucket[bucket].count[q] ? s->bucket[bucket].most[q] : NAN;
}

static void put_values(tutti_string *out, const tutti_series *s, int q, const char *suffix,
                       value_of *value)
{
    tutti_string_printf(out, ",\"%s%s\":[", quantities[q].name, suffix);
    for (int i = 0, put = 0; i < TUTTI_BUCKETS; i++) {
        if (!has_any(&s->bucket[i])) continue;
        if (put++) tutti_string_append(out, ",", 1);
        tutti_json_real(out, value(s, i, (tutti_quantity)q), DIGITS);
    }
    tutti_string_append(out, "]", 1);
}

static void put_steps(tutti_string *out, const tutti_series *s)
{
    tutti_string_printf(out, "\"step\":[");
    for (int i = 0, put = 0; i < TUTTI_BUCKETS; i++) {
        const int64_t end = (i + 1) * s->width;
        if (has_any(&s->bucket[i]))
            tutti_string_printf(out, put++ ? ",%lld" : "%lld",
                                (long long)(end < s->last ? end : s->last));
    }
    tutti_string_append(out, "]", 1);
}

void tutti_series_json(tutti_string *out, const tutti_series *s)
{
    tutti_string_printf(out, "{\"width\":%lld,", (long long)s->width);
    put_steps(out, s);
    for (int q = 0; q < TUTTI_QUANTITIES; q++) {
        if (!is_known(s, q)) continue;
        put_values(out, s, q, "", tutti_series_mean);
        if (!quantities[q].extremes || s->width == 1) continue;
        put_values(out, s, q, "_least", least_of);
        put_values(out, s, q, "_most", most_of);
    }
    tutti_string_append(out, "}", 1);
}
