/* A pixel's scores are one row where all channels are in a block; else they are brought together
 * for the kernel of a row. Threads share pixels; each pixel's loss is kept until the sample's are
 * added up, in their order. */
#include "kernel/pixel_softmax.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/target.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

typedef enum outcome { IGNORED, RIGHT, WRONG } outcome;

typedef struct pixels_job {
    const tutti_ops_kernels *ops;
    tutti_extent extent;
    const float *x; /* or p */
    const tutti_targets *targets;
    tutti_smoothing smoothing;
    bool is_plain;
    double scale;
    float *y;          /* p or dx */
    float *pixel_loss; /* [n][pixels] */
    uint8_t *outcome;  /* likewise */
    const tutti_pixels_found *found;
} pixels_job;

static size_t pixels_of(tutti_extent extent)
{
    return (size_t)extent.n * (size_t)extent.pixels;
}

size_t tutti_pixel_softmax_scratch(tutti_extent extent)
{
    return pixels_of(extent) * (sizeof(float) + sizeof(uint8_t));
}

/* ---- rows ---- */

/* Where the first block of a pixel of all is. */
static size_t place_of(const pixels_job *job, size_t pixel)
{
    const size_t pixels = (size_t)job->extent.pixels;
    return pixel / pixels * tutti_extent_sample(job->extent) + pixel % pixels * TUTTI_BLOCK;
}

static const float *row_of(const pixels_job *job, size_t pixel, float *room)
{
    const size_t blocks = tutti_channel_blocks(job->extent.c);
    const float *from = job->x + place_of(job, pixel);
    if (blocks == 1) return from;
    for (size_t b = 0; b < blocks; b++)
        memcpy(room + b * TUTTI_BLOCK, from + b * tutti_extent_plane(job->extent),
               TUTTI_BLOCK * sizeof *room);
    return room;
}

static void put_row(const pixels_job *job, size_t pixel, const float *row)
{
    float *to = job->y + place_of(job, pixel);
    for (size_t b = 0; b < tutti_channel_blocks(job->extent.c); b++)
        memcpy(to + b * tutti_extent_plane(job->extent), row + b * TUTTI_BLOCK,
               TUTTI_BLOCK * sizeof *row);
}

/* ---- forward ---- */

/* Of equal scores the first class has the best. */
static outcome outcome_of(int classes, const float *x, int32_t label)
{
    for (int c = 0; c < label; c++)
        if (!(x[c] < x[label])) return WRONG;
    for (int c = label + 1; c < classes; c++)
        if (!(x[c] <= x[label])) return WRONG;
    return isnan(x[label]) ? WRONG : RIGHT;
}

static void judge_pixel(const pixels_job *job, size_t pixel, const float *x, float loss)
{
    const int32_t label = job->targets->labels[pixel];
    const int classes = job->extent.c;
    job->outcome[pixel] = (uint8_t)outcome_of(classes, x, label);
    job->pixel_loss[pixel] = job->is_plain ? loss
                                           : tutti_targets_row_loss(job->targets, &job->smoothing,
                                                                    classes, (int)pixel, x, loss);
}

static void forward_share(void *arg, int thread, int threads)
{
    const pixels_job *job = arg;
    const tutti_range mine = tutti_range_of(pixels_of(job->extent), threads, thread);
    float room[TUTTI_MOST_PIXEL_CLASSES], p[TUTTI_MOST_PIXEL_CLASSES];
    for (size_t i = mine.begin; i < mine.end; i++) {
        const float *x = row_of(job, i, room);
        const int32_t *label = job->targets ? &job->targets->labels[i] : NULL;
        if (label && *label == TUTTI_IGNORED) label = NULL;
        float loss = 0;
        job->ops->softmax(job->extent.c, x, label, p, p, &loss, false);
        if (label) judge_pixel(job, i, x, loss);
        else if (job->targets) job->outcome[i] = IGNORED;
        put_row(job, i, p);
    }
}

static void add_up(const pixels_job *job)
{
    const size_t pixels = (size_t)job->extent.pixels;
    for (size_t i = 0; i < (size_t)job->extent.n; i++) {
        double sum = 0;
        int32_t count[3] = {0};
        for (size_t p = i * pixels; p < (i + 1) * pixels; p++) {
            if (job->outcome[p] != IGNORED) sum += (double)job->pixel_loss[p];
            count[job->outcome[p]]++;
        }
        job->found->losses[i] = (float)sum;
        job->found->counted[i] = count[RIGHT] + count[WRONG];
        job->found->wrong[i] = count[WRONG];
    }
}

void tutti_pixel_softmax(tutti_exec exec, tutti_extent extent, const float *x,
                         const tutti_targets *targets, void *scratch, float *p,
                         const tutti_pixels_found *found)
{
    pixels_job job = {.ops = exec.row->ops, .extent = extent, .x = x, .y = p, .targets = targets};
    job.pixel_loss = scratch;
    job.outcome = (uint8_t *)(job.pixel_loss + pixels_of(extent));
    job.found = found;
    if (targets) {
        job.is_plain = tutti_targets_are_plain(targets);
        job.smoothing = tutti_targets_smoothing(targets, extent.c);
    }
    tutti_team_run(tutti_team_for(exec.team, tutti_extent_floats(extent)), forward_share, &job);
    if (targets) add_up(&job);
}

/* ---- backward ---- */

static void backward_share(void *arg, int thread, int threads)
{
    const pixels_job *job = arg;
    const tutti_range mine = tutti_range_of(pixels_of(job->extent), threads, thread);
    float room[TUTTI_MOST_PIXEL_CLASSES], dx[TUTTI_MOST_PIXEL_CLASSES];
    const size_t width = tutti_channel_blocks(job->extent.c) * TUTTI_BLOCK;
    for (size_t i = mine.begin; i < mine.end; i++) {
        const float *p = row_of(job, i, room);
        if (job->targets->labels[i] == TUTTI_IGNORED) memset(dx, 0, width * sizeof *dx);
        else
            tutti_targets_row_backward(job->targets, &job->smoothing, job->extent.c, (int)i,
                                       job->scale, p, dx);
        put_row(job, i, dx);
    }
}

void tutti_pixel_softmax_backward(tutti_exec exec, tutti_extent extent, const float *p,
                                  const tutti_targets *targets, double scale, float *dx)
{
    pixels_job job = {.extent = extent, .x = p, .y = dx, .targets = targets, .scale = scale};
    job.smoothing = tutti_targets_smoothing(targets, extent.c);
    tutti_team_run(tutti_team_for(exec.team, tutti_extent_floats(extent)), backward_share, &job);
}
