/* Forward and backward-data: the loops around the register tile.
 *
 * Items of work are (group of tiles of output features, sample, block of rows), and a thread takes
 * a run of them, so it meets few groups and many samples of each:
 *
 *   for each group of tiles         weights of the group ..
 *     for each block of inputs      .. and these inputs stay in the second-level cache
 *       for each sample, row block  x: read once for all tiles of the group
 *         for each tile, sweep, row, segment: one register tile
 *
 * With several blocks of inputs the partial sums wait in y; so do those of the chunks in which a
 * tile takes its inputs, where that keeps the weights of a chunk in the first-level cache over all
 * rows of an item. Backward-data transposes the weights of a group when it comes to it, in cache;
 * forward packs the rows of a compact image that a block of rows reads. Threads never share an
 * output.
 *
 * A tile fetches what the tile below it will read. Hardware follows few of the many blocks of x,
 * and none beyond its page: without this, 1x1 kernels over 256 channels of 56x56 pixels wait half
 * of the time. */
#include "kernel/conv_plan.h"

#include <stdint.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/conv_bf16.h"

typedef struct job {
    const tutti_conv *conv;
    const tutti_conv_pass *pass;
    int n;
    const float *x, *w, *bias, *mask;
    bool relu, stream;
    float *y, *scratch;
} job;

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

static int tiles_per_group(const tutti_conv_pass *pass)
{
    return tutti_ceil_div(pass->outputs, pass->tile_blocks);
}

static int groups_of_tiles(const tutti_conv_pass *pass)
{
    return pass->groups * tutti_ceil_div(tiles_per_group(pass), pass->blocks.tiles);
}

/* Tiles begin .. end-1 of one group of the convolution, and the inputs' blocks that are summed. */
typedef struct stretch {
    int group, begin, end;
    int inputs_begin, inputs_end;
} stretch;

static stretch stretch_of(const tutti_conv_pass *pass, int index)
{
    const int tiles = tiles_per_group(pass), size = pass->blocks.tiles;
    const int per_group = tutti_ceil_div(tiles, size), at = index % per_group;
    return (stretch){
        .group = index / per_group,
        .begin = at * size,
        .end = min_of(tiles, (at + 1) * size),
    };
}

/* The first output block of a tile, within its group. */
static int first_block(const tutti_conv_pass *pass, int tile)
{
    return tutti_share_begin(pass->outputs, tiles_per_group(pass), tile);
}

/* Input rows that output rows begin .. end-1 read: *first .. the result's predecessor. */
static int rows_read(const tutti_conv_sweep *sweep, int begin, int end, int *first)
{
    const int last = min_of(end, sweep->rows) - 1, reach = (sweep->taps_h - 1) * sweep->tap_h;
    *first = max_of(begin * sweep->step_h + sweep->first_h, 0);
    return min_of(last * sweep->step_h + sweep->first_h + reach + 1, sweep->in_h);
}

/* Floats of one thread's scratch. */
static size_t own_scratch(const tutti_conv *conv, const tutti_conv_pass *pass)
{
    const size_t blocks = (size_t)pass->blocks.tiles * (size_t)pass->tile_blocks;
    if (pass->transposed) return blocks * (size_t)pass->blocks.inputs * (size_t)pass->w_tile;
    if (!conv->packed) return 0;
    const tutti_conv_sweep *sweep = &pass->sweeps[0];
    const int rows = (pass->blocks.rows - 1) * sweep->step_h + (sweep->taps_h - 1) * sweep->tap_h;
    return tutti_conv_packed_floats(conv, min_of(rows + 1, sweep->in_h));
}

size_t tutti_conv_pass_scratch(const tutti_conv *conv, const tutti_conv_pass *pass)
{
    return pass->sweeps ? own_scratch(conv, pass) * sizeof(float) * (size_t)conv->threads : 0;
}

/* The weights of the stretch as the tiles want them: features of the output innermost, the kernel
 * turned around. */
static void transpose(const job *j, const stretch *s, float *out)
{
    const tutti_conv_pass *pass = j->pass;
    const long tile = (long)tutti_conv_tap_channels(j->conv) * TUTTI_BLOCK;
    const long taps = pass->w_tile / tile;
    for (int o = first_block(pass, s->begin); o < first_block(pass, s->end); o++)
        for (int i = s->inputs_begin; i < s->inputs_end; i++, out += pass->w_tile) {
            const long from = (long)(s->group * pass->inputs + i) * pass->outputs + o;
            const float *w = j->w + from * pass->w_tile;
            for (long t = 0; t < taps; t++)
                j->conv->tiles->transpose(out + (taps - 1 - t) * tile, w + t * tile);
        }
}

/* The rows of the kernel that lie inside the image for an output row. */
static int rows_inside(const tutti_conv_sweep *sweep, int row, int *first)
{
    const int at = row * sweep->step_h + sweep->first_h;
    int begin = 0, end = sweep->taps_h;
    while (begin < end && at + begin * sweep->tap_h < 0) begin++;
    while (end > begin && at + (end - 1) * sweep->tap_h >= sweep->in_h) end--;
    *first = begin;
    return end - begin;
}

/* Where a tile's image begins. */
typedef struct image {
    const float *x, *w, *mask;
    float *y;
} image;

/* One row of one sweep for the features of one tile. */
static void run_row(const tutti_conv_tiles *kernels, const tutti_conv_sweep *sweep, int row,
                    tutti_conv_tile *t, int nblocks, image at)
{
    int first;
    t->rows = rows_inside(sweep, row, &first);
    at.x += (row * sweep->step_h + sweep->first_h + first * sweep->tap_h) * sweep->x_row;
    at.w += sweep->w_first + first * sweep->w_row;
    const long y = sweep->y_first + row * sweep->y_row;
    for (int i = 0; i < sweep->segment_count; i++) {
        const tutti_conv_segment *seg = &sweep->segments[i];
        kernels->tile[nblocks - 1][seg->width - 1][seg->kind](
            t, seg, at.x + seg->x, at.w + seg->w, at.y + y + seg->y,
            at.mask ? at.mask + y + seg->y : NULL);
    }
}

/* What the next row reads that this one does not: a row of tiles from now. */
static tutti_conv_next next_of(const tutti_conv_sweep *sweep)
{
    const bool all = sweep->taps_w > 1; /* pixels between those of one tap, too */
    return (tutti_conv_next){
        .ahead = sweep->step_h * sweep->x_row,
        .rows = min_of(sweep->step_h, sweep->taps_h),
        .pixel = (all ? 1 : sweep->step_w) * sweep->x_pixel,
        .pixels = all ? sweep->step_w : 1,
    };
}

static void run_sweep(const tutti_conv_tiles *kernels, const tutti_conv_sweep *sweep, int row_begin,
                      int row_end, tutti_conv_tile t, int nblocks, image at)
{
    t.x_row = sweep->tap_h * sweep->x_row;
    t.x_pixel = sweep->step_w * sweep->x_pixel;
    t.w_row = sweep->w_row;
    t.y_pixel = sweep->y_pixel;
    if (sweep->x_pixel == TUTTI_BLOCK) t.next = next_of(sweep);
    if (!sweep->taps_h || !sweep->taps_w) { /* zeros, once */
        if (!t.finish) return;
        t.resume = false;
    }
    for (int row = row_begin; row < min_of(row_end, sweep->rows); row++)
        run_row(kernels, sweep, row, &t, nblocks, at);
}

/* A sample's first input of the stretch; packed images are there as far as the rows need them. */
static const float *input_of(const job *j, const stretch *s, int sample, int row_begin, int row_end,
                             float *packed)
{
    const tutti_conv_pass *pass = j->pass;
    const int input = s->group * pass->inputs + s->inputs_begin;
    const float *x = j->x + sample * pass->x_sample + input * pass->x_block;
    if (pass->transposed || !j->conv->packed) return x;
    int first;
    const int end = rows_read(&pass->sweeps[0], row_begin, row_end, &first);
    tutti_conv_pack(j->conv, packed, x, first, end);
    return packed - first * j->conv->packed_row;
}

/* One tile, chunk by chunk of its inputs. */
static void run_chunks(const job *j, const stretch *s, tutti_conv_tile t, int nblocks, image at,
                       int row_begin, int row_end)
{
    const tutti_conv_pass *pass = j->pass;
    const int inputs = s->inputs_end - s->inputs_begin;
    const int chunks = tutti_ceil_div(inputs, pass->blocks.chunk);
    const float *const mask = at.mask;
    const bool stream = t.stream;
    for (int i = 0; i < chunks; i++) {
        const int begin = tutti_share_begin(inputs, chunks, i);
        const int end = tutti_share_begin(inputs, chunks, i + 1);
        t.blocks = end - begin;
        t.resume = s->inputs_begin + begin > 0;
        t.finish = s->inputs_begin + end == pass->inputs;
        t.stream = stream && t.finish;
        at.mask = t.finish ? mask : NULL;
        for (int k = 0; k < pass->sweep_count; k++)
            run_sweep(j->conv->tiles, &pass->sweeps[k], row_begin, row_end, t, nblocks, at);
        at.x += t.blocks * pass->x_block;
        at.w += t.blocks * pass->w_tile;
    }
}

/* All tiles of the stretch for one block of rows of one sample x. */
static void run_item(const job *j, const stretch *s, const float *x, const float *w, long w_output,
                     int sample, int row_begin, int row_end)
{
    const tutti_conv_pass *pass = j->pass;
    for (int i = s->begin; i < s->end; i++) {
        const int first = first_block(pass, i), block = s->group * pass->outputs + first;
        const long y = sample * pass->y_sample + block * pass->y_block;
        const image at = {
            .x = x,
            .w = w + (first - first_block(pass, s->begin)) * w_output,
            .y = j->y + y,
            .mask = j->mask ? j->mask + y : NULL,
        };
        const tutti_conv_tile t = {
            .x_block = pass->x_block,
            .w_block = pass->w_tile,
            .w_output = w_output,
            .y_output = pass->y_block,
            .stream = j->stream,
            .bias = j->bias ? j->bias + (long)block * TUTTI_BLOCK : NULL,
            .relu = j->relu,
        };
        run_chunks(j, s, t, first_block(pass, i + 1) - first, at, row_begin, row_end);
    }
}

/* Items begin .. end-1 (sample, row block) of one group of tiles. */
static void run_stretch(const job *j, stretch s, int begin, int end, float *scratch)
{
    const tutti_conv_pass *pass = j->pass;
    const int row_blocks = tutti_ceil_div(pass->rows, pass->blocks.rows);
    for (int i = 0; i < pass->inputs; i += pass->blocks.inputs) {
        s.inputs_begin = i;
        s.inputs_end = min_of(pass->inputs, i + pass->blocks.inputs);
        const long first = (long)s.group * pass->outputs + first_block(pass, s.begin);
        const float *w = j->w + (first * pass->inputs + i) * pass->w_tile;
        long w_output = pass->inputs * pass->w_tile;
        if (pass->transposed) {
            transpose(j, &s, scratch);
            w = scratch;
            w_output = (s.inputs_end - s.inputs_begin) * pass->w_tile;
        }
        for (int item = begin; item < end; item++) {
            const int sample = item / row_blocks, row = item % row_blocks * pass->blocks.rows;
            const float *x = input_of(j, &s, sample, row, row + pass->blocks.rows, scratch);
            run_item(j, &s, x, w, w_output, sample, row, row + pass->blocks.rows);
        }
    }
}

/* Blocks of features of all groups before group 'index'. */
static int blocks_before(const tutti_conv_pass *pass, int index)
{
    const stretch s = stretch_of(pass, index);
    return s.group * pass->outputs + first_block(pass, s.begin);
}

/* The place (group of tiles, item) where a thread begins, in items from the first group's. Groups
 * may be of different sizes, so what is shared evenly is blocks of features times items. */
static int begin_of(const tutti_conv_pass *pass, int items, int thread, int threads)
{
    const int groups = groups_of_tiles(pass);
    const long all = (long)pass->groups * pass->outputs * items;
    const long begin = all * thread / threads;
    int group = 0;
    while (group < groups && (long)blocks_before(pass, group + 1) * items <= begin) group++;
    if (group == groups) return groups * items;
    const int first = blocks_before(pass, group), size = blocks_before(pass, group + 1) - first;
    return group * items + (int)((begin - (long)first * items) / size);
}

static void run_share(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tutti_conv_pass *pass = j->pass;
    const int items = j->n * tutti_ceil_div(pass->rows, pass->blocks.rows);
    const int begin = begin_of(pass, items, thread, threads);
    const int end = begin_of(pass, items, thread + 1, threads);
    const size_t own = own_scratch(j->conv, pass);
    float *const scratch = own ? j->scratch + own * (size_t)thread : NULL;
    for (int at = begin; at < end;) {
        const int group = at / items, stop = min_of(end, (group + 1) * items);
        run_stretch(j, stretch_of(pass, group), at - group * items, stop - group * items, scratch);
        at = stop;
    }
}

/* An output that no cache would keep until it is read does not pass through them. */
static bool streams(const job *j)
{
    const size_t bytes = (size_t)j->n * (size_t)j->pass->y_sample * sizeof(float);
    return bytes > j->conv->caches.l3 * (size_t)j->conv->threads &&
           (uintptr_t)j->y % TUTTI_CACHE_LINE == 0;
}

static void run_pass(job *j, tutti_team *team)
{
    j->stream = streams(j);
    TUTTI_ASSERT(tutti_team_size(team) <= j->conv->threads);
    tutti_team_run(team, run_share, j);
}

/* By Winograd's algorithms; false if the convolution is direct. */
static bool runs_by_tiles(const tutti_winograd_job *tiles, const tutti_task *task)
{
    const tutti_conv_algorithm algorithm = tiles->conv->algorithm;
    if (algorithm == TUTTI_CONV_WINOGRAD_2X2) tutti_winograd_run(tiles, task->team, task->scratch);
    if (algorithm == TUTTI_CONV_WINOGRAD_4X4) tutti_winograd4_run(tiles, task->team, task->scratch);
    return algorithm != TUTTI_CONV_DIRECT;
}

void tutti_conv_forward(const tutti_conv *conv, const tutti_task *task, const float *x,
                        const float *w, const float *bias, bool relu, float *y)
{
    job j = {conv, &conv->forward, task->n, x, w, bias, NULL, relu, false, y, task->scratch};
    const tutti_winograd_job tiles = {conv, false, task->n, x, w, bias, NULL, relu, y};
    if (runs_by_tiles(&tiles, task)) return;
    if (conv->regrouped) tutti_conv_regrouped_forward(conv, task, x, w, bias, relu, y);
    else if (conv->bf16)
        tutti_conv_bf16_run(conv, &conv->bf16->forward,
                            &(tutti_conv_bf16_job){task->n, x, w, bias, NULL, relu, y}, task->team,
                            task->scratch);
    else if (conv->plain) tutti_conv_plain_forward(conv, task, x, w, bias, relu, y);
    else run_pass(&j, task->team);
}

void tutti_conv_backward_data(const tutti_conv *conv, const tutti_task *task, const float *dy,
                              const float *w, const float *mask, float *dx)
{
    TUTTI_ASSERT(!conv->shape.compact);
    job j = {conv, &conv->backward, task->n, dy, w, NULL, mask, false, false, dx, task->scratch};
    const tutti_winograd_job tiles = {conv, true, task->n, dy, w, NULL, mask, false, dx};
    if (runs_by_tiles(&tiles, task)) return;
    if (conv->regrouped) tutti_conv_regrouped_data(conv, task, dy, w, mask, dx);
    else if (conv->bf16)
        tutti_conv_bf16_run(conv, &conv->bf16->backward,
                            &(tutti_conv_bf16_job){task->n, dy, w, NULL, mask, false, dx},
                            task->team, task->scratch);
    else run_pass(&j, task->team);
}
