/* The inside of a model: one unit per layer. Shared by model.c (making one), memory.c (where
 * everything is placed), forward.c and backward.c (running it), tensor.c (its parameters). */
#ifndef TUTTI_NN_UNIT_H
#define TUTTI_NN_UNIT_H

#include "kernel/fc.h"
#include "nn/hop.h"
#include "nn/kinds/kind.h"
#include "nn/model.h"
#include "nn/statistics.h"

/* How one input gets to a unit, and the gradient by it back; what the unit's kind sees of it is the
 * tutti_input of the same number. */
typedef struct tutti_edge {
    int from;        /* the layer, or TUTTI_NET_INPUT */
    bool wants_dx;   /* there is something to train below */
    bool adds;       /* others have written to that gradient before: add to it */
    float *dx_below; /* where the gradient must go: its place, or a spare one if it adds */
    int dx_lease;    /* of dx_below; -1 for none */
    int hop_count;   /* between the two, when the layers are placed differently */
    tutti_hop hops[TUTTI_MAX_HOPS];
} tutti_edge;

typedef struct tutti_unit {
    const tutti_layer *layer;
    void *own;         /* of its kind */
    tutti_edge *edges; /* [layer->input_count] */
    tutti_input *in;   /* likewise */

    int groups, members, member; /* members is 1 for a whole layer */
    int first_leaf, end_leaf;    /* of a split layer's features */
    int samples, first_sample;   /* that it works on; the first one's place in the minibatch */
    int channels, pixels;        /* of the output, as far as it is here */
    int first_channel;
    size_t count; /* floats of a sample of the output */

    bool late; /* its weight gradient comes at the end */
    tutti_region region;
    const float **param; /* [layer->param_count] */
    float *gradient;     /* [roots][region.trained] */
    float **gradients;   /* [roots][layer->param_count] */
    int root_count;
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    int first_grain, grain_count;
    int *grain_begin; /* [grain_count + 1], counted from first_sample */

    tutti_statistics *statistics;    /* of a kind with groups, in training; else NULL */
    double *sums[2];                 /* their pairs, forward and backward */
    int sums_lease[2], sums_move[2]; /* -1 for none */
    size_t *sums_cuts;               /* [members + 1] of the moves, in floats */

    float *y, *dy;
    float *sum;  /* what its activation reads again in the backward pass; NULL: y has it all */
    void *saved; /* of its kind */
    void *scratch[TUTTI_PASSES]; /* one for each pass */
    int y_lease, sum_lease, dy_lease, saved_lease, scratch_lease[TUTTI_PASSES]; /* -1 for none */

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

    /* The input in the forms that some layers want: without space between images, in blocks. */
    float *tight, *blocked;
    int tight_lease, blocked_lease;

    int move_count;
    tutti_named_move *moves;

    float *losses;
    int32_t *beaten_by;
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

/* Does its output end in a gate, whose derivative the readers apply? */
static inline bool tutti_ends_in_gate(const tutti_layer *layer)
{
    return (layer->activation ? layer->activation : layer->kind)->is_gate;
}

/* How many samples a unit computes on in a pass: a group always does all of its own. */
static inline int tutti_unit_samples(const tutti_unit *unit, int n)
{
    return unit->members > 1 ? unit->samples : n;
}

/* After a forward pass whose loss is not finite, while all of it is still there: sets the model's
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

/* ---- measure.c ---- */

/* What a unit whose kind has groups needs; nothing for any other. The sums take that many bytes,
 * forward and backward. */
tutti_status tutti_measures_init(const tutti_model *model, tutti_unit *unit) TUTTI_MUST_CHECK;
void tutti_measures_deinit(tutti_unit *unit);
size_t tutti_measures_bytes(const tutti_unit *unit);
void tutti_measures_describe(tutti_model *model, tutti_unit *unit); /* its moves */

/* Before the forward pass of a training step: all sums are there when it returns. Backward: before
 * gradients by parameters; if they move, then the sums are there when they have arrived. */
tutti_status tutti_measure_forward(tutti_model *model, tutti_unit *unit,
                                   const tutti_pass *pass) TUTTI_MUST_CHECK;
tutti_status tutti_measure_back(tutti_model *model, tutti_unit *unit, const tutti_pass *pass,
                                bool moves) TUTTI_MUST_CHECK;
tutti_status tutti_measure_arrive(tutti_model *model, tutti_unit *unit) TUTTI_MUST_CHECK;

/* ---- memory.c ---- */

/* Gives every unit its leases of the arena; later their addresses, when the arena exists. */
tutti_status tutti_model_plan_memory(tutti_model *model) TUTTI_MUST_CHECK;

/* Which copies of the net's input its readers want, besides the input itself (nn/net.h). */
bool tutti_unit_wants_tight(const tutti_model *model, const tutti_unit *unit);
bool tutti_unit_wants_blocked(const tutti_model *model, const tutti_unit *unit);

/* The net's input in the form this unit wants. */
const float *tutti_input_form(const tutti_model *model, const tutti_unit *unit,
                              const tutti_pass *pass);

/* What the unit's kind gets in this pass; its inputs are in place. */
tutti_call tutti_unit_call(const tutti_model *model, tutti_unit *unit, const tutti_pass *pass,
                           tutti_layer_pass which);

/* The same for the activation after its sum: on its output, in place unless the unit keeps the sum.
 * 'in' is room for its input. */
tutti_call tutti_activation_call(const tutti_unit *unit, const tutti_call *call, tutti_input *in);

/* What must happen before the first layer, the layers one by one, all of them. */
void tutti_prepare_input(tutti_model *model, const tutti_pass *pass);
tutti_status tutti_unit_forward(tutti_model *model, tutti_unit *unit,
                                const tutti_pass *pass) TUTTI_MUST_CHECK;
tutti_status tutti_backward(tutti_model *model, const tutti_pass *pass) TUTTI_MUST_CHECK;

#endif
