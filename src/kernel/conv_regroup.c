/* Groups that are neither narrow nor whole blocks: 3 groups of 24 channels, or of 6 and 9
 * features. Images and weights are copied to where each group begins a block of its own, filled
 * up with zeros, an ordinary grouped convolution is made of them, and its results are copied
 * back. The chains are the same: blocks of 16 channels are those of the group.
 *
 * Weights and biases are copied as images are: [k/16] blocks of any number of "pixels" of 16. */
#include <string.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/conv_plan.h"

enum { B = TUTTI_BLOCK };

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

bool tutti_conv_regroups(const tutti_conv_shape *shape)
{
    if (shape->groups == 1 || shape->compact || tutti_conv_narrow(shape)) return false;
    return shape->c / shape->groups % B || shape->k / shape->groups % B;
}

/* Channels of a group, filled up. */
static int whole(int channels)
{
    return tutti_ceil_div(channels, B) * B;
}

tutti_status tutti_conv_plan_regrouped(tutti_conv *conv, const tutti_kernels *row)
{
    tutti_conv_shape shape = conv->shape;
    shape.c = shape.groups * whole(shape.c / shape.groups);
    shape.k = shape.groups * whole(shape.k / shape.groups);
    shape.precision = TUTTI_IN_FP32; /* the filled up one could round, this one does not */
    return tutti_conv_create(&conv->regrouped, &shape, row, &conv->caches, conv->n, conv->threads);
}

/* ---- copies ---- */

/* Samples of images, 'channels' to each group: where groups follow each other, and where each has
 * blocks of its own. */
typedef struct images {
    int n, groups, channels;
    long pixels;
    float *close, *apart;
    const float *mask; /* of close, which becomes zero where this is not positive; NULL: none */
} images;

/* Channels that lie side by side in both. */
typedef struct run {
    float *close, *apart;
    const float *mask;
    int lanes;
} run;

typedef void copy_fn(const run *r, long pixels);

static inline __attribute__((always_inline)) void copy(float *restrict to,
                                                       const float *restrict from, int lanes,
                                                       long pixels)
{
    for (long p = 0; p < pixels; p++, to += B, from += B)
        for (int l = 0; l < lanes; l++) to[l] = from[l];
}

static void copy_apart(const run *r, long pixels)
{
    if (r->lanes == B / 2) copy(r->apart, r->close, B / 2, pixels);
    else if (r->lanes == B) copy(r->apart, r->close, B, pixels);
    else copy(r->apart, r->close, r->lanes, pixels);
}

static void copy_close(const run *r, long pixels)
{
    if (r->lanes == B / 2) copy(r->close, r->apart, B / 2, pixels);
    else if (r->lanes == B) copy(r->close, r->apart, B, pixels);
    else copy(r->close, r->apart, r->lanes, pixels);
    if (!r->mask) return;
    for (long p = 0; p < pixels; p++)
        for (int l = 0; l < r->lanes; l++)
            if (r->mask[p * B + l] <= 0.0f) r->close[p * B + l] = 0.0f;
}

/* The runs of one block of a group, one or two. */
static void copy_block(const images *im, int sample, int group, int block, copy_fn *fn)
{
    const long blocks = tutti_ceil_div(im->channels, B), plane = im->pixels * B;
    const long close_blocks = tutti_ceil_div(im->groups * im->channels, B);
    const int begin = group * im->channels + block * B;
    const int end = begin + min_of(B, im->channels - block * B);
    float *apart = im->apart + ((long)(sample * im->groups + group) * blocks + block) * plane;
    for (int at = begin; at < end;) {
        const int lanes = min_of(end - at, B - at % B);
        const long to = (sample * close_blocks + at / B) * plane + at % B;
        fn(&(run){im->close + to, apart, im->mask ? im->mask + to : NULL, lanes}, im->pixels);
        at += lanes;
        apart += lanes;
    }
}

static void spread_share(void *arg, int thread, int threads)
{
    const images *im = arg;
    const int blocks = tutti_ceil_div(im->channels, B), total = im->n * im->groups * blocks;
    const int end = tutti_share_begin(total, threads, thread + 1);
    for (int i = tutti_share_begin(total, threads, thread); i < end; i++) {
        const int block = i % blocks, group = i / blocks;
        if (im->channels - block * B < B)
            memset(im->apart + i * im->pixels * B, 0, (size_t)(im->pixels * B) * sizeof(float));
        copy_block(im, group / im->groups, group % im->groups, block, copy_apart);
    }
}

static void gather_share(void *arg, int thread, int threads)
{
    const images *im = arg;
    const int channels = im->groups * im->channels, close_blocks = tutti_ceil_div(channels, B);
    const int end = tutti_share_begin(im->n * im->groups, threads, thread + 1);
    for (int i = tutti_share_begin(im->n * im->groups, threads, thread); i < end; i++) {
        const int sample = i / im->groups, group = i % im->groups;
        for (int b = 0; b < tutti_ceil_div(im->channels, B); b++)
            copy_block(im, sample, group, b, copy_close);
        if (group < im->groups - 1 || channels % B == 0) continue;
        float *last = im->close + ((long)(sample + 1) * close_blocks - 1) * im->pixels * B;
        for (long p = 0; p < im->pixels; p++)
            for (int l = channels % B; l < B; l++) last[p * B + l] = 0.0f;
    }
}

/* ---- what is where ---- */

static images x_of(const tutti_conv *conv, int n, const float *x, float *apart)
{
    const tutti_conv_shape *s = &conv->shape;
    return (images){n, s->groups, s->c / s->groups, (long)s->h * s->w, (float *)x, apart, NULL};
}

static images y_of(const tutti_conv *conv, int n, const float *y, float *apart)
{
    const tutti_conv_shape *s = &conv->shape;
    const long pixels = (long)conv->out_h * conv->out_w;
    return (images){n, s->groups, s->k / s->groups, pixels, (float *)y, apart, NULL};
}

static images w_of(const tutti_conv *conv, const float *w, float *apart)
{
    const tutti_conv_shape *s = &conv->shape;
    const long pixels = (long)whole(s->c / s->groups) * s->r * s->s;
    return (images){1, s->groups, s->k / s->groups, pixels, (float *)w, apart, NULL};
}

static images b_of(const tutti_conv *conv, const float *b, float *apart)
{
    const tutti_conv_shape *s = &conv->shape;
    return (images){1, s->groups, s->k / s->groups, 1, (float *)b, apart, NULL};
}

/* The copies, in scratch, and the scratch of the convolution itself. */
typedef struct rooms {
    float *x, *y, *w, *b;
    tutti_task task;
} rooms;

static size_t image_floats(int channels, int h, int w)
{
    return (size_t)channels * (size_t)h * (size_t)w;
}

static rooms rooms_of(const tutti_conv *conv, const tutti_task *task, int n)
{
    const tutti_conv *own = conv->regrouped;
    const tutti_conv_shape *s = &own->shape;
    rooms r = {.x = task->scratch, .task = *task};
    r.y = r.x + (size_t)n * image_floats(s->c, s->h, s->w);
    r.w = r.y + (size_t)n * image_floats(s->k, own->out_h, own->out_w);
    r.b = r.w + tutti_conv_weight_count(own);
    r.task.scratch = r.b + tutti_conv_bias_count(own);
    return r;
}

size_t tutti_conv_regrouped_scratch(const tutti_conv *conv)
{
    const tutti_conv *own = conv->regrouped;
    const tutti_conv_shape *s = &own->shape;
    const size_t sample =
        image_floats(s->c, s->h, s->w) + image_floats(s->k, own->out_h, own->out_w);
    const size_t copies =
        (size_t)conv->n * sample + tutti_conv_weight_count(own) + tutti_conv_bias_count(own);
    return copies * sizeof(float) + tutti_conv_scratch(own);
}

static void spread(const tutti_task *task, images im)
{
    tutti_team_run(task->team, spread_share, &im);
}

static void gather(const tutti_task *task, images im)
{
    tutti_team_run(task->team, gather_share, &im);
}

/* ---- the passes ---- */

void tutti_conv_regrouped_forward(const tutti_conv *conv, const tutti_task *task, const float *x,
                                  const float *w, const float *bias, bool relu, float *y)
{
    const rooms r = rooms_of(conv, task, task->n);
    spread(task, x_of(conv, task->n, x, r.x));
    spread(task, w_of(conv, w, r.w));
    if (bias) spread(task, b_of(conv, bias, r.b));
    tutti_conv_forward(conv->regrouped, &r.task, r.x, r.w, bias ? r.b : NULL, relu, r.y);
    gather(task, y_of(conv, task->n, y, r.y));
}

void tutti_conv_regrouped_data(const tutti_conv *conv, const tutti_task *task, const float *dy,
                               const float *w, const float *mask, float *dx)
{
    const rooms r = rooms_of(conv, task, task->n);
    spread(task, y_of(conv, task->n, dy, r.y));
    spread(task, w_of(conv, w, r.w));
    tutti_conv_backward_data(conv->regrouped, &r.task, r.y, r.w, NULL, r.x);
    images im = x_of(conv, task->n, dx, r.x);
    im.mask = mask;
    gather(task, im);
}

void tutti_conv_regrouped_weights(const tutti_conv *conv, const tutti_task *task, const float *x,
                                  const float *dy, float *dw, float *db)
{
    const tutti_grains *grains = task->grains;
    const int n = grains->count ? grains->begin[grains->count] : 0;
    const rooms r = rooms_of(conv, task, n);
    spread(task, x_of(conv, n, x, r.x));
    spread(task, y_of(conv, n, dy, r.y));
    tutti_conv_backward_weights(conv->regrouped, &r.task, r.x, r.y, r.w, db ? r.b : NULL);
    gather(task, w_of(conv, dw, r.w));
    if (db) gather(task, b_of(conv, db, r.b));
}
