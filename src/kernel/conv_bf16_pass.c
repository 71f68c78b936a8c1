/* Forward and backward-data of convolutions that round: the loops around the products.
 *
 * First all threads pack the weights into panels. Then items of work are (sample, block of rows),
 * or parts of the features of these where there are few:
 *
 *   for each item, group
 *     pack the rows of x that it reads; they stay in the second-level cache
 *     for each two panels of 16 features, sweep, chunk of the terms  (panels in the first level)
 *       for each row of the output, or some pixels of all rows: one product
 *
 * Sums wait in y from chunk to chunk. Products fetch what the next item will pack. */
#include "kernel/conv_bf16.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/share.h"

enum { STRETCH = 64 }; /* pixels of a product where rows do not matter */

typedef struct job {
    const tutti_conv *conv;
    const tutti_conv_bf16_pass *p;
    const tutti_conv_bf16_job *of;
    tutti_bf16 *weights, *packed;
    bool stream;
} job;

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

/* ---- weights ---- */

/* The weights of 16 outputs by one block of inputs through one tap, which is 'at' floats into each
 * of their tiles. */
static void pack_tap(const job *j, int group, int output, int block, long at, tutti_bf16 *to)
{
    const tutti_conv_pass *pass = j->p->pass;
    const tutti_bf16_kernels *kernels = j->conv->bf16->kernels;
    const int input = 2 * block, terms = input + 1 < pass->inputs ? 32 : 16;
    const size_t tile = (size_t)pass->w_tile;
    if (pass->transposed) {
        const long from = (long)(group * pass->inputs + input) * pass->outputs + output;
        kernels->turned_panel(TUTTI_BLOCK, terms, j->of->w + from * pass->w_tile + at, TUTTI_BLOCK,
                              (size_t)pass->outputs * tile, to);
    } else {
        const long from = (long)(group * pass->outputs + output) * pass->inputs + input;
        kernels->panel(terms, j->of->w + from * pass->w_tile + at, TUTTI_BLOCK, tile, to);
    }
}

static void pack_panel(const job *j, int group, int output)
{
    enum { TAP = TUTTI_BLOCK * TUTTI_BLOCK };
    const tutti_conv_pass *pass = j->p->pass;
    tutti_bf16 *to = j->weights + (size_t)(group * pass->outputs + output) * j->p->panel;
    for (int i = 0; i < pass->sweep_count; i++) {
        const tutti_conv_sweep *s = &pass->sweeps[i];
        for (int r = 0; r < s->taps_h; r++)
            for (int c = 0; c < s->taps_w; c++) {
                const long turned = s->w_first + r * s->w_row + c * s->w_tap;
                const long at = pass->transposed ? pass->w_tile - TAP - turned : turned;
                for (int b = 0; b < j->p->blocks; b++, to += TUTTI_BF16_PANEL)
                    pack_tap(j, group, output, b, at, to);
            }
    }
}

static void pack_weights(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tutti_conv_pass *pass = j->p->pass;
    const int total = pass->groups * pass->outputs;
    const int end = tutti_share_begin(total, threads, thread + 1);
    for (int i = tutti_share_begin(total, threads, thread); i < end; i++)
        pack_panel(j, i / pass->outputs, i % pass->outputs);
}

/* ---- items ---- */

/* Rows of a sample for one group, and some of its features. */
typedef struct item {
    int sample, group, row_begin, row_end, output_begin, output_end;
    tutti_conv_bf16_rows read;
    const float *x; /* the group's first block of inputs, row 0 */
} item;

static int items_of(const job *j)
{
    const tutti_conv_bf16_pass *p = j->p;
    return p->parts * j->of->n * tutti_ceil_div(p->pass->rows, p->rows) * p->pass->groups;
}

static item item_of(const job *j, int index)
{
    const tutti_conv_bf16_pass *p = j->p;
    const tutti_conv_pass *pass = p->pass;
    const int row_blocks = tutti_ceil_div(pass->rows, p->rows),
              panels = j->conv->bf16->kernels->panels;
    const int pairs = tutti_ceil_div(pass->outputs, panels);
    const int group = index % pass->groups, rows = index / pass->groups % row_blocks;
    const int sample = index / pass->groups / row_blocks % j->of->n;
    const int part = index / pass->groups / row_blocks / j->of->n;
    item it = {
        .sample = sample,
        .group = group,
        .row_begin = rows * p->rows,
        .row_end = min_of((rows + 1) * p->rows, pass->rows),
        .output_begin = panels * tutti_share_begin(pairs, p->parts, part),
        .output_end = min_of(panels * tutti_share_begin(pairs, p->parts, part + 1), pass->outputs),
        .x = j->of->x + sample * pass->x_sample + group * pass->inputs * pass->x_block,
    };
    it.read = tutti_conv_bf16_read(p, it.row_begin, it.row_end);
    return it;
}

/* The rows that the item reads, [blocks][height][width][32]. */
static void pack(const job *j, const item *it)
{
    const tutti_conv_bf16_pass *p = j->p;
    const tutti_conv_pass *pass = p->pass;
    const tutti_conv_sweep *s = &pass->sweeps[0];
    const tutti_bf16_kernels *kernels = j->conv->bf16->kernels;
    const int step_h = p->gathers ? s->step_h : 1, step_w = p->gathers ? s->step_w : 1;
    const int columns = p->gathers ? s->cols : s->in_w;
    const bool whole = columns == s->in_w && step_h == 1 && p->width == columns;
    const int times = whole ? 1 : it->read.end - it->read.begin;
    const int count = whole ? columns * (it->read.end - it->read.begin) : columns;
    const size_t right = (size_t)(p->width - p->left - columns) * TUTTI_BF16_TERMS;
    for (int b = 0; b < p->blocks; b++) {
        const float *x = it->x + 2 * b * pass->x_block + it->read.begin * step_h * s->x_row;
        const int terms = 2 * b + 1 < pass->inputs ? 32 : 16;
        tutti_bf16 *to =
            j->packed + (size_t)b * (size_t)p->height * (size_t)p->width * TUTTI_BF16_TERMS;
        for (int i = 0; i < times; i++, x += step_h * s->x_row) {
            const size_t left = (size_t)p->left * TUTTI_BF16_TERMS;
            memset(to, 0, left * sizeof *to);
            to += left;
            kernels->rows(count, terms, x, (size_t)(step_w * s->x_pixel), (size_t)pass->x_block, to,
                          TUTTI_BF16_TERMS);
            to += (size_t)count * TUTTI_BF16_TERMS;
            memset(to, 0, right * sizeof *to);
            to += right;
        }
    }
}

/* ---- products ---- */

/* One or more panels of a sweep: what its products have in common. */
typedef struct stripe {
    const item *it;
    const tutti_conv_sweep *sweep;
    const tutti_bf16_block *terms;
    tutti_bf16_product product; /* as far as it is always the same */
    const tutti_bf16 *weights;
    float *y; /* the sweep's first pixel */
    const float *bias, *mask;
    tutti_conv_bf16_ahead *ahead;
} stripe;

/* The rows of the kernel inside the image, for an output row. */
static int rows_inside(const tutti_conv_sweep *s, int row, int *first)
{
    const int at = row * s->step_h + s->first_h;
    int begin = 0, end = s->taps_h;
    while (begin < end && at + begin * s->tap_h < 0) begin++;
    while (end > begin && at + (end - 1) * s->tap_h >= s->in_h) end--;
    *first = begin;
    return end - begin;
}

static void finish(const job *j, const stripe *st, tutti_bf16_product *product, long at)
{
    product->bias = st->bias;
    product->relu = j->of->relu;
    product->mask = st->mask ? st->mask + at : NULL;
    product->stream = j->stream;
}

/* Pixels that nothing reaches: a sum without terms. */
static void run_empty(const job *j, const stripe *st, int row)
{
    static const tutti_bf16 zeros[TUTTI_BF16_PANEL];
    static const tutti_bf16_block none = {0, TUTTI_BF16_ODD, 1};
    const long at = row * st->sweep->y_row;
    tutti_bf16_product product = st->product;
    product.rows = st->sweep->cols;
    product.count = 1;
    product.block = &none;
    product.a = product.b = zeros;
    product.a_row = 0;
    product.b_panel = 0;
    product.to = st->y + at;
    finish(j, st, &product, at);
    product.fetch = NULL;
    j->conv->bf16->kernels->product(&product);
}

/* Terms begin .. end-1 of all that row 'row' could have, for 'pixels' of its pixels and those of
 * the rows after it, from 'pixel' on. */
static void run_terms(const job *j, const stripe *st, int row, int pixel, int pixels, int begin,
                      int end)
{
    const tutti_conv_bf16_pass *p = j->p;
    const tutti_conv_sweep *s = st->sweep;
    const int tap_row = s->taps_w * p->blocks;
    int first, rows = rows_inside(s, row, &first);
    const int from = first * tap_row, to = (first + rows) * tap_row;
    begin = begin < from ? from : begin;
    end = min_of(end, to);
    if (begin >= end) return;
    const int x_row = p->gathers
                          ? row - st->it->read.begin
                          : row * s->step_h + s->first_h + first * s->tap_h - st->it->read.begin;
    const long at = row * s->y_row + pixel * s->y_pixel;
    tutti_bf16_product product = st->product;
    product.rows = pixels;
    product.count = end - begin;
    product.block = st->terms + begin - from;
    product.a = j->packed + (ptrdiff_t)x_row * p->width * TUTTI_BF16_TERMS + pixel * product.a_row;
    product.b = st->weights + (size_t)begin * TUTTI_BF16_PANEL;
    product.to = st->y + at;
    product.from = begin > from ? product.to : NULL;
    if (end == to) finish(j, st, &product, at);
    tutti_conv_bf16_fetch(st->ahead, &product);
    j->conv->bf16->kernels->product(&product);
}

static void run_chunk(const job *j, const stripe *st, int begin, int end)
{
    const tutti_conv_sweep *s = st->sweep;
    const int last = min_of(st->it->row_end, s->rows);
    if (j->p->gathers && s->y_row == s->cols * s->y_pixel) {
        const int pixels = (last - st->it->row_begin) * s->cols;
        const int times = tutti_ceil_div(pixels, STRETCH);
        for (int i = 0; i < times; i++) {
            const int at = tutti_share_begin(pixels, times, i);
            run_terms(j, st, st->it->row_begin, at, tutti_share_begin(pixels, times, i + 1) - at,
                      begin, end);
        }
        return;
    }
    for (int row = st->it->row_begin; row < last; row++)
        run_terms(j, st, row, 0, s->cols, begin, end);
}

static void run_stripe(const job *j, const stripe *st)
{
    const tutti_conv_sweep *s = st->sweep;
    const int terms = s->taps_h * s->taps_w * j->p->blocks;
    const int chunks = tutti_ceil_div(terms, j->p->chunk), last = min_of(st->it->row_end, s->rows);
    int first;
    for (int i = 0; i < chunks; i++)
        run_chunk(j, st, tutti_share_begin(terms, chunks, i),
                  tutti_share_begin(terms, chunks, i + 1));
    for (int row = st->it->row_begin; s->cols > 0 && row < last; row++)
        if (!terms || !rows_inside(s, row, &first)) run_empty(j, st, row);
}

/* ---- threads ---- */

/* What the item after this one will pack, in pieces for the products of this one. */
static tutti_conv_bf16_ahead ahead_of(const job *j, const item *it, const item *next)
{
    const tutti_conv_bf16_pass *p = j->p;
    const tutti_conv_pass *pass = p->pass;
    const tutti_conv_sweep *s = &pass->sweeps[0];
    const int rows = it->row_end - it->row_begin, step = p->gathers ? s->step_h : 1;
    const int pairs =
        tutti_ceil_div(it->output_end - it->output_begin, j->conv->bf16->kernels->panels);
    const long terms = (long)(p->panel / TUTTI_BF16_PANEL);
    const long chunks = (terms + p->chunk - 1) / p->chunk;
    const long calls =
        pairs * chunks * (p->gathers ? tutti_ceil_div(rows * s->cols, STRETCH) : rows);
    tutti_conv_bf16_ahead ahead = {
        .at = next->x + next->read.begin * step * s->x_row,
        .run = (size_t)((next->read.end - next->read.begin) * step * s->x_row),
        .apart = (size_t)pass->x_block,
        .runs = pass->inputs,
    };
    if (!ahead.run) ahead.runs = 0;
    const size_t all = ahead.run * (size_t)ahead.runs;
    ahead.piece = tutti_round_up(all / (size_t)(calls > 0 ? calls : 1) + 1, TUTTI_BLOCK);
    return ahead;
}

static void run_panels(const job *j, const item *it, int output, int panels,
                       tutti_conv_bf16_ahead *ahead)
{
    const tutti_conv_bf16_pass *p = j->p;
    const tutti_conv_pass *pass = p->pass;
    const int block = it->group * pass->outputs + output;
    for (int i = 0; i < pass->sweep_count; i++) {
        const tutti_conv_sweep *s = &pass->sweeps[i];
        const long y = it->sample * pass->y_sample + block * pass->y_block + s->y_first;
        const stripe st = {
            .it = it,
            .sweep = s,
            .terms = p->terms[i],
            .product =
                {
                    .panels = panels,
                    .a_row = (p->gathers ? 1 : s->step_w) * TUTTI_BF16_TERMS,
                    .b_panel = p->panel,
                    .b_block = TUTTI_BF16_PANEL,
                    .from_row = (size_t)s->y_pixel,
                    .from_panel = (size_t)pass->y_block,
                    .to_row = (size_t)s->y_pixel,
                    .to_panel = (size_t)pass->y_block,
                },
            .weights = j->weights + (size_t)block * p->panel + p->weights[i],
            .y = j->of->y + y,
            .bias = j->of->bias ? j->of->bias + (size_t)block * TUTTI_BLOCK : NULL,
            .mask = j->of->mask ? j->of->mask + y : NULL,
            .ahead = ahead,
        };
        run_stripe(j, &st);
    }
}

static void run_share(void *arg, int thread, int threads)
{
    job own = *(const job *)arg, *j = &own;
    const int panels = j->conv->bf16->kernels->panels, items = items_of(j);
    const int end = tutti_share_begin(items, threads, thread + 1);
    own.packed += (size_t)thread * tutti_conv_bf16_packed(own.p);
    for (int i = tutti_share_begin(items, threads, thread); i < end; i++) {
        const item it = item_of(j, i), next = item_of(j, i + 1 < end ? i + 1 : i);
        tutti_conv_bf16_ahead ahead = ahead_of(j, &it, &next);
        if (i + 1 == end) ahead.runs = 0;
        pack(j, &it);
        for (int o = it.output_begin; o < it.output_end; o += panels)
            run_panels(j, &it, o, min_of(panels, it.output_end - o), &ahead);
    }
}

/* An output that no cache would keep until it is read does not pass through them. */
static bool streams(const job *j)
{
    const size_t bytes = (size_t)j->of->n * (size_t)j->p->pass->y_sample * sizeof(float);
    return bytes > j->conv->caches.l3 * (size_t)j->conv->threads &&
           (uintptr_t)j->of->y % TUTTI_CACHE_LINE == 0;
}

void tutti_conv_bf16_run(const tutti_conv *conv, const tutti_conv_bf16_pass *p,
                         const tutti_conv_bf16_job *of, tutti_team *team, void *scratch)
{
    job j = {.conv = conv, .p = p, .of = of, .weights = scratch};
    j.packed = j.weights + tutti_conv_bf16_weights(p);
    j.stream = streams(&j);
    TUTTI_ASSERT(tutti_team_size(team) <= conv->threads);
    tutti_team_run(team, pack_weights, &j);
    tutti_team_run(team, run_share, &j);
}
