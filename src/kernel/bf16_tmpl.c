/* Products of bf16, and the forms their operands take; see bf16_kernels.h.
 *
 * A tile of the result is rows by panels of 16 columns. Its even chains, odd chains and sums so far
 * are all in registers; a slot takes one load for each vector of columns and one broadcast for each
 * row. Blocks of 32 terms, nearly all of them, are unrolled. */
#include "kernel/isa/isa.h"

#include <string.h>

#include "base/share.h"
#include "base/tree.h"
#include "kernel/bf16_kernels.h"

enum { VECS = TUTTI_BLOCK / VLEN }; /* vectors in a block */

/* The largest of the list: a union is as large as its largest member. */
#define PANELS_OF(panels, rows) char panels_##panels[panels];
#define ROWS_OF(panels, rows)   char rows_##rows[rows];
enum {
    PANELS = sizeof(union {BF16_TILES(PANELS_OF)}),
    ROWS = sizeof(union {BF16_TILES(ROWS_OF)}),
    TILE = 8 * VECS, /* the most vectors of any */
};

/* ---- products ---- */

/* One slot: each row's two terms, with those of all columns. */
INLINE void add_slot(vf *chain, int rows, int panels, const tutti_bf16 *a, ptrdiff_t a_row,
                     const tutti_bf16 *b, size_t b_panel)
{
    vh column[PANELS * VECS];
    UNROLL(16)
    for (int v = 0; v < panels * VECS; v++)
        column[v] = vh_load(b + (v / VECS) * b_panel + v % VECS * 2 * VLEN);
    UNROLL(8)
    for (int r = 0; r < rows; r++) {
        const vh row = vh_set1(a + r * a_row);
        UNROLL(16)
        for (int v = 0; v < panels * VECS; v++) {
            vf *to = &chain[r * panels * VECS + v];
            *to = vh_dot(*to, row, column[v]);
        }
    }
}

/* The two chains of a block of 'slots' slots. */
INLINE void multiply(vf chain[2][TILE], int rows, int panels, int slots, ptrdiff_t step,
                     const tutti_bf16 *even, const tutti_bf16 *odd, ptrdiff_t a_row,
                     const tutti_bf16 *b, size_t b_panel)
{
    enum { ODD = TUTTI_BF16_SLOTS * TUTTI_BF16_LINE }; /* of a whole panel */
    UNROLL(32)
    for (int i = 0; i < rows * panels * VECS; i++) chain[0][i] = chain[1][i] = vf_zero();
    if (slots == TUTTI_BF16_SLOTS) {
        UNROLL(8)
        for (int s = 0; s < TUTTI_BF16_SLOTS; s++) {
            const tutti_bf16 *line = b + s * TUTTI_BF16_LINE;
            add_slot(chain[0], rows, panels, even + s * step, a_row, line, b_panel);
            add_slot(chain[1], rows, panels, odd + s * step, a_row, line + ODD, b_panel);
        }
    } else {
        for (int s = 0; s < slots; s++) {
            add_slot(chain[0], rows, panels, even, a_row, b, b_panel);
            add_slot(chain[1], rows, panels, odd, a_row, b + slots * TUTTI_BF16_LINE, b_panel);
            even += step;
            odd += step;
            b += TUTTI_BF16_LINE;
        }
    }
}

INLINE void add_block(vf *sum, int rows, int panels, bool backward, const tutti_bf16_product *job,
                      const tutti_bf16_block *block, const tutti_bf16 *a, const tutti_bf16 *b)
{
    vf chain[2][TILE];
    multiply(chain, rows, panels, block->slots, backward ? -2 : 2, a + block->even, a + block->odd,
             job->a_row, b, job->b_panel);
    UNROLL(32)
    for (int i = 0; i < rows * panels * VECS; i++)
        sum[i] = vf_add_flushed(sum[i], vf_add_flushed(chain[0][i], chain[1][i]));
}

/* Where a tile is in sums of [rows][16], panels apart. */
typedef struct place {
    size_t row, panel;
} place;

INLINE void start(vf *sum, int rows, int panels, const float *from, place at)
{
    if (!from) {
        UNROLL(32)
        for (int i = 0; i < rows * panels * VECS; i++) sum[i] = vf_zero();
        return;
    }
    UNROLL(4)
    for (int p = 0; p < panels; p++) {
        const float *x = from + p * at.panel;
        UNROLL(8)
        for (int r = 0; r < rows; r++, x += at.row) {
            __builtin_prefetch(x + rows * at.row, 0, 3); /* the next tile's */
            UNROLL(16)
            for (int v = 0; v < VECS; v++) sum[(r * panels + p) * VECS + v] = vf_load(x + v * VLEN);
        }
    }
}

/* vf_gate, in integers: comparisons of floats would take small numbers for zeros here. */
INLINE vf gate(vf x, vf m)
{
    const vi bits = vi_of_bits(m), last = vi_set1(INT32_MAX);
    const vm closed = vi_ge_u(vi_sub(bits, vi_set1(1)), last); /* zero, or with a sign */
    const vf kept = vf_select(closed, vf_zero(), x);
    return vf_select(vi_ge_u(bits, vi_set1((int)0xff800001)), x, kept); /* NaN with a sign */
}

/* Once all terms are there. */
INLINE void finish(vf *sum, int rows, int panels, const tutti_bf16_product *job, const float *mask,
                   place at)
{
    if (job->bias) {
        UNROLL(16)
        for (int v = 0; v < panels * VECS; v++) {
            const vf bias = vf_load(job->bias + v * VLEN);
            UNROLL(8)
            for (int r = 0; r < rows; r++)
                sum[r * panels * VECS + v] = vf_add_flushed(sum[r * panels * VECS + v], bias);
        }
    }
    if (job->relu) {
        UNROLL(32)
        for (int i = 0; i < rows * panels * VECS; i++) sum[i] = vf_max(vf_zero(), sum[i]);
    }
    if (!mask) return;
    UNROLL(4)
    for (int p = 0; p < panels; p++) {
        const float *m = mask + p * at.panel;
        UNROLL(8)
        for (int r = 0; r < rows; r++, m += at.row) {
            UNROLL(16)
            for (int v = 0; v < VECS; v++) {
                vf *x = &sum[(r * panels + p) * VECS + v];
                *x = gate(*x, vf_load(m + v * VLEN));
            }
        }
    }
}

INLINE void store(const vf *sum, int rows, int panels, float *to, place at, bool stream)
{
    UNROLL(4)
    for (int p = 0; p < panels; p++) {
        float *x = to + p * at.panel;
        UNROLL(8)
        for (int r = 0; r < rows; r++, x += at.row) {
            UNROLL(16)
            for (int v = 0; v < VECS; v++)
                vf_put(x + v * VLEN, sum[(r * panels + p) * VECS + v], stream);
        }
    }
}

/* Memory that is fetched with each block of a tile. */
typedef struct ahead {
    const char *at, *end;
    ptrdiff_t too; /* from there to others; 0: none */
    size_t bytes;
} ahead;

INLINE void fetch(ahead *next)
{
    const char *end = next->at + next->bytes;
    if (end > next->end) end = next->end;
    for (; next->at < end; next->at += 64) {
        __builtin_prefetch(next->at, 0, 2);
        if (next->too) __builtin_prefetch(next->at + next->too, 0, 2);
    }
}

/* Tiles of equal height, one below the other. */
INLINE void run(const tutti_bf16_product *job, int row, int count, ahead *next, int rows,
                int panels, bool backward)
{
    const place from_place = {job->from_row, job->from_panel};
    const place to_place = {job->to_row, job->to_panel};
    const tutti_bf16 *a = job->a + row * job->a_row;
    const float *from = job->from ? job->from + row * job->from_row : NULL;
    const float *mask = job->mask ? job->mask + row * job->to_row : NULL;
    float *to = job->to + row * job->to_row;
    const bool finishes = job->bias || job->relu || job->mask;
    for (; count; count--) {
        vf sum[TILE];
        const tutti_bf16 *b = job->b;
        start(sum, rows, panels, from, from_place);
        for (int k = 0; k < job->count; k++, b += job->b_block) {
            fetch(next);
            add_block(sum, rows, panels, backward, job, &job->block[k], a, b);
        }
        if (finishes) finish(sum, rows, panels, job, mask, to_place);
        if (job->stream) store(sum, rows, panels, to, to_place, true);
        else store(sum, rows, panels, to, to_place, false);
        a += rows * job->a_row;
        to += rows * job->to_row;
        if (from) from += rows * job->from_row;
        if (mask) mask += rows * job->to_row;
    }
}

typedef void tiles_fn(const tutti_bf16_product *job, int row, int count, ahead *next);
#define TILES(panels, rows)                                                                   \
    static void forward_##rows##x##panels(const tutti_bf16_product *job, int row, int count,  \
                                          ahead *next)                                        \
    {                                                                                         \
        run(job, row, count, next, rows, panels, false);                                      \
    }                                                                                         \
    static void backward_##rows##x##panels(const tutti_bf16_product *job, int row, int count, \
                                           ahead *next)                                       \
    {                                                                                         \
        run(job, row, count, next, rows, panels, true);                                       \
    }
#define FORWARD(panels, rows)      [panels][rows] = forward_##rows##x##panels,
#define BACKWARD(panels, rows)     [panels][rows] = backward_##rows##x##panels,
#define HEIGHT(panels, rows)       [panels] = rows,
#define ALL_TILES(panels, rows)    UP_TO_##rows(TILES, panels)
#define ALL_FORWARD(panels, rows)  UP_TO_##rows(FORWARD, panels)
#define ALL_BACKWARD(panels, rows) UP_TO_##rows(BACKWARD, panels)

BF16_TILES(ALL_TILES)
static tiles_fn *const tiles[2][PANELS + 1][ROWS + 1] = {{BF16_TILES(ALL_FORWARD)},
                                                         {BF16_TILES(ALL_BACKWARD)}};
static const int heights[PANELS + 1] = {BF16_TILES(HEIGHT)};

/* Tiles of nearly equal height rather than a small last one. */
static void product(const tutti_bf16_product *job)
{
    if (job->rows <= 0) return;
    const unsigned before = vf_flush_begin();
    const int most = heights[job->panels], count = (job->rows + most - 1) / most;
    const int height = job->rows / count, taller = job->rows % count;
    tiles_fn *const *fit = tiles[job->backward][job->panels];
    ahead next = {0};
    if (job->fetch)
        next = (ahead){job->fetch, job->fetch + job->fetch_bytes,
                       job->fetch_too ? job->fetch_too - job->fetch : 0,
                       (job->fetch_bytes / (unsigned)(count * job->count) + 63) / 64 * 64};
    if (taller) fit[height + 1](job, 0, taller, &next);
    if (height) fit[height](job, taller * (height + 1), count - taller, &next);
    vf_flush_end(before);
}

/* ---- trees ----
 *
 * Where products ignore the processor's modes, the sums of a leaf are flushed by hand, so that
 * leaves can be joined while they are in registers. A leaf starts at +0, so its first block leaves
 * +0 of whatever is not normal. */
#if BF16_TREES
INLINE void add_to_leaf(vf *sum, vf chain[2][TILE], int count, bool first)
{
    UNROLL(32)
    for (int i = 0; i < count; i++) {
        const vf both = vf_add(chain[0][i], chain[1][i]);
        const vm counts = vf_is_normal(both);
        if (first) sum[i] = vf_keep(counts, both);
        else {
            const vf zero = vf_of_bits(vi_and(vi_of_bits(both), vi_set1(INT32_MIN)));
            const vf next = vf_add(sum[i], vf_select(counts, both, zero));
            const vf none = vf_of_bits(vi_and(vi_of_bits(next), vi_set1(INT32_MIN)));
            sum[i] = vf_select(vf_is_normal(next), next, none);
        }
    }
}

INLINE void tree_block(const tutti_bf16_tree *job, const tutti_bf16_place *at, int row, int rows,
                       int panels, vf chain[2][TILE])
{
    const tutti_bf16 *a = job->a + at->a + (size_t)row * at->row;
    multiply(chain, rows, panels, at->slots, 2, a, a + at->odd, at->row, job->b + at->b,
             job->b_panel);
}

INLINE void tree_tile(const tutti_bf16_tree *job, int row, int rows, int panels)
{
    enum { LEVELS = 6 }; /* 2^5 = TUTTI_BF16_LEAVES */
    const int count = rows * panels * VECS;
    float stack[LEVELS][TILE * VLEN];
    vf sum[TILE], chain[2][TILE];
    int depth = 0;
    for (int leaf = 0;; leaf++) {
        tree_block(job, &job->place[job->begin[leaf]], row, rows, panels, chain);
        add_to_leaf(sum, chain, count, true);
        for (int k = job->begin[leaf] + 1; k < job->begin[leaf + 1]; k++) {
            tree_block(job, &job->place[k], row, rows, panels, chain);
            add_to_leaf(sum, chain, count, false);
        }
        const bool last = leaf + 1 == job->leaves;
        for (int joins = last ? depth : tutti_tree_joins(leaf); joins; joins--) {
            depth--;
            UNROLL(32)
            for (int i = 0; i < count; i++)
                sum[i] = vf_add(vf_load(stack[depth] + i * VLEN), sum[i]);
        }
        if (last) break;
        UNROLL(32)
        for (int i = 0; i < count; i++) vf_store(stack[depth] + i * VLEN, sum[i]);
        depth++;
    }
    UNROLL(8)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < panels * VECS; v++)
            vf_put(job->to + (row + r) * job->to_row + (v / VECS) * job->to_panel + v % VECS * VLEN,
                   sum[r * panels * VECS + v], job->stream);
    }
}

typedef void tree_fn(const tutti_bf16_tree *job, int row);
#define TREE(panels, rows)                                                  \
    static void tree_##rows##x##panels(const tutti_bf16_tree *job, int row) \
    {                                                                       \
        tree_tile(job, row, rows, panels);                                  \
    }
#define TREE_ENTRY(panels, rows)   [panels][rows] = tree_##rows##x##panels,
#define TREES(panels, rows)        UP_TO_##rows(TREE, panels)
#define TREE_ENTRIES(panels, rows) UP_TO_##rows(TREE_ENTRY, panels)

BF16_TILES(TREES)
static tree_fn *const trees[PANELS + 1][ROWS + 1] = {BF16_TILES(TREE_ENTRIES)};

static void tree(const tutti_bf16_tree *job)
{
    const int height = heights[job->panels], count = (job->rows + height - 1) / height;
    for (int t = 0; t < count; t++) {
        const int first = tutti_share_begin(job->rows, count, t);
        trees[job->panels][tutti_share_begin(job->rows, count, t + 1) - first](job, first);
    }
}
#endif

/* ---- forms ---- */

static void rows(int count, int terms, const float *from, size_t from_row, size_t from_half,
                 tutti_bf16 *to, size_t to_row)
{
    static const float none[TUTTI_BLOCK] = {0};
    const bool whole = terms > TUTTI_BLOCK;
    for (int r = 0; r < count; r++, from += from_row, to += to_row)
        vi_store_row(to, from, whole ? from + from_half : none);
}

/* Lane vector v of a term's 16 columns; zeros after the last term. */
INLINE vf columns_of(int k, int terms, const float *from, size_t from_term, size_t from_half, int v)
{
    if (k >= terms) return vf_zero();
    return vf_load(from + (k / TUTTI_BLOCK) * from_half + (k % TUTTI_BLOCK) * from_term + v * VLEN);
}

static void panel(int terms, const float *from, size_t from_term, size_t from_half, tutti_bf16 *to)
{
    const int slots = tutti_bf16_slots(terms);
    for (int chain = 0; chain < 2; chain++)
        for (int s = 0; s < slots; s++) {
            const int high = 4 * s + chain, low = high + 2;
            tutti_bf16 *line = to + (chain * slots + s) * TUTTI_BF16_LINE;
            UNROLL(16)
            for (int v = 0; v < VECS; v++)
                vi_store_pairs(line + v * 2 * VLEN,
                               vi_pair(columns_of(high, terms, from, from_term, from_half, v),
                                       columns_of(low, terms, from, from_term, from_half, v)));
        }
}

/* Rows [16][16] of slots become columns, of which those of the first 'slots' of each half stay. */
INLINE void transpose(const tutti_bf16 *from, tutti_bf16 *to, size_t to_row, int slots)
{
    for (int i = 0; i < TUTTI_BLOCK; i += VLEN)
        for (int j = 0; j < TUTTI_BLOCK; j += VLEN) {
            vf square[VLEN];
            UNROLL(16)
            for (int r = 0; r < VLEN; r++)
                square[r] = vf_of_bits(vi_load_pairs(from + (i + r) * TUTTI_BF16_LINE + 2 * j));
            vf_transpose(square);
            UNROLL(16)
            for (int r = 0; r < VLEN; r++) {
                const int chain = (j + r) / TUTTI_BF16_SLOTS, slot = (j + r) % TUTTI_BF16_SLOTS;
                if (slot < slots)
                    vi_store_pairs(to + (size_t)(chain * slots + slot) * to_row + 2 * i,
                                   vi_of_bits(square[r]));
            }
        }
}

static void turned_rows(int terms, const float *from, size_t from_term, size_t from_half,
                        tutti_bf16 *to, size_t to_row)
{
    tutti_bf16 lines[TUTTI_BF16_PANEL], turned[TUTTI_BF16_PANEL];
    if (terms <= TUTTI_BF16_TERMS - 4) memset(lines, 0, sizeof lines);
    panel(terms, from, from_term, from_half, lines);
    transpose(lines, turned, TUTTI_BF16_LINE, TUTTI_BF16_SLOTS);
    for (int r = 0; r < TUTTI_BLOCK; r++)
        memcpy(to + r * to_row, turned + r * TUTTI_BF16_LINE, sizeof(tutti_bf16[TUTTI_BF16_LINE]));
}

static void picked_rows(int terms, const float *from, const int *at, tutti_bf16 *to, size_t to_row)
{
    static const float none[TUTTI_BLOCK] = {0};
    tutti_bf16 slots[TUTTI_BF16_PANEL];
    if (terms < TUTTI_BF16_TERMS) memset(slots, 0, sizeof slots);
    for (int k = 0; k < terms; k++) {
        if (k & 2) continue;
        const int low = k + 2 < terms ? at[k + 2] : -1;
        const float *x = at[k] < 0 ? none : from + at[k], *y = low < 0 ? none : from + low;
        tutti_bf16 *line = slots + (k % 2 * TUTTI_BF16_SLOTS + k / 4) * TUTTI_BF16_LINE;
        UNROLL(16)
        for (int v = 0; v < TUTTI_BLOCK; v += VLEN)
            vi_store_pairs(line + 2 * v, vi_pair(vf_load(x + v), vf_load(y + v)));
    }
    transpose(slots, to, to_row, TUTTI_BF16_SLOTS);
}

static void turned_panel(int columns, int terms, const float *from, size_t from_row,
                         size_t from_half, tutti_bf16 *to)
{
    tutti_bf16 lines[TUTTI_BF16_PANEL];
    if (columns < TUTTI_BLOCK) memset(lines, 0, sizeof lines);
    rows(columns, terms, from, from_row, from_half, lines, TUTTI_BF16_TERMS);
    transpose(lines, to, TUTTI_BF16_LINE, tutti_bf16_slots(terms));
}

static void join(size_t count, const float *left, const float *right, float *to, bool stream)
{
    for (size_t i = 0; i < count; i += TUTTI_BLOCK) {
        UNROLL(16)
        for (int v = 0; v < TUTTI_BLOCK; v += VLEN)
            vf_put(to + i + v, vf_add(vf_load(left + i + v), vf_load(right + i + v)), stream);
    }
}

/* ---- the machine's limit ---- */

static double rounds(long count, float *sink)
{
    static const tutti_bf16 some[2 * VLEN] = {0x3f80, 0x3f00}; /* 1, 0.5 */
    const vh x = vh_load(some);
    vf chain[FMA_CHAINS];
    UNROLL(24)
    for (int i = 0; i < FMA_CHAINS; i++) chain[i] = vf_zero();
    for (long r = 0; r < count; r++) {
        UNROLL(24)
        for (int i = 0; i < FMA_CHAINS; i++) {
            chain[i] = vh_dot(chain[i], x, x);
            HOLD(chain[i]); /* no round may be folded away */
        }
    }
    vf sum = vf_zero();
    UNROLL(24)
    for (int i = 0; i < FMA_CHAINS; i++) sum = vf_add(sum, chain[i]);
    float lanes[VLEN];
    vf_store(lanes, sum);
    *sink = lanes[0];
    return 4.0 * VLEN * FMA_CHAINS * (double)count;
}

extern const tutti_bf16_kernels NAME(bf16);
const tutti_bf16_kernels NAME(bf16) = {
    .panels = PANELS,
    .product = product,
#if BF16_TREES
    .tree = tree,
#endif
    .rows = rows,
    .panel = panel,
    .turned_rows = turned_rows,
    .picked_rows = picked_rows,
    .turned_panel = turned_panel,
    .join = join,
    .rounds = rounds,
};
