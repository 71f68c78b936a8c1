#include "machine/calibrate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tutti/tutti.h>
#include "base/clock.h"
#include "base/memory.h"
#include "format/file.h"
#include "machine/machine_name.h"
#include "machine/doctor.h"

/* The shares of the time: the machine itself, the exchanges, and what is left for the nets. */
static const double machine_share = 0.03, exchange_share = 0.15;

tutti_calibrate_options tutti_calibrate_defaults(void)
{
    return (tutti_calibrate_options){.seconds = 100};
}

tutti_status tutti_calibration_slowest(tutti_calibration *c, double *values, int count)
{
    if (c->me.size == 1) return TUTTI_OK;
    double *all = NULL;
    const size_t n = (size_t)count;
    TUTTI_TRY(tutti_alloc(&all, (size_t)c->me.size * n, sizeof *all));
    const tutti_status s = tutti_comm_allgather(c->me.comm, values, n * sizeof *values, all);
    for (int r = 0; s == TUTTI_OK && r < c->me.size; r++)
        for (size_t i = 0; i < n; i++) values[i] = fmax(values[i], all[(size_t)r * n + i]);
    tutti_free(all);
    return s;
}

tutti_status tutti_calibration_span(tutti_calibration *c, double start, double end, double *seconds)
{
    double found[] = {end - start, end + c->clock, -(start + c->clock)};
    TUTTI_TRY(tutti_calibration_slowest(c, found, 3));
    *seconds = fmax(found[0], found[1] + found[2]);
    return TUTTI_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tutti_calibration_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[(count - 1) / 2];
}

void tutti_calibration_tick(const tutti_calibration *c)
{
    const int64_t all = (int64_t)ceil(c->options->seconds);
    const int64_t over = (int64_t)(tutti_now() - c->begun);
    if (c->me.rank == 0)
        tutti_bar_show(c->shown, "calibrating, seconds", over < all ? over : all - 1, all);
}

void tutti_calibration_say(const tutti_calibration *c, const char *format, ...)
{
    if (c->me.rank || !c->options->show) return;
    tutti_bar_show(c->shown, "", 1, 1);
    va_list args;
    va_start(args, format);
    vfprintf(c->options->show, format, args);
    va_end(args);
    fprintf(c->options->show, "\n");
    fflush(c->options->show);
}

/* ---- the machine ---- */

static tutti_status open_rank(tutti_calibration *c)
{
    tutti_comm_options o = tutti_comm_defaults();
    o.log = c->options->log;
    o.compute_threads = c->options->threads;
    return tutti_rank_open(&c->me, &o);
}

/* Collective. Ranks of one host have one clock, and need not measure what it is apart. */
static tutti_status compare_clocks(tutti_calibration *c)
{
    double *offsets = NULL;
    TUTTI_TRY(tutti_alloc(&offsets, (size_t)c->me.size, sizeof *offsets));
    const tutti_status s = tutti_comm_clock_offsets(c->me.comm, offsets);
    const char *const host = tutti_comm_host(c->me.comm, c->me.rank);
    if (s == TUTTI_OK && strcmp(host, tutti_comm_host(c->me.comm, 0)) != 0)
        c->clock = offsets[c->me.rank];
    tutti_free(offsets);
    return s;
}

static tutti_status look(tutti_calibration *c, tutti_facts *facts, double seconds)
{
    TUTTI_TRY(tutti_alloc(&c->platform, 1, sizeof *c->platform));
    tutti_facts_collect(facts, &c->me);
    return tutti_speeds_measure(&facts->speeds, &c->me, facts->memory_free, seconds);
}

static tutti_status measure_machine(tutti_calibration *c, double seconds)
{
    tutti_facts facts = {0};
    TUTTI_TRY(tutti_comm_agree(c->me.comm, look(c, &facts, seconds)));
    const int local = tutti_comm_local_size(c->me.comm);
    c->memory_free = (double)facts.memory_free / local;
    double speeds[] = {-facts.speeds.fma_all, -facts.speeds.copy};
    TUTTI_TRY(tutti_calibration_slowest(c, speeds, 2));
    tutti_platform *p = c->platform;
    snprintf(p->name, sizeof p->name, "here");
    snprintf(p->topology, sizeof p->topology, "star");
    tutti_machine_name(p->machine, facts.cpu, c->me.exec.row);
    p->threads = tutti_team_size(c->me.exec.team);
    p->ranks = local;
    p->nodes = c->me.size;
    p->overlap = 1;
    p->peak = -speeds[0] * 1e9;
    p->memory_bandwidth = -speeds[1] * 1e9;
    p->memory = (double)facts.memory / local;
    snprintf(p->title, sizeof p->title, "%.96s: %d rank%s x %d thread%s", p->machine, c->me.size,
             c->me.size > 1 ? "s" : "", p->threads, p->threads > 1 ? "s" : "");
    tutti_calibration_say(c, "%s", p->title);
    tutti_calibration_say(c, "  peak %.0f GFLOP/s, memory %.1f GB/s a rank", p->peak * 1e-9,
                          p->memory_bandwidth * 1e-9);
    return TUTTI_OK;
}

/* ---- the file ---- */

typedef tutti_status saver(const char *path, const char *bytes, size_t count);

static tutti_status save_text(saver *write, const char *path, const tutti_platform *p)
{
    char *text = NULL, remark[160], date[32] = "";
    const time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm)) strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &tm);
    snprintf(remark, sizeof remark, "measured by tutti %s calibrate, %s", tutti_version(), date);
    TUTTI_TRY(tutti_platform_text(&text, p, remark));
    const tutti_status s = write(path, text, strlen(text));
    tutti_free(text);
    return s;
}

/* Under the name of what was measured, and as the newest. */
static tutti_status save_at_home(const tutti_calibration *c)
{
    char home[4000], path[4096], name[TUTTI_HERE_NAME];
    TUTTI_TRY(tutti_platform_home(home, sizeof home));
    TUTTI_TRY(tutti_file_make_directories(home));
    tutti_platform_here(name, c->platform->ranks, c->platform->threads);
    snprintf(path, sizeof path, "%s/%s.platform", home, name);
    TUTTI_TRY(save_text(tutti_file_replace, path, c->platform));
    tutti_calibration_say(c, "written: %s", path);
    snprintf(path, sizeof path, "%s/here.platform", home);
    return save_text(tutti_file_replace, path, c->platform);
}

static tutti_status save(const tutti_calibration *c)
{
    if (c->me.rank) return TUTTI_OK;
    if (!c->options->output) return save_at_home(c);
    TUTTI_TRY(save_text(tutti_file_save, c->options->output, c->platform));
    tutti_calibration_say(c, "written: %s", c->options->output);
    return TUTTI_OK;
}

static tutti_status measure(tutti_calibration *c)
{
    const double seconds = c->options->seconds;
    const double exchanging = c->me.size > 1 ? seconds * exchange_share : 0;
    TUTTI_TRY(tutti_comm_agree(c->me.comm, tutti_file_check_place(c->options->output)));
    TUTTI_TRY(compare_clocks(c));
    TUTTI_TRY(measure_machine(c, seconds * machine_share));
    TUTTI_TRY(tutti_calibrate_exchanges(c, exchanging));
    TUTTI_TRY(tutti_calibrate_common(c));
    TUTTI_TRY(tutti_calibrate_rounds(c, seconds - (tutti_now() - c->begun)));
    return tutti_comm_agree(c->me.comm, save(c));
}

tutti_status tutti_calibrate(const tutti_calibrate_options *options)
{
    tutti_bar shown = {.stream = options->show, .begun = tutti_now()};
    tutti_calibration c = {.options = options, .begun = shown.begun, .shown = &shown};
    TUTTI_TRY(open_rank(&c));
    const tutti_status s = tutti_comm_survive(c.me.comm, measure(&c));
    tutti_bar_show(&shown, "", 1, 1);
    tutti_platform_destroy(&c.platform);
    tutti_rank_close(&c.me);
    return s;
}
