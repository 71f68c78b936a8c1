#define _GNU_SOURCE
#include "train/progress.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <string.h>

#include "base/bar.h"
#include "base/clock.h"
#include "base/memory.h"
#include "format/human.h"

enum { LINE_BYTES = TUTTI_BAR_BYTES, NARROWEST_VALUES = 20 };

struct tutti_progress {
    tutti_progress_options options;
    tutti_pace pace;
    int64_t done; /* steps done before */
    char unit[16];
    double started, printed; /* moments of tutti_now; printed < 0: not yet */
    double task_begun;
    char bar[LINE_BYTES]; /* what stands on the terminal's last line */
    int failure;          /* errno, not asked for yet */
    bool failed;
};

/* ---- Small texts -------------------------------------------------------------------------- */

/* Appends to a line; what does not fit is cut. */
static void add(char line[LINE_BYTES], const char *format, ...) TUTTI_PRINTF(2, 3);
static void add(char line[LINE_BYTES], const char *format, ...)
{
    const size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, LINE_BYTES - used, format, args);
    va_end(args);
}

static void add_rate(char line[LINE_BYTES], double per_second, const char *unit)
{
    add(line, per_second < 100 ? " | %.1f %s/s" : " | %.0f %s/s", per_second, unit);
}

/* ---- Lines -------------------------------------------------------------------------------- */

static double seconds_left(const tutti_progress *p, int64_t step)
{
    const int64_t here = step - p->done;
    return here > 0 ? (tutti_now() - p->started) / (double)here * (double)(p->pace.steps - step)
                    : NAN;
}

/* " | loss 0.3127 | top-1 88.61 % | ..." as far as known. */
static void add_values(char line[LINE_BYTES], const tutti_progress *p,
                       const tutti_progress_now *now)
{
    if (!isnan(now->loss)) add(line, " | loss %.4f", now->loss);
    if (!isnan(now->top1)) {
        const char *name = now->right ? now->right : "top-1";
        add(line, " | %s %.2f %%", name, 100 * now->top1);
    }
    if (!isnan(now->samples_per_s)) add_rate(line, now->samples_per_s, p->unit);
}

static void add_peak(char line[LINE_BYTES], const tutti_progress_now *now)
{
    if (!isnan(now->percent_of_peak)) add(line, " | %.0f %% peak", now->percent_of_peak);
}

static void add_waiting(char line[LINE_BYTES], const tutti_progress_now *now)
{
    if (now->data_wait >= 0.005) add(line, " | data wait %.0f %%", 100 * now->data_wait);
    if (now->comm_exposed >= 0.005) add(line, " | comm exposed %.0f %%", 100 * now->comm_exposed);
}

static void write_log_line(char line[LINE_BYTES], const tutti_progress *p,
                           const tutti_progress_now *now)
{
    char eta[32];
    const double epoch = (double)now->step * (double)p->pace.batch / (double)p->pace.samples;
    line[0] = 0;
    add(line, "step %lld/%lld | epoch %.2f", (long long)now->step, (long long)p->pace.steps, epoch);
    add_values(line, p, now);
    add_peak(line, now);
    if (!isnan(now->lr)) add(line, " | lr %.3g", now->lr);
    if (!isnan(now->step_seconds)) add(line, " | %.1f ms/step", 1e3 * now->step_seconds);
    add_waiting(line, now);
    add(line, " | ETA %s", tutti_format_time(eta, seconds_left(p, now->step)));
}

/* The bar is the epoch's, or of the last one what the run takes of it. */
static void write_bar_line(char line[LINE_BYTES], const tutti_progress *p,
                           const tutti_progress_now *now)
{
    char name[LINE_BYTES] = "", values[LINE_BYTES] = "", eta[32];
    const tutti_pace *pace = &p->pace;
    const int64_t epochs = (pace->steps * pace->batch + pace->samples - 1) / pace->samples;
    const int64_t epoch = tutti_pace_epoch(pace, now->step);
    const bool last = now->step >= pace->steps || epoch >= epochs;
    const int64_t left = pace->steps * pace->batch - epoch * pace->samples;
    const double part = last ? 1
                             : (double)(now->step * pace->batch % pace->samples) /
                                   (double)(left < pace->samples ? left : pace->samples);
    add(name, "step %lld/%lld epoch %lld/%lld", (long long)now->step, (long long)pace->steps,
        (long long)(last ? epochs : epoch + 1), (long long)epochs);
    add_values(values, p, now);
    add(values, " | ETA %s", tutti_format_time(eta, seconds_left(p, now->step)));
    add_waiting(values, now);
    add_peak(values, now);
    const int most = p->options.columns - 1 - (int)strlen(name) - 3 - TUTTI_BAR_NARROWEST;
    if (most > NARROWEST_VALUES) tutti_bar_shorten(values, most);
    tutti_bar_compose(line, p->options.columns, name, part, values);
}

/* ---- The progress ------------------------------------------------------------------------- */

tutti_progress_options tutti_progress_defaults(FILE *stream)
{
    const int columns = stream ? tutti_bar_columns(stream) : 0;
    const bool terminal = columns > 0;
    return (tutti_progress_options){stream, terminal, terminal && tutti_bar_may_colour(), columns,
                                    terminal ? 0.1 : 5};
}

tutti_status tutti_progress_create(tutti_progress **out, tutti_progress_options options,
                                   const tutti_pace *pace, int64_t done, const char *unit)
{
    tutti_progress *p = NULL;
    TUTTI_TRY(tutti_alloc(&p, 1, sizeof *p));
    *p = (tutti_progress){
        .options = options, .pace = *pace, .done = done, .started = tutti_now(), .printed = -1};
    snprintf(p->unit, sizeof p->unit, "%s", unit);
    *out = p;
    return TUTTI_OK;
}

/* The terminal may have been resized. */
static void measure(tutti_progress *p)
{
    const int columns = tutti_bar_columns(p->options.stream);
    if (columns) p->options.columns = columns;
}

/* Takes the bar away, so that other lines can be written where it stood. */
static void clear_bar(tutti_progress *p)
{
    if (!p->bar[0]) return;
    measure(p);
    tutti_bar_clear(p->options.stream, p->bar, p->options.columns);
}

static void draw_bar(const tutti_progress *p)
{
    tutti_bar_draw(p->options.stream, p->bar, p->options.colour);
}

/* What a full disk did not take is not tried again: the next line is as good. */
static void flush(tutti_progress *p)
{
    FILE *stream = p->options.stream;
    if (fflush(stream) == 0 && !ferror(stream)) return;
    const bool is_full = errno == ENOSPC || errno == EDQUOT;
    if (!p->failed) p->failure = errno;
    p->failed = true;
    __fpurge(stream);
    clearerr(stream);
    if (!is_full) p->options.stream = NULL;
}

int tutti_progress_failure(tutti_progress *progress)
{
    const int failure = progress ? progress->failure : 0;
    if (progress) progress->failure = 0;
    return failure;
}

void tutti_progress_end(tutti_progress *progress)
{
    if (!progress || !progress->options.stream || !progress->bar[0]) return;
    fputc('\n', progress->options.stream);
    progress->bar[0] = 0;
    flush(progress);
}

void tutti_progress_destroy(tutti_progress **progress)
{
    tutti_progress *p = *progress;
    if (!p) return;
    tutti_progress_end(p);
    tutti_free(p);
    *progress = NULL;
}

bool tutti_progress_due(const tutti_progress *progress, int64_t step)
{
    if (!progress || !progress->options.stream) return false;
    return progress->printed < 0 || step >= progress->pace.steps ||
           tutti_now() - progress->printed >= progress->options.every;
}

void tutti_progress_step(tutti_progress *progress, const tutti_progress_now *now)
{
    if (!tutti_progress_due(progress, now->step)) return;
    tutti_progress *p = progress;
    char line[LINE_BYTES];
    p->printed = tutti_now();
    if (p->options.terminal) {
        measure(p);
        clear_bar(p);
        write_bar_line(p->bar, p, now);
        draw_bar(p);
    } else {
        write_log_line(line, p, now);
        fprintf(p->options.stream, "%s\n", line);
    }
    flush(p);
}

static void draw_task(tutti_progress *p, const char *what, int64_t done, int64_t total)
{
    char values[LINE_BYTES] = "";
    add(values, " | %lld/%lld", (long long)done, (long long)total);
    if (!p->options.terminal) {
        fprintf(p->options.stream, "%s%s\n", what, values);
        return;
    }
    measure(p);
    clear_bar(p);
    p->bar[0] = 0;
    if (done < total)
        tutti_bar_compose(p->bar, p->options.columns, what, (double)done / (double)total, values);
    draw_bar(p);
}

void tutti_progress_task(tutti_progress *progress, const char *what, int64_t done, int64_t total)
{
    tutti_progress *p = progress;
    const double now = tutti_now();
    if (!p || !p->options.stream) return;
    if (!done) p->task_begun = now;
    const double before = p->printed > p->task_begun ? p->printed : p->task_begun;
    const bool ends_bar = done >= total && p->options.terminal;
    if (!ends_bar && (done >= total || now - before < p->options.every)) return;
    p->printed = now;
    draw_task(p, what, done, total);
    flush(p);
}

void tutti_progress_say(tutti_progress *progress, const char *format, ...)
{
    if (!progress || !progress->options.stream) return;
    FILE *stream = progress->options.stream;
    va_list args;
    clear_bar(progress);
    va_start(args, format);
    vfprintf(stream, format, args);
    va_end(args);
    fputc('\n', stream);
    draw_bar(progress);
    flush(progress);
}

void tutti_progress_facts(tutti_progress *progress, const char *title,
                          const tutti_progress_fact *facts)
{
    int width = 0;
    for (const tutti_progress_fact *f = facts; f->name; f++)
        if (f->value && (int)strlen(f->name) > width) width = (int)strlen(f->name);
    if (title) tutti_progress_say(progress, "%s", title);
    for (const tutti_progress_fact *f = facts; f->name; f++)
        if (f->value) tutti_progress_say(progress, "  %-*s  %s", width, f->name, f->value);
}
