/* Fully connected layers as they are defined. Never optimise it. */
#include "kernel/ref_fc.h"

#include <math.h>

#include "base/tree.h"
#include "kernel/ref_bf16.h"

/* Where the weight from input i to output o is in [o/16][i][16]. */
static size_t weight_at(int in, int o, int i)
{
    return ((size_t)(o / TUTTI_BLOCK) * in + i) * TUTTI_BLOCK + o % TUTTI_BLOCK;
}

/* A sum over leaves that arrive one by one; see base/tree.h. */
typedef struct counter {
    int leaves, depth;
    float stack[TUTTI_TREE_LEVELS + 1];
} counter;

static void add_leaf(counter *c, float leaf)
{
    c->stack[c->depth++] = leaf;
    for (int joins = tutti_tree_joins(c->leaves++); joins; joins--, c->depth--)
        c->stack[c->depth - 2] += c->stack[c->depth - 1];
}

static float total(counter *c)
{
    for (; c->depth > 1; c->depth--) c->stack[c->depth - 2] += c->stack[c->depth - 1];
    return c->depth ? c->stack[0] : 0.0f;
}

void tutti_ref_fc_forward(int n, int in, int out, const float *x, const float *w, const float *bias,
                          bool relu, float *y)
{
    for (int s = 0; s < n; s++)
        for (int o = 0; o < out; o++) {
            float sum = 0.0f;
            for (int i = 0; i < in; i++)
                sum = fmaf(x[(size_t)s * in + i], w[weight_at(in, o, i)], sum);
            if (bias) sum += bias[o];
            y[(size_t)s * out + o] = relu && 0.0f > sum ? 0.0f : sum;
        }
}

void tutti_ref_fc_backward_data(int n, int in, int out, const float *dy, const float *w,
                                const float *mask, float *dx)
{
    for (int s = 0; s < n; s++)
        for (int i = 0; i < in; i++) {
            counter tree = {0};
            for (int first = 0; first < out; first += TUTTI_FC_LEAF) {
                float leaf = 0.0f;
                for (int o = first; o < out && o < first + TUTTI_FC_LEAF; o++)
                    leaf = fmaf(w[weight_at(in, o, i)], dy[(size_t)s * out + o], leaf);
                add_leaf(&tree, leaf);
            }
            const size_t at = (size_t)s * in + i;
            dx[at] = mask && mask[at] <= 0.0f ? 0.0f : total(&tree);
        }
}

/* The gradient by bias o, which rounds nothing. */
static float bias_gradient(const tutti_grains *grains, int out, const float *dy, int o)
{
    counter tree = {0};
    for (int g = 0; g < grains->count; g++) {
        float leaf = 0.0f;
        for (int s = grains->begin[g]; s < grains->begin[g + 1]; s++)
            leaf = s == grains->begin[g] ? dy[(size_t)s * out + o] : leaf + dy[(size_t)s * out + o];
        add_leaf(&tree, leaf);
    }
    return total(&tree);
}

void tutti_ref_fc_backward_weights(const tutti_grains *grains, int in, int out, const float *x,
                                   const float *dy, float *dw, float *db)
{
    for (int o = 0; o < out; o++) {
        for (int i = 0; i < in; i++) {
            counter tree = {0};
            for (int g = 0; g < grains->count; g++) {
                float leaf = 0.0f;
                for (int s = grains->begin[g]; s < grains->begin[g + 1]; s++) {
                    const float factor = x[(size_t)s * in + i], term = dy[(size_t)s * out + o];
                    leaf = s == grains->begin[g] ? factor * term : fmaf(factor, term, leaf);
                }
                add_leaf(&tree, leaf);
            }
            dw[weight_at(in, o, i)] = total(&tree);
        }
        if (db) db[o] = bias_gradient(grains, out, dy, o);
    }
}

/* ---- bf16 ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

void tutti_ref_fc_bf16_forward(int n, int in, int out, const float *x, const float *w,
                               const float *bias, bool relu, float *y)
{
    for (int s = 0; s < n; s++)
        for (int o = 0; o < out; o++) {
            float sum = 0.0f;
            for (int i = 0; i < in; i += TUTTI_BF16_TERMS)
                sum =
                    tutti_ref_bf16_block_of(least(TUTTI_BF16_TERMS, in - i), x + (size_t)s * in + i,
                                            1, w + weight_at(in, o, i), TUTTI_BLOCK, sum);
            if (bias) sum = tutti_ref_bf16_add(sum, bias[o]);
            y[(size_t)s * out + o] = relu && 0.0f > sum ? 0.0f : sum;
        }
}

/* Weights of consecutive outputs are not evenly spaced: a block of them, side by side. */
static void column_of(int in, const float *w, int first, int i, int count, float *column)
{
    for (int k = 0; k < count; k++) column[k] = w[weight_at(in, first + k, i)];
}

void tutti_ref_fc_bf16_backward_data(int n, int in, int out, const float *dy, const float *w,
                                     const float *mask, float *dx)
{
    float column[TUTTI_BF16_TERMS];
    for (int s = 0; s < n; s++)
        for (int i = 0; i < in; i++) {
            counter tree = {0};
            for (int first = 0; first < out; first += TUTTI_FC_LEAF) {
                float leaf = 0.0f;
                const int end = least(out, first + TUTTI_FC_LEAF);
                for (int o = first; o < end; o += TUTTI_BF16_TERMS) {
                    const int terms = least(TUTTI_BF16_TERMS, end - o);
                    column_of(in, w, o, i, terms, column);
                    leaf = tutti_ref_bf16_block_of(terms, column, 1, dy + (size_t)s * out + o, 1,
                                                   leaf);
                }
                add_leaf(&tree, leaf);
            }
            const size_t at = (size_t)s * in + i;
            dx[at] = mask && mask[at] <= 0.0f ? 0.0f : total(&tree);
        }
}

void tutti_ref_fc_bf16_backward_weights(const tutti_grains *grains, int in, int out, const float *x,
                                        const float *dy, float *dw, float *db)
{
    for (int o = 0; o < out; o++) {
        for (int i = 0; i < in; i++) {
            counter tree = {0};
            for (int g = 0; g < grains->count; g++) {
                float leaf = 0.0f;
                const int end = grains->begin[g + 1];
                for (int s = grains->begin[g]; s < end; s += TUTTI_BF16_TERMS)
                    leaf = tutti_ref_bf16_block_of(least(TUTTI_BF16_TERMS, end - s),
                                                   x + (size_t)s * in + i, in,
                                                   dy + (size_t)s * out + o, out, leaf);
                add_leaf(&tree, leaf);
            }
            dw[weight_at(in, o, i)] = total(&tree);
        }
        if (db) db[o] = bias_gradient(grains, out, dy, o);
    }
}

static void add_term(tutti_ref_exact *sum, double term)
{
    sum->value += term;
    sum->magnitude += fabs(term);
}

tutti_ref_exact tutti_ref_fc_y(int in, const float *x, const float *w, const float *bias,
                               int sample, int o)
{
    tutti_ref_exact sum = {0};
    for (int i = 0; i < in; i++)
        add_term(&sum, (double)x[(size_t)sample * in + i] * w[weight_at(in, o, i)]);
    if (bias) add_term(&sum, bias[o]);
    return sum;
}

tutti_ref_exact tutti_ref_fc_dx(int in, int out, const float *dy, const float *w, int sample, int i)
{
    tutti_ref_exact sum = {0};
    for (int o = 0; o < out; o++)
        add_term(&sum, (double)w[weight_at(in, o, i)] * dy[(size_t)sample * out + o]);
    return sum;
}

tutti_ref_exact tutti_ref_fc_dw(int first, int end, int in, int out, const float *x,
                                const float *dy, int o, int i)
{
    tutti_ref_exact sum = {0};
    for (int s = first; s < end; s++)
        add_term(&sum, (double)x[(size_t)s * in + i] * dy[(size_t)s * out + o]);
    return sum;
}
