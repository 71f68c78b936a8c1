/* The inside of a model: one unit per layer. Shared by model.c (making one), memory.c (where
 * everything is stored), place.c (who computes what), forward.c and backward.c (running it),
 * tensor.c (its parameters). */
#ifndef TUTTI_NN_UNIT_H
#define TUTTI_NN_UNIT_H

#include "kernel/fc.h"
#include "nn/hop.h"
#include "nn/kinds/kind.h"
#include "nn/model.h"
#include "nn/partials.h"
#include "nn/passes.h"

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

/* Grains next to each other that a unit takes in one pass. */
typedef struct tutti_grain_run {
    int first_grain, end_grain;
    int first_sample, samples; /* of the minibatch */
    int at;                    /* the first one's place among those that the unit has memory for */
} tutti_grain_run;

typedef struct tutti_unit {
    const tutti_layer *layer;
    void *own;         /* of its kind */
    tutti_edge *edges; /* [layer->input_count] */
    tutti_input *in;   /* likewise */

    int groups, members, member; /* members is 1 for a whole layer */
    int first_leaf, end_leaf;    /* of a split layer's features */
    int samples;                 /* that it has memory for: of a pass, at most */
    int run_count;               /* 1, or in a split layer of several passes one a member */
    const int **run_cuts;        /* [run_count][passes + 1] their grains */
    int *run_at;                 /* [run_count + 1] where each has its samples */
    int all_cuts[2];             /* grains of the group, in one pass */
    int channels, pixels;        /* of the output, as far as it is here */
    int first_channel;
    size_t count; /* floats of a sample of the output */

    bool late; /* its weight gradient comes at the end */

    int does_sum;      /* the sum that it does in its own pass; -1: none (fuse.c) */
    int sum_done_by;   /* of a sum: who does it; -1: it does it itself */
    int plus_from;     /* of who does one: the other layer it adds */
    const float *plus; /* and what that gave */
    tutti_region region;
    const float **param; /* [layer->param_count] */
    float *gradient;     /* [slots][region.trained] */
    tutti_partials partials;
    float *spare;     /* for a partial gradient that is added at once; NULL with one pass */
    float **to;       /* [layer->param_count] room for pointers into one */
    int *grain_begin; /* room for where the grains of a run begin */

    tutti_statistics **statistics;   /* [passes] of a kind with groups, in training; else NULL; */
                                     /* NULL for a pass that is empty */
    int pass_count, slot_count;      /* of the statistics, and of slots of any of them */
    double *sums[2];                 /* their pairs, forward and backward */
    int sums_lease[2], sums_move[2]; /* -1 for none */
    size_t *sums_cuts;               /* [members + 1] of the moves, in floats */

    float *y, *dy;
    float *sum;  /* what its activation reads again in the backward pass; NULL: y has it all */
    void *saved; /* of its kind */
    void *scratch[TUTTI_PASSES]; /* one for each way through it */
    int y_lease, sum_lease, dy_lease, saved_lease, spare_lease;
    int scratch_lease[TUTTI_PASSES]; /* -1 for none */

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
    tutti_sharing sharing;
    tutti_passes passes;
    int samples, first_sample, first_grain, grain_count; /* of this worker */
    int most;                                            /* samples, in a pass */

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

    tutti_judging judging;
    tutti_goals goals;
    float *losses; /* [targets][samples], like the two below */
    int32_t *beaten_by, *counted;
    double *grain_losses; /* [targets][grain_count] */
    tutti_nonfinite nonfinite;
};

/* One pass over the net. */
typedef struct tutti_pass {
    int n; /* samples */
    bool training;
    uint32_t step;
    const float *samples;
    const int32_t *labels; /* like the model's goals, of all samples */
    int number;            /* among the passes of a step */
    int first_sample;      /* in the minibatch; in an evaluation the worker's first */
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

/* ---- verdicts.c ---- */

tutti_status tutti_verdicts_init(tutti_model *model) TUTTI_MUST_CHECK;

/* After a forward pass of training over grains cuts[0] .. cuts[1]-1. Are all losses finite? */
bool tutti_verdicts_sum(tutti_model *model, const int cuts[2]);

/* ---- place.c ---- */

/* Divides the minibatch. */
tutti_status tutti_model_share(tutti_model *model) TUTTI_MUST_CHECK;

/* Decides which samples and features of its layer a unit computes. */
tutti_status tutti_unit_place(const tutti_model *model, tutti_unit *unit) TUTTI_MUST_CHECK;
void tutti_unit_displace(tutti_unit *unit); /* frees what that took */

/* Where each of 'members' workers, from 'first' on, has its samples among theirs: at [members + 1].
 * There is room for the largest pass of each. */
void tutti_model_places(const tutti_model *model, int first, int members, int *at);

/* Run number 'run' of the unit in a pass of training. */
tutti_grain_run tutti_unit_run(const tutti_model *model, const tutti_unit *unit,
                               const tutti_pass *pass, int run);

/* Nothing to compute here: its samples of this pass are none, or a stand-in takes care. */
bool tutti_unit_rests(const tutti_model *model, const tutti_unit *unit, const tutti_pass *pass);

/* Leaves its way through the unit to the stand-in, if there is one. Is there nothing to compute
 * then? */
bool tutti_unit_stand_in(const tutti_model *model, const tutti_unit *unit, const tutti_pass *pass,
                         tutti_layer_pass which);

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

/* ---- fuse.c ---- */

/* Finds sums that another unit does in its own pass. */
void tutti_model_fuse(tutti_model *model);

/* ---- memory.c ---- */

/* How many times the output of a layer is read. */
int tutti_unit_consumers(const tutti_model *model, int from);

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

/* Calls one of the kind's functions, forward or backward_data. */
void tutti_unit_apply(const tutti_model *model, const tutti_unit *unit, const tutti_pass *pass,
                      const tutti_call *call, void (*way)(const tutti_call *));

/* What must happen before the first layer, the layers one by one, all of them. */
void tutti_prepare_input(tutti_model *model, const tutti_pass *pass);
tutti_status tutti_unit_forward(tutti_model *model, tutti_unit *unit,
                                const tutti_pass *pass) TUTTI_MUST_CHECK;
tutti_status tutti_backward(tutti_model *model, const tutti_pass *pass) TUTTI_MUST_CHECK;

#endif
