#include "kernel/value_loss.h"

#include "base/memory.h"
#include "kernel/elementwise.h"
#include "kernel/work.h"

typedef struct value_job {
    tutti_value_loss_fn *kernel;
    tutti_extent extent;
    int chunks; /* of a plane */
    float delta;
    const float *x, *t;
    double *sums; /* [n][blocks][chunks] */
    float *losses;
} value_job;

static size_t chunks_of_sample(tutti_extent extent)
{
    return tutti_channel_blocks(extent.c) *
           (size_t)tutti_ceil_div(extent.pixels, TUTTI_VALUE_CHUNK);
}

size_t tutti_value_loss_scratch(tutti_extent extent)
{
    return (size_t)extent.n * chunks_of_sample(extent) * sizeof(double);
}

static double sum_of_chunk(const value_job *job, size_t unit)
{
    const size_t blocks = tutti_channel_blocks(job->extent.c), chunks = (size_t)job->chunks;
    const size_t plane = unit / chunks, first = unit % chunks * TUTTI_VALUE_CHUNK;
    const size_t left = (size_t)job->extent.pixels - first;
    const int pixels = left < TUTTI_VALUE_CHUNK ? (int)left : TUTTI_VALUE_CHUNK;
    const bool last = plane % blocks == blocks - 1;
    const int lanes = last ? job->extent.c - (int)(blocks - 1) * TUTTI_BLOCK : TUTTI_BLOCK;
    const size_t at = (plane * (size_t)job->extent.pixels + first) * TUTTI_BLOCK;
    return job->kernel(pixels, lanes, job->delta, job->x + at, job->t + at);
}

static void chunks_share(void *arg, int thread, int threads)
{
    const value_job *job = arg;
    const size_t units = (size_t)job->extent.n * chunks_of_sample(job->extent);
    const tutti_range mine = tutti_range_of(units, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) job->sums[i] = sum_of_chunk(job, i);
}

static void join_chunks(const value_job *job)
{
    const size_t each = chunks_of_sample(job->extent);
    const double values = (double)job->extent.c * (double)job->extent.pixels;
    for (size_t i = 0; i < (size_t)job->extent.n; i++) {
        double sum = 0;
        for (size_t k = 0; k < each; k++) sum += job->sums[i * each + k];
        job->losses[i] = (float)(sum / values);
    }
}

void tutti_value_losses(tutti_exec exec, tutti_value_loss loss, tutti_extent extent, float delta,
                        const float *x, const float *t, void *scratch, float *losses)
{
    const tutti_ops_kernels *ops = exec.row->ops;
    tutti_value_loss_fn *const kernels[] = {
        [TUTTI_LOSS_SQUARED] = ops->squared_loss,
        [TUTTI_LOSS_ABSOLUTE] = ops->absolute_loss,
        [TUTTI_LOSS_HUBER] = ops->huber_loss,
        [TUTTI_LOSS_CROSSED] = ops->crossed_loss,
    };
    value_job job = {.kernel = kernels[loss], .extent = extent, .delta = delta, .x = x, .t = t};
    job.chunks = tutti_ceil_div(extent.pixels, TUTTI_VALUE_CHUNK);
    job.sums = scratch, job.losses = losses;
    tutti_team_run(tutti_team_for(exec.team, tutti_extent_floats(extent)), chunks_share, &job);
    join_chunks(&job);
}

void tutti_value_backward(tutti_exec exec, tutti_value_loss loss, tutti_extent extent, float delta,
                          float scale, const float *x, const float *t, float *dx)
{
    const tutti_ops_kernels *ops = exec.row->ops;
    tutti_elementwise_fn *const kernels[] = {
        [TUTTI_LOSS_SQUARED] = ops->difference,
        [TUTTI_LOSS_ABSOLUTE] = ops->difference_sign,
        [TUTTI_LOSS_HUBER] = ops->difference_clipped,
        [TUTTI_LOSS_CROSSED] = ops->difference,
    };
    const float factor = loss == TUTTI_LOSS_SQUARED ? 2 * scale : scale;
    const tutti_elementwise job = {.a = x, .b = t, .y = dx, .factor = factor, .limit = delta};
    tutti_elementwise_run(exec.team, kernels[loss], &job, tutti_extent_floats(extent));
}
