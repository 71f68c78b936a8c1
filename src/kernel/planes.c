#include "kernel/planes.h"

#include <string.h>

#include "base/tree.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

enum { B = TUTTI_BLOCK };

typedef struct planes_job {
    const tutti_ops_kernels *ops;
    tutti_extent extent;
    tutti_factors factors;
    const tutti_grains *grains;
    const float *a, *b; /* b: the mask, or the other factor of a sum */
    float *y;
    bool stream, relu;
} planes_job;

static void run(tutti_exec exec, tutti_team_job *share, planes_job *job, size_t floats)
{
    job->ops = exec.row->ops;
    tutti_team_run(tutti_team_for(exec.team, floats), share, job);
}

/* ---- products ---- */

static void scale_share(void *arg, int thread, int threads)
{
    const planes_job *job = arg;
    const size_t blocks = tutti_channel_blocks(job->extent.c);
    const size_t plane = tutti_extent_plane(job->extent);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const tutti_plane p = {.pixels = (size_t)job->extent.pixels,
                               .factor = job->factors.at + i / blocks * job->factors.sample +
                                         i % blocks * job->factors.block,
                               .x = job->a + i * plane,
                               .mask = job->b ? job->b + i * plane : NULL,
                               .y = job->y + i * plane};
        job->ops->scale_plane(&p, job->stream);
    }
}

void tutti_scale_planes(tutti_exec exec, tutti_extent extent, tutti_factors factors, const float *x,
                        const float *mask, float *y)
{
    const size_t floats = tutti_extent_floats(extent);
    planes_job job = {.extent = extent, .factors = factors, .a = x, .b = mask, .y = y};
    job.stream = y != x && !mask && tutti_streams(y, floats);
    run(exec, scale_share, &job, floats);
}

static void shift_share(void *arg, int thread, int threads)
{
    static const float nothing[B] = {0};
    const planes_job *job = arg;
    const size_t blocks = tutti_channel_blocks(job->extent.c);
    const size_t plane = tutti_extent_plane(job->extent);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->ops->shift_plane((size_t)job->extent.pixels,
                              job->a ? job->a + i % blocks * B : nothing, job->relu,
                              job->y + i * plane);
}

void tutti_shift_planes(tutti_exec exec, tutti_extent extent, const float *addends, bool relu,
                        float *y)
{
    planes_job job = {.extent = extent, .a = addends, .y = y, .relu = relu};
    run(exec, shift_share, &job, tutti_extent_floats(extent));
}

/* ---- sums ---- */

static void dot_share(void *arg, int thread, int threads)
{
    const planes_job *job = arg;
    const size_t planes = (size_t)job->extent.n * tutti_channel_blocks(job->extent.c);
    const size_t plane = tutti_extent_plane(job->extent);
    const tutti_range mine = tutti_range_of(planes, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->ops->dot_plane((size_t)job->extent.pixels, job->a + i * plane, job->b + i * plane,
                            job->y + i * B);
}

void tutti_dot_planes(tutti_exec exec, tutti_extent extent, const float *a, const float *b,
                      float *sums)
{
    planes_job job = {.extent = extent, .a = a, .b = b, .y = sums};
    run(exec, dot_share, &job, tutti_extent_floats(extent));
}

static void add(float *sum, const float *more)
{
    for (int l = 0; l < B; l++) sum[l] += more[l];
}

/* Of one channel block, the samples of one grain. */
static void dot_grain(const planes_job *job, size_t block, int grain, float sum[B])
{
    const size_t sample = tutti_extent_sample(job->extent);
    const size_t first = block * tutti_extent_plane(job->extent);
    memset(sum, 0, B * sizeof *sum);
    for (int n = job->grains->begin[grain]; n < job->grains->begin[grain + 1]; n++) {
        const size_t at = (size_t)n * sample + first;
        float more[B];
        job->ops->dot_plane((size_t)job->extent.pixels, job->a + at, job->b ? job->b + at : NULL,
                            more);
        add(sum, more);
    }
}

static void dot_block(const planes_job *job, size_t block)
{
    float stack[TUTTI_TREE_LEVELS + 1][B] = {{0}};
    int depth = 0;
    for (int i = 0; i < job->grains->count; i++) {
        dot_grain(job, block, i, stack[depth++]);
        int joins = i == job->grains->count - 1 ? depth - 1 : tutti_tree_joins(i);
        for (; joins; joins--, depth--) add(stack[depth - 2], stack[depth - 1]);
    }
    memcpy(job->y + block * B, stack[0], sizeof stack[0]);
}

static void grains_share(void *arg, int thread, int threads)
{
    const planes_job *job = arg;
    const tutti_range mine = tutti_range_of(tutti_channel_blocks(job->extent.c), threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) dot_block(job, i);
}

void tutti_dot_grains(tutti_exec exec, tutti_extent extent, const tutti_grains *grains,
                      const float *a, const float *b, float *sums)
{
    const size_t samples = grains->count ? (size_t)grains->begin[grains->count] : 0;
    planes_job job = {.extent = extent, .grains = grains, .a = a, .b = b, .y = sums};
    run(exec, grains_share, &job, samples * tutti_extent_sample(extent));
}
