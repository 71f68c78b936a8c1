#define _GNU_SOURCE
#include "watch/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "checkpoint/claim.h"
#include "checkpoint/names.h"
#include "format/file.h"
#include "watch/scan.h"

/* ---- opening ---- */

static void forget_metrics(tutti_feed *f)
{
    tutti_series_clear(&f->series);
    f->evaluation_count = 0;
    f->evaluation_stride = 1;
    f->evaluations_seen = 0;
    f->layer_count = 0;
    f->recent_s = f->recent_rate = f->loss = f->top1 = NAN;
    f->longest_evaluation = 0;
}

static bool has_file(const char *run, const char *name)
{
    char path[TUTTI_PATH_BYTES];
    struct stat info;
    return tutti_checkpoint_path(path, run, name, "") == TUTTI_OK && stat(path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

static tutti_status check(const char *run)
{
    struct stat info;
    if (stat(run, &info)) return tutti_file_failure("open", run);
    if (!S_ISDIR(info.st_mode)) return tutti_fail(TUTTI_IO, "'%s' is not a directory", run);
    if (has_file(run, "metrics.jsonl") || has_file(run, "events.jsonl") || has_file(run, "lock"))
        return TUTTI_OK;
    return tutti_fail(TUTTI_DATA,
                      "there is no run in '%s': name the directory that tutti train was given by "
                      "--run",
                      run);
}

static tutti_status open_parts(tutti_feed *f, const char *run)
{
    TUTTI_TRY(tutti_strdup(&f->run, run));
    TUTTI_TRY(tutti_ranks_create(&f->ranks));
    TUTTI_TRY(tutti_tail_open(&f->metrics, run, "metrics.jsonl"));
    TUTTI_TRY(tutti_tail_open(&f->ranks_file, run, "ranks.jsonl"));
    return tutti_tail_open(&f->events_file, run, "events.jsonl");
}

tutti_status tutti_feed_open(tutti_feed **out, const char *run)
{
    tutti_feed *f = NULL;
    TUTTI_TRY(check(run));
    TUTTI_TRY(tutti_alloc(&f, 1, sizeof *f));
    forget_metrics(f);
    const tutti_status s = open_parts(f, run);
    if (s != TUTTI_OK) tutti_feed_close(&f);
    else *out = f;
    return s;
}

void tutti_feed_close(tutti_feed **feed)
{
    tutti_feed *f = *feed;
    if (!f) return;
    tutti_tail_close(&f->metrics);
    tutti_tail_close(&f->ranks_file);
    tutti_tail_close(&f->events_file);
    tutti_ranks_destroy(&f->ranks);
    tutti_diary_clear(&f->events);
    tutti_free(f->run);
    tutti_free(f);
    *feed = NULL;
}

/* ---- reading ---- */

static void follow(double *value, double now)
{
    if (isfinite(now)) *value = isfinite(*value) ? 0.95 * *value + 0.05 * now : now;
}

static void add_step(tutti_feed *f, int64_t step, const char *line)
{
    tutti_series_add(&f->series, step, line);
    follow(&f->recent_s, tutti_scan_number(line, "seconds"));
    follow(&f->recent_rate, tutti_scan_number(line, "samples_per_s"));
    follow(&f->loss, tutti_scan_number(line, "loss"));
    follow(&f->top1, tutti_scan_number(line, "top1"));
}

/* Of too many every other one goes. */
static void thin_out(tutti_feed *f)
{
    for (int i = 0; i < TUTTI_MOST_EVALUATIONS / 2; i++)
        f->evaluations[i] = f->evaluations[2 * i + 1];
    f->evaluation_count = TUTTI_MOST_EVALUATIONS / 2;
    f->evaluation_stride *= 2;
}

const char *const tutti_figure_columns[] = {
    [TUTTI_FIGURE_TOP1] = "top1",         [TUTTI_FIGURE_TOP5] = "top5",
    [TUTTI_FIGURE_MEAN_IOU] = "mean_iou", [TUTTI_FIGURE_F1] = "f1",
    [TUTTI_FIGURE_RMSE] = "rmse",
};

static void add_evaluation(tutti_feed *f, int64_t step, const char *line)
{
    tutti_evaluated e = {.step = step,
                         .epoch = tutti_scan_number(line, "epoch"),
                         .loss = tutti_scan_number(line, "loss"),
                         .seconds = tutti_scan_number(line, "seconds")};
    for (int i = 0; i < TUTTI_FIGURES; i++)
        e.figures[i] = tutti_scan_number(line, tutti_figure_columns[i]);
    tutti_scan_text(line, "phase", e.split, sizeof e.split);
    f->longest_evaluation = fmax(f->longest_evaluation, e.seconds);
    if (++f->evaluations_seen % f->evaluation_stride) return;
    if (f->evaluation_count == TUTTI_MOST_EVALUATIONS) thin_out(f);
    f->evaluations[f->evaluation_count++] = e;
}

static void add_layer(tutti_feed *f, const char *line)
{
    tutti_measured m = {.forward = tutti_scan_number(line, "forward_s"),
                        .weights = tutti_scan_number(line, "backward_weights_s"),
                        .data = tutti_scan_number(line, "backward_data_s"),
                        .comm = tutti_scan_number(line, "comm_s"),
                        .exposed = tutti_scan_number(line, "exposed_s"),
                        .bytes = tutti_scan_number(line, "bytes")};
    int i = 0;
    tutti_scan_text(line, "layer", m.name, sizeof m.name);
    while (i < f->layer_count && strcmp(f->layers[i].name, m.name)) i++;
    if (i == TUTTI_MOST_LAYERS) return;
    f->layers[i] = m;
    if (i == f->layer_count) f->layer_count++;
}

static void read_metrics(tutti_feed *f)
{
    const char *line;
    size_t length;
    int64_t step;
    while ((line = tutti_tail_next(&f->metrics, &length, &step)))
        if (tutti_scan_is_phase(line, "train")) add_step(f, step, line);
        else if (tutti_scan_is_phase(line, "layer")) add_layer(f, line);
        else if (tutti_scan_is_phase(line, "val") || tutti_scan_is_phase(line, "test"))
            add_evaluation(f, step, line);
}

static tutti_status read_ranks(tutti_feed *f)
{
    const char *line;
    size_t length;
    int64_t step;
    while ((line = tutti_tail_next(&f->ranks_file, &length, &step)))
        TUTTI_TRY(tutti_ranks_add(f->ranks, step, line));
    return TUTTI_OK;
}

static void read_events(tutti_feed *f)
{
    const char *line;
    size_t length;
    int64_t step;
    while ((line = tutti_tail_next(&f->events_file, &length, &step)))
        tutti_diary_add(&f->events, step, line, length);
}

tutti_status tutti_feed_read(tutti_feed *f, size_t most, bool *changed)
{
    bool anew = false;
    *changed = tutti_tail_read(&f->metrics, most, &anew);
    if (anew) forget_metrics(f);
    read_metrics(f);
    *changed |= tutti_tail_read(&f->ranks_file, most, &anew);
    if (anew) tutti_ranks_clear(f->ranks);
    TUTTI_TRY(read_ranks(f));
    *changed |= tutti_tail_read(&f->events_file, most, &anew);
    if (anew) tutti_diary_clear(&f->events);
    read_events(f);
    TUTTI_TRY(tutti_string_status(&f->metrics.rest));
    TUTTI_TRY(tutti_string_status(&f->ranks_file.rest));
    return tutti_string_status(&f->events_file.rest);
}

/* ---- checkpoints ---- */

static bool read_hash(const tutti_feed *f, int64_t step, char hash[65])
{
    char name[TUTTI_STEP_NAME_BYTES], path[TUTTI_PATH_BYTES], line[512];
    tutti_checkpoint_step_name(name, step);
    if (tutti_checkpoint_path(path, f->run, name, "/" TUTTI_SUMS_FILE)) return false;
    FILE *sums = fopen(path, "re");
    bool found = false;
    while (sums && !found && fgets(line, sizeof line, sums)) {
        char file[64] = "";
        found = sscanf(line, "%64[0-9a-f]  %63s", hash, file) == 2 && strlen(hash) == 64 &&
                !strcmp(file, TUTTI_MODEL_FILE);
    }
    if (sums) fclose(sums);
    return found;
}

int tutti_feed_checkpoints(const tutti_feed *f, tutti_saved out[TUTTI_MOST_CHECKPOINTS])
{
    int64_t *steps = NULL;
    int count = 0, found = 0;
    if (tutti_checkpoint_steps(&steps, &count, f->run)) return 0;
    const int skip = count > TUTTI_MOST_CHECKPOINTS ? count - TUTTI_MOST_CHECKPOINTS : 0;
    for (int i = skip; i < count; i++) {
        out[found].step = steps[i];
        found += read_hash(f, steps[i], out[found].hash);
    }
    tutti_free(steps);
    return found;
}

/* ---- questions ---- */

const char *tutti_feed_name(const tutti_feed *f)
{
    return f->run;
}

const tutti_series *tutti_feed_series(const tutti_feed *f)
{
    return &f->series;
}

const tutti_ranks *tutti_feed_ranks(const tutti_feed *f)
{
    return f->ranks;
}
