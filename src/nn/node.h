/* The inside of a model: one node per layer. Shared by model.c (making one), memory.c (where
 * everything lies), forward.c and backward.c (running it), tensor.c (its parameters). */
#ifndef TUTTI_NN_NODE_H
#define TUTTI_NN_NODE_H

#include "kernel/fc.h"
#include "kernel/pool.h"
#include "nn/model.h"

/* What a layer reads from and writes to one of its inputs. */
typedef struct tutti_edge {
    int from;          /* the layer, or TUTTI_NET_INPUT */
    bool wants_dx;     /* there is something to train below */
    bool adds;         /* others write to that gradient before: add to it */
    const float *x;    /* NULL for the net's input */
    const float *mask; /* x if it ends in a ReLU, else NULL */
    float *dx;         /* the gradient's place, or a spare one if it adds */
    int dx_piece;      /* -1 for none */
} tutti_edge;

typedef struct tutti_node {
    const tutti_layer *layer;
    tutti_conv *conv;
    tutti_fc *fc;
    tutti_pool_shape pool;
    tutti_edge edges[TUTTI_MAX_INPUTS];

    int samples, first_sample; /* that it works on; the first one's place in the minibatch */
    int channels, pixels;      /* of the output */
    size_t count;              /* floats of a sample of the output */

    tutti_region region;
    const float *weight, *bias;
    float *gradient; /* [roots][region.count] */
    int root_count;
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    int first_grain, grain_count;
    int *grain_begin; /* [grain_count + 1], counted from first_sample */

    float *y, *dy;
    uint16_t *tap;                                      /* max pooling */
    void *scratch[2];                                   /* forward, backward */
    int y_piece, dy_piece, tap_piece, scratch_piece[2]; /* -1 for none */

    tutti_layer_times times;
} tutti_node;

struct tutti_model {
    const tutti_net *net;
    tutti_model_options options;
    int node_count;
    tutti_node *nodes;
    int samples, first_sample, first_grain, grain_count; /* of this worker */

    float *parameters, *gradients;
    size_t parameter_floats, gradient_floats;
    char *arena;
    size_t arena_bytes, separate_bytes;
    bool measure_only; /* plan, but take nothing */

    /* The input as some layers want it: without the space between images, in blocks. */
    float *tight, *blocked;
    int tight_piece, blocked_piece;

    float *losses;
    int32_t *ranks;
    double *grain_losses;
};

/* One pass over the net. */
typedef struct tutti_pass {
    int n; /* samples */
    bool training;
    uint32_t step;
    const float *samples;
    const int32_t *labels;
} tutti_pass;

static inline bool tutti_ends_in_relu(const tutti_layer *layer)
{
    return layer->kind == TUTTI_KIND_RELU || layer->activation == TUTTI_ACT_RELU;
}

/* Gives every node its pieces of the arena; then their addresses, when the arena is there. */
tutti_status tutti_model_plan_memory(tutti_model *model) TUTTI_MUST_CHECK;

/* The three forms of the net's input. A convolution wants images without space between them, a
 * fully connected layer takes them as they come, all others want blocks. */
bool tutti_edge_wants_tight(const tutti_model *model, const tutti_node *node, int edge);
bool tutti_edge_wants_blocked(const tutti_model *model, const tutti_node *node, int edge);

tutti_dropout tutti_node_dropout(const tutti_model *model, const tutti_node *node, uint32_t step);

/* Input number 'edge' of the node in this pass. */
const float *tutti_node_x(const tutti_model *model, const tutti_node *node, int edge,
                          const tutti_pass *pass);

/* What must happen before the first layer, the layers one by one, all of them. */
void tutti_prepare_input(tutti_model *model, const tutti_pass *pass);
tutti_status tutti_node_forward(tutti_model *model, tutti_node *node,
                                const tutti_pass *pass) TUTTI_MUST_CHECK;
tutti_status tutti_backward(tutti_model *model, const tutti_pass *pass) TUTTI_MUST_CHECK;

#endif
