/* Softmax, its loss, its gradient, and whether the label was among the best. */
#include <math.h>

#include "base/memory.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

enum { STREAMED_CLASSES = 16384 }; /* at most: a thread keeps a row of them on its stack */

typedef struct softmax_job {
    const tutti_ops_kernels *ops;
    tutti_extent extent;
    const float *x;
    const int32_t *labels;
    float scale, *y, *loss;
    int32_t *rank;
    bool stream;
} softmax_job;

static void run(tutti_team *team, tutti_team_job *share, softmax_job *job)
{
    const size_t floats = tutti_extent_floats(job->extent);
    TUTTI_ASSERT(job->extent.pixels == 1);
    tutti_team_run(tutti_team_for(team, floats), share, job);
}

static void forward_share(void *arg, int thread, int threads)
{
    const softmax_job *job = arg;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    float row[STREAMED_CLASSES];
    for (size_t i = mine.begin; i < mine.end; i++) {
        const size_t at = i * tutti_extent_sample(job->extent);
        const bool loss = job->labels && job->loss;
        job->ops->softmax(job->extent.c, job->x + at, loss ? job->labels + i : NULL,
                          job->stream ? row : job->y + at, job->y + at, loss ? job->loss + i : NULL,
                          job->stream);
    }
}

void tutti_softmax(tutti_exec exec, tutti_extent extent, const float *x, const int32_t *labels,
                   float *p, float *loss)
{
    softmax_job job = {.ops = exec.row->ops, .extent = extent, .x = x, .labels = labels};
    job.y = p, job.loss = loss;
    job.stream =
        p != x && extent.c <= STREAMED_CLASSES && tutti_streams(p, tutti_extent_floats(extent));
    run(exec.team, forward_share, &job);
}

/* The block of 16 classes that has a sample's label in it. */
static void backward_label(const softmax_job *job, size_t block, size_t label)
{
    const float *p = job->x + block;
    float *dx = job->y + block; /* may be p */
    for (size_t l = 0; l < TUTTI_BLOCK; l++)
        dx[l] = job->scale * (block + l == label ? p[l] - 1.0f : p[l]);
}

/* dx = scale * p from label to label, all samples in a row: what was stored past the caches must
 * not be touched again. */
static void backward_share(void *arg, int thread, int threads)
{
    const softmax_job *job = arg;
    const size_t width = tutti_extent_sample(job->extent);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    const tutti_elementwise flat = {
        .a = job->x, .y = job->y, .factor = job->scale, .stream = job->stream};
    size_t done = mine.begin * width;
    for (size_t i = mine.begin; i < mine.end; i++) {
        const size_t label = i * width + (size_t)job->labels[i];
        const size_t block = label / TUTTI_BLOCK * TUTTI_BLOCK;
        job->ops->scale(&flat, done, block);
        backward_label(job, block, label);
        done = block + TUTTI_BLOCK;
    }
    job->ops->scale(&flat, done, mine.end * width);
}

void tutti_softmax_backward(tutti_exec exec, tutti_extent extent, const float *p,
                            const int32_t *labels, float scale, float *dx)
{
    const size_t floats = tutti_extent_floats(extent);
    softmax_job job = {.ops = exec.row->ops, .extent = extent, .x = p, .labels = labels};
    job.scale = scale, job.y = dx, job.stream = dx != p && tutti_streams(dx, floats);
    run(exec.team, backward_share, &job);
}

static int32_t rank_of(int classes, const float *x, int32_t label)
{
    const float score = x[label];
    if (isnan(score)) return classes;
    int32_t above = 0;
    for (int i = 0; i < label; i++) above += !(x[i] < score);
    for (int i = label + 1; i < classes; i++) above += !(x[i] <= score);
    return above;
}

static void rank_share(void *arg, int thread, int threads)
{
    const softmax_job *job = arg;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->rank[i] =
            rank_of(job->extent.c, job->x + i * tutti_extent_sample(job->extent), job->labels[i]);
}

void tutti_label_rank(tutti_team *team, tutti_extent extent, const float *x, const int32_t *labels,
                      int32_t *rank)
{
    softmax_job job = {.extent = extent, .x = x, .labels = labels, .rank = rank};
    run(team, rank_share, &job);
}
