#include "kernel/pixel_norm.h"

#include "kernel/ops_kernels.h"
#include "kernel/work.h"

enum { TILE = TUTTI_PIXEL_TILE };

/* ---- tiles ---- */

typedef struct tile_job {
    tutti_pixel_norm_fn *run;
    tutti_extent extent;
    tutti_pixel_tile like; /* what all tiles have in common; pointers are those of the first */
    float *rows;           /* NULL: statistics are not kept */
    bool stream;
} tile_job;

/* 1 for the channels of the last block, 0 for what fills it up. */
static void set_lanes(int channels, float lanes[TUTTI_BLOCK])
{
    const int last = (channels - 1) % TUTTI_BLOCK;
    for (int l = 0; l < TUTTI_BLOCK; l++) lanes[l] = l <= last;
}

static void run_tile(const tile_job *job, size_t sample, int first, float room[3][TILE])
{
    const size_t row = tutti_pixel_row(job->extent);
    const size_t at = sample * tutti_extent_sample(job->extent) + (size_t)first * TUTTI_BLOCK;
    float *rows = job->rows ? job->rows + sample * TUTTI_PIXEL_ROWS * row + first : room[0];
    const size_t step = job->rows ? row : TILE;
    const int left = job->extent.pixels - first;
    tutti_pixel_tile tile = job->like;
    tile.pixels = left < TILE ? left : TILE;
    tile.high = rows + TUTTI_PIXEL_HIGH * step;
    tile.low = rows + TUTTI_PIXEL_LOW * step;
    tile.inverse = rows + TUTTI_PIXEL_INVERSE * step;
    tile.x += at;
    if (tile.dy) tile.dy += at;
    tile.y += at;
    job->run(&tile, job->stream);
}

static void tile_share(void *arg, int thread, int threads)
{
    const tile_job *job = arg;
    float room[TUTTI_PIXEL_ROWS][TILE];
    const size_t tiles = tutti_pixel_row(job->extent) / TILE;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * tiles, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        run_tile(job, i / tiles, (int)(i % tiles) * TILE, room);
}

static void run_tiles(tutti_exec exec, tile_job *job, const tutti_pixel_norm *norm)
{
    const size_t floats = tutti_extent_floats(job->extent);
    float lanes[TUTTI_BLOCK];
    set_lanes(job->extent.c, lanes);
    job->like.blocks = (int)tutti_channel_blocks(job->extent.c);
    job->like.plane = tutti_extent_plane(job->extent);
    job->like.share = 1.0f / (float)job->extent.c;
    job->like.eps = (float)norm->eps;
    job->like.weight = norm->weight;
    job->like.bias = norm->bias;
    job->like.lanes = lanes;
    job->stream = job->like.y != job->like.dy && tutti_streams(job->like.y, floats);
    tutti_team_run(tutti_team_for(exec.team, floats), tile_share, job);
}

void tutti_pixel_norm_forward(tutti_exec exec, tutti_extent extent, const tutti_pixel_norm *norm,
                              const float *x, float *rows, float *y)
{
    tile_job job = {.run = exec.row->ops->pixel_norm, .extent = extent, .rows = rows};
    job.like.x = x;
    job.like.y = y;
    run_tiles(exec, &job, norm);
}

void tutti_pixel_norm_backward(tutti_exec exec, tutti_extent extent, const tutti_pixel_norm *norm,
                               const float *rows, const float *x, const float *dy, bool gated,
                               float *dx)
{
    tile_job job = {.run = exec.row->ops->pixel_norm_backward, .extent = extent};
    job.rows = (float *)rows; /* only read */
    job.like.x = x;
    job.like.dy = dy;
    job.like.gated = gated;
    job.like.y = dx;
    run_tiles(exec, &job, norm);
}

/* ---- gradients ---- */

typedef struct sums_job {
    tutti_pixel_norm_sums_fn *run;
    tutti_extent extent;
    int first; /* sample */
    const float *rows, *x, *dy;
    double *leaves;
} sums_job;

static void sums_share(void *arg, int thread, int threads)
{
    const sums_job *job = arg;
    const size_t blocks = tutti_channel_blocks(job->extent.c), row = blocks * TUTTI_BLOCK;
    const size_t plane = tutti_extent_plane(job->extent), length = tutti_pixel_row(job->extent);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const size_t sample = (size_t)job->first + i / blocks, block = i % blocks;
        const float *rows = job->rows + sample * TUTTI_PIXEL_ROWS * length;
        const size_t at = (sample * blocks + block) * plane;
        double *leaf = job->leaves + sample * 2 * row + block * TUTTI_BLOCK;
        job->run(job->extent.pixels, job->x + at, job->dy + at, rows + TUTTI_PIXEL_HIGH * length,
                 rows + TUTTI_PIXEL_LOW * length, rows + TUTTI_PIXEL_INVERSE * length, leaf,
                 leaf + row);
    }
}

void tutti_pixel_norm_gradients(tutti_exec exec, tutti_extent extent, const tutti_grains *grains,
                                const float *rows, const float *x, const float *dy, double *leaves,
                                float *dw, float *db)
{
    sums_job job = {.run = exec.row->ops->pixel_norm_sums,
                    .extent = extent,
                    .first = grains->begin[0],
                    .rows = rows,
                    .x = x,
                    .dy = dy,
                    .leaves = leaves};
    job.extent.n = grains->begin[grains->count] - grains->begin[0];
    tutti_team_run(tutti_team_for(exec.team, tutti_extent_floats(job.extent)), sums_share, &job);
    tutti_norm_gradients(exec, extent.c, (tutti_norm_groups){0, 1}, NULL, grains, leaves, dw, db);
}
