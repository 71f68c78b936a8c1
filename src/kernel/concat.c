/* Concatenation along channels. A part's blocks are copied as planes where they fall on whole
 * blocks of the result, else lane by lane into the two blocks they touch. */
#include <string.h>

#include "base/memory.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

enum { B = TUTTI_BLOCK };

typedef struct concat_job {
    const tutti_ops_kernels *ops;
    const tutti_concat_shape *shape;
    const float *const *x, *const *mask;
    float *const *dx;
    const float *dy;
    float *y;
    bool stream; /* all of y, or of every dx, past the caches */
} concat_job;

static int channels_before(const concat_job *job, int part)
{
    int sum = 0;
    for (int i = 0; i < part; i++) sum += job->shape->c[i];
    return sum;
}

/* 'lanes' lanes of each pixel of a plane; 'stream' as in ops_kernels.h. */
static void copy_lanes(const concat_job *job, int lanes, const float *from, float *to, bool stream)
{
    if (lanes == B) {
        const tutti_elementwise flat = {.a = from, .y = to, .stream = stream};
        job->ops->mask(&flat, 0, (size_t)job->shape->pixels * B);
        return;
    }
    for (int i = 0; i < job->shape->pixels; i++)
        memcpy(to + (size_t)i * B, from + (size_t)i * B, (size_t)lanes * sizeof *to);
}

static void zero_lanes(int pixels, int lanes, float *to)
{
    for (int i = 0; i < pixels; i++) memset(to + (size_t)i * B, 0, (size_t)lanes * sizeof *to);
}

/* Part 'part' of one sample, x of which is 'x', into the result's sample y. */
static void join_part(const concat_job *job, int part, const float *x, float *y)
{
    const size_t plane = (size_t)job->shape->pixels * B;
    const int first = channels_before(job, part), c = job->shape->c[part];
    for (int done = 0; done < c;) {
        const int from = done % B, to = (first + done) % B;
        int lanes = B - (from > to ? from : to);
        if (lanes > c - done) lanes = c - done;
        copy_lanes(job, lanes, x + (size_t)(done / B) * plane + from,
                   y + (size_t)((first + done) / B) * plane + to, job->stream);
        done += lanes;
    }
}

static void join_share(void *arg, int thread, int threads)
{
    const concat_job *job = arg;
    const int total = channels_before(job, job->shape->parts);
    const size_t plane = (size_t)job->shape->pixels * B;
    const tutti_range mine = tutti_range_of((size_t)job->shape->n, threads, thread);
    for (size_t n = mine.begin; n < mine.end; n++) {
        float *y = job->y + n * tutti_channel_blocks(total) * plane;
        for (int i = 0; i < job->shape->parts; i++)
            join_part(job, i, job->x[i] + n * tutti_channel_blocks(job->shape->c[i]) * plane, y);
        if (total % B)
            zero_lanes(job->shape->pixels, B - total % B,
                       y + (tutti_channel_blocks(total) - 1) * plane + total % B);
    }
}

static size_t floats_of(const concat_job *job)
{
    const size_t blocks = tutti_channel_blocks(channels_before(job, job->shape->parts));
    return (size_t)job->shape->n * blocks * (size_t)job->shape->pixels * B;
}

void tutti_concat(tutti_exec exec, const tutti_concat_shape *shape, const float *const *x, float *y)
{
    concat_job job = {.ops = exec.row->ops, .shape = shape};
    job.x = x, job.y = y, job.stream = tutti_streams(y, floats_of(&job));
    tutti_team_run(tutti_team_for(exec.team, floats_of(&job)), join_share, &job);
}

/* The channels of a part of one sample out of dy, into dx. */
static void split_part(const concat_job *job, int part, const float *dy, float *dx)
{
    const size_t plane = (size_t)job->shape->pixels * B;
    const int first = channels_before(job, part), c = job->shape->c[part];
    for (int done = 0; done < c;) {
        const int from = (first + done) % B, to = done % B;
        int lanes = B - (from > to ? from : to);
        if (lanes > c - done) lanes = c - done;
        copy_lanes(job, lanes, dy + (size_t)((first + done) / B) * plane + from,
                   dx + (size_t)(done / B) * plane + to, job->stream);
        done += lanes;
    }
    if (c % B) zero_lanes(job->shape->pixels, B - c % B, dx + (size_t)(c / B) * plane + c % B);
}

/* Like split_part, with a mask. Whole blocks are masked on the way, others after the move. */
static void split_masked(const concat_job *job, int part, const float *dy, const float *mask,
                         float *dx)
{
    const size_t plane = (size_t)job->shape->pixels * B, first = (size_t)channels_before(job, part);
    const bool whole = first % B == 0 && job->shape->c[part] % B == 0;
    if (!whole) split_part(job, part, dy, dx);
    const tutti_elementwise flat = {.a = whole ? dy + first / B * plane : dx,
                                    .mask = mask,
                                    .y = dx,
                                    .stream = whole && job->stream};
    job->ops->mask(&flat, 0, tutti_channel_blocks(job->shape->c[part]) * plane);
}

static void split_share(void *arg, int thread, int threads)
{
    const concat_job *job = arg;
    const size_t plane = (size_t)job->shape->pixels * B;
    const size_t total = tutti_channel_blocks(channels_before(job, job->shape->parts)) * plane;
    const tutti_range mine = tutti_range_of((size_t)job->shape->n, threads, thread);
    for (size_t n = mine.begin; n < mine.end; n++)
        for (int i = 0; i < job->shape->parts; i++) {
            const size_t at = n * tutti_channel_blocks(job->shape->c[i]) * plane;
            if (!job->dx[i]) continue;
            if (job->mask && job->mask[i])
                split_masked(job, i, job->dy + n * total, job->mask[i] + at, job->dx[i] + at);
            else split_part(job, i, job->dy + n * total, job->dx[i] + at);
        }
}

void tutti_concat_backward(tutti_exec exec, const tutti_concat_shape *shape, const float *dy,
                           const float *const *mask, float *const *dx)
{
    concat_job job = {.ops = exec.row->ops, .shape = shape};
    job.dy = dy, job.mask = mask, job.dx = dx, job.stream = floats_of(&job) >= TUTTI_STREAMED;
    for (int i = 0; i < shape->parts; i++)
        if (dx[i] && (uintptr_t)dx[i] % TUTTI_CACHE_LINE) job.stream = false;
    tutti_team_run(tutti_team_for(exec.team, floats_of(&job)), split_share, &job);
}
