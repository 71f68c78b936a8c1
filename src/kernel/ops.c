/* Drivers of the elementwise passes, normalisation, softmax and SGD: they split the work, the
 * row's kernels do it. */
#include "kernel/ops.h"

#include "base/memory.h"
#include "kernel/elementwise.h"
#include "kernel/work.h"

static size_t blocks_of(int c)
{
    return (size_t)tutti_ceil_div(c, TUTTI_BLOCK);
}

/* ---- vectors ---- */

void tutti_add(const tutti_kernels *row, tutti_team *team, size_t count, const float *a,
               const float *b, bool relu, float *y)
{
    const tutti_elementwise flat = {.a = a, .b = b, .y = y, .relu = relu};
    tutti_elementwise_run(team, row->ops->add, &flat, count);
}

void tutti_scale(const tutti_kernels *row, tutti_team *team, size_t count, float factor,
                 const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y, .factor = factor};
    tutti_elementwise_run(team, row->ops->scale, &flat, count);
}

void tutti_axpy(const tutti_kernels *row, tutti_team *team, size_t count, float factor,
                const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y, .factor = factor};
    tutti_elementwise_run(team, row->ops->axpy, &flat, count);
}

void tutti_sgd_step(const tutti_kernels *row, tutti_team *team, const tutti_sgd *sgd, size_t count,
                    const float *dw, const float *rest, float *v, float *w)
{
    const tutti_elementwise flat = {.a = dw, .b = rest, .v = v, .y = w, .sgd = sgd};
    tutti_elementwise_run(team, row->ops->sgd, &flat, count);
}

/* ---- activations ---- */

void tutti_relu(const tutti_kernels *row, tutti_team *team, size_t count, const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y};
    tutti_elementwise_run(team, row->ops->relu, &flat, count);
}

void tutti_relu_backward(const tutti_kernels *row, tutti_team *team, size_t count, const float *dy,
                         const float *y, float *dx)
{
    const tutti_elementwise flat = {.a = dy, .mask = y, .y = dx};
    tutti_elementwise_run(team, row->ops->mask, &flat, count);
}

void tutti_tanh(const tutti_kernels *row, tutti_team *team, size_t count, const float *x, float *y)
{
    const tutti_elementwise flat = {.a = x, .y = y};
    tutti_elementwise_run(team, row->ops->tanh, &flat, count);
}

void tutti_sigmoid_backward(const tutti_kernels *row, tutti_team *team, size_t count,
                            const float *dy, const float *y, const float *mask, float *dx)
{
    const tutti_elementwise flat = {.a = dy, .b = y, .mask = mask, .y = dx};
    tutti_elementwise_run(team, row->ops->sigmoid_backward, &flat, count);
}

void tutti_tanh_backward(const tutti_kernels *row, tutti_team *team, size_t count, const float *dy,
                         const float *y, const float *mask, float *dx)
{
    const tutti_elementwise flat = {.a = dy, .b = y, .mask = mask, .y = dx};
    tutti_elementwise_run(team, row->ops->tanh_backward, &flat, count);
}

/* sigmoid(0) is not 0, so the last block of a sample, where it is not full, goes by itself. */
typedef struct sigmoid_job {
    tutti_elementwise_fn *kernel;
    int samples, c;
    size_t blocks, pixels;
    const float *x;
    float *y;
} sigmoid_job;

static void sigmoid_share(void *arg, int member, int size)
{
    const sigmoid_job *job = arg;
    const size_t end = job->blocks * job->pixels * TUTTI_BLOCK;
    const size_t full = end - job->pixels * TUTTI_BLOCK;
    const tutti_range mine = tutti_range_of((size_t)job->samples, size, member);
    for (size_t i = mine.begin; i < mine.end; i++) {
        tutti_elementwise flat = {
            .a = job->x + i * end, .y = job->y + i * end, .lanes = TUTTI_BLOCK};
        job->kernel(&flat, 0, full);
        flat.lanes = job->c % TUTTI_BLOCK;
        job->kernel(&flat, full, end);
    }
}

void tutti_sigmoid(const tutti_kernels *row, tutti_team *team, int n, int c, int pixels,
                   const float *x, float *y)
{
    sigmoid_job job = {row->ops->sigmoid, n, c, blocks_of(c), (size_t)pixels, x, y};
    const size_t count = (size_t)n * job.blocks * job.pixels * TUTTI_BLOCK;
    const tutti_elementwise flat = {.a = x, .y = y, .lanes = TUTTI_BLOCK};
    if (c % TUTTI_BLOCK == 0) tutti_elementwise_run(team, row->ops->sigmoid, &flat, count);
    else tutti_team_run(tutti_team_for(team, count), sigmoid_share, &job);
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

static void drop_share(void *arg, int member, int size)
{
    const drop_job *job = arg;
    tutti_range mine = tutti_range_of(job->samples * job->vectors, size, member);
    while (mine.begin < mine.end) {
        const size_t sample = mine.begin / job->vectors, start = sample * job->vectors;
        const size_t left = mine.end - start;
        const size_t end = left < job->vectors ? left : job->vectors;
        drop_sample(job, sample, mine.begin - start, end);
        mine.begin = start + end;
    }
}

void tutti_dropout_backward(const tutti_kernels *row, tutti_team *team,
                            const tutti_dropout *dropout, int n, int c, int pixels, const float *dy,
                            const float *mask, float *dx)
{
    const size_t vectors = blocks_of(c) * (size_t)pixels;
    const size_t first = (size_t)dropout->first_block * (size_t)pixels;
    const size_t floats = (size_t)n * vectors * TUTTI_BLOCK;
    const tutti_drop drop = {tutti_dropout_numbers(dropout->rate) << 16,
                             tutti_dropout_factor(dropout->rate),
                             dx != dy && tutti_streams(dx, floats)};
    drop_job job = {row->ops->drop, dropout, drop, (size_t)n, vectors, first, dy, mask, dx};
    tutti_team_run(tutti_team_for(team, floats), drop_share, &job);
}

void tutti_dropout_forward(const tutti_kernels *row, tutti_team *team, const tutti_dropout *dropout,
                           int n, int c, int pixels, const float *x, float *y)
{
    tutti_dropout_backward(row, team, dropout, n, c, pixels, x, NULL, y); /* the same products */
}

/* ---- local response normalisation ---- */

typedef struct lrn_job {
    tutti_lrn_fn *kernel;
    const tutti_lrn *lrn;
    int samples, blocks, pixels;
    const float *x, *dy, *mask;
    float *dx;
    bool stream;
} lrn_job;

static void lrn_share(void *arg, int member, int size)
{
    const lrn_job *job = arg;
    const size_t pixels = (size_t)job->pixels;
    const size_t sample_floats = (size_t)job->blocks * pixels * TUTTI_BLOCK;
    tutti_range mine = tutti_range_of((size_t)job->samples * pixels, size, member);
    while (mine.begin < mine.end) {
        const size_t sample = mine.begin / pixels, start = sample * pixels;
        const size_t end = mine.end - start < pixels ? mine.end - start : pixels;
        const size_t at = sample * sample_floats;
        job->kernel(job->lrn, job->blocks, job->pixels, (int)(mine.begin - start), (int)end,
                    job->x + at, job->dy ? job->dy + at : NULL, job->mask ? job->mask + at : NULL,
                    job->dx + at, job->stream);
        mine.begin = start + end;
    }
}

static void run_lrn(tutti_team *team, lrn_job *job)
{
    const size_t vectors = (size_t)job->samples * (size_t)job->blocks * (size_t)job->pixels;
    job->stream = tutti_streams(job->dx, vectors * TUTTI_BLOCK);
    tutti_team_run(tutti_team_for(team, vectors * TUTTI_BLOCK), lrn_share, job);
}

void tutti_lrn_forward(const tutti_kernels *row, tutti_team *team, const tutti_lrn *lrn, int n,
                       int c, int pixels, const float *x, float *y)
{
    lrn_job job = {
        row->ops->lrn_forward, lrn, n, (int)blocks_of(c), pixels, x, NULL, NULL, y, false};
    run_lrn(team, &job);
}

void tutti_lrn_backward(const tutti_kernels *row, tutti_team *team, const tutti_lrn *lrn, int n,
                        int c, int pixels, const float *x, const float *dy, const float *mask,
                        float *dx)
{
    lrn_job job = {
        row->ops->lrn_backward, lrn, n, (int)blocks_of(c), pixels, x, dy, mask, dx, false};
    run_lrn(team, &job);
}
