#include "watch/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "watch/scan.h"

/* The journal has 2,000 rows at most; a file that somebody made may have more. */
enum { MOST_ROWS = 4096, MOST_RANKS = 4096, MOST_FLOATS = 1 << 25 };
enum { MOST_CELLS = 16384, MOST_COLUMNS = 240, LEAST_COLUMNS = 48, MOST_SHOWN = 256 };

static const char *const names[TUTTI_RANK_QUANTITIES] = {"compute_us", "exposed_us", "waiting_us",
                                                         "data_us"};
enum { COMPUTE, EXPOSED, WAITING, DATA };

typedef struct row {
    int64_t step, steps;
    int ranks;
    float *us[TUTTI_RANK_QUANTITIES]; /* [ranks] each; the first owns the memory of all */
} row;

struct tutti_ranks {
    row rows[MOST_ROWS];
    int count, most;
    int64_t floats;
    float memory[MOST_RANKS]; /* MiB, of the last row */
};

tutti_status tutti_ranks_create(tutti_ranks **out)
{
    return tutti_alloc(out, 1, sizeof **out);
}

void tutti_ranks_clear(tutti_ranks *r)
{
    for (int i = 0; i < r->count; i++) tutti_free(r->rows[i].us[0]);
    memset(r, 0, sizeof *r);
}

void tutti_ranks_destroy(tutti_ranks **ranks)
{
    if (!*ranks) return;
    tutti_ranks_clear(*ranks);
    tutti_free(*ranks);
    *ranks = NULL;
}

/* ---- in ---- */

static int count_ranks(const char *line)
{
    const char *at = strstr(line, "\"compute_us\":[");
    int count = 1;
    if (!at) return 0;
    for (; *at && *at != ']'; at++) count += *at == ',';
    return count;
}

static double steps_of(const char *line)
{
    const double steps = tutti_scan_number(line, "steps");
    return steps >= 1 && steps < 1e15 ? steps : 1;
}

tutti_status tutti_ranks_add(tutti_ranks *r, int64_t step, const char *line)
{
    const int ranks = count_ranks(line);
    row *new = &r->rows[r->count];
    const int64_t floats = (int64_t)ranks * TUTTI_RANK_QUANTITIES;
    if (ranks < 1 || ranks > MOST_RANKS || r->count == MOST_ROWS ||
        r->floats + floats > MOST_FLOATS)
        return TUTTI_OK;
    *new = (row){.step = step, .steps = (int64_t)steps_of(line), .ranks = ranks};
    TUTTI_TRY(tutti_alloc(&new->us[0], (size_t)floats, sizeof(float)));
    for (int q = 0; q < TUTTI_RANK_QUANTITIES; q++) {
        new->us[q] = new->us[0] + (size_t)q *(size_t)ranks;
        const int got = tutti_scan_numbers(line, names[q], new->us[q], ranks);
        for (int i = 0; i < ranks; i++)
            if (i >= got || !(new->us[q][i] >= 0) || new->us[q][i] > 1e18f) new->us[q][i] = 0;
    }
    for (int i = 0; i < MOST_RANKS; i++) r->memory[i] = 0;
    tutti_scan_numbers(line, "memory_mib", r->memory, ranks);
    r->count++;
    r->floats += floats;
    if (ranks > r->most) r->most = ranks;
    return TUTTI_OK;
}

int tutti_ranks_count(const tutti_ranks *r)
{
    return r->most;
}

double tutti_ranks_memory(const tutti_ranks *r, int rank)
{
    return r->memory[rank] > 0 ? (double)r->memory[rank] * 1048576.0 : (double)NAN;
}

/* ---- the verdict ---- */

static double busy(const row *w, int rank)
{
    return (double)w->us[COMPUTE][rank] + (double)w->us[DATA][rank];
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How long the rank in the middle was busy. */
static double middle(const row *w)
{
    double values[MOST_RANKS];
    for (int i = 0; i < w->ranks; i++) values[i] = busy(w, i);
    qsort(values, (size_t)w->ranks, sizeof *values, by_value);
    return values[(w->ranks - 1) / 2];
}

static int slowest(const row *w)
{
    int most = 0;
    for (int i = 1; i < w->ranks; i++)
        if (busy(w, i) > busy(w, most)) most = i;
    return most;
}

static double length_of(const row *w, int rank)
{
    double sum = 0;
    for (int q = 0; q < TUTTI_RANK_QUANTITIES; q++) sum += (double)w->us[q][rank];
    return sum;
}

/* Half of all its lag in a twentieth of the steps? 'lags' are of rows, and get sorted. */
static bool is_concentrated(double *lags, int rows, double sum)
{
    double top = 0;
    const int few = (rows + 19) / 20;
    qsort(lags, (size_t)rows, sizeof *lags, by_value);
    for (int i = rows - few; i < rows; i++) top += lags[i];
    return rows >= 3 && top >= 0.5 * sum;
}

typedef struct tally {
    double lag[MOST_RANKS]; /* us, over all steps */
    double time, steps;     /* of all rows */
    double middles[MOST_ROWS];
} tally;

static void look_at(const tutti_ranks *r, tally *t)
{
    for (int i = 0; i < r->count; i++) {
        const row *w = &r->rows[i];
        const int rank = slowest(w);
        t->middles[i] = middle(w);
        t->lag[rank] += (busy(w, rank) - t->middles[i]) * (double)w->steps;
        t->time += length_of(w, rank) * (double)w->steps;
        t->steps += (double)w->steps;
    }
}

static void follow(const tutti_ranks *r, const tally *t, tutti_verdict *v)
{
    double lags[MOST_ROWS], sum = 0;
    int rows = 0;
    for (int i = 0; i < r->count; i++) {
        const row *w = &r->rows[i];
        if (v->rank >= w->ranks) continue;
        const double lag = fmax(0, busy(w, v->rank) - t->middles[i]);
        if (lag > 0.05 * t->middles[i]) v->share += (double)w->steps / t->steps;
        if (lag * 1e-6 > v->worst) {
            v->worst = lag * 1e-6;
            v->step = w->step;
        }
        lags[rows] = lag * (double)w->steps;
        sum += lags[rows++];
    }
    if (v->cost < 0.02) v->kind = TUTTI_PACE_EVEN;
    else if (v->share >= 1 / 3.0) v->kind = TUTTI_PACE_CHRONIC;
    else v->kind = is_concentrated(lags, rows, sum) ? TUTTI_PACE_ONCE : TUTTI_PACE_SOMETIMES;
}

tutti_verdict tutti_ranks_judge(const tutti_ranks *r)
{
    tutti_verdict v = {.rank = -1};
    tally *t = NULL;
    if (r->most < 2 || tutti_alloc(&t, 1, sizeof *t)) return v;
    look_at(r, t);
    v.rank = 0;
    for (int i = 1; i < r->most; i++)
        if (t->lag[i] > t->lag[v.rank]) v.rank = i;
    v.cost = t->time > 0 ? t->lag[v.rank] / t->time : 0;
    follow(r, t, &v);
    tutti_free(t);
    return v;
}

const char *tutti_pace_name(tutti_pace_kind kind)
{
    static const char *const words[] = {"even", "chronic", "once", "sometimes"};
    return words[kind];
}

/* ---- for the page ---- */

/* A picture: rows of the file gathered into columns, neighbouring ranks into lines. */
typedef struct picture {
    const tutti_ranks *ranks;
    int columns, lines, ranks_a_line;
} picture;

static picture picture_of(const tutti_ranks *r)
{
    picture p = {.ranks = r, .ranks_a_line = (r->most + MOST_SHOWN - 1) / MOST_SHOWN};
    if (!r->most) return p;
    p.lines = (r->most + p.ranks_a_line - 1) / p.ranks_a_line;
    const int most = MOST_CELLS / p.lines;
    p.columns = most > MOST_COLUMNS ? MOST_COLUMNS : most < LEAST_COLUMNS ? LEAST_COLUMNS : most;
    if (p.columns > r->count) p.columns = r->count;
    return p;
}

static int first_row(const picture *p, int column)
{
    return (int)((int64_t)column * p->ranks->count / p->columns);
}

/* The mean step of these ranks in these rows, in us; -1: there was none. */
static double cell(const picture *p, int q, int line, int column)
{
    double sum = 0, steps = 0;
    for (int i = first_row(p, column); i < first_row(p, column + 1); i++) {
        const row *w = &p->ranks->rows[i];
        const int end = (line + 1) * p->ranks_a_line;
        for (int r = line * p->ranks_a_line; r < end && r < w->ranks; r++) {
            sum += (double)w->us[q][r] * (double)w->steps;
            steps += (double)w->steps;
        }
    }
    return steps > 0 ? sum / steps : -1;
}

static void put_cells(tutti_string *out, const picture *p, int q)
{
    tutti_string_printf(out, ",\"%s\":[", names[q]);
    for (int line = 0; line < p->lines; line++) {
        tutti_string_append(out, line ? ",[" : "[", line ? 2 : 1);
        for (int c = 0; c < p->columns; c++)
            tutti_string_printf(out, c ? ",%.0f" : "%.0f", cell(p, q, line, c));
        tutti_string_append(out, "]", 1);
    }
    tutti_string_append(out, "]", 1);
}

static void put_steps(tutti_string *out, const picture *p)
{
    tutti_json_key(out, "step");
    tutti_string_append(out, "[", 1);
    for (int c = 0; c < p->columns; c++)
        tutti_string_printf(out, c ? ",%lld" : "%lld",
                            (long long)p->ranks->rows[first_row(p, c + 1) - 1].step);
    tutti_string_append(out, "]", 1);
}

static void put_memory(tutti_string *out, const tutti_ranks *r)
{
    tutti_json_key(out, "memory_mib");
    tutti_string_append(out, "[", 1);
    for (int i = 0; i < r->most; i++) {
        if (i) tutti_string_append(out, ",", 1);
        tutti_json_real(out, (double)r->memory[i], 4);
    }
    tutti_string_append(out, "]", 1);
}

static void put_verdict(tutti_string *out, const tutti_verdict *v)
{
    if (v->rank < 0) return;
    tutti_json_key(out, "verdict");
    tutti_string_append(out, "{", 1);
    tutti_json_field_string(out, "kind", tutti_pace_name(v->kind));
    tutti_json_field_int(out, "rank", v->rank);
    tutti_json_field_real(out, "cost", v->cost, 4);
    tutti_json_field_real(out, "share", v->share, 4);
    tutti_json_field_int(out, "step", v->step);
    tutti_json_field_real(out, "worst_s", v->worst, 4);
    tutti_string_append(out, "}", 1);
}

void tutti_ranks_json(tutti_string *out, const tutti_ranks *r)
{
    const picture p = picture_of(r);
    const tutti_verdict verdict = tutti_ranks_judge(r);
    tutti_string_append(out, "{", 1);
    tutti_json_field_int(out, "ranks", r->most);
    tutti_json_field_int(out, "ranks_a_line", p.ranks_a_line);
    put_steps(out, &p);
    for (int q = 0; q < TUTTI_RANK_QUANTITIES; q++) put_cells(out, &p, q);
    put_memory(out, r);
    put_verdict(out, &verdict);
    tutti_string_append(out, "}", 1);
}
