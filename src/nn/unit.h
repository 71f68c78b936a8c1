/* The inside of a model: one unit per layer. Shared by model.c (making one), memory.c (where
 * everything lies), forward.c and backward.c (running it), tensor.c (its parameters). */
#ifndef TUTTI_NN_UNIT_H
#define TUTTI_NN_UNIT_H

#include "kernel/fc.h"
#include "kernel/pool.h"
#include "nn/hop.h"
#include "nn/model.h"

/* What a layer reads from and writes to one of its inputs. */
typedef struct tutti_edge {
    int from;          /* the layer, or TUTTI_NET_INPUT */
    bool wants_dx;     /* there is something to train below */
    bool adds;         /* others write to that gradient before: add to it */
    const float *x;    /* NULL for the net's input */
    const float *mask; /* x if it ends in a ReLU, else NULL */
    float *dx;         /* where the layer writes its gradient by x */
    float *dx_below;   /* where that must get: the gradient's place, or a spare one if it adds */
    int dx_lease;      /* of dx_below; -1 for none */
    int hop_count;     /* between the two, when the layers live differently */
    tutti_hop hops[TUTTI_MAX_HOPS];
} tutti_edge;

typedef struct tutti_unit {
    const tutti_layer *layer;
    tutti_conv *conv;
    tutti_fc *fc;
    tutti_pool_shape pool;
    tutti_edge edges[TUTTI_MAX_INPUTS];

    int groups, members, member; /* members is 1 for a whole layer */
    int first_leaf, end_leaf;    /* of a split layer's features */
    int samples, first_sample;   /* that it works on; the first one's place in the minibatch */
    int channels, pixels;        /* of the output, as far as it is here */
    int first_channel;
    size_t count; /* floats of a sample of the output */

    bool late; /* its weight gradient comes at the end */
    tutti_region region;
    const float *weight, *bias;
    float *gradient; /* [roots][region.count] */
    int root_count;
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    int first_grain, grain_count;
    int *grain_begin; /* [grain_count + 1], counted from first_sample */

    float *y, *dy;
    uint16_t *tap;                                                 /* max pooling */
    void *scratch[TUTTI_PASSES];                                   /* one for each pass */
    int y_lease, dy_lease, tap_lease, scratch_lease[TUTTI_PASSES]; /* -1 for none */

    tutti_layer_times times;
} tutti_unit;

typedef struct tutti_named_move {
    tutti_move move;
    char name[96];
} tutti_named_move;

struct tutti_model {
    const tutti_net *net;
    tutti_model_options options;
    int unit_count;
    tutti_unit *units;
    int samples, first_sample, first_grain, grain_count; /* of this worker */

    float *parameters, *gradients;
    size_t parameter_floats, gradient_floats;
    float *arena;
    size_t arena_bytes, separate_bytes;
    bool measure_only; /* plan, but take nothing */

    /* The input as some layers want it: without the space between images, in blocks. */
    float *tight, *blocked;
    int tight_lease, blocked_lease;

    int move_count;
    tutti_named_move *moves;

    float *losses;
    int32_t *ranks;
    double *grain_losses;
    tutti_nonfinite nonfinite;
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

static inline bool tutti_is_elementwise(const tutti_layer *layer)
{
    return layer->kind == TUTTI_KIND_RELU || layer->kind == TUTTI_KIND_DROPOUT ||
           layer->kind == TUTTI_KIND_SIGMOID || layer->kind == TUTTI_KIND_TANH;
}

/* Floats of a row a fully connected layer reads. */
static inline size_t tutti_layer_rows(const tutti_layer *layer)
{
    return layer->reads_compact ? tutti_shape_count(layer->in) : tutti_shape_floats(layer->in);
}

/* The samples a unit computes on in a pass: a group always does all of its own. */
static inline int tutti_unit_samples(const tutti_unit *unit, int n)
{
    return unit->members > 1 ? unit->samples : n;
}

/* After a forward pass whose loss is not finite, before anything of it is gone: sets the model's
 * nonfinite, unless an earlier step has. Not collective. */
void tutti_model_find_nonfinite(tutti_model *model, const tutti_pass *pass);

/* Notes that a pass of the unit took from 'begin' until now. */
void tutti_unit_computed(const tutti_model *model, tutti_unit *unit, tutti_layer_pass pass,
                         double begin);

/* Leaves the pass to the stand-in, if there is one. */
static inline bool tutti_unit_stand_in(const tutti_model *model, const tutti_unit *unit,
                                       tutti_layer_pass pass)
{
    const tutti_stand_in *stand_in = model->options.stand_in;
    if (stand_in) stand_in->compute(stand_in->user, (int)(unit - model->units), pass);
    return stand_in != NULL;
}

/* Gives every unit its leases of the arena; then their addresses, when the arena is there. */
tutti_status tutti_model_plan_memory(tutti_model *model) TUTTI_MUST_CHECK;

/* The three forms of the net's input. A convolution wants images without space between them, a
 * fully connected layer takes them as they come, all others want blocks. */
bool tutti_edge_wants_tight(const tutti_model *model, const tutti_unit *unit, int edge);
bool tutti_edge_wants_blocked(const tutti_model *model, const tutti_unit *unit, int edge);

tutti_dropout tutti_unit_dropout(const tutti_model *model, const tutti_unit *unit, uint32_t step);

/* The net's input in the form this edge wants; input number 'edge' of the unit in this pass. */
const float *tutti_input_form(const tutti_model *model, const tutti_unit *unit, int edge,
                              const tutti_pass *pass);
const float *tutti_unit_x(const tutti_model *model, const tutti_unit *unit, int edge,
                          const tutti_pass *pass);

/* What must happen before the first layer, the layers one by one, all of them. */
void tutti_prepare_input(tutti_model *model, const tutti_pass *pass);
tutti_status tutti_unit_forward(tutti_model *model, tutti_unit *unit,
                                const tutti_pass *pass) TUTTI_MUST_CHECK;
tutti_status tutti_backward(tutti_model *model, const tutti_pass *pass) TUTTI_MUST_CHECK;

#endif
