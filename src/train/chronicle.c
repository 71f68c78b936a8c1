/* Rows of ranks are gathered: a row is the mean of as many steps as make half of the rows that are
 * left, so that a run that is prolonged again and again stays below its limit; and of at least
 * SHORTEST_ROW seconds, so that short steps do not pay for it. */
#define _GNU_SOURCE
#include "train/chronicle.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "base/memory.h"
#include "format/journal.h"
#include "format/json.h"

enum { DIGITS = 4, TIME_DIGITS = 14 };

static const double SHORTEST_ROW = 0.05;

struct tutti_chronicle {
    tutti_log log;
    tutti_log own;                   /* of the journals: passes on, and is not written down */
    _Atomic(tutti_journal *) events; /* any thread may warn */
    atomic_llong step;               /* of the last news */
    tutti_journal *events_file;      /* closed at the very end: a thread may be writing */
    tutti_journal *ranks;
    int size;
    int64_t steps_a_row;
    tutti_rank_times *sums; /* [size] of the row that is being gathered */
    int64_t gathered;
    double seconds;
    tutti_string fields;
};

/* ---- opening and closing ---- */

tutti_status tutti_chronicle_create(tutti_chronicle **out, tutti_log log)
{
    TUTTI_TRY(tutti_alloc(out, 1, sizeof **out));
    (*out)->log = (*out)->own = log;
    return TUTTI_OK;
}

tutti_status tutti_chronicle_open(tutti_chronicle *c, const char *run, int64_t done, int64_t steps,
                                  int ranks)
{
    const int64_t kept = tutti_journal_cut(run, "ranks.jsonl", done);
    const int64_t rows = kept < TUTTI_CHRONICLE_ROWS ? (TUTTI_CHRONICLE_ROWS - kept + 1) / 2 : 1;
    c->size = ranks;
    c->steps_a_row = steps > done ? (steps - done + rows - 1) / rows : 1;
    atomic_store(&c->step, done);
    TUTTI_TRY(tutti_alloc(&c->sums, (size_t)ranks, sizeof *c->sums));
    TUTTI_TRY(tutti_journal_open(&c->ranks, run, "ranks.jsonl", &c->own));
    TUTTI_TRY(tutti_journal_open(&c->events_file, run, "events.jsonl", &c->own));
    atomic_store(&c->events, c->events_file);
    return TUTTI_OK;
}

static void write_row(tutti_chronicle *c, int64_t step);

void tutti_chronicle_close(tutti_chronicle *c)
{
    if (!c) return;
    if (c->gathered) write_row(c, atomic_load(&c->step));
    atomic_store(&c->events, NULL);
    tutti_journal_close(&c->ranks);
}

void tutti_chronicle_destroy(tutti_chronicle **chronicle)
{
    tutti_chronicle *c = *chronicle;
    if (!c) return;
    tutti_chronicle_close(c);
    tutti_journal_close(&c->events_file);
    tutti_free(c->sums);
    tutti_string_deinit(&c->fields);
    tutti_free(c);
    *chronicle = NULL;
}

/* ---- events ---- */

static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void tutti_chronicle_event(tutti_chronicle *c, int64_t step, const char *event, const char *text,
                           const char *fields)
{
    tutti_string line = {0};
    tutti_journal *events = c ? atomic_load(&c->events) : NULL;
    if (!events) return;
    tutti_string_printf(&line, "\"event\":\"%s\"", event);
    tutti_json_field_real(&line, "at", wall_time(), TIME_DIGITS);
    tutti_json_field_string(&line, "text", text);
    if (fields) tutti_string_printf(&line, ",%s", fields);
    if (!tutti_string_status(&line)) tutti_journal_write(events, step, "event", line.data);
    tutti_string_deinit(&line);
}

static void hear_line(void *user, tutti_log_level level, const char *line)
{
    tutti_chronicle *c = user;
    if (c->log.sink && level <= c->log.level) c->log.sink(c->log.user, level, line);
    if (level <= TUTTI_LOG_WARNING)
        tutti_chronicle_event(c, atomic_load(&c->step),
                              level == TUTTI_LOG_ERROR ? "error" : "warning", line, NULL);
}

tutti_log tutti_chronicle_log(tutti_chronicle *c)
{
    tutti_log log = c->log;
    log.sink = hear_line;
    log.user = c;
    return log;
}

/* ---- ranks ---- */

static const struct quantity {
    const char *name;
    size_t offset;
    double unit;
    bool most; /* of the steps; else their mean */
} quantities[] = {
    {"compute_us", offsetof(tutti_rank_times, compute), 1e-6, false},
    {"exposed_us", offsetof(tutti_rank_times, exposed), 1e-6, false},
    {"waiting_us", offsetof(tutti_rank_times, waiting), 1e-6, false},
    {"data_us", offsetof(tutti_rank_times, data), 1e-6, false},
    {"memory_mib", offsetof(tutti_rank_times, memory), 1 << 20, true},
};
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

static double *value_of(const struct quantity *q, tutti_rank_times *times)
{
    return (double *)(void *)((char *)times + q->offset);
}

static void add_step(tutti_chronicle *c, const tutti_rank_times *ranks)
{
    for (int r = 0; r < c->size; r++) {
        tutti_rank_times one = ranks[r];
        for (int q = 0; q < QUANTITIES; q++) {
            double *sum = value_of(&quantities[q], &c->sums[r]);
            const double value = *value_of(&quantities[q], &one);
            *sum = quantities[q].most ? fmax(*sum, value) : *sum + value;
        }
    }
    c->gathered++;
}

static void write_quantity(tutti_chronicle *c, const struct quantity *q)
{
    const double scale = (q->most ? 1 : 1 / (double)c->gathered) / q->unit;
    tutti_string_printf(&c->fields, ",\"%s\":[", q->name);
    for (int r = 0; r < c->size; r++) {
        if (r) tutti_string_append(&c->fields, ",", 1);
        tutti_json_real(&c->fields, *value_of(q, &c->sums[r]) * scale, DIGITS);
    }
    tutti_string_append(&c->fields, "]", 1);
}

static void write_row(tutti_chronicle *c, int64_t step)
{
    tutti_string_clear(&c->fields);
    tutti_string_printf(&c->fields, "\"steps\":%lld", (long long)c->gathered);
    tutti_json_field_real(&c->fields, "step_us", 1e6 * c->seconds / (double)c->gathered, DIGITS);
    for (int q = 0; q < QUANTITIES; q++) write_quantity(c, &quantities[q]);
    if (!tutti_string_status(&c->fields))
        tutti_journal_write(c->ranks, step, "ranks", c->fields.data);
    for (int r = 0; r < c->size; r++) c->sums[r] = (tutti_rank_times){0};
    c->gathered = 0;
    c->seconds = 0;
}

void tutti_chronicle_hear(tutti_chronicle *c, const tutti_news *news, double seconds)
{
    if (!c || !c->ranks) return;
    atomic_store(&c->step, news->step);
    add_step(c, news->ranks);
    c->seconds += seconds;
    if (c->gathered >= c->steps_a_row && c->seconds >= SHORTEST_ROW) write_row(c, news->step);
}
