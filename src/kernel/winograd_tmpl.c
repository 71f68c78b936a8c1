/* Winograd's F(2x2, 3x3): the transforms, see winograd.c and winograd_gradient.c. */
#include "kernel/isa/isa.h"

#include "kernel/conv_kernels.h"
#include "kernel/table.h"

enum { SIDE = TUTTI_WINOGRAD_SIDE, TAPS = 3 };

/* to = B^T from, for one of 4 columns or rows. */
INLINE void into(vf to[SIDE], const vf from[SIDE])
{
    to[0] = vf_sub(from[0], from[2]);
    to[1] = vf_add(from[1], from[2]);
    to[2] = vf_sub(from[2], from[1]);
    to[3] = vf_sub(from[1], from[3]);
}

/* to = A^T from */
INLINE void out_of(vf to[2], const vf from[SIDE])
{
    to[0] = vf_add(vf_add(from[0], from[1]), from[2]);
    to[1] = vf_sub(vf_sub(from[1], from[2]), from[3]);
}

/* to = G from */
INLINE void widen(vf to[SIDE], const vf from[TAPS])
{
    const vf half = vf_set1(0.5f), outer = vf_add(from[0], from[2]);
    to[0] = from[0];
    to[1] = vf_mul(half, vf_add(outer, from[1]));
    to[2] = vf_mul(half, vf_sub(outer, from[1]));
    to[3] = from[2];
}

static void weights(const float *w, float *u, long u_step)
{
    for (int at = 0; at < TUTTI_BLOCK * TUTTI_BLOCK; at += VLEN) {
        vf columns[TAPS][SIDE];
        UNROLL(3)
        for (int s = 0; s < TAPS; s++) {
            vf taps[TAPS];
            UNROLL(3)
            for (int r = 0; r < TAPS; r++)
                taps[r] = vf_load(w + (r * TAPS + s) * TUTTI_BLOCK * TUTTI_BLOCK + at);
            widen(columns[s], taps);
        }
        UNROLL(4)
        for (int i = 0; i < SIDE; i++) {
            const vf row[TAPS] = {columns[0][i], columns[1][i], columns[2][i]};
            vf wide[SIDE];
            widen(wide, row);
            UNROLL(4)
            for (int j = 0; j < SIDE; j++) vf_store(u + (i * SIDE + j) * u_step + at, wide[j]);
        }
    }
}

/* Pixels outside of the image are zero. */
INLINE vf pixel(const tutti_winograd_tile *t, const float *x, int i, int j)
{
    const bool inside = i >= t->top && i < t->bottom && j >= t->left && j < t->right;
    return inside ? vf_load(x + i * t->row + j * TUTTI_BLOCK) : vf_zero();
}

INLINE void input_lanes(const tutti_winograd_tile *t, const float *x, float *v, long v_step,
                        bool whole)
{
    vf columns[SIDE][SIDE];
    UNROLL(4)
    for (int j = 0; j < SIDE; j++) {
        vf from[SIDE];
        UNROLL(4)
        for (int i = 0; i < SIDE; i++)
            from[i] = whole ? vf_load(x + i * t->row + j * TUTTI_BLOCK) : pixel(t, x, i, j);
        into(columns[j], from);
    }
    UNROLL(4)
    for (int i = 0; i < SIDE; i++) {
        const vf from[SIDE] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
        vf row[SIDE];
        into(row, from);
        UNROLL(4)
        for (int j = 0; j < SIDE; j++) vf_store(v + (i * SIDE + j) * v_step, row[j]);
    }
}

static void input(const tutti_winograd_tile *t, const float *x, float *v, long v_step)
{
    const bool whole = t->top == 0 && t->left == 0 && t->bottom == SIDE && t->right == SIDE;
    for (int lane = 0; lane < TUTTI_BLOCK; lane += VLEN)
        if (whole) input_lanes(t, x + lane, v + lane, v_step, true);
        else input_lanes(t, x + lane, v + lane, v_step, false);
}

static void output(const tutti_winograd_tile *t, const float *m, long m_step, const float *bias,
                   bool relu, const float *mask, float *y)
{
    for (int lane = 0; lane < TUTTI_BLOCK; lane += VLEN) {
        vf columns[SIDE][2];
        UNROLL(4)
        for (int j = 0; j < SIDE; j++) {
            vf from[SIDE];
            UNROLL(4)
            for (int i = 0; i < SIDE; i++) from[i] = vf_load(m + (i * SIDE + j) * m_step + lane);
            out_of(columns[j], from);
        }
        UNROLL(2)
        for (int i = 0; i < 2; i++) {
            const vf from[SIDE] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
            vf row[2];
            out_of(row, from);
            UNROLL(2)
            for (int j = 0; j < 2; j++) {
                if (i >= t->bottom || j >= t->right) continue;
                const long at = i * t->row + j * TUTTI_BLOCK + lane;
                vf sum = row[j];
                if (bias) sum = vf_add(sum, vf_load(bias + lane));
                if (relu) sum = vf_max(vf_zero(), sum);
                if (mask) sum = vf_gate(sum, vf_load(mask + at));
                vf_store(y + at, sum);
            }
        }
    }
}

/* to = A from */
INLINE void out_of_back(vf to[SIDE], const vf from[2])
{
    to[0] = from[0];
    to[1] = vf_add(from[0], from[1]);
    to[2] = vf_sub(from[0], from[1]);
    to[3] = vf_sub(vf_zero(), from[1]);
}

static void output_back(const tutti_winograd_tile *t, const float *dy, float *d, long d_step)
{
    for (int lane = 0; lane < TUTTI_BLOCK; lane += VLEN) {
        vf columns[2][SIDE];
        UNROLL(2)
        for (int j = 0; j < 2; j++) {
            const vf from[2] = {pixel(t, dy + lane, 0, j), pixel(t, dy + lane, 1, j)};
            out_of_back(columns[j], from);
        }
        UNROLL(4)
        for (int i = 0; i < SIDE; i++) {
            const vf from[2] = {columns[0][i], columns[1][i]};
            vf row[SIDE];
            out_of_back(row, from);
            UNROLL(4)
            for (int j = 0; j < SIDE; j++) vf_store(d + (i * SIDE + j) * d_step + lane, row[j]);
        }
    }
}

/* to = G^T from */
INLINE void widen_back(vf to[TAPS], const vf from[SIDE])
{
    const vf half = vf_set1(0.5f), inner = vf_mul(half, vf_add(from[1], from[2]));
    to[0] = vf_add(from[0], inner);
    to[1] = vf_mul(half, vf_sub(from[1], from[2]));
    to[2] = vf_add(inner, from[3]);
}

static void weights_back(const float *m, long m_step, float *dw)
{
    for (int at = 0; at < TUTTI_BLOCK * TUTTI_BLOCK; at += VLEN) {
        vf columns[SIDE][TAPS];
        UNROLL(4)
        for (int j = 0; j < SIDE; j++) {
            vf from[SIDE];
            UNROLL(4)
            for (int i = 0; i < SIDE; i++) from[i] = vf_load(m + (i * SIDE + j) * m_step + at);
            widen_back(columns[j], from);
        }
        UNROLL(3)
        for (int r = 0; r < TAPS; r++) {
            const vf from[SIDE] = {columns[0][r], columns[1][r], columns[2][r], columns[3][r]};
            vf taps[TAPS];
            widen_back(taps, from);
            UNROLL(3)
            for (int s = 0; s < TAPS; s++)
                vf_store(dw + (r * TAPS + s) * TUTTI_BLOCK * TUTTI_BLOCK + at, taps[s]);
        }
    }
}

extern const tutti_winograd_kernels NAME(winograd);
const tutti_winograd_kernels NAME(winograd) = {weights, input, output, output_back, weights_back};
