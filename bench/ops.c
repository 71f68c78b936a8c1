/* Passes that only stream through memory, against the rate of a plain copy.
 *
 *   bench/ops [--threads N] [--mib N] [--seconds S] [--only NAME] [--json]
 *
 * Each pass runs alternately with a copy of arrays of the same size, whose stores bypass the
 * caches, because the speed of a machine that others use, too, can double from one second to the
 * next. The rates are the best of all rounds; the percentages are medians over the rounds. Bytes
 * are those the pass must move: every input read once, every output written once.
 *
 * "of copy" compares bytes per second with the copies just before and after the pass. Where memory
 * has lanes for each direction a copy uses both, and a pass that does little but write, or read,
 * cannot reach all of that: "of plain" compares with loops, just before the pass, that read and
 * write as much as it does and do nothing else. They do not fetch ahead; a pass that does can be
 * faster. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli.h"
#include "kernel/ops.h"
#include "ops_passes.h"

typedef struct ops_options {
    int threads, mib;
    double seconds;
    const char *only;
    bool json;
} ops_options;

#define AT(field) offsetof(ops_options, field)
// clang-format off
static const cli_option options[] = {
    {"threads|t", CLI_INT,  AT(threads), 0, 1024, "0", .help = "threads; 0: one per core"},
    {"mib",       CLI_INT,  AT(mib),     1, 4096, "64", .help = "MiB of the largest array"},
    {"seconds",   CLI_REAL, AT(seconds), 0.01, 60, "1", .help = "per pass, with its copy"},
    {"only",      CLI_TEXT, AT(only),    .help = "passes whose name has this in it"},
    {"json",      CLI_FLAG, AT(json),    .help = "print JSON"},
    {.name = NULL},
};
// clang-format on

/* ---- timing ---- */

typedef enum kind { PLAIN_COPY, PLAIN_READ, PLAIN_WRITE } kind_of_move;

typedef struct plain_job {
    const bench *b;
    kind_of_move kind;
    size_t count; /* floats */
} plain_job;

static void plain_share(void *arg, int thread, int threads)
{
    const plain_job *job = arg;
    const bench *b = job->b;
    const tutti_range mine = tutti_range_of(job->count / 64, threads, thread);
    const size_t at = mine.begin * 64, count = tutti_range_length(mine) * 64;
    float sink[1];
    if (!count) return;
    if (job->kind == PLAIN_COPY) b->exec.row->stream_copy(b->c + at, b->a + at, count);
    else if (job->kind == PLAIN_READ) b->exec.row->stream_read(b->b + at, count, sink);
    else b->exec.row->stream_write(b->c + at, count, 1.0f);
}

/* Moves 'arrays' arrays, or a part of one. */
static void move(bench *b, kind_of_move kind, double arrays)
{
    for (; arrays > 0.0; arrays -= 1.0) {
        plain_job job = {b, kind, arrays < 1.0 ? (size_t)(arrays * (double)b->count) : b->count};
        tutti_team_run(b->exec.team, plain_share, &job);
    }
}

static double time_of_plain(bench *b, double reads, double writes)
{
    const double start = tutti_now(), both = reads < writes ? reads : writes;
    move(b, PLAIN_COPY, both);
    move(b, PLAIN_READ, reads - both);
    move(b, PLAIN_WRITE, writes - both);
    return tutti_now() - start;
}

static double time_of_copy(bench *b)
{
    return time_of_plain(b, 1.0, 1.0);
}

static double time_of(bench *b, const pass *p)
{
    const double start = tutti_now();
    run_pass(b, p);
    return tutti_now() - start;
}

enum { MAX_ROUNDS = 10000 };

typedef struct result {
    double rate, copy;        /* GB/s */
    double of_copy, of_plain; /* medians of the rounds, in percent */
} result;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Numbers in [-1, 1] for every pass anew: passes in place make them grow. */
static void fill_share(void *arg, int thread, int threads)
{
    const bench *b = arg;
    float *const arrays[] = {b->a, b->b, b->c, b->d};
    for (int k = thread; k < 4; k += threads)
        for (size_t i = 0; i < b->count; i++)
            arrays[k][i] = (float)((i * 2654435761u + (size_t)k) % 2001) * 1e-3f - 1.0f;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static result measure(bench *b, const pass *p, double seconds)
{
    static double of_copy[MAX_ROUNDS], of_plain[MAX_ROUNDS];
    const double bytes = (double)b->count * sizeof(float) * 1e-9, arrays = p->reads + p->writes;
    tutti_team_run(b->exec.team, fill_share, b);
    double best = 1e9, copy = 1e9, before = time_of_copy(b);
    int rounds = 0;
    run_pass(b, p);
    for (const double end = tutti_now() + seconds; tutti_now() < end && rounds < MAX_ROUNDS;) {
        const double plain = time_of_plain(b, p->reads, p->writes);
        const double t = time_of(b, p), after = time_of_copy(b);
        of_copy[rounds] = 50.0 * arrays / t * (before + after) / 2.0;
        of_plain[rounds++] = 100.0 * plain / t;
        if (after < copy) copy = after;
        if (t < best) best = t;
        before = after;
    }
    return (result){arrays * bytes / best, 2.0 * bytes / copy, median(of_copy, rounds),
                    median(of_plain, rounds)};
}

/* ---- setting up ---- */

static tutti_status set_up(bench *b, const ops_options *o)
{
    const size_t sample = (size_t)CHANNELS * PIXELS;
    b->n = (int)(((size_t)o->mib << 20) / sizeof(float) / sample);
    if (b->n < 1) b->n = 1;
    b->count = (size_t)b->n * sample;
    TUTTI_TRY(tutti_kernels_choose(&b->exec.row));
    TUTTI_TRY(tutti_team_create(&b->exec.team, o->threads));
    TUTTI_TRY(tutti_alloc(&b->tap, b->count, sizeof *b->tap));
    TUTTI_TRY(tutti_alloc(&b->labels, b->count / CLASSES + 1, sizeof *b->labels));
    float **arrays[] = {&b->a, &b->b, &b->c, &b->d};
    for (int k = 0; k < 4; k++) TUTTI_TRY(tutti_alloc(arrays[k], b->count, sizeof(float)));
    return TUTTI_OK;
}

static void tear_down(bench *b)
{
    tutti_team_destroy(&b->exec.team);
    tutti_free(b->tap);
    tutti_free(b->labels);
    tutti_free(b->a);
    tutti_free(b->b);
    tutti_free(b->c);
    tutti_free(b->d);
}

static void report(json_t *rows, const pass *p, result r)
{
    if (rows)
        json_array_append_new(rows,
                              json_pack("{s:s, s:f, s:f, s:f, s:f, s:b}", "pass", p->name, "gbs",
                                        r.rate, "copy_gbs", r.copy, "percent", r.of_copy,
                                        "percent_of_plain", r.of_plain, "streams", p->streams));
    else
        printf("%-30s %7.1f %7.1f %8.0f%% %8.0f%%\n", p->name, r.rate, r.copy, r.of_copy,
               r.of_plain);
    fflush(stdout);
}

static tutti_status run_all(const ops_options *o, json_t *rows)
{
    bench b = {0};
    const tutti_status s = set_up(&b, o);
    if (s == TUTTI_OK && !rows)
        printf("%s, %d threads, arrays of %.0f MiB\n%-30s %7s %7s %9s %9s\n", b.exec.row->name,
               tutti_team_size(b.exec.team), (double)b.count * sizeof(float) / 1048576.0, "pass",
               "GB/s", "copy", "of copy", "of plain");
    for (int i = 0; s == TUTTI_OK && passes[i].name; i++)
        if (!o->only || strstr(passes[i].name, o->only))
            report(rows, &passes[i], measure(&b, &passes[i], o->seconds));
    tear_down(&b);
    return s;
}

static int run(const cli_call *call)
{
    const ops_options *o = call->values;
    json_t *rows = o->json ? json_array() : NULL;
    const tutti_status s = run_all(o, rows);
    if (rows) {
        json_t *all = json_pack("{s:o}", "rows", rows);
        if (s == TUTTI_OK) json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        if (s == TUTTI_OK) printf("\n");
        json_decref(all);
    }
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

static const cli_verb verb = {
    "ops", "measure passes against a copy", options, sizeof(ops_options), run, NULL, NULL};

int main(int argc, char **argv)
{
    ops_options values;
    return cli_run_alone(&verb, &values, argc, argv);
}
