/* A model: a net with its parameters and the memory to run it, on one worker's share of the
 * minibatch. It computes; when something is ready or needed, it calls the functions it was given
 * and knows nothing of what they do.
 *
 * Samples. The global minibatch of 'batch' samples is cut into 'grains' grains; grain g begins at
 * sample tutti_share_begin(batch, grains, g). Worker w of W owns the grains from
 * tutti_share_begin(grains, W, w) on, and computes on their samples. The gradient of a layer is a
 * sum over grains in the order of base/tree.h; a worker has one partial gradient per root of its
 * run of grains (tutti_model_roots): one when W and grains are powers of two. It may compute them
 * in several passes, each with its own forward and backward (nn/passes.h): hooks hear of gradients
 * and released weights in the last one.
 *
 * Parameters are in one flat buffer, layer after layer as in nn/net.h; each layer's region is
 * contiguous, a multiple of 16 floats; padding is zero and stays zero (its gradient is zero). The
 * gradients have the same layout.
 *
 * Split layers. A fully connected layer may be split over groups of workers: W workers make
 * 'groups' groups of M = W/groups consecutive workers; a group works on the samples of all its
 * members, and member m holds only the output features of the leaves from
 * tutti_share_begin(leaves, M, m) on, leaves being whole blocks of TUTTI_FC_LEAF features.
 * groups == W (or 0) is a whole layer on the worker's own samples; groups == 1 splits features over
 * everybody. Elementwise layers (relu, sigmoid, tanh, dropout) after a split layer work on its
 * features where they are. The model's flat buffer then holds only the member's features of that
 * layer, and its roots are those of the group's grains, to be reduced among the members at the same
 * place in every group. Between layers that are placed differently data must move: a tutti_move
 * describes it, the model provides its buffers, and hooks.move carries it out. */
#ifndef TUTTI_NN_MODEL_H
#define TUTTI_NN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "base/tree.h"
#include "kernel/conv.h"
#include "kernel/table.h"
#include "nn/net.h"

typedef struct tutti_model tutti_model;

typedef enum tutti_layer_pass {
    TUTTI_PASS_FORWARD,
    TUTTI_PASS_WEIGHTS,
    TUTTI_PASS_DATA,
    TUTTI_PASSES
} tutti_layer_pass;

/* Called from the thread that runs the model. A failure ends the pass, which returns it. Any of
 * them may be NULL. */
typedef tutti_status tutti_layer_hook(void *user, int layer);
typedef struct tutti_model_hooks {
    void *user;
    tutti_layer_hook *before_forward;   /* about to read the layer's parameters */
    tutti_layer_hook *gradient_ready;   /* its gradient is complete */
    tutti_layer_hook *weights_released; /* its parameters will not be read again in this pass */
    tutti_layer_hook *move;             /* carry out move number 'layer'; return when it is done */
    tutti_layer_hook *start_move;       /* the move will be asked for soon: begin it if you can */
    /* what the minibatch's loss of each target is divided by, before the backward pass; NULL: its
     * samples, of classes of pixels all its pixels */
    tutti_status (*divide)(void *user, double divisors[TUTTI_MOST_TARGETS]);
    /* a layer was computed, without moves and other hooks; by the clock of base/clock.h */
    void (*computed)(void *user, int layer, tutti_layer_pass pass, double begin, double end);
} tutti_model_hooks;

/* Stands in for the arithmetic in a simulator: the model goes through the same layers, hooks and
 * moves in the same order, but makes no kernels and leaves what it would compute to these. */
typedef struct tutti_stand_in {
    void *user;
    /* 'part' of the step's samples: 1 where it has one pass */
    void (*compute)(void *user, int layer, tutti_layer_pass pass, double part);
    void (*copy)(void *user, size_t floats); /* before or after a move */
    /* SGD on that many parameters, by all threads or by the communication thread */
    void (*update)(void *user, size_t floats, bool by_comm_thread);
} tutti_stand_in;

typedef struct tutti_model_options {
    const tutti_kernels *row; /* borrowed, like everything here */
    tutti_team *team;         /* NULL is the caller alone */
    tutti_caches caches;
    int batch, grains;          /* of the global minibatch */
    int workers, worker;        /* this one's place; 1 and 0 for all of it */
    int micro_batch;            /* samples of a worker in a pass, at most; 0: all (nn/passes.h) */
    bool forward_only;          /* no gradients, and much less memory */
    uint64_t seed;              /* of dropout */
    double smoothing;           /* of labels, in training: kernel/targets.h */
    const float *class_weights; /* likewise; NULL: all 1. Then hooks.divide gives their sum */
    const int *groups;          /* for each layer, 0 for a whole one; NULL when no layer is split */
    int late; /* this many first layers, if whole, compute their weight gradients after all */
              /* gradients by inputs, the first layer's first: see plan/slack.h */
    float *parameters, *gradients; /* zeroed memory for them, which outlives the model; NULL: it */
                                   /* takes its own */
    tutti_model_hooks hooks;
    const tutti_stand_in *stand_in; /* NULL computes */
} tutti_model_options;

/* The largest power of two that leaves at least 4 samples per grain; 1 for a smaller batch. Where a
 * layer rounds to bf16 it is samples of up to 32, as long as 8 grains remain: gradients by weights
 * of fully connected layers then add in blocks of 32 samples, and a grain ends a block. */
int tutti_default_grains(const tutti_net *net, int batch);

/* Does every worker get a grain? Else TUTTI_ARGUMENT, with what would do. */
tutti_status tutti_grains_suffice(int workers, int grains, int batch) TUTTI_MUST_CHECK;

/* Options for a whole minibatch of the net on this machine: kernels, caches and grains are chosen,
 * all else is zero. */
tutti_status tutti_model_defaults(tutti_model_options *out, const tutti_net *net,
                                  int batch) TUTTI_MUST_CHECK;

/* 'net' is borrowed. All memory is taken here; the passes take none. Parameters are zero. */
tutti_status tutti_model_create(tutti_model **out, const tutti_net *net,
                                const tutti_model_options *options) TUTTI_MUST_CHECK;
void tutti_model_destroy(tutti_model **model);

/* Bytes such a model takes, without taking them. */
typedef struct tutti_model_bytes {
    size_t parameters, gradients; /* gradients: all roots, and those kept between passes */
    size_t followed;              /* of the parameters, those that follow gradients */
    size_t arena;                 /* activations, their gradients, kernels' scratch: reused */
    size_t separate;              /* what the arena would be if nothing were reused */
    int samples, passes;          /* of this worker */
} tutti_model_bytes;
tutti_status tutti_model_measure(tutti_model_bytes *bytes, const tutti_net *net,
                                 const tutti_model_options *options) TUTTI_MUST_CHECK;

const tutti_net *tutti_model_net(const tutti_model *model);

/* This worker's samples of the minibatch: the place of the first, and how many. */
int tutti_model_first_sample(const tutti_model *model);
int tutti_model_samples(const tutti_model *model);

/* It takes them in so many passes, of that many samples at most (nn/passes.h). */
int tutti_model_passes(const tutti_model *model);
int tutti_model_most_samples(const tutti_model *model);

/* ---- parameters ---- */

float *tutti_model_parameters(tutti_model *model); /* the flat buffer */
size_t tutti_model_parameter_floats(const tutti_model *model);

/* A layer's region of the flat buffer; count 0 for a layer without parameters. */
typedef struct tutti_region {
    size_t offset, count; /* floats, of all parameters */
    size_t trained;       /* of these the first, which follow gradients: all but the kept ones */
} tutti_region;
tutti_region tutti_model_region(const tutti_model *model, int layer);

/* Rows of torch's tensor, which are output features. */
typedef struct tutti_rows {
    int first, end;
} tutti_rows;

/* What a model holds of a parameter: all of it, or of a split layer some rows. */
typedef struct tutti_slice {
    size_t offset, count; /* floats of the flat buffer */
    size_t whole_at;      /* where these floats begin in the region of the whole layer */
    tutti_rows rows;
} tutti_slice;
tutti_slice tutti_model_slice(const tutti_model *model, int param);

/* The tree of the layer's gradient and this worker's part of it: roots in tree order, one partial
 * gradient of region.trained floats each. */
int tutti_model_roots(const tutti_model *model, int layer,
                      tutti_subtree roots[TUTTI_TREE_MAX_ROOTS]);
float *tutti_model_gradient(tutti_model *model, int layer, int root);

/* Initial parameters: each depends only on the seed, the layer and its place in torch's tensor. The
 * net's own init= comes first, then 'init' (TUTTI_INIT_AUTO to choose by layer); 'std' is for
 * Gaussian, 0 means 0.01. */
void tutti_model_init(tutti_model *model, uint64_t seed, tutti_init init, float std);

/* To and from torch's layout (the dims of tutti_param). The tensor is the whole one, 'count'
 * floats; a model that holds only some features reads or writes only those. 'flat' is a buffer
 * laid out like the parameters: the model's own, a momentum, a gradient. */
void tutti_model_import(const tutti_model *model, int param, const float *torch, float *flat);
void tutti_model_export(const tutti_model *model, int param, const float *flat, float *torch);

/* The same for some rows only ('torch' points at row 'first'), and of them only what is among
 * floats begin .. end-1 of the flat buffer ('strip' points at float 'begin'). 'first' begins a
 * block of 16 of the model's own rows; 'end' begins another, or ends what the model holds. */
void tutti_model_import_rows(const tutti_model *model, int param, tutti_rows rows,
                             const float *torch, size_t begin, size_t end, float *strip);
void tutti_model_export_rows(const tutti_model *model, int param, tutti_rows rows, size_t begin,
                             size_t end, const float *strip, float *torch);

/* ---- running ---- */

/* Before tutti_model_train, as long as it runs: labels of what this worker's samples were mixed
 * with, and the part of their own in them. NULL: they are not mixed. */
void tutti_model_mix(tutti_model *model, const int32_t *others, const float *shares);

/* What this worker's samples are compared with where that is more than one label: base/target.h. */
typedef struct tutti_goals {
    const void *of[TUTTI_MOST_TARGETS]; /* each target's; NULL: labels of classes, or none */
} tutti_goals;

/* Before tutti_model_train and tutti_model_evaluate, as long as they run; NULL: no more. */
void tutti_model_aim(tutti_model *model, const tutti_goals *goals);

/* Forward, loss and backward of one step on this worker's samples. Samples are
 * tutti_net_input_floats apart; images of fewer than 16 channels are [h][w][c], all others
 * blocked; labels are in 0 .. classes-1. The gradient is that of the mean loss over the global
 * minibatch. */
tutti_status tutti_model_train(tutti_model *model, uint32_t step, const float *samples,
                               const int32_t *labels) TUTTI_MUST_CHECK;

/* Forward only, without dropout, on n <= tutti_model_most_samples() samples; labels may be NULL.
 * With split layers all members of a group must call it equally often; n may differ, and may be
 * 0. */
tutti_status tutti_model_evaluate(tutti_model *model, int n, const float *samples,
                                  const int32_t *labels) TUTTI_MUST_CHECK;

/* What the last evaluation or step found, sample by sample: probabilities in rows of classes
 * rounded up to 16 (of a step only those of its last pass), losses, and how many classes scored
 * above the label (0: top-1 hit). The last two only with labels. */
const float *tutti_model_probabilities(const tutti_model *model);
const float *tutti_model_losses(const tutti_model *model);
const int32_t *tutti_model_beaten_by(const tutti_model *model);

/* The same of any target; those above are of the net's answer. Of pixels beaten_by says how many
 * are wrong of those 'counted'. */
typedef struct tutti_judgement {
    const float *answers; /* of the loss that judges, as it lies: probabilities, values */
    const float *losses;
    const int32_t *beaten_by, *counted;
} tutti_judgement;
tutti_judgement tutti_model_verdict(const tutti_model *model, int target);

/* The sum of the losses of each of this worker's grains, after tutti_model_train: leaves of the
 * tree over all grains, from *first on. Returns how many. */
int tutti_model_grain_losses(const tutti_model *model, int target, int *first,
                             const double **losses);

/* Where a loss that is not a finite number came from: the first thing in the order of the net that
 * is not finite. */
typedef enum tutti_nonfinite_kind {
    TUTTI_NONFINITE_NOTHING,
    TUTTI_NONFINITE_SAMPLE,     /* of the minibatch: the data */
    TUTTI_NONFINITE_PARAMETERS, /* of a layer: steps before were too large */
    TUTTI_NONFINITE_OUTPUT,     /* of a layer with finite parameters */
    TUTTI_NONFINITE_LOSS        /* nothing but the loss itself */
} tutti_nonfinite_kind;

typedef struct tutti_nonfinite {
    tutti_nonfinite_kind kind;
    int layer;  /* of the net; -1 for a sample or the loss */
    int sample; /* in the global minibatch; -1 where it is not known */
} tutti_nonfinite;

/* What was not finite in the first step whose loss on this worker was not; kind NOTHING: no such
 * step yet. */
tutti_nonfinite tutti_model_nonfinite(const tutti_model *model);

/* Seconds spent on training since the last reset, by layer. 'move' is time in hooks.move. */
typedef struct tutti_layer_times {
    double forward, backward_weights, backward_data, move;
} tutti_layer_times;
tutti_layer_times tutti_model_times(const tutti_model *model, int layer);
void tutti_model_reset_times(tutti_model *model);

/* ---- moves between layers that are placed differently ---- */

typedef enum tutti_move_kind {
    /* part-broadcast inside the group: every member has its strip of 'whole' */
    TUTTI_MOVE_BROADCAST,
    /* part-reduce inside the group: partial sums, one per root of the member's run of 'leaves';
     * the member's strip of the total ends up in partials[0] */
    TUTTI_MOVE_REDUCE,
    /* all-to-all inside the group */
    TUTTI_MOVE_ALLTOALL
} tutti_move_kind;

/* One move, always with the same buffers. 'cuts' have members + 1 entries, in floats. All of it
 * belongs to the model. */
typedef struct tutti_move {
    const char *name; /* "fc6 gather" */
    int layer;        /* the layer that needs it */
    bool backward;
    tutti_move_kind kind;
    int groups, members;
    float *whole; /* part-broadcast */
    int leaves;   /* part-reduce: over blocks of TUTTI_FC_LEAF features */
    int partial_count;
    float *const *partials;
    const size_t *cuts; /* of both: member m owns cuts[m] .. cuts[m+1]-1 */
    const float *send;  /* all-to-all */
    const size_t *send_cuts;
    float *receive;
    const size_t *receive_cuts;
} tutti_move;

int tutti_model_move_count(const tutti_model *model);
const tutti_move *tutti_model_move(const tutti_model *model, int index);

#endif
