/* Convolutions that round what they multiply to bf16: what shape, caches and threads make of them.
 *
 * The order of the sums, fixed by the shape alone, in blocks of terms as bf16_kernels.h says:
 *   y   over rows and columns of the kernel; at each, blocks of 32 channels of the group, the last
 *       one perhaps of 16
 *   dx  over rows and columns of the kernel from the last to the first; at each, blocks of 32
 *       features of the group, the last one perhaps of 16
 *   dw  over the samples of a grain, rows and columns of dy, in blocks of 32 pixels that end with
 *       no row or sample, only with the grain; then the tree over the grains, in fp32
 *   db  as in fp32: nothing is multiplied
 * Rows of the kernel outside the image are left out of y and dx; columns outside are zeros that are
 * multiplied; so are rows and columns of dw. */
#include "kernel/conv_bf16.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/share.h"

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

/* Elements of 'blocks' blocks of packed rows of the pass. */
static size_t packed(const tutti_conv_bf16_pass *p, int height)
{
    return (size_t)p->blocks * (size_t)height * (size_t)p->width * TUTTI_BF16_TERMS;
}

/* ---- what is packed ---- */

/* Whether every output reads one pixel inside the image. */
static bool is_pointwise(const tutti_conv_pass *pass)
{
    const tutti_conv_sweep *s = &pass->sweeps[0];
    return pass->sweep_count == 1 && s->taps_h == 1 && s->taps_w == 1 && s->first_h == 0 &&
           s->first_w == 0 && (s->rows - 1) * s->step_h < s->in_h &&
           (s->cols - 1) * s->step_w < s->in_w;
}

/* Columns of packed rows: zeros, the image, zeros. */
static void measure_columns(tutti_conv_bf16_pass *p)
{
    const tutti_conv_pass *pass = p->pass;
    int right = 0;
    p->width = pass->sweeps[0].cols;
    if (p->gathers) return;
    for (int i = 0; i < pass->sweep_count; i++) {
        const tutti_conv_sweep *s = &pass->sweeps[i];
        if (!s->taps_h || !s->taps_w || s->cols <= 0) continue;
        const int last = (s->cols - 1) * s->step_w + s->first_w + (s->taps_w - 1) * s->tap_w;
        p->left = max_of(p->left, -s->first_w);
        right = max_of(right, last + 1 - s->in_w);
    }
    p->width = p->left + pass->sweeps[0].in_w + right;
}

tutti_conv_bf16_rows tutti_conv_bf16_read(const tutti_conv_bf16_pass *p, int begin, int end)
{
    tutti_conv_bf16_rows rows = {0, 0};
    if (p->gathers) return (tutti_conv_bf16_rows){begin, end};
    for (int i = 0; i < p->pass->sweep_count; i++) {
        const tutti_conv_sweep *s = &p->pass->sweeps[i];
        const int from = begin * s->step_h + s->first_h, last = min_of(end, s->rows) - 1;
        const int to = last * s->step_h + s->first_h + (s->taps_h - 1) * s->tap_h + 1;
        if (!s->taps_h || !s->taps_w || last < begin || to <= 0 || from >= s->in_h) continue;
        const tutti_conv_bf16_rows own = {max_of(from, 0), min_of(to, s->in_h)};
        rows.begin = rows.end ? min_of(rows.begin, own.begin) : own.begin;
        rows.end = max_of(rows.end, own.end);
    }
    return rows;
}

/* The most rows that are packed for 'rows' of the output. */
static int height_of(const tutti_conv_bf16_pass *p, int rows)
{
    int most = 1;
    for (int begin = 0; begin < p->pass->rows; begin += rows) {
        const tutti_conv_bf16_rows read = tutti_conv_bf16_read(p, begin, begin + rows);
        most = max_of(most, read.end - read.begin);
    }
    return most;
}

/* ---- the sizes of blocks ---- */

/* Rows that leave most of the second-level cache to weights, the next rows and the output, and give
 * each thread several items; then parts of the features, if there are still too few. */
static void choose_rows(const tutti_conv *conv, tutti_conv_bf16_pass *p)
{
    const int rows = max_of(p->pass->rows, 1), panels = conv->bf16->kernels->panels;
    int cut = 1;
    p->rows = rows;
    while (p->rows > 1 &&
           (packed(p, height_of(p, p->rows)) * sizeof(tutti_bf16) > conv->caches.l2 / 4 ||
            conv->n * tutti_ceil_div(rows, p->rows) < 4 * conv->threads))
        p->rows = tutti_ceil_div(rows, ++cut);
    p->height = height_of(p, p->rows);
    const int items = conv->n * tutti_ceil_div(rows, p->rows);
    p->parts = 1;
    while (items * p->parts < 2 * conv->threads &&
           p->parts < tutti_ceil_div(p->pass->outputs, panels))
        p->parts++;
}

/* Panels of a product stay in half of the first-level cache over all its rows. */
static int choose_chunk(const tutti_conv *conv)
{
    const size_t block =
        sizeof(tutti_bf16) * TUTTI_BF16_PANEL * (size_t)conv->bf16->kernels->panels;
    return max_of((int)(conv->caches.l1 / 2 / block), 1);
}

/* ---- where terms are ---- */

/* Those of all taps of a sweep, from the first tap's row and the first pixel's column. */
static void find_terms(const tutti_conv_bf16_pass *p, const tutti_conv_sweep *s,
                       tutti_bf16_block *out)
{
    const int odd_inputs = p->pass->inputs % 2;
    for (int r = 0; r < s->taps_h; r++)
        for (int c = 0; c < s->taps_w; c++)
            for (int b = 0; b < p->blocks; b++, out++) {
                const int row = b * p->height + r * s->tap_h;
                const int column = p->gathers ? 0 : p->left + s->first_w + c * s->tap_w;
                const int terms = b == p->blocks - 1 && odd_inputs ? 16 : 32;
                out->even = (row * p->width + column) * TUTTI_BF16_TERMS;
                out->odd = out->even + TUTTI_BF16_ODD;
                out->slots = tutti_bf16_slots(terms);
            }
}

static tutti_status plan_pass(const tutti_conv *conv, tutti_conv_bf16_pass *p,
                              const tutti_conv_pass *pass)
{
    const size_t sweeps = (size_t)pass->sweep_count;
    *p = (tutti_conv_bf16_pass){
        .pass = pass, .gathers = is_pointwise(pass), .blocks = tutti_ceil_div(pass->inputs, 2)};
    measure_columns(p);
    choose_rows(conv, p);
    p->chunk = choose_chunk(conv);
    TUTTI_TRY(tutti_alloc(&p->weights, sweeps, sizeof *p->weights));
    TUTTI_TRY(tutti_alloc(&p->terms, sweeps, sizeof *p->terms));
    for (size_t i = 0; i < sweeps; i++) {
        const tutti_conv_sweep *s = &pass->sweeps[i];
        const size_t count = (size_t)s->taps_h * (size_t)s->taps_w * (size_t)p->blocks;
        p->weights[i] = p->panel;
        p->panel += count * TUTTI_BF16_PANEL;
        TUTTI_TRY(tutti_alloc(&p->terms[i], count, sizeof **p->terms));
        find_terms(p, s, p->terms[i]);
    }
    return TUTTI_OK;
}

static void pass_deinit(tutti_conv_bf16_pass *p)
{
    for (int i = 0; p->terms && i < p->pass->sweep_count; i++) tutti_free(p->terms[i]);
    tutti_free(p->terms);
    tutti_free(p->weights);
}

tutti_status tutti_conv_bf16_create(tutti_conv *conv, const tutti_kernels *row)
{
    TUTTI_TRY(tutti_alloc(&conv->bf16, 1, sizeof *conv->bf16));
    conv->bf16->kernels = row->bf16;
    TUTTI_TRY(plan_pass(conv, &conv->bf16->forward, &conv->forward));
    TUTTI_TRY(plan_pass(conv, &conv->bf16->backward, &conv->backward));
    tutti_conv_bf16_plan_gradient(conv);
    return TUTTI_OK;
}

void tutti_conv_bf16_destroy(tutti_conv_bf16 **bf16)
{
    if (!*bf16) return;
    pass_deinit(&(*bf16)->forward);
    pass_deinit(&(*bf16)->backward);
    tutti_free(*bf16);
    *bf16 = NULL;
}

int tutti_conv_bf16_explain(const tutti_conv *conv, char *text, size_t bytes)
{
    const tutti_conv_bf16_pass *f = &conv->bf16->forward, *b = &conv->bf16->backward;
    return snprintf(text, bytes,
                    "bf16, forward: %d rows, %zu KiB packed; data: %d rows, %zu KiB packed; chunks "
                    "of %d blocks; ",
                    f->rows, packed(f, f->height) * sizeof(tutti_bf16) / 1024, b->rows,
                    packed(b, b->height) * sizeof(tutti_bf16) / 1024, f->chunk);
}

/* ---- scratch ---- */

size_t tutti_conv_bf16_weights(const tutti_conv_bf16_pass *p)
{
    return (size_t)p->pass->groups * (size_t)p->pass->outputs * p->panel;
}

size_t tutti_conv_bf16_packed(const tutti_conv_bf16_pass *p)
{
    return packed(p, p->height);
}

static size_t pass_bytes(const tutti_conv *conv, const tutti_conv_bf16_pass *p)
{
    const size_t own = tutti_conv_bf16_packed(p) * (size_t)conv->threads;
    return (tutti_conv_bf16_weights(p) + own) * sizeof(tutti_bf16);
}

size_t tutti_conv_bf16_scratch(const tutti_conv *conv)
{
    const size_t forward = pass_bytes(conv, &conv->bf16->forward);
    const size_t backward = pass_bytes(conv, &conv->bf16->backward);
    return forward > backward ? forward : backward;
}

/* ---- what will be needed soon ---- */

void tutti_conv_bf16_fetch(tutti_conv_bf16_ahead *ahead, tutti_bf16_product *product)
{
    product->fetch = NULL;
    if (ahead->runs <= 0 || !ahead->piece) return;
    const size_t left = ahead->run - ahead->done;
    const size_t floats = left < ahead->piece ? left : ahead->piece;
    product->fetch = (const char *)(ahead->at + ahead->done);
    product->fetch_bytes = floats * sizeof(float);
    ahead->done += floats;
    if (ahead->done < ahead->run) return;
    ahead->at += ahead->apart;
    ahead->done = 0;
    ahead->runs--;
}
