/* Winograd's F(4x4, 3x3): transforms and products, see winograd4.c and winograd4_gradient.c.
 *
 * The points are 0, infinity, +a, -a, +b, -b with a = 5/8 and b = 3/2. What A and B consist of is
 * exact; the quotients of G are rounded. Additions and multiply-adds are made in the order below on
 * every instruction set, columns before rows. */
#include "kernel/isa/isa.h"

#include "kernel/conv_kernels.h"
#include "kernel/table.h"

enum {
    SIDE = TUTTI_WINOGRAD4_SIDE,
    PIXELS = 4,
    TAPS = 3,
    LINE = TUTTI_BLOCK,
    BLOCK_WEIGHTS = LINE * LINE,
    VECTORS = LINE / VLEN,
};

#define A1   0.625f
#define A2   (A1 * A1)
#define A3   (A1 * A2)
#define B1   1.5f
#define B2   (B1 * B1)
#define B3   (B1 * B2)
#define AABB (A2 * B2)

/* The product of a point's differences to the others, which divides its row of G. */
#define OF_ZERO ((double)AABB)
#define OF_A    (2.0 * A2 * ((double)A2 - B2))
#define OF_B    (2.0 * B2 * ((double)B2 - A2))

/* ---- one dimension ---- */

/* x * factor + y */
INLINE vf madd(vf x, float factor, vf y)
{
    return vf_fma(x, vf_set1(factor), y);
}

INLINE vf scaled(vf x, float factor)
{
    return vf_mul(x, vf_set1(factor));
}

/* Two of the six of B^T x: g = 0: points 0 and infinity; 1: +-a; 2: +-b. A short tile has no x[4],
 * x[5] and no +-b; there b makes up for what G is divided by too much. */
INLINE void into(int g, bool is_short, const vf x[SIDE], vf *lo, vf *hi)
{
    const float other = g == 1 ? B2 : A2, p = g == 1 ? A1 : B1;
    if (g == 0 && is_short) {
        *lo = madd(x[2], -B2, scaled(x[0], AABB));
        *hi = madd(x[1], -A2, x[3]);
    } else if (g == 0) {
        *lo = madd(x[0], AABB, madd(x[2], -(A2 + B2), x[4]));
        *hi = madd(x[1], AABB, madd(x[3], -(A2 + B2), x[5]));
    } else {
        const vf even = is_short ? scaled(x[2], A2 - B2) : madd(x[2], -other, x[4]);
        const vf odd = is_short ? scaled(x[1], A2 - B2) : madd(x[1], -other, x[3]);
        *lo = madd(odd, p, even);
        *hi = madd(odd, -p, even);
    }
}

/* Two of the four of A^T m, 0 and 2, or 1 and 3 if 'odd'; of a short tile only the first one. */
INLINE void out_of(bool odd, bool is_short, const vf m[SIDE], vf *lo, vf *hi)
{
    const vf s = odd ? vf_sub(m[2], m[3]) : vf_add(m[2], m[3]);
    if (is_short) {
        *lo = odd ? madd(s, A1, m[1]) : vf_add(m[0], s);
        return;
    }
    const vf t = odd ? vf_sub(m[4], m[5]) : vf_add(m[4], m[5]);
    *lo = odd ? madd(t, B1, scaled(s, A1)) : vf_add(vf_add(m[0], s), t);
    *hi = odd ? madd(t, B3, madd(s, A3, m[1])) : madd(t, B2, scaled(s, A2));
}

/* Two of the six of A d, as 'into'. */
INLINE void out_of_back(int g, bool is_short, const vf d[PIXELS], vf *lo, vf *hi)
{
    const float p = g == 1 ? A1 : B1, square = g == 1 ? A2 : B2;
    if (g == 0) {
        *lo = d[0];
        *hi = d[is_short ? 1 : 3];
    } else {
        const vf even = is_short ? d[0] : madd(d[2], square, d[0]);
        const vf odd = is_short ? d[1] : madd(d[3], square, d[1]);
        *lo = madd(odd, p, even);
        *hi = madd(odd, -p, even);
    }
}

/* to = G w */
INLINE void widen(vf to[SIDE], const vf w[TAPS])
{
    const vf a = madd(w[2], (float)(A2 / OF_A), scaled(w[0], (float)(1 / OF_A)));
    const vf b = madd(w[2], (float)(B2 / OF_B), scaled(w[0], (float)(1 / OF_B)));
    to[0] = scaled(w[0], (float)(1 / OF_ZERO));
    to[1] = w[2];
    to[2] = madd(w[1], (float)(A1 / OF_A), a);
    to[3] = madd(w[1], -(float)(A1 / OF_A), a);
    to[4] = madd(w[1], (float)(B1 / OF_B), b);
    to[5] = madd(w[1], -(float)(B1 / OF_B), b);
}

/* to = G^T m */
INLINE void widen_back(vf to[TAPS], const vf m[SIDE])
{
    const vf sa = vf_add(m[2], m[3]), da = vf_sub(m[2], m[3]);
    const vf sb = vf_add(m[4], m[5]), db = vf_sub(m[4], m[5]);
    const vf outer = scaled(m[0], (float)(1 / OF_ZERO));
    to[0] = madd(sb, (float)(1 / OF_B), madd(sa, (float)(1 / OF_A), outer));
    to[1] = madd(db, (float)(B1 / OF_B), scaled(da, (float)(A1 / OF_A)));
    to[2] = madd(sb, (float)(B2 / OF_B), madd(sa, (float)(A2 / OF_A), m[1]));
}

/* ---- weights ---- */

static void weights(const float *w, float *u, long u_step, long u_channel, bool stream)
{
    for (int c = 0; c < LINE; c++, w += LINE, u += u_channel)
        for (int lane = 0; lane < LINE; lane += VLEN) {
            vf columns[TAPS][SIDE];
            UNROLL(3)
            for (int s = 0; s < TAPS; s++) {
                vf taps[TAPS];
                UNROLL(3)
                for (int r = 0; r < TAPS; r++)
                    taps[r] = vf_load(w + (r * TAPS + s) * BLOCK_WEIGHTS + lane);
                widen(columns[s], taps);
            }
            UNROLL(6)
            for (int i = 0; i < SIDE; i++) {
                const vf row[TAPS] = {columns[0][i], columns[1][i], columns[2][i]};
                vf wide[SIDE];
                widen(wide, row);
                UNROLL(6)
                for (int j = 0; j < SIDE; j++)
                    vf_put(u + (i * SIDE + j) * u_step + lane, wide[j], stream && VLEN == LINE);
            }
        }
}

/* ---- input ---- */

/* Two points of a column, which may lie outside of the image. */
INLINE void column(int g, bool is_short, const float *const row[SIDE], int col, int width,
                   bool edge, vf *lo, vf *hi)
{
    if (edge && (unsigned)col >= (unsigned)width) {
        *lo = *hi = vf_zero();
        return;
    }
    vf x[SIDE];
    UNROLL(6)
    for (int i = 0; i < SIDE; i++)
        if (!is_short || i < 4) x[i] = vf_load(row[i] + (long)col * LINE);
    into(g, is_short, x, lo, hi);
}

/* Two rows of points of a tile, made of 'count' columns of them. */
INLINE void spread(bool is_short, const vf lo[SIDE], const vf hi[SIDE], float *const to[2],
                   long v_step)
{
    vf p, q;
    UNROLL(3)
    for (int h = 0; h < 3; h++) {
        if (is_short && h == 2) continue;
        float *const at = to[h == 2] + 2 * h * v_step;
        into(h, is_short, lo, &p, &q);
        vf_store(at, p);
        vf_store(at + v_step, q);
        into(h, is_short, hi, &p, &q);
        vf_store(at + SIDE * v_step, p);
        vf_store(at + (SIDE + 1) * v_step, q);
    }
}

/* Rows 2g and 2g+1 of the points: each column of the image is transformed once. */
INLINE void run_strip(const tutti_winograd4_strip *s, int g, bool short_h,
                      const float *const row[SIDE], int block, float *v, long v_step)
{
    const tutti_winograd4_place *left = s->place[tutti_winograd4_class(2 * g, 0)];
    const tutti_winograd4_place *right = s->place[tutti_winograd4_class(2 * g, 4)];
    const int width = s->width;
    int col = s->col;
    vf lo[SIDE], hi[SIDE];
    v += 2 * g * SIDE * v_step;
    UNROLL(2)
    for (int j = 0; j < 2; j++) column(g, short_h, row, col + j, width, true, &lo[j], &hi[j]);
    for (int t = 0; t < s->count; t++, col += PIXELS) {
        float *const to[2] = {v + left[t].first + block * left[t].block,
                              v + right[t].first + block * right[t].block};
        if (s->short_w && t + 1 == s->count) {
            UNROLL(2)
            for (int j = 2; j < 4; j++)
                column(g, short_h, row, col + j, width, true, &lo[j], &hi[j]);
            spread(true, lo, hi, to, v_step);
            return;
        }
        if (col + 2 >= 0 && col + SIDE <= width) {
            UNROLL(4)
            for (int j = 2; j < SIDE; j++)
                column(g, short_h, row, col + j, width, false, &lo[j], &hi[j]);
        } else {
            UNROLL(4)
            for (int j = 2; j < SIDE; j++)
                column(g, short_h, row, col + j, width, true, &lo[j], &hi[j]);
        }
        spread(false, lo, hi, to, v_step);
        lo[0] = lo[4], lo[1] = lo[5], hi[0] = hi[4], hi[1] = hi[5];
    }
}

static void input(const tutti_winograd4_strip *s, int block, float *v, long v_step)
{
    for (int lane = 0; lane < LINE; lane += VLEN) {
        const float *row[SIDE];
        for (int i = 0; i < SIDE; i++) row[i] = s->row[i] + block * s->row_block[i] + lane;
        if (s->short_h) {
            run_strip(s, 0, true, row, block, v + lane, v_step);
            run_strip(s, 1, true, row, block, v + lane, v_step);
        } else {
            run_strip(s, 0, false, row, block, v + lane, v_step);
            run_strip(s, 1, false, row, block, v + lane, v_step);
            run_strip(s, 2, false, row, block, v + lane, v_step);
        }
    }
}

/* ---- output ---- */

/* What is done to every pixel. */
typedef struct ending {
    const float *bias, *mask;
    bool relu, stream;
} ending;

INLINE void put_pixel(const ending *e, vf sum, long at, float *y)
{
    if (e->bias) sum = vf_add(sum, vf_load(e->bias));
    if (e->relu) sum = vf_max(vf_zero(), sum);
    if (e->mask) sum = vf_gate(sum, vf_load(e->mask + at));
    vf_put(y + at, sum, e->stream && VLEN == LINE);
}

/* Rows 0 and 2, or 1 and 3. */
INLINE void output_half(bool odd, bool short_h, bool short_w, int rows, int cols,
                        const float *const m[TUTTI_WINOGRAD4_CLASSES], long m_step, const ending *e,
                        long y_row, float *y)
{
    vf lo[SIDE], hi[SIDE];
    UNROLL(6)
    for (int j = 0; j < SIDE; j++) {
        if (short_w && j >= 4) continue;
        vf c[SIDE];
        UNROLL(6)
        for (int i = 0; i < SIDE; i++)
            if (!short_h || i < 4)
                c[i] = vf_load(m[tutti_winograd4_class(i, j)] + (i * SIDE + j) * m_step);
        out_of(odd, short_h, c, &lo[j], &hi[j]);
    }
    UNROLL(2)
    for (int i = 0; i < 2; i++) {
        const int row = odd + 2 * i;
        vf r[PIXELS];
        if (row >= rows || (short_h && i)) continue;
        out_of(false, short_w, i ? hi : lo, &r[0], &r[2]);
        out_of(true, short_w, i ? hi : lo, &r[1], &r[3]);
        UNROLL(4)
        for (int j = 0; j < PIXELS; j++)
            if (j < cols && !(short_w && j >= 2)) put_pixel(e, r[j], row * y_row + j * LINE, y);
    }
}

INLINE void output_tile(bool short_h, bool short_w, int rows, int cols,
                        const float *const m[TUTTI_WINOGRAD4_CLASSES], long m_step, const ending *e,
                        long y_row, float *y)
{
    output_half(false, short_h, short_w, rows, cols, m, m_step, e, y_row, y);
    output_half(true, short_h, short_w, rows, cols, m, m_step, e, y_row, y);
}

static void output(const tutti_winograd4_tile *t, const float *const m[TUTTI_WINOGRAD4_CLASSES],
                   long m_step, const float *bias, const float *mask, float *y)
{
    for (int lane = 0; lane < LINE; lane += VLEN) {
        const ending e = {bias ? bias + lane : NULL, mask ? mask + lane : NULL, t->relu, t->stream};
        const float *const at[TUTTI_WINOGRAD4_CLASSES] = {m[0] + lane, m[1] + lane, m[2] + lane,
                                                          m[3] + lane};
        float *const to = y + lane;
        if (t->rows == PIXELS && t->cols == PIXELS)
            output_tile(false, false, PIXELS, PIXELS, at, m_step, &e, t->row, to);
        else if (t->short_h && t->short_w)
            output_tile(true, true, t->rows, t->cols, at, m_step, &e, t->row, to);
        else if (t->short_h) output_tile(true, false, t->rows, t->cols, at, m_step, &e, t->row, to);
        else if (t->short_w) output_tile(false, true, t->rows, t->cols, at, m_step, &e, t->row, to);
        else output_tile(false, false, t->rows, t->cols, at, m_step, &e, t->row, to);
    }
}

INLINE void back_tile(bool short_h, bool short_w, int rows, int cols, const float *dy, long dy_row,
                      float *const d[TUTTI_WINOGRAD4_CLASSES], long d_step, int lane)
{
    UNROLL(3)
    for (int g = 0; g < 3; g++) {
        if (short_h && g == 2) continue;
        vf lo[PIXELS], hi[PIXELS], p, q;
        UNROLL(4)
        for (int j = 0; j < PIXELS; j++) {
            vf c[PIXELS];
            UNROLL(4)
            for (int i = 0; i < PIXELS; i++)
                c[i] = i < rows && j < cols ? vf_load(dy + i * dy_row + j * LINE) : vf_zero();
            out_of_back(g, short_h, c, &lo[j], &hi[j]);
        }
        UNROLL(3)
        for (int h = 0; h < 3; h++) {
            if (short_w && h == 2) continue;
            float *const to =
                d[tutti_winograd4_class(2 * g, 2 * h)] + lane + (2 * g * SIDE + 2 * h) * d_step;
            out_of_back(h, short_w, lo, &p, &q);
            vf_store(to, p);
            vf_store(to + d_step, q);
            out_of_back(h, short_w, hi, &p, &q);
            vf_store(to + SIDE * d_step, p);
            vf_store(to + (SIDE + 1) * d_step, q);
        }
    }
}

static void output_back(const tutti_winograd4_tile *t, const float *dy,
                        float *const d[TUTTI_WINOGRAD4_CLASSES], long d_step)
{
    for (int lane = 0; lane < LINE; lane += VLEN) {
        const float *const from = dy + lane;
        if (t->rows == PIXELS && t->cols == PIXELS)
            back_tile(false, false, PIXELS, PIXELS, from, t->row, d, d_step, lane);
        else if (t->short_h && t->short_w)
            back_tile(true, true, t->rows, t->cols, from, t->row, d, d_step, lane);
        else if (t->short_h)
            back_tile(true, false, t->rows, t->cols, from, t->row, d, d_step, lane);
        else if (t->short_w)
            back_tile(false, true, t->rows, t->cols, from, t->row, d, d_step, lane);
        else back_tile(false, false, t->rows, t->cols, from, t->row, d, d_step, lane);
    }
}

static void weights_back(const float *sums, int joins, const float *const below[], float *dw)
{
    for (int at = 0; at < BLOCK_WEIGHTS; at += VLEN) {
        vf columns[SIDE][TAPS];
        UNROLL(6)
        for (int j = 0; j < SIDE; j++) {
            vf from[SIDE];
            UNROLL(6)
            for (int i = 0; i < SIDE; i++)
                from[i] = vf_load(sums + (i * SIDE + j) * BLOCK_WEIGHTS + at);
            widen_back(columns[j], from);
        }
        UNROLL(3)
        for (int r = 0; r < TAPS; r++) {
            const vf from[SIDE] = {columns[0][r], columns[1][r], columns[2][r],
                                   columns[3][r], columns[4][r], columns[5][r]};
            vf taps[TAPS];
            widen_back(taps, from);
            UNROLL(3)
            for (int s = 0; s < TAPS; s++) {
                const int to = (r * TAPS + s) * BLOCK_WEIGHTS + at;
                for (int j = 0; j < joins; j++) taps[s] = vf_add(vf_load(below[j] + to), taps[s]);
                vf_store(dw + to, taps[s]);
            }
        }
    }
}

/* ---- products ---- */

/* A union is as large as the largest of its members, so these are of the largest products. */
#define BLOCKS_OF(nb, most) char blocks_##nb[nb];
#define TILES_OF(nb, most)  char tiles_##nb[most];
#define SIZE_OF(nb, most)   char size_##nb[(nb) * (most)];
enum {
    MAX_BLOCKS = sizeof(union {WINOGRAD4_TILES(BLOCKS_OF)}),
    MAX_TILES = sizeof(union {WINOGRAD4_TILES(TILES_OF)}),
    ACCUMULATORS = sizeof(union {WINOGRAD4_TILES(SIZE_OF)}) * VECTORS,
    MAX_GATHERED = sizeof(union {WINOGRAD4_GATHERS(BLOCKS_OF)}),
    GATHERED = sizeof(union {WINOGRAD4_GATHERS(SIZE_OF)}) * VECTORS,
};

INLINE void multiply(const tutti_winograd4_product *p, int nb, int tiles)
{
    const int nv = nb * VECTORS;
    const float *u = p->u, *v = p->v, *next = p->next;
    const int lines = p->lines;
    vf acc[ACCUMULATORS];
    UNROLL(28)
    for (int i = 0; i < nv * tiles; i++) acc[i] = vf_zero();
    for (int left = p->channels; left; left -= LINE, v += (tiles - 1) * LINE) {
        for (int i = 0; i < lines; i++, next += LINE) __builtin_prefetch(next, 0, 2);
        UNROLL(4)
        for (int c = 0; c < LINE; c++, v++, u += nb * LINE) {
            vf a[MAX_BLOCKS * VECTORS];
            UNROLL(16)
            for (int i = 0; i < nv; i++) a[i] = vf_load(u + i * VLEN);
            UNROLL(14)
            for (int t = 0; t < tiles; t++) {
                const vf b = vf_set1(v[t * LINE]);
                UNROLL(16)
                for (int i = 0; i < nv; i++) acc[t * nv + i] = vf_fma(a[i], b, acc[t * nv + i]);
            }
        }
    }
    UNROLL(14)
    for (int t = 0; t < tiles; t++) UNROLL(16)
    for (int i = 0; i < nv; i++)
        vf_store(p->m + i / VECTORS * p->m_block + t * LINE + i % VECTORS * VLEN, acc[t * nv + i]);
}

#define PRODUCT(nb, tiles)                                               \
    static void product_##nb##_##tiles(const tutti_winograd4_product *p) \
    {                                                                    \
        multiply(p, nb, tiles);                                          \
    }
#define ENTRY(nb, tiles)         [nb - 1][tiles - 1] = product_##nb##_##tiles,
#define PRODUCTS_UP_TO(nb, most) UP_TO_##most(PRODUCT, nb)
#define ENTRIES_UP_TO(nb, most)  UP_TO_##most(ENTRY, nb)

WINOGRAD4_TILES(PRODUCTS_UP_TO)

/* Of 'channels' channels from number c on. What comes next is fetched once, with the first ones. */
INLINE void gather_some(const tutti_winograd4_gather *g, int blocks, int c, int channels)
{
    const int nv = blocks * VECTORS;
    const float *d = g->d, *v = g->v + c;
    const long d_block = g->d_block, d_ahead = g->d_ahead, v_ahead = g->v_ahead;
    float *const sums = g->sums + c * LINE;
    const bool fetch = c == 0;
    vf acc[GATHERED];
    UNROLL(16)
    for (int b = 0; b < blocks; b++) UNROLL(16)
    for (int i = 0; i < channels * VECTORS; i++)
        acc[b * channels * VECTORS + i] =
            g->first ? vf_zero() : vf_load(sums + b * g->sums_block + i * VLEN);
    UNROLL(2)
    for (int t = 0; t < g->tiles; t++, d += LINE, v += LINE) {
        vf a[MAX_GATHERED * VECTORS];
        if (fetch) {
            UNROLL(2)
            for (int b = 0; b < blocks; b++) __builtin_prefetch(d + b * d_block + d_ahead, 0, 2);
            __builtin_prefetch(v + v_ahead, 0, 2);
        }
        UNROLL(16)
        for (int i = 0; i < nv; i++) a[i] = vf_load(d + i / VECTORS * d_block + i % VECTORS * VLEN);
        UNROLL(16)
        for (int j = 0; j < channels; j++) {
            const vf x = vf_set1(v[j]);
            UNROLL(16)
            for (int i = 0; i < nv; i++) {
                const int at = (i / VECTORS * channels + j) * VECTORS + i % VECTORS;
                acc[at] = vf_fma(a[i], x, acc[at]);
            }
        }
    }
    UNROLL(16)
    for (int b = 0; b < blocks; b++) UNROLL(16)
    for (int i = 0; i < channels * VECTORS; i++)
        vf_store(sums + b * g->sums_block + i * VLEN, acc[b * channels * VECTORS + i]);
}

INLINE void gather_all(const tutti_winograd4_gather *g, int blocks, int channels)
{
    const int rest = LINE % channels, whole = LINE - rest;
    for (int b = 0; g->next && b < blocks; b++)
        for (int i = 0; i < BLOCK_WEIGHTS; i += LINE)
            __builtin_prefetch(g->next + b * g->sums_block + i, 1, 2);
    for (int c = 0; c < whole; c += channels) gather_some(g, blocks, c, channels);
    if (rest) gather_some(g, blocks, whole, rest);
}

#define GATHER(blocks, channels)                                 \
    static void gather_##blocks(const tutti_winograd4_gather *g) \
    {                                                            \
        gather_all(g, blocks, channels);                         \
    }
#define GATHER_ENTRY(blocks, channels) [blocks - 1] = gather_##blocks,

WINOGRAD4_GATHERS(GATHER)

extern const tutti_winograd4_kernels NAME(winograd4);
const tutti_winograd4_kernels NAME(winograd4) = {
    .blocks = MAX_BLOCKS,
    .tiles = MAX_TILES,
    .product = {WINOGRAD4_TILES(ENTRIES_UP_TO)},
    .weights = weights,
    .input = input,
    .output = output,
    .output_back = output_back,
    .gathered = MAX_GATHERED,
    .gather = {WINOGRAD4_GATHERS(GATHER_ENTRY)},
    .weights_back = weights_back,
};
