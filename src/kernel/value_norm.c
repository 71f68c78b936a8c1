#include "kernel/value_norm.h"

#include <string.h>

#include "kernel/ops_kernels.h"
#include "kernel/work.h"

typedef struct value_job {
    const tutti_ops_kernels *ops;
    tutti_extent extent;
    tutti_value_norm norm;
    const double *states;
    const float *rows, *x, *dy;
    double *leaves;
    float *to;
    bool gated, stream;
} value_job;

static size_t row_of(const value_job *job)
{
    return tutti_norm_pair(job->extent.c) / 2;
}

/* The state of a block of a sample's channels, as coefficients. */
typedef struct centre {
    float high[TUTTI_BLOCK], low[TUTTI_BLOCK], inverse[TUTTI_BLOCK];
} centre;

static void set_centre(const value_job *job, size_t sample, size_t block, centre *c)
{
    const size_t row = row_of(job);
    const double *state = job->states + sample * TUTTI_NORM_STATE * row + block * TUTTI_BLOCK;
    for (size_t l = 0; l < TUTTI_BLOCK; l++) {
        tutti_norm_split_mean(state[TUTTI_NORM_MEAN * row + l], &c->high[l], &c->low[l]);
        c->inverse[l] = (float)state[TUTTI_NORM_INVERSE * row + l];
    }
}

/* Number i of all planes, but for its coefficients. */
static tutti_value_plane plane_at(const value_job *job, size_t i)
{
    const size_t plane = tutti_extent_plane(job->extent);
    const size_t block = i % tutti_channel_blocks(job->extent.c);
    return (tutti_value_plane){.weight = job->norm.weight ? job->norm.weight + block * plane : NULL,
                               .bias = job->norm.bias ? job->norm.bias + block * plane : NULL,
                               .x = job->x + i * plane,
                               .dy = job->dy ? job->dy + i * plane : NULL,
                               .gated = job->gated};
}

static tutti_norm_plane coefficients_at(const value_job *job, size_t i)
{
    const size_t blocks = tutti_channel_blocks(job->extent.c), row = row_of(job);
    const float *rows = job->rows + i / blocks * TUTTI_NORM_ROWS * row + i % blocks * TUTTI_BLOCK;
    return (tutti_norm_plane){.high = rows + TUTTI_NORM_HIGH * row,
                              .low = rows + TUTTI_NORM_LOW * row,
                              .factor = rows + TUTTI_NORM_FACTOR * row,
                              .factor_x = rows + TUTTI_NORM_FACTOR_X * row,
                              .addend = rows + TUTTI_NORM_ADDEND * row};
}

/* ---- passes ---- */

static void pass_share(const value_job *job, tutti_value_pass_fn *pass, int thread, int threads)
{
    const size_t blocks = tutti_channel_blocks(job->extent.c);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        tutti_value_plane plane = plane_at(job, i);
        plane.by = coefficients_at(job, i);
        pass(job->extent.pixels, &plane, job->to + i * tutti_extent_plane(job->extent),
             job->stream);
    }
}

static void forward_share(void *job, int thread, int threads)
{
    pass_share(job, ((const value_job *)job)->ops->value_forward, thread, threads);
}

static void backward_share(void *job, int thread, int threads)
{
    pass_share(job, ((const value_job *)job)->ops->value_backward, thread, threads);
}

static void run(tutti_exec exec, tutti_team_job *share, value_job *job)
{
    const size_t floats = tutti_extent_floats(job->extent);
    job->ops = exec.row->ops;
    if (job->to) job->stream = job->to != job->dy && tutti_streams(job->to, floats);
    tutti_team_run(tutti_team_for(exec.team, floats), share, job);
}

void tutti_value_norm_forward(tutti_exec exec, tutti_extent extent, const tutti_value_norm *norm,
                              const float *rows, const float *x, float *y)
{
    run(exec, forward_share,
        &(value_job){.extent = extent, .norm = *norm, .rows = rows, .x = x, .to = y});
}

void tutti_value_norm_backward(tutti_exec exec, tutti_extent extent, const tutti_value_norm *norm,
                               const float *rows, const float *x, const float *dy, bool gated,
                               float *dx)
{
    run(exec, backward_share,
        &(value_job){.extent = extent,
                     .norm = *norm,
                     .rows = rows,
                     .x = x,
                     .dy = dy,
                     .to = dx,
                     .gated = gated});
}

static void sums_share(void *arg, int thread, int threads)
{
    const value_job *job = arg;
    const size_t blocks = tutti_channel_blocks(job->extent.c), row = row_of(job);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        double *leaf = job->leaves + i / blocks * 2 * row + i % blocks * TUTTI_BLOCK;
        tutti_value_plane plane = plane_at(job, i);
        centre c;
        set_centre(job, i / blocks, i % blocks, &c);
        plane.by = (tutti_norm_plane){.high = c.high, .low = c.low};
        job->ops->value_sums(job->extent.pixels, &plane, leaf, leaf + row);
    }
}

void tutti_value_norm_sums(tutti_exec exec, tutti_extent extent, const tutti_value_norm *norm,
                           const double *states, const float *x, const float *dy, double *leaves)
{
    run(exec, sums_share,
        &(value_job){
            .extent = extent, .norm = *norm, .states = states, .x = x, .dy = dy, .leaves = leaves});
}

/* ---- gradients ---- */

enum { TILE = 8 }; /* pixels whose sums are kept in the first-level cache */

/* Sums of a tile's values: of dy times the normalised x, and of dy. */
typedef struct tile_sums {
    float weight[TILE * TUTTI_BLOCK], bias[TILE * TUTTI_BLOCK];
} tile_sums;

typedef struct gradient_job {
    value_job job;
    const tutti_grains *grains;
    float *dw, *db;
} gradient_job;

static void add_sums(tile_sums *a, const tile_sums *b)
{
    for (int i = 0; i < TILE * TUTTI_BLOCK; i++) {
        a->weight[i] += b->weight[i];
        a->bias[i] += b->bias[i];
    }
}

/* Of one grain, pixels 'first' to first + pixels - 1 of a block. */
static void add_grain(const gradient_job *g, int grain, size_t block, int first, int pixels,
                      tile_sums *sums)
{
    const value_job *job = &g->job;
    const size_t blocks = tutti_channel_blocks(job->extent.c),
                 skipped = (size_t)first * TUTTI_BLOCK;
    memset(sums, 0, sizeof *sums);
    for (int s = g->grains->begin[grain]; s < g->grains->begin[grain + 1]; s++) {
        tutti_value_plane plane = plane_at(job, (size_t)s * blocks + block);
        centre c;
        set_centre(job, (size_t)s, block, &c);
        plane.by = (tutti_norm_plane){.high = c.high, .low = c.low, .factor = c.inverse};
        plane.x += skipped;
        plane.dy += skipped;
        job->ops->value_gradient(pixels, &plane, sums->weight, sums->bias);
    }
}

static void add_tile(const gradient_job *g, size_t block, int first)
{
    const int left = g->job.extent.pixels - first, pixels = left < TILE ? left : TILE;
    const size_t at = block * tutti_extent_plane(g->job.extent) + (size_t)first * TUTTI_BLOCK;
    const size_t bytes = (size_t)pixels * TUTTI_BLOCK * sizeof(float);
    tile_sums stack[TUTTI_TREE_LEVELS + 1];
    int depth = 0;
    for (int grain = 0; grain < g->grains->count; grain++) {
        add_grain(g, grain, block, first, pixels, &stack[depth++]);
        for (int joins = tutti_tree_joins(grain); joins > 0 && depth > 1; joins--, depth--)
            add_sums(&stack[depth - 2], &stack[depth - 1]);
    }
    memcpy(g->dw + at, stack->weight, bytes);
    memcpy(g->db + at, stack->bias, bytes);
}

static void gradient_share(void *arg, int thread, int threads)
{
    const gradient_job *g = arg;
    const size_t tiles = (size_t)tutti_ceil_div(g->job.extent.pixels, TILE);
    const tutti_range mine =
        tutti_range_of(tutti_channel_blocks(g->job.extent.c) * tiles, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) add_tile(g, i / tiles, (int)(i % tiles) * TILE);
}

void tutti_value_norm_gradients(tutti_exec exec, tutti_extent extent, const tutti_grains *grains,
                                const double *states, const float *x, const float *dy, float *dw,
                                float *db)
{
    gradient_job g = {
        .job = {.ops = exec.row->ops, .extent = extent, .states = states, .x = x, .dy = dy},
        .grains = grains,
        .dw = dw,
        .db = db};
    const size_t samples = (size_t)(grains->begin[grains->count] - grains->begin[0]);
    tutti_team_run(tutti_team_for(exec.team, samples * tutti_extent_sample(extent)), gradient_share,
                   &g);
}
