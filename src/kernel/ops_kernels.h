/* The row's part of ops.h and pool.h: what one thread does. Bodies in *_tmpl.c. */
#ifndef TUTTI_KERNEL_OPS_KERNELS_H
#define TUTTI_KERNEL_OPS_KERNELS_H

#include "kernel/norm.h"
#include "kernel/ops.h"
#include "kernel/pixel_norm.h"
#include "kernel/pool.h"
#include "kernel/upsample.h"

/* Elementwise: reads a, b, mask (may be NULL), writes y (may be an input), and reads and writes the
 * states of an optimizer, at begin .. end-1, both multiples of 16. */
typedef struct tutti_elementwise {
    const float *a, *b, *mask;
    float *y, *state[TUTTI_MAX_STATES];
    float factor;
    float limit; /* of what is clipped */
    bool relu;
    bool stream; /* y is large, not an input, and aligned: store it past the caches */
    int lanes;   /* f(0) != 0: of each 16 the first 'lanes' are channels, the others become zero */
    const void *optimizer; /* its numbers: tutti_sgd, tutti_adam, tutti_average */
} tutti_elementwise;
typedef void tutti_elementwise_fn(const tutti_elementwise *job, size_t begin, size_t end);

/* Sums of the squares of groups of eight leaves of 16 floats. */
enum { TUTTI_SQUARE_GROUP = 8 * TUTTI_BLOCK };
typedef void tutti_squares_fn(size_t groups, const float *x, double *sums);

/* Vectors first .. end-1 (of 16 floats, counted over all channels of the layer) of the sample that
 * key->sample names; x, mask (may be NULL) and y point at vector 'first'. An element stays when its
 * number, shifted left by 16, is >= threshold, and is multiplied by 'factor'. */
typedef struct tutti_drop {
    uint32_t threshold;
    float factor;
    bool stream;
} tutti_drop;
typedef void tutti_drop_fn(const tutti_random_key *key, const tutti_drop *drop, uint32_t first,
                           uint32_t end, const float *x, const float *mask, float *y);

/* Pixels begin .. end-1 of one sample. Forward has neither dy nor mask, and writes y into dx. */
typedef void tutti_lrn_fn(const tutti_lrn *lrn, int blocks, int pixels, int begin, int end,
                          const float *x, const float *dy, const float *mask, float *dx,
                          bool stream);

/* One sample; label may be NULL, then there is no loss. 'row' is where the exponentials go
 * meanwhile, p if they do not 'stream'. */
typedef void tutti_softmax_fn(int classes, const float *x, const int32_t *label, float *row,
                              float *p, float *loss, bool stream);

/* The sum of losses over 'pixels' of a channel block, of its first 'lanes' channels
 * (kernel/value_loss.h). */
typedef double tutti_value_loss_fn(int pixels, int lanes, float delta, const float *x,
                                   const float *t);

/* One plane: one channel block of one sample. 'stream' as above, of y and tap alike. */
typedef void tutti_max_pool_fn(const tutti_pool_shape *shape, const float *x, float *y,
                               uint16_t *tap, bool stream);
typedef void tutti_max_unpool_fn(const tutti_pool_shape *shape, const float *dy,
                                 const uint16_t *tap, const float *y_mask, float *dx, bool stream);
typedef void tutti_average_pool_fn(const tutti_pool_shape *shape, const float *x, float *y,
                                   bool stream);
typedef void tutti_average_unpool_fn(const tutti_pool_shape *shape, const float *dy,
                                     const float *mask, float *dx, bool stream);

/* Normalisation of one plane (kernel/norm.h): 16 coefficients of each kind. */
typedef struct tutti_norm_plane {
    const float *high, *low, *factor, *factor_x, *addend;
} tutti_norm_plane;
typedef void tutti_norm_moments_fn(int pixels, const float *x, double *mean, double *squares);
typedef void tutti_norm_sums_fn(int pixels, const float *x, const float *dy, const float *high,
                                const float *low, double *sums, double *products);
/* 'plus' is added before the ReLU; NULL: nothing. */
typedef void tutti_norm_forward_fn(int pixels, const tutti_norm_plane *plane, const float *x,
                                   const float *plus, bool relu, float *y, bool stream);
typedef void tutti_norm_backward_fn(int pixels, const tutti_norm_plane *plane, const float *x,
                                    const float *dy, bool gated, float *dx, bool stream);

/* The same where each value has its own weight and bias (kernel/value_norm.h). Pointers are those
 * of the plane's first pixel. */
typedef struct tutti_value_plane {
    tutti_norm_plane by;
    const float *weight, *bias, *x, *dy;
    bool gated;
} tutti_value_plane;
typedef void tutti_value_sums_fn(int pixels, const tutti_value_plane *plane, double *sums,
                                 double *products);
typedef void tutti_value_pass_fn(int pixels, const tutti_value_plane *plane, float *to,
                                 bool stream);
/* Adds one sample to sums of each value. */
typedef void tutti_value_gradient_fn(int pixels, const tutti_value_plane *plane, float *dw,
                                     float *db);

/* Normalisation over the channels of each of up to TUTTI_PIXEL_TILE pixels (kernel/pixel_norm.h).
 * Forward writes the statistics, whole tiles of them, and y; backward reads them, and writes dx
 * into y. */
typedef struct tutti_pixel_tile {
    int blocks, pixels;
    size_t plane; /* floats from one block to the next */
    float share;  /* 1 / channels */
    float eps;
    const float *weight, *bias;
    const float *lanes; /* [16] of the last block: 1 for a channel, 0 where it is filled up */
    float *high, *low, *inverse;
    const float *x, *dy;
    bool gated;
    float *y;
} tutti_pixel_tile;
typedef void tutti_pixel_norm_fn(const tutti_pixel_tile *tile, bool stream);
/* One plane: sums of dy, and of dy times the normalised x. */
typedef void tutti_pixel_norm_sums_fn(int pixels, const float *x, const float *dy,
                                      const float *high, const float *low, const float *inverse,
                                      double *sums, double *products);

/* One plane; mask may be NULL, forward has none. */
typedef void tutti_adaptive_fn(const tutti_adaptive_shape *shape, const float *from,
                               const float *mask, float *to);

/* One plane; backward may have a mask. */
typedef void tutti_upsample_fn(const tutti_upsample *upsample, const float *from, const float *mask,
                               float *to, bool stream);

/* One plane and a number for each of its channels: y = factor * x, zero where mask <= 0 (may be
 * NULL); y += addend, then max(., 0) if relu; sums of a * b, or of a if b is NULL, over pixels, in
 * the order of planes.h. */
typedef struct tutti_plane {
    size_t pixels;
    const float *factor, *x, *mask;
    float *y;
} tutti_plane;
typedef void tutti_scale_plane_fn(const tutti_plane *plane, bool stream);
typedef void tutti_shift_plane_fn(size_t pixels, const float *addends, bool relu, float *y);
typedef void tutti_dot_plane_fn(size_t pixels, const float *a, const float *b, float *sums);

/* 'lanes' (1 to 16) planes of the source, each 'pixels' long, become one of blocks, and back. */
typedef void tutti_block_plane_fn(size_t pixels, int lanes, const float *planes, float *block,
                                  bool stream);
typedef void tutti_unblock_plane_fn(size_t pixels, int lanes, const float *block, float *planes,
                                    bool stream);

// clang-format off
#define TUTTI_OPS_MAP(X)                                          \
    X(tutti_elementwise_fn, add)              /* y = a + b */            \
    X(tutti_elementwise_fn, mul)              /* y = a * b, 0 by mask */ \
    X(tutti_elementwise_fn, scale)            /* y = factor * a */       \
    X(tutti_elementwise_fn, axpy)             /* y = factor * a + y */   \
    X(tutti_elementwise_fn, relu)                                        \
    X(tutti_elementwise_fn, mask)             /* y = a, 0 by mask */     \
    X(tutti_elementwise_fn, leaky)            /* y = a > 0 ? a : factor a */ \
    X(tutti_elementwise_fn, leaky_backward)   /* dy = a, output = b */   \
    X(tutti_elementwise_fn, relu6)            /* y = min(max(a, 0), 6) */\
    X(tutti_elementwise_fn, relu6_backward)   /* dy = a, output = b */   \
    X(tutti_elementwise_fn, sigmoid)                                     \
    X(tutti_elementwise_fn, sigmoid_backward) /* dy = a, output = b */   \
    X(tutti_elementwise_fn, silu)             /* y = a sigmoid(a) */     \
    X(tutti_elementwise_fn, silu_backward)    /* dy = a, input = b */    \
    X(tutti_elementwise_fn, gelu)             /* a times the normal share below a */ \
    X(tutti_elementwise_fn, gelu_backward)    /* dy = a, input = b */    \
    X(tutti_elementwise_fn, hardswish)        /* y = a hardsigmoid(a) */ \
    X(tutti_elementwise_fn, hardswish_backward) /* dy = a, input = b */  \
    X(tutti_elementwise_fn, hardsigmoid)      /* y = relu6(a + 3) / 6 */ \
    X(tutti_elementwise_fn, hardsigmoid_backward) /* dy = a, output = b */ \
    X(tutti_elementwise_fn, tanh)                                        \
    X(tutti_elementwise_fn, tanh_backward)    /* dy = a, output = b */   \
    X(tutti_elementwise_fn, difference)       /* y = factor (a - b) */   \
    X(tutti_elementwise_fn, difference_sign)  /* y = factor sign(a - b) */ \
    X(tutti_elementwise_fn, difference_clipped) /* ... of +-limit at most */ \
    X(tutti_elementwise_fn, sgd)              /* gradient a (+ b), w y */\
    X(tutti_elementwise_fn, adam)             /* likewise */             \
    X(tutti_elementwise_fn, average)          /* likewise */             \
    X(tutti_elementwise_fn, exp)              /* the vector functions */ \
    X(tutti_elementwise_fn, log)              /* themselves, to test */  \
    X(tutti_elementwise_fn, pow_minus_3_4)                               \
    X(tutti_squares_fn, squares)                                  \
    X(tutti_drop_fn, drop)                                        \
    X(tutti_lrn_fn, lrn_forward)                                  \
    X(tutti_lrn_fn, lrn_backward)                                 \
    X(tutti_softmax_fn, softmax)                                  \
    X(tutti_value_loss_fn, squared_loss)                          \
    X(tutti_value_loss_fn, absolute_loss)                         \
    X(tutti_value_loss_fn, huber_loss)                            \
    X(tutti_value_loss_fn, crossed_loss)                          \
    X(tutti_max_pool_fn, max_pool)                                \
    X(tutti_max_unpool_fn, max_unpool)                            \
    X(tutti_average_pool_fn, average_pool)                        \
    X(tutti_average_unpool_fn, average_unpool)                    \
    X(tutti_norm_moments_fn, norm_moments)                        \
    X(tutti_norm_sums_fn, norm_sums)                              \
    X(tutti_norm_forward_fn, norm_forward)                        \
    X(tutti_norm_backward_fn, norm_backward)                      \
    X(tutti_value_sums_fn, value_sums)                            \
    X(tutti_value_pass_fn, value_forward)                         \
    X(tutti_value_pass_fn, value_backward)                        \
    X(tutti_value_gradient_fn, value_gradient)                    \
    X(tutti_pixel_norm_fn, pixel_norm)                            \
    X(tutti_pixel_norm_fn, pixel_norm_backward)                   \
    X(tutti_pixel_norm_sums_fn, pixel_norm_sums)                  \
    X(tutti_adaptive_fn, adaptive_pool)                           \
    X(tutti_adaptive_fn, adaptive_unpool)                         \
    X(tutti_upsample_fn, upsample_nearest)                        \
    X(tutti_upsample_fn, upsample_bilinear)                       \
    X(tutti_upsample_fn, upsample_backward)                       \
    X(tutti_scale_plane_fn, scale_plane)                          \
    X(tutti_shift_plane_fn, shift_plane)                          \
    X(tutti_dot_plane_fn, dot_plane)                              \
    X(tutti_block_plane_fn, block_plane)                          \
    X(tutti_unblock_plane_fn, unblock_plane)
// clang-format on

struct tutti_ops_kernels {
#define X(type, name) type *name;
    TUTTI_OPS_MAP(X)
#undef X
};
typedef struct tutti_ops_kernels tutti_ops_kernels;

#endif
