/* A block of 16 channels of the result gathers its lanes from wherever they are. It takes as many
 * loads and stores as there are values, which keeps up with memory; blocks that are copied whole
 * go as vectors. */
#include "kernel/channels.h"

#include "kernel/ops_kernels.h"
#include "kernel/work.h"

enum { B = TUTTI_BLOCK };

typedef struct map_job {
    const tutti_ops_kernels *ops;
    tutti_extent to;
    size_t from_blocks;
    const int *map;
    const float *x, *mask;
    float *y;
} map_job;

/* Does block b consist of the 16 channels of one block of x, in order? */
static bool is_whole(const map_job *job, int first)
{
    if (first + B > job->to.c || job->map[first] < 0 || job->map[first] % B) return false;
    for (int l = 1; l < B; l++)
        if (job->map[first + l] != job->map[first] + l) return false;
    return true;
}

/* The lanes of all pixels, each from its place; where there is none, 'lane' points at zeros and the
 * step is 0. */
static void gather_lanes(size_t pixels, const float *const lane[B], const size_t step[B], float *y)
{
    for (size_t i = 0; i < pixels; i++)
        for (int l = 0; l < B; l++) y[i * B + (size_t)l] = lane[l][i * step[l]];
}

/* The same without gaps, so that places need no products. */
static void gather_all(size_t pixels, const float *const lane[B], float *restrict y)
{
    for (size_t i = 0; i < pixels; i++)
#pragma GCC unroll 16
        for (int l = 0; l < B; l++) y[i * B + (size_t)l] = lane[l][i * B];
}

static void gather_plane(const map_job *job, int first, const float *sample, float *y)
{
    static const float nothing[B] = {0};
    const size_t pixels = (size_t)job->to.pixels, plane = pixels * B;
    const float *lane[B];
    size_t step[B];
    bool gaps = false;
    for (int l = 0; l < B; l++) {
        const int c = first + l < job->to.c ? job->map[first + l] : -1;
        lane[l] = c < 0 ? nothing : sample + (size_t)(c / B) * plane + c % B;
        step[l] = c < 0 ? 0 : B;
        gaps |= c < 0;
    }
    if (gaps) gather_lanes(pixels, lane, step, y);
    else gather_all(pixels, lane, y);
}

static void map_plane(const map_job *job, size_t n, size_t block)
{
    const size_t plane = tutti_extent_plane(job->to);
    const size_t at = n * tutti_extent_sample(job->to) + block * plane;
    const int first = (int)block * B;
    const float *sample = job->x + n * job->from_blocks * plane;
    tutti_elementwise copy = {.a = job->y + at, .y = job->y + at};
    copy.mask = job->mask ? job->mask + at : NULL;
    if (is_whole(job, first)) copy.a = sample + (size_t)(job->map[first] / B) * plane;
    else gather_plane(job, first, sample, job->y + at);
    if (copy.a != copy.y || copy.mask) job->ops->mask(&copy, 0, plane);
}

static void map_share(void *arg, int thread, int threads)
{
    const map_job *job = arg;
    const size_t blocks = tutti_channel_blocks(job->to.c);
    const tutti_range mine = tutti_range_of((size_t)job->to.n * blocks, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) map_plane(job, i / blocks, i % blocks);
}

void tutti_map_channels(tutti_exec exec, tutti_extent to, int from, const int *map, const float *x,
                        const float *mask, float *y)
{
    map_job job = {exec.row->ops, to, tutti_channel_blocks(from), map, x, mask, y};
    tutti_team_run(tutti_team_for(exec.team, tutti_extent_floats(to)), map_share, &job);
}
