/* Softmax, its loss, its gradient, and whether the label was among the best. */
#include <math.h>

#include "base/memory.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

enum { STREAMED_CLASSES = 16384 }; /* at most: a thread keeps a row of them on its stack */

typedef struct softmax_job {
    const tutti_ops_kernels *ops;
    int samples, classes;
    const float *x;
    const int32_t *labels;
    float scale, *y, *loss;
    int32_t *rank;
    bool stream;
} softmax_job;

static size_t row_of(int classes)
{
    return tutti_round_up((size_t)classes, TUTTI_BLOCK);
}

static void run(tutti_team *team, tutti_team_job *share, softmax_job *job)
{
    const size_t floats = (size_t)job->samples * row_of(job->classes);
    tutti_team_run(tutti_team_for(team, floats), share, job);
}

static void forward_share(void *arg, int member, int size)
{
    const softmax_job *job = arg;
    const tutti_range mine = tutti_range_of((size_t)job->samples, size, member);
    float row[STREAMED_CLASSES];
    for (size_t i = mine.begin; i < mine.end; i++) {
        const size_t at = i * row_of(job->classes);
        const bool loss = job->labels && job->loss;
        job->ops->softmax(job->classes, job->x + at, loss ? job->labels + i : NULL,
                          job->stream ? row : job->y + at, job->y + at, loss ? job->loss + i : NULL,
                          job->stream);
    }
}

void tutti_softmax(const tutti_kernels *row, tutti_team *team, int n, int classes, const float *x,
                   const int32_t *labels, float *p, float *loss)
{
    softmax_job job = {.ops = row->ops, .samples = n, .classes = classes, .x = x, .labels = labels};
    job.y = p, job.loss = loss;
    job.stream =
        p != x && classes <= STREAMED_CLASSES && tutti_streams(p, (size_t)n * row_of(classes));
    run(team, forward_share, &job);
}

/* The block of 16 classes that has a sample's label in it. */
static void backward_label(const softmax_job *job, size_t block, size_t label)
{
    const float *p = job->x + block;
    float *dx = job->y + block; /* may be p */
    for (size_t l = 0; l < TUTTI_BLOCK; l++)
        dx[l] = job->scale * (block + l == label ? p[l] - 1.0f : p[l]);
}

/* dx = scale * p from label to label, all samples in a row: what was stored around the caches must
 * not be touched again. */
static void backward_share(void *arg, int member, int size)
{
    const softmax_job *job = arg;
    const size_t width = row_of(job->classes);
    const tutti_range mine = tutti_range_of((size_t)job->samples, size, member);
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

void tutti_softmax_backward(const tutti_kernels *row, tutti_team *team, int n, int classes,
                            const float *p, const int32_t *labels, float scale, float *dx)
{
    const size_t floats = (size_t)n * row_of(classes);
    softmax_job job = {.ops = row->ops, .samples = n, .classes = classes, .x = p, .labels = labels};
    job.scale = scale, job.y = dx, job.stream = dx != p && tutti_streams(dx, floats);
    run(team, backward_share, &job);
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

static void rank_share(void *arg, int member, int size)
{
    const softmax_job *job = arg;
    const tutti_range mine = tutti_range_of((size_t)job->samples, size, member);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->rank[i] = rank_of(job->classes, job->x + i * row_of(job->classes), job->labels[i]);
}

void tutti_label_rank(tutti_team *team, int n, int classes, const float *x, const int32_t *labels,
                      int32_t *rank)
{
    softmax_job job = {.samples = n, .classes = classes, .x = x, .labels = labels, .rank = rank};
    run(team, rank_share, &job);
}
