/* Drivers of the elementwise passes, normalisation and optimizers: they split the work, the
 * row's kernels do it. */
#include "kernel/ops.h"

#include "base/memory.h"
#include "kernel/elementwise.h"
#include "kernel/work.h"

/* ---- vectors ---- */

void tutti_add(tutti_exec exec, size_t count, const float *a, const float *b, bool relu, float *y)
{
    const tutti_elementwise flat = {.a = a, .b = b, .y = y, .relu = relu};
    tutti_elementwise_run(exec.team, exec.row->ops->add, &flat, count);
}

void tutti_scale(tutti_exec exec, size_t count, float factor, const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y, .factor = factor};
    tutti_elementwise_run(exec.team, exec.row->ops->scale, &flat, count);
}

void tutti_axpy(tutti_exec exec, size_t count, float factor, const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y, .factor = factor};
    tutti_elementwise_run(exec.team, exec.row->ops->axpy, &flat, count);
}

/* ---- activations ---- */

void tutti_relu(tutti_exec exec, size_t count, const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y};
    tutti_elementwise_run(exec.team, exec.row->ops->relu, &flat, count);
}

void tutti_relu_backward(tutti_exec exec, size_t count, const float *dy, const float *y, float *dx)
{
    const tutti_elementwise flat = {.a = dy, .mask = y, .y = dx};
    tutti_elementwise_run(exec.team, exec.row->ops->mask, &flat, count);
}

void tutti_tanh(tutti_exec exec, size_t count, const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y};
    tutti_elementwise_run(exec.team, exec.row->ops->tanh, &flat, count);
}

void tutti_sigmoid_backward(tutti_exec exec, size_t count, const float *dy, const float *y,
                            const float *mask, float *dx)
{
    const tutti_elementwise flat = {.a = dy, .b = y, .mask = mask, .y = dx};
    tutti_elementwise_run(exec.team, exec.row->ops->sigmoid_backward, &flat, count);
}

void tutti_tanh_backward(tutti_exec exec, size_t count, const float *dy, const float *y,
                         const float *mask, float *dx)
{
    const tutti_elementwise flat = {.a = dy, .b = y, .mask = mask, .y = dx};
    tutti_elementwise_run(exec.team, exec.row->ops->tanh_backward, &flat, count);
}

/* The last block of a sample, where it is not full, goes by itself. */
typedef struct channels_job {
    tutti_elementwise_fn *kernel;
    tutti_extent extent;
    const float *x;
    float *y;
} channels_job;

static void channels_share(void *arg, int thread, int threads)
{
    const channels_job *job = arg;
    const size_t end = tutti_extent_sample(job->extent);
    const size_t full = end - tutti_extent_plane(job->extent);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        tutti_elementwise flat = {
            .a = job->x + i * end, .y = job->y + i * end, .lanes = TUTTI_BLOCK};
        job->kernel(&flat, 0, full);
        flat.lanes = job->extent.c % TUTTI_BLOCK;
        job->kernel(&flat, full, end);
    }
}

void tutti_elementwise_channels(tutti_team *team, tutti_elementwise_fn *kernel, tutti_extent extent,
                                const float *x, float *y)
{
    channels_job job = {kernel, extent, x, y};
    const size_t count = tutti_extent_floats(extent);
    const tutti_elementwise flat = {.a = x, .y = y, .lanes = TUTTI_BLOCK};
    if (extent.c % TUTTI_BLOCK == 0) tutti_elementwise_run(team, kernel, &flat, count);
    else tutti_team_run(tutti_team_for(team, count), channels_share, &job);
}

void tutti_sigmoid(tutti_exec exec, tutti_extent extent, const float *x, float *y)
{
    tutti_elementwise_channels(exec.team, exec.row->ops->sigmoid, extent, x, y);
}

/* ---- optimizers ---- */

static void step(tutti_team *team, tutti_elementwise_fn *kernel, const void *optimizer,
                 const tutti_update *update)
{
    const tutti_elementwise flat = {.a = update->a,
                                    .b = update->b,
                                    .y = update->w,
                                    .state = {update->state[0], update->state[1]},
                                    .optimizer = optimizer};
    tutti_elementwise_run(team, kernel, &flat, update->count);
}

void tutti_sgd_step(tutti_exec exec, const tutti_sgd *sgd, const tutti_update *update)
{
    step(exec.team, exec.row->ops->sgd, sgd, update);
}

void tutti_adam_step(tutti_exec exec, const tutti_adam *adam, const tutti_update *update)
{
    step(exec.team, exec.row->ops->adam, adam, update);
}

void tutti_average_step(tutti_exec exec, const tutti_average *average, const tutti_update *update)
{
    step(exec.team, exec.row->ops->average, average, update);
}

/* ---- dropout ---- */

typedef struct drop_job {
    tutti_drop_fn *kernel;
    const tutti_dropout *dropout;
    tutti_drop drop;
    size_t samples, vectors, first; /* vectors of a sample; number of its first one */
    const float *x, *mask;
    float *y;
} drop_job;

static void drop_sample(const drop_job *job, size_t sample, size_t begin, size_t end)
{
    tutti_random_key key = job->dropout->key;
    key.sample += (uint32_t)sample;
    const size_t at = (sample * job->vectors + begin) * TUTTI_BLOCK;
    job->kernel(&key, &job->drop, (uint32_t)(job->first + begin), (uint32_t)(job->first + end),
                job->x + at, job->mask ? job->mask + at : NULL, job->y + at);
}

static void drop_share(void *arg, int thread, int threads)
{
    const drop_job *job = arg;
    tutti_range mine = tutti_range_of(job->samples * job->vectors, threads, thread);
    while (mine.begin < mine.end) {
        const size_t sample = mine.begin / job->vectors, start = sample * job->vectors;
        const size_t left = mine.end - start;
        const size_t end = left < job->vectors ? left : job->vectors;
        drop_sample(job, sample, mine.begin - start, end);
        mine.begin = start + end;
    }
}

void tutti_dropout_backward(tutti_exec exec, const tutti_dropout *dropout, tutti_extent extent,
                            const float *dy, const float *mask, float *dx)
{
    const size_t pixels = (size_t)extent.pixels;
    const size_t vectors = tutti_channel_blocks(extent.c) * pixels;
    const size_t first = (size_t)dropout->first_block * pixels;
    const size_t floats = tutti_extent_floats(extent);
    const tutti_drop drop = {tutti_dropout_numbers(dropout->rate) << 16,
                             tutti_dropout_factor(dropout->rate),
                             dx != dy && tutti_streams(dx, floats)};
    drop_job job = {
        exec.row->ops->drop, dropout, drop, (size_t)extent.n, vectors, first, dy, mask, dx};
    tutti_team_run(tutti_team_for(exec.team, floats), drop_share, &job);
}

void tutti_dropout_forward(tutti_exec exec, const tutti_dropout *dropout, tutti_extent extent,
                           const float *x, float *y)
{
    tutti_dropout_backward(exec, dropout, extent, x, NULL, y); /* the same products */
}

/* ---- local response normalisation ---- */

typedef struct lrn_job {
    tutti_lrn_fn *kernel;
    const tutti_lrn *lrn;
    tutti_extent extent;
    const float *x, *dy, *mask;
    float *dx;
    bool stream;
} lrn_job;

static void lrn_share(void *arg, int thread, int threads)
{
    const lrn_job *job = arg;
    const size_t pixels = (size_t)job->extent.pixels;
    const int blocks = (int)tutti_channel_blocks(job->extent.c);
    tutti_range mine = tutti_range_of((size_t)job->extent.n * pixels, threads, thread);
    while (mine.begin < mine.end) {
        const size_t sample = mine.begin / pixels, start = sample * pixels;
        const size_t end = mine.end - start < pixels ? mine.end - start : pixels;
        const size_t at = sample * tutti_extent_sample(job->extent);
        job->kernel(job->lrn, blocks, job->extent.pixels, (int)(mine.begin - start), (int)end,
                    job->x + at, job->dy ? job->dy + at : NULL, job->mask ? job->mask + at : NULL,
                    job->dx + at, job->stream);
        mine.begin = start + end;
    }
}

static void run_lrn(tutti_team *team, lrn_job *job)
{
    const size_t floats = tutti_extent_floats(job->extent);
    job->stream = tutti_streams(job->dx, floats);
    tutti_team_run(tutti_team_for(team, floats), lrn_share, job);
}

void tutti_lrn_forward(tutti_exec exec, const tutti_lrn *lrn, tutti_extent extent, const float *x,
                       float *y)
{
    lrn_job job = {exec.row->ops->lrn_forward, lrn, extent, x, NULL, NULL, y, false};
    run_lrn(exec.team, &job);
}

void tutti_lrn_backward(tutti_exec exec, const tutti_lrn *lrn, tutti_extent extent, const float *x,
                        const float *dy, const float *mask, float *dx)
{
    lrn_job job = {exec.row->ops->lrn_backward, lrn, extent, x, dy, mask, dx, false};
    run_lrn(exec.team, &job);
}
