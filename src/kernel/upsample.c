#include "kernel/upsample.h"

#include <math.h>

#include "base/memory.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

/* ---- which pixels, and how much of each ---- */

/* Where output i lies among the inputs. */
static double position(const tutti_upsample_shape *shape, int i, int in, int out)
{
    if (shape->align_corners) return out > 1 ? (double)i * (in - 1) / (out - 1) : 0;
    const double centre = (i + 0.5) * in / out - 0.5;
    return centre > 0 ? centre : 0;
}

static void set_nearest(tutti_upsample_way *way, int i)
{
    way->low[i] = way->high[i] = (int)((long long)i * way->in / way->out);
    way->share[i] = 0;
    way->rest[i] = 1;
}

static void set_bilinear(const tutti_upsample_shape *shape, tutti_upsample_way *way, int i)
{
    const double at = position(shape, i, way->in, way->out);
    const int low = (int)at < way->in - 1 ? (int)at : way->in - 1;
    way->low[i] = low;
    way->high[i] = low + 1 < way->in ? low + 1 : low;
    way->share[i] = (float)(at - low);
    way->rest[i] = (float)(1 - (at - low));
}

/* Outputs that read an input follow each other, as positions grow. */
static void set_readers(tutti_upsample_way *way)
{
    int used = 0, begin = 0;
    for (int i = 0; i < way->in; i++) {
        while (begin < way->out && way->high[begin] < i) begin++;
        way->first[i] = begin;
        way->weight[i] = used;
        int o = begin;
        for (; o < way->out && way->low[o] <= i; o++)
            way->weights[used++] =
                (way->low[o] == i ? way->rest[o] : 0) + (way->high[o] == i ? way->share[o] : 0);
        way->end[i] = o;
    }
}

static tutti_status init_way(tutti_upsample_way *way, const tutti_upsample_shape *shape, int in,
                             int out)
{
    *way = (tutti_upsample_way){.in = in, .out = out};
    TUTTI_TRY(tutti_alloc(&way->low, (size_t)out, sizeof *way->low));
    TUTTI_TRY(tutti_alloc(&way->high, (size_t)out, sizeof *way->high));
    TUTTI_TRY(tutti_alloc(&way->share, (size_t)out, sizeof *way->share));
    TUTTI_TRY(tutti_alloc(&way->rest, (size_t)out, sizeof *way->rest));
    TUTTI_TRY(tutti_alloc(&way->first, (size_t)in, sizeof *way->first));
    TUTTI_TRY(tutti_alloc(&way->end, (size_t)in, sizeof *way->end));
    TUTTI_TRY(tutti_alloc(&way->weight, (size_t)in, sizeof *way->weight));
    TUTTI_TRY(tutti_alloc(&way->weights, 2 * (size_t)out, sizeof *way->weights));
    for (int i = 0; i < out; i++)
        if (shape->bilinear) set_bilinear(shape, way, i);
        else set_nearest(way, i);
    set_readers(way);
    return TUTTI_OK;
}

static void deinit_way(tutti_upsample_way *way)
{
    void *const all[] = {way->low,   way->high, way->share,  way->rest,
                         way->first, way->end,  way->weight, way->weights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tutti_free(all[i]);
}

tutti_status tutti_upsample_create(tutti_upsample **out, const tutti_upsample_shape *shape)
{
    tutti_upsample *u = NULL;
    TUTTI_TRY(tutti_alloc(&u, 1, sizeof *u));
    u->shape = *shape;
    tutti_status s = init_way(&u->rows, shape, shape->h, shape->out_h);
    if (s == TUTTI_OK) s = init_way(&u->columns, shape, shape->w, shape->out_w);
    if (s != TUTTI_OK) tutti_upsample_destroy(&u);
    *out = u;
    return s;
}

void tutti_upsample_destroy(tutti_upsample **upsample)
{
    tutti_upsample *u = *upsample;
    if (!u) return;
    deinit_way(&u->rows);
    deinit_way(&u->columns);
    tutti_free(u);
    *upsample = NULL;
}

/* ---- passes ---- */

typedef struct upsample_job {
    tutti_upsample_fn *kernel;
    const tutti_upsample *upsample;
    size_t planes, from_plane, to_plane;
    const float *from, *mask;
    float *to;
    bool stream;
} upsample_job;

static void share(void *arg, int thread, int threads)
{
    const upsample_job *job = arg;
    const tutti_range mine = tutti_range_of(job->planes, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->kernel(job->upsample, job->from + i * job->from_plane,
                    job->mask ? job->mask + i * job->to_plane : NULL, job->to + i * job->to_plane,
                    job->stream);
}

static void run(tutti_exec exec, upsample_job *job, int n)
{
    job->planes = (size_t)n * tutti_channel_blocks(job->upsample->shape.c);
    job->stream = tutti_streams(job->to, job->planes * job->to_plane);
    const size_t floats = job->planes * (job->from_plane + job->to_plane);
    tutti_team_run(tutti_team_for(exec.team, floats), share, job);
}

static size_t plane_of(int h, int w)
{
    return (size_t)h * (size_t)w * TUTTI_BLOCK;
}

void tutti_upsample_forward(tutti_exec exec, const tutti_upsample *upsample, int n, const float *x,
                            float *y)
{
    const tutti_upsample_shape *shape = &upsample->shape;
    upsample_job job = {.kernel = shape->bilinear ? exec.row->ops->upsample_bilinear
                                                  : exec.row->ops->upsample_nearest,
                        .upsample = upsample,
                        .from_plane = plane_of(shape->h, shape->w),
                        .to_plane = plane_of(shape->out_h, shape->out_w),
                        .from = x,
                        .to = y};
    run(exec, &job, n);
}

void tutti_upsample_backward(tutti_exec exec, const tutti_upsample *upsample, int n,
                             const float *dy, const float *mask, float *dx)
{
    const tutti_upsample_shape *shape = &upsample->shape;
    upsample_job job = {.kernel = exec.row->ops->upsample_backward,
                        .upsample = upsample,
                        .from_plane = plane_of(shape->out_h, shape->out_w),
                        .to_plane = plane_of(shape->h, shape->w),
                        .from = dy,
                        .mask = mask,
                        .to = dx};
    run(exec, &job, n);
}
