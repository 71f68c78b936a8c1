#include "kernel/layout.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/ops_kernels.h"
#include "kernel/work.h"

enum { B = TUTTI_BLOCK };

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* ---- activations: threads share (sample, block) planes, or samples ---- */

typedef struct move_job {
    tutti_extent extent;
    const float *from;
    float *to;
    const tutti_ops_kernels *ops; /* of those that have a kernel */
    bool stream;
} move_job;

/* Floats without the filling. */
static size_t compact_floats(tutti_extent extent)
{
    return (size_t)extent.n * (size_t)extent.c * (size_t)extent.pixels;
}

static void run(tutti_team *team, tutti_team_job *share, move_job *job)
{
    const size_t floats = compact_floats(job->extent);
    tutti_team_run(tutti_team_for(team, floats), share, job);
}

static void to_blocked_share(void *arg, int thread, int threads)
{
    const move_job *job = arg;
    const size_t blocks = tutti_channel_blocks(job->extent.c), c = (size_t)job->extent.c;
    const size_t pixels = (size_t)job->extent.pixels;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const size_t channel = i / blocks * c + i % blocks * B;
        job->ops->block_plane(pixels, min_int(B, job->extent.c - (int)(i % blocks) * B),
                              job->from + channel * pixels, job->to + i * pixels * B, job->stream);
    }
}

void tutti_nchw_to_blocked(tutti_exec exec, tutti_extent extent, const float *nchw, float *blocked)
{
    const bool stream = tutti_streams(blocked, tutti_extent_floats(extent));
    move_job job = {extent, nchw, blocked, exec.row->ops, stream};
    run(exec.team, to_blocked_share, &job);
}

static void from_blocked_share(void *arg, int thread, int threads)
{
    const move_job *job = arg;
    const size_t blocks = tutti_channel_blocks(job->extent.c), c = (size_t)job->extent.c;
    const size_t pixels = (size_t)job->extent.pixels;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const size_t channel = i / blocks * c + i % blocks * B;
        job->ops->unblock_plane(pixels, min_int(B, job->extent.c - (int)(i % blocks) * B),
                                job->from + i * pixels * B, job->to + channel * pixels,
                                job->stream);
    }
}

/* Only whole lines of a plane are stored past the caches. */
void tutti_blocked_to_nchw(tutti_exec exec, tutti_extent extent, const float *blocked, float *nchw)
{
    const bool lines = extent.pixels % TUTTI_BLOCK == 0;
    const bool stream = lines && tutti_streams(nchw, compact_floats(extent));
    move_job job = {extent, blocked, nchw, exec.row->ops, stream};
    run(exec.team, from_blocked_share, &job);
}

static void to_nhwc_share(void *arg, int thread, int threads)
{
    const move_job *job = arg;
    const size_t c = (size_t)job->extent.c, pixels = (size_t)job->extent.pixels;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * pixels, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const float *from = job->from + i / pixels * c * pixels + i % pixels;
        for (size_t channel = 0; channel < c; channel++)
            job->to[i * c + channel] = from[channel * pixels];
    }
}

void tutti_nchw_to_nhwc(tutti_team *team, tutti_extent extent, const float *nchw, float *nhwc)
{
    move_job job = {extent, nchw, nhwc, NULL, false};
    run(team, to_nhwc_share, &job);
}

static void from_nhwc_share(void *arg, int thread, int threads)
{
    const move_job *job = arg;
    const size_t c = (size_t)job->extent.c, pixels = (size_t)job->extent.pixels;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * pixels, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        float *to = job->to + i / pixels * c * pixels + i % pixels;
        for (size_t channel = 0; channel < c; channel++)
            to[channel * pixels] = job->from[i * c + channel];
    }
}

void tutti_nhwc_to_nchw(tutti_team *team, tutti_extent extent, const float *nhwc, float *nchw)
{
    move_job job = {extent, nhwc, nchw, NULL, false};
    run(team, from_nhwc_share, &job);
}

/* ---- weights ---- */

/* Input channels as our layout stores them. */
static size_t stored_c(const tutti_weight_shape *shape)
{
    return shape->compact ? (size_t)shape->c : tutti_round_up((size_t)shape->c, B);
}

static size_t taps_of(const tutti_weight_shape *shape)
{
    return (size_t)shape->r * (size_t)shape->s;
}

size_t tutti_weight_blocked_count(const tutti_weight_shape *shape)
{
    return tutti_round_up((size_t)shape->k, B) * stored_c(shape) * taps_of(shape);
}

size_t tutti_weight_torch_count(const tutti_weight_shape *shape)
{
    return (size_t)shape->k * (size_t)shape->c * taps_of(shape);
}

/* Sixteen neighbours in ours: output channels of one input channel and tap. In torch's the first is
 * number 'torch', the next ones follow at a distance of 'step'; the last ones may be padding. */
typedef struct weight_line {
    size_t torch, step;
    int lanes; /* that exist */
} weight_line;

static weight_line line_of(const tutti_weight_shape *shape, size_t line)
{
    const size_t taps = taps_of(shape), run = shape->compact ? (size_t)shape->c : B;
    const size_t row = line % run, tap = line / run % taps;
    const size_t outer = line / run / taps, runs = stored_c(shape) / run;
    const size_t c = outer % runs * run + row, k = outer / runs * B, step = (size_t)shape->c * taps;
    return (weight_line){.torch = k * step + c * taps + tap,
                         .step = step,
                         .lanes = c < (size_t)shape->c ? min_int(B, shape->k - (int)k) : 0};
}

int64_t tutti_weight_torch_index(const tutti_weight_shape *shape, size_t at)
{
    const weight_line line = line_of(shape, at / B);
    const size_t lane = at % B;
    return (int)lane < line.lanes ? (int64_t)(line.torch + lane * line.step) : -1;
}

void tutti_strip_from_torch(const tutti_weight_shape *shape, size_t begin, size_t end,
                            const float *torch, float *strip)
{
    for (size_t at = begin; at < end;) {
        const weight_line line = line_of(shape, at / B);
        for (size_t lane = at % B; lane < B && at < end; lane++, at++)
            strip[at - begin] = (int)lane < line.lanes ? torch[line.torch + lane * line.step] : 0;
    }
}

void tutti_strip_to_torch(const tutti_weight_shape *shape, size_t begin, size_t end,
                          const float *strip, float *torch)
{
    for (size_t at = begin; at < end;) {
        const weight_line line = line_of(shape, at / B);
        for (size_t lane = at % B; lane < B && at < end; lane++, at++)
            if ((int)lane < line.lanes) torch[line.torch + lane * line.step] = strip[at - begin];
    }
}

/* A tile is one block of output channels by one run of input channels (16, or all c if compact),
 * all taps: [taps][run][16] in ours, contiguous. Threads share tiles. */
typedef struct weight_job {
    const tutti_weight_shape *shape;
    const float *from;
    float *to;
} weight_job;

typedef struct weight_tile {
    size_t at;    /* first float in ours */
    size_t torch; /* first float in torch's */
    size_t run;   /* rows of 16 floats per tap, */
    int c, k;     /* of which the first c are channels; of 16 lanes the first k are */
} weight_tile;

static weight_tile tile_of(const tutti_weight_shape *shape, size_t i)
{
    const size_t run = shape->compact ? (size_t)shape->c : B, runs = stored_c(shape) / run;
    const int c0 = (int)(i % runs * run), k0 = (int)(i / runs) * B;
    return (weight_tile){.at = i * taps_of(shape) * run * B,
                         .torch = ((size_t)k0 * (size_t)shape->c + (size_t)c0) * taps_of(shape),
                         .run = run,
                         .c = min_int((int)run, shape->c - c0),
                         .k = min_int(B, shape->k - k0)};
}

static tutti_range tiles_of(const tutti_weight_shape *shape, int threads, int thread)
{
    const size_t tile = taps_of(shape) * (shape->compact ? (size_t)shape->c : B) * B;
    return tutti_range_of(tutti_weight_blocked_count(shape) / tile, threads, thread);
}

static void from_torch_share(void *arg, int thread, int threads)
{
    const weight_job *job = arg;
    const size_t taps = taps_of(job->shape), next_k = (size_t)job->shape->c * taps;
    const tutti_range mine = tiles_of(job->shape, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const weight_tile tile = tile_of(job->shape, i);
        const float *from = job->from + tile.torch;
        float *to = job->to + tile.at;
        memset(to, 0, taps * tile.run * B * sizeof *to);
        for (size_t k = 0; k < (size_t)tile.k; k++)
            for (size_t c = 0; c < (size_t)tile.c; c++)
                for (size_t t = 0; t < taps; t++)
                    to[(t * tile.run + c) * B + k] = from[k * next_k + c * taps + t];
    }
}

void tutti_weights_from_torch(tutti_team *team, const tutti_weight_shape *shape, const float *torch,
                              float *blocked)
{
    weight_job job = {shape, torch, blocked};
    tutti_team_run(tutti_team_for(team, tutti_weight_blocked_count(shape)), from_torch_share, &job);
}

static void to_torch_share(void *arg, int thread, int threads)
{
    const weight_job *job = arg;
    const size_t taps = taps_of(job->shape), next_k = (size_t)job->shape->c * taps;
    const tutti_range mine = tiles_of(job->shape, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const weight_tile tile = tile_of(job->shape, i);
        const float *from = job->from + tile.at;
        float *to = job->to + tile.torch;
        for (size_t k = 0; k < (size_t)tile.k; k++)
            for (size_t c = 0; c < (size_t)tile.c; c++)
                for (size_t t = 0; t < taps; t++)
                    to[k * next_k + c * taps + t] = from[(t * tile.run + c) * B + k];
    }
}

void tutti_weights_to_torch(tutti_team *team, const tutti_weight_shape *shape, const float *blocked,
                            float *torch)
{
    weight_job job = {shape, blocked, torch};
    tutti_team_run(tutti_team_for(team, tutti_weight_blocked_count(shape)), to_torch_share, &job);
}
