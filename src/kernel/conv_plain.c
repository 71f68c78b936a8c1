/* Shapes without a fast path, compact images with groups: element by element, by the definition. */
#include <string.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/conv_plan.h"
#include "kernel/ref_conv.h"

typedef struct job {
    const tutti_conv_shape *shape;
    const tutti_grains *grains;
    int n, out_h, out_w;
    const float *x, *w, *bias, *dy;
    bool relu;
    float *y, *dw, *db;
} job;

/* ---- forward ---- */

/* One sample's block of 16 output channels; what fills it up is zero. */
static void block_of_y(const job *j, int sample, int block)
{
    for (int h = 0; h < j->out_h; h++)
        for (int w = 0; w < j->out_w; w++)
            for (int k = block * TUTTI_BLOCK; k < (block + 1) * TUTTI_BLOCK; k++) {
                float v = 0.0f;
                if (k < j->shape->k)
                    v = tutti_ref_conv_y(j->shape, j->x, j->w, sample, k, h, w).chain;
                if (j->bias) v += j->bias[k];
                if (j->relu && 0.0f > v) v = 0.0f;
                j->y[tutti_ref_y_at(j->shape, sample, k, h, w)] = v;
            }
}

static void y_share(void *arg, int thread, int threads)
{
    const job *j = arg;
    const int blocks = tutti_ceil_div(j->shape->k, TUTTI_BLOCK);
    const int end = tutti_share_begin(j->n * blocks, threads, thread + 1);
    for (int at = tutti_share_begin(j->n * blocks, threads, thread); at < end; at++)
        block_of_y(j, at / blocks, at % blocks);
}

void tutti_conv_plain_forward(const tutti_conv *conv, const tutti_task *task, const float *x,
                              const float *w, const float *bias, bool relu, float *y)
{
    job j = {.shape = &conv->shape,
             .n = task->n,
             .out_h = conv->out_h,
             .out_w = conv->out_w,
             .x = x,
             .w = w,
             .bias = bias,
             .relu = relu,
             .y = y};
    tutti_team_run(task->team, y_share, &j);
}

/* ---- backward-weights ---- */

static float sum_tree(const job *j, int first, int end, int k, int c, int r, int s)
{
    const int *begin = j->grains->begin;
    if (end - first == 1)
        return c < 0
                   ? tutti_ref_conv_db(j->shape, j->dy, begin[first], begin[end], k).chain
                   : tutti_ref_conv_dw(j->shape, j->x, j->dy, begin[first], begin[end], k, c, r, s)
                         .chain;
    int half = 1;
    while (2 * half < end - first) half *= 2;
    return sum_tree(j, first, first + half, k, c, r, s) +
           sum_tree(j, first + half, end, k, c, r, s);
}

static void feature(const job *j, int k)
{
    const tutti_conv_shape *shape = j->shape;
    for (int c = 0; c < shape->c / shape->groups; c++)
        for (int r = 0; r < shape->r; r++)
            for (int s = 0; s < shape->s; s++)
                j->dw[tutti_ref_w_at(shape, k, c, r, s)] =
                    sum_tree(j, 0, j->grains->count, k, c, r, s);
    if (j->db) j->db[k] = sum_tree(j, 0, j->grains->count, k, -1, 0, 0);
}

static void weights_share(void *arg, int thread, int threads)
{
    const job *j = arg;
    const int end = tutti_share_begin(j->shape->k, threads, thread + 1);
    for (int k = tutti_share_begin(j->shape->k, threads, thread); k < end; k++) feature(j, k);
}

void tutti_conv_plain_weights(const tutti_conv *conv, const tutti_task *task, const float *x,
                              const float *dy, float *dw, float *db)
{
    job j = {.shape = &conv->shape, .grains = task->grains, .x = x, .dy = dy, .dw = dw, .db = db};
    memset(dw, 0, tutti_conv_weight_count(conv) * sizeof(float));
    if (db) memset(db, 0, tutti_conv_bias_count(conv) * sizeof(float));
    if (task->grains->count) tutti_team_run(task->team, weights_share, &j);
}
