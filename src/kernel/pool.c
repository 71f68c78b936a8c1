/* Drivers of pooling: threads share planes, one channel block of one sample each. */
#include "kernel/pool.h"

#include "base/memory.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

static int out_size(int size, int kernel, int stride, int before, int after, bool ceil_mode)
{
    const int room = size + before + after - kernel;
    if (room < 0) return 0;
    int out = (ceil_mode ? tutti_ceil_div(room, stride) : room / stride) + 1;
    if (ceil_mode && (out - 1) * stride >= size + before) out--;
    return out;
}

int tutti_pool_out_h(const tutti_pool_shape *p)
{
    return out_size(p->h, p->r, p->stride_h, p->pad_top, p->pad_bottom, p->ceil_mode);
}

int tutti_pool_out_w(const tutti_pool_shape *p)
{
    return out_size(p->w, p->s, p->stride_w, p->pad_left, p->pad_right, p->ceil_mode);
}

static size_t planes_of(const tutti_pool_shape *p, int n)
{
    return (size_t)n * (size_t)tutti_ceil_div(p->c, TUTTI_BLOCK);
}

static size_t in_plane(const tutti_pool_shape *p)
{
    return (size_t)p->h * (size_t)p->w * TUTTI_BLOCK;
}

static size_t out_plane(const tutti_pool_shape *p)
{
    return (size_t)tutti_pool_out_h(p) * (size_t)tutti_pool_out_w(p) * TUTTI_BLOCK;
}

size_t tutti_max_pool_tap_bytes(const tutti_pool_shape *shape, int n)
{
    return planes_of(shape, n) * out_plane(shape) * sizeof(uint16_t);
}

/* What a pass reads, masks with and writes; taps are written forward, read backward. */
typedef struct pool_job {
    const tutti_ops_kernels *ops;
    const tutti_pool_shape *shape;
    size_t planes;
    const float *from, *mask;
    float *to;
    uint16_t *tap;
    const uint16_t *won;
    bool stream;
} pool_job;

static void run(tutti_team *team, tutti_team_job *share, pool_job *job)
{
    tutti_team_run(tutti_team_for(team, job->planes * in_plane(job->shape)), share, job);
}

static void max_share(void *arg, int thread, int threads)
{
    const pool_job *job = arg;
    const size_t in = in_plane(job->shape), out = out_plane(job->shape);
    const tutti_range mine = tutti_range_of(job->planes, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->ops->max_pool(job->shape, job->from + i * in, job->to + i * out,
                           job->tap ? job->tap + i * out : NULL, job->stream);
}

void tutti_max_pool_forward(tutti_exec exec, const tutti_pool_shape *shape, int n, const float *x,
                            float *y, uint16_t *tap)
{
    pool_job job = {.ops = exec.row->ops, .shape = shape, .planes = planes_of(shape, n)};
    job.stream =
        tutti_streams(y, job.planes * out_plane(shape)) && (uintptr_t)tap % TUTTI_CACHE_LINE == 0;
    job.from = x, job.to = y, job.tap = tap;
    run(exec.team, max_share, &job);
}

static void unmax_share(void *arg, int thread, int threads)
{
    const pool_job *job = arg;
    const size_t in = in_plane(job->shape), out = out_plane(job->shape);
    const tutti_range mine = tutti_range_of(job->planes, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->ops->max_unpool(job->shape, job->from + i * out, job->won + i * out,
                             job->mask ? job->mask + i * out : NULL, job->to + i * in, job->stream);
}

void tutti_max_pool_backward(tutti_exec exec, const tutti_pool_shape *shape, int n, const float *dy,
                             const uint16_t *tap, const float *y_mask, float *dx)
{
    pool_job job = {.ops = exec.row->ops, .shape = shape, .planes = planes_of(shape, n)};
    job.stream = tutti_streams(dx, job.planes * in_plane(shape));
    job.from = dy, job.won = tap, job.mask = y_mask, job.to = dx;
    run(exec.team, unmax_share, &job);
}

static void average_share(void *arg, int thread, int threads)
{
    const pool_job *job = arg;
    const size_t in = in_plane(job->shape), out = out_plane(job->shape);
    const tutti_range mine = tutti_range_of(job->planes, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->ops->average_pool(job->shape, job->from + i * in, job->to + i * out, job->stream);
}

void tutti_average_pool_forward(tutti_exec exec, const tutti_pool_shape *shape, int n,
                                const float *x, float *y)
{
    pool_job job = {.ops = exec.row->ops, .shape = shape, .planes = planes_of(shape, n)};
    job.stream = tutti_streams(y, job.planes * out_plane(shape));
    job.from = x, job.to = y;
    run(exec.team, average_share, &job);
}

static void unaverage_share(void *arg, int thread, int threads)
{
    const pool_job *job = arg;
    const size_t in = in_plane(job->shape), out = out_plane(job->shape);
    const tutti_range mine = tutti_range_of(job->planes, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->ops->average_unpool(job->shape, job->from + i * out,
                                 job->mask ? job->mask + i * in : NULL, job->to + i * in,
                                 job->stream);
}

void tutti_average_pool_backward(tutti_exec exec, const tutti_pool_shape *shape, int n,
                                 const float *dy, const float *mask, float *dx)
{
    pool_job job = {.ops = exec.row->ops, .shape = shape, .planes = planes_of(shape, n)};
    job.stream = tutti_streams(dx, job.planes * in_plane(shape));
    job.from = dy, job.mask = mask, job.to = dx;
    run(exec.team, unaverage_share, &job);
}

/* ---- to a given size ---- */

typedef struct adaptive_job {
    tutti_adaptive_fn *kernel;
    const tutti_adaptive_shape *shape;
    size_t planes, from_plane, to_plane;
    const float *from, *mask;
    float *to;
} adaptive_job;

static void adaptive_share(void *arg, int thread, int threads)
{
    const adaptive_job *job = arg;
    const tutti_range mine = tutti_range_of(job->planes, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->kernel(job->shape, job->from + i * job->from_plane,
                    job->mask ? job->mask + i * job->to_plane : NULL, job->to + i * job->to_plane);
}

static void run_adaptive(tutti_team *team, adaptive_job *job, int n)
{
    job->planes = (size_t)n * tutti_channel_blocks(job->shape->c);
    const size_t floats = job->planes * (job->from_plane + job->to_plane);
    tutti_team_run(tutti_team_for(team, floats), adaptive_share, job);
}

static size_t plane_of(int h, int w)
{
    return (size_t)h * (size_t)w * TUTTI_BLOCK;
}

void tutti_adaptive_pool_forward(tutti_exec exec, const tutti_adaptive_shape *shape, int n,
                                 const float *x, float *y)
{
    adaptive_job job = {.kernel = exec.row->ops->adaptive_pool, .shape = shape};
    job.from_plane = plane_of(shape->h, shape->w), job.from = x;
    job.to_plane = plane_of(shape->out_h, shape->out_w), job.to = y;
    run_adaptive(exec.team, &job, n);
}

void tutti_adaptive_pool_backward(tutti_exec exec, const tutti_adaptive_shape *shape, int n,
                                  const float *dy, const float *mask, float *dx)
{
    adaptive_job job = {.kernel = exec.row->ops->adaptive_unpool, .shape = shape, .mask = mask};
    job.from_plane = plane_of(shape->out_h, shape->out_w), job.from = dy;
    job.to_plane = plane_of(shape->h, shape->w), job.to = dx;
    run_adaptive(exec.team, &job, n);
}
