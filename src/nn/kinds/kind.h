/* A kind of layer is one record, in one file of this folder: the words and options of its text, its
 * shapes, parameters and cost, and the functions that run it. All that others must know of a kind
 * is in its record; nobody outside asks which kind a layer is. A new kind is its file and its name
 * in meson.build here, which makes the table of all kinds; an elementwise one also needs its kernel
 * in kernel/elementwise_tmpl.c and its line in kernel/ops_kernels.h.
 *
 * A kind's functions get a tutti_call and know no model, no moves between workers and no ranks. The
 * executor (forward.c, backward.c, memory.c, hop.c) does the rest: it brings inputs to where they
 * are read, adds the gradients of several readers, masks gradients by the ReLU below, runs a fused
 * activation, which is simply another kind, and decides from the record what is stored where. */
#ifndef TUTTI_NN_KINDS_KIND_H
#define TUTTI_NN_KINDS_KIND_H

#include "base/target.h"
#include "base/text.h"
#include "kernel/conv.h"
#include "kernel/exec.h"
#include "kernel/targets.h"
#include "nn/net.h"

/* One input of a layer in one pass. */
typedef struct tutti_input {
    const float *x;
    tutti_shape shape;   /* of what x holds here: all channels of an input that was assembled */
    const float *gate;   /* dx is 0 where gate <= 0: x, or y for a kind that gates by y; NULL: no */
    float *dx;           /* NULL: not wanted */
    float *const *roots; /* a split layer's partial sums, instead of dx; NULL: the layer is whole */
} tutti_input;

/* How a loss judges samples in training. */
typedef struct tutti_judging {
    int answer;            /* the target whose losses know ... */
    tutti_targets targets; /* ... these; but for labels. Of the worker's samples, the first is */
    int first_sample;      /* ... this one of the minibatch */
    double divisors[TUTTI_MOST_TARGETS]; /* of each target: the minibatch's loss is the sum of its
                                          * samples' divided by it */
} tutti_judging;

/* What a kind's functions get. Everything is borrowed and lasts as long as the call. */
typedef struct tutti_call {
    tutti_exec exec;
    const tutti_layer *layer;
    const void *options; /* the layer's, or the defaults of a fused activation */
    void *own;           /* from create */
    void *saved;         /* from forward to backward */
    void *scratch;
    tutti_extent out;                /* of y, as far as it is here */
    size_t count;                    /* its floats, all samples */
    int first_channel, first_sample; /* of y in the whole layer and in the minibatch */
    int batch;                       /* samples of the whole minibatch */
    int number;                      /* of the layer in the net */
    uint64_t seed;
    uint32_t step;
    bool training;
    bool relu;             /* apply one to y (fuses_gate) */
    const float *plus;     /* added to y before that (fuses_sum); NULL: nothing */
    const tutti_input *in; /* [layer->input_count] */
    float *y, *dy;
    const struct tutti_statistics *statistics; /* of a kind with groups, in training; NULL: the */
                                               /* layer is frozen and takes what it keeps */
    double *sums;                              /* pairs of all its roots (nn/statistics.h) */
    const float *const *param;                 /* [layer->param_count] in the order of complete */
    float *const *gradient;                    /* the same of one root, all of it to be written */
    const tutti_grains *grains;                /* whose gradient that is */
    const int32_t *labels;        /* of a loss of classes, one a sample or a pixel; NULL: none */
    const float *values;          /* of a loss of values, as x lies; NULL: none */
    const tutti_judging *judging; /* of a loss */
    float *losses;                /* one a sample, of the loss's target */
    int32_t *beaten_by;           /* classes that score above the label; of pixels those that are */
                                  /* wrong; one a sample */
    int32_t *counted;             /* pixels that count, one a sample */
} tutti_call;

/* What create gets. */
typedef struct tutti_setup {
    const tutti_kernels *row;
    const tutti_caches *caches;
    int samples; /* at most, in a pass */
    int threads;
} tutti_setup;

/* What the backward pass reads besides dy. */
enum {
    TUTTI_AGAIN_X_PARAMETERS = 1, /* x, for gradients by parameters */
    TUTTI_AGAIN_X_DATA = 2,       /* x, for the gradient by x */
    TUTTI_AGAIN_X_STATISTICS = 4, /* the same, unless the layer is frozen */
    TUTTI_AGAIN_Y = 8
};

struct tutti_kind {
    const char *word; /* in the text */
    const char *what; /* it is */

    /* ---- text ---- */

    tutti_key argument;    /* follows the word; no name: there is none */
    const char *wants;     /* what a complaint calls the argument: "a number of features" */
    const tutti_key *keys; /* into the options; NULL: none. All of them are part of a net's hash */
    size_t options_size;
    const void *defaults;  /* parsing starts from these */
    bool names_inputs;     /* two or more names follow the word */
    bool takes_activation; /* may end in one: "relu" */
    bool is_activation;    /* may be one, with default options; then it works in place, or beside */
                           /* the sum if it reads x again */

    /* ---- description ---- */

    /* Sets out, macs and form, completes the options and adds the parameters. 'layer' is the last
     * of the net, with its inputs. Failures are sentences that name the layer; the caller adds
     * where. */
    tutti_status (*complete)(tutti_net *net, tutti_layer *layer);
    /* What decides its time besides shapes, up to 31 characters without blanks; NULL: "1x1/1" */
    void (*work)(const tutti_layer *layer, char text[32]);
    const char
        *rate; /* "conv", "fc": whose fraction of the peak it reaches; NULL: memory's speed */
    /* Samples that it normalises together, 0: all of the minibatch (nn/statistics.h); and the same
     * to be changed. NULL: it takes sample by sample. */
    int (*group)(const tutti_layer *layer);
    void (*regroup)(tutti_layer *layer, int samples);
    void (*still)(tutti_layer *layer); /* takes noise out of training; NULL: it has none */
    /* Takes this algorithm (tutti_conv_algorithm) where its text names none and one of Winograd's
     * pays. NULL: it convolves nothing. */
    void (*convolve)(tutti_layer *layer, int algorithm);
    /* Can its kernels round what they multiply to bf16 (nn/precision.c)? NULL: it multiplies
     * nothing by weights. */
    bool (*may_round)(const tutti_layer *layer);
    tutti_init init; /* of an activation: what suits the weights before it */
    bool is_loss;
    tutti_target_form aims; /* of a loss: what it compares its input with */

    /* ---- how it may be run ---- */

    bool in_place;   /* y may overwrite x, dx may overwrite dy */
    bool keeps_sign; /* y > 0 exactly where x > 0, or no gradient flows there */
    bool follows;    /* feature by feature: it works where its input's features are */
    bool splits;     /* by output features: reads all inputs, leaves roots of dx (nn/hop.h) */
    bool is_gate;    /* ReLU: leaves its derivative to the readers of y, who mask by y > 0 */
    bool fuses_gate; /* applies a ReLU after it in its own pass */
    bool fuses_sum;  /* adds another layer's output in its own pass */
    bool is_sum; /* y is the sum of its inputs, which a kind that fuses sums may do for it; dx is
                      * dy, and may be the same memory, but where a gate masks it */
    bool takes_gate; /* masks dx by in.gate itself; else the executor does, in an extra pass */
    bool gates_by_y; /* ... and by y, not x: y is one of the x where a gradient flows */
    unsigned again;  /* TUTTI_AGAIN_ */

    /* ---- running; NULL: nothing to do ---- */

    tutti_status (*create)(void **own, const tutti_layer *layer, const tutti_setup *setup);
    void (*destroy)(void *own);
    size_t (*scratch)(const void *own, int samples);        /* bytes, of each pass */
    size_t (*saved)(const tutti_layer *layer, int samples); /* bytes, from forward to backward */
    /* Of a kind with groups: in training, before the forward pass and before the backward ones, the
     * roots that this worker measures. The executor brings those of other workers. Any kind may
     * have measure_back: what both backward passes need, whichever comes first. */
    void (*measure)(const tutti_call *call);
    void (*measure_back)(const tutti_call *call);
    void (*forward)(const tutti_call *call); /* may be repeated: same inputs, same outputs */
    void (*backward_parameters)(const tutti_call *call); /* once for each root */
    void (*backward_data)(const tutti_call *call);       /* every in.dx that is wanted */
};

/* All kinds, as meson.build lists them; ends with NULL. */
extern const tutti_kind *const tutti_kinds[];

/* ---- for complete ---- */

/* out = in */
tutti_status tutti_complete_same(tutti_net *net, tutti_layer *layer) TUTTI_MUST_CHECK;

/* Appends a parameter LAYER.suffix to the last layer, with the role, dims, layout, fill and decays
 * of 'like'. Roles come in their order: trained, averaged, kept. */
tutti_status tutti_layer_add_param(tutti_net *net, const char *suffix,
                                   const tutti_param *like) TUTTI_MUST_CHECK;

/* "input", or the name of the layer that is input number 'input'. */
const char *tutti_layer_input_name(const tutti_net *net, const tutti_layer *layer, int input);

/* Does the layer read images as the data gives them: [h][w][c], fewer than 16 channels? */
bool tutti_layer_reads_compact(const tutti_net *net, const tutti_layer *layer);

#endif
