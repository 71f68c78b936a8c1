/* A net as a pure description: what each layer is, what goes in and comes out, which parameters
 * it has and where they are. Nothing here computes or allocates activations; the executor is
 * nn/model.h. The planner reads these structures, too. */
#ifndef TUTTI_NN_NET_H
#define TUTTI_NN_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tutti/loss.h>
#include <tutti/net.h>
#include "base/hash.h"
#include "base/status.h"
#include "base/target.h"
#include "kernel/layout.h"
#include "kernel/precision.h"
#include "nn/optimizers/optimizer.h"

typedef struct tutti_kind tutti_kind; /* nn/kinds/kind.h: what a kind of layer is */

enum {
    TUTTI_NET_INPUT = -1, /* in 'from': not a layer, the sample itself */
    TUTTI_MAX_LAYERS = 4096,
};

/* ---- parameters ---- */

typedef enum tutti_init {
    TUTTI_INIT_AUTO,     /* what suits the activation after the layer's sum */
    TUTTI_INIT_HE,       /* normal, variance 2 / fan_in */
    TUTTI_INIT_XAVIER,   /* uniform, variance 2 / (fan_in + fan_out) */
    TUTTI_INIT_GAUSSIAN, /* normal, a given deviation */
    TUTTI_INIT_CONSTANT
} tutti_init;

/* Words for the first four, in this order, then NULL: for texts and options. */
extern const char *const tutti_init_words[];

/* How a parameter is initialised. */
typedef struct tutti_fill {
    tutti_init init;
    float value; /* of a constant; the deviation of a Gaussian, 0: as asked, else 0.01 */
} tutti_fill;

typedef enum tutti_role {
    TUTTI_TRAINED,  /* has a gradient and what the optimizer keeps */
    TUTTI_AVERAGED, /* has a gradient's place, too, whose contents it follows as an average does:
                     * keep * w + add * g; optimizer, clipping and decay do not see it */
    TUTTI_KEPT      /* stored, nothing else */
} tutti_role;

/* A parameter tensor: what others call it, and where its floats are in the flat buffer of all
 * parameters. There every layer's region has its trained parameters, then those averaged, then
 * those kept, in the order in which its kind names them, each rounded up to 16 floats; filling is
 * zero. */
typedef struct tutti_param {
    char *name; /* torch's: "conv1.weight" */
    int layer;
    int dim_count, dims[4];    /* torch's; dims[0] are the rows, output features; 1 of a scalar */
    tutti_weight_shape layout; /* layout.k is dims[0] */
    tutti_role role;
    tutti_fill fill;
    bool decays;     /* false: left out of weight decay by --decay-all off */
    bool frozen;     /* it is kept because its layer is frozen, else it would be trained */
    double lr_scale; /* of the learning rate; 1 */
    float keep, add; /* of one that is averaged */
    bool counts;     /* it is a whole number, for others an int64 */
    size_t count;    /* product of dims */
    size_t offset;   /* first float in the flat buffer */
    size_t stored;   /* floats there, with filling */
} tutti_param;

/* ---- layers ---- */

/* How a layer wants the net's input, where it reads that. */
typedef enum tutti_form {
    TUTTI_FORM_BLOCKED, /* [c/16][h][w][16], like every other activation */
    TUTTI_FORM_COMPACT, /* [h][w][c], image after image */
    TUTTI_FORM_AS_READ  /* as the data gives it */
} tutti_form;

typedef struct tutti_layer {
    char *name;
    const tutti_kind *kind;
    const tutti_kind *activation; /* a kind, applied to the layer's own output; NULL: none */
    void *options;                /* of its kind, complete */
    char *said;                   /* argument and options as written: " 64 kernel=3 relu" */
    int input_count;
    int *from;           /* [input_count] earlier layers, or TUTTI_NET_INPUT */
    tutti_shape in, out; /* of the first input; an fc sees its input flattened */
    tutti_form form;
    int first_param, param_count;
    bool frozen;       /* its parameters stay as they are, running statistics, too */
    double lr_scale;   /* of the learning rate; 1 */
    int target;        /* of a loss: which of the net's */
    bool adds_loss;    /* a loss after another one of its target: it adds to what that found */
    bool only_trains;  /* leads to auxiliary losses alone: evaluations do without it */
    bool trains_below; /* something below has trained parameters: backward-data is needed */
    uint64_t macs;
    bool is_end;               /* it multiplies the net's input, or makes what a loss reads */
    tutti_precision precision; /* in which it is to multiply; see tutti_layer_rounds */
    double effort;             /* the part of the macs that kernels really make; 0: all */
    int line, column;          /* where in the text */
    int used_line;             /* the line that uses the block it is in; 0: it is in none */
} tutti_layer;

typedef struct tutti_net_setting {
    char *key, *value, *where;
} tutti_net_setting;

struct tutti_net {
    char *name, *text; /* the text as it was read */
    tutti_shape input;
    int layer_count, param_count, setting_count;
    int layer_room, param_room, setting_room; /* of the arrays */
    tutti_layer *layers;         /* in the text's order: inputs come first; the last is a loss, */
                                 /* others of its target are auxiliary, for training */
    tutti_param *params;         /* layer by layer, in the order of the flat buffer */
    tutti_net_setting *settings; /* "default" lines */
    size_t param_floats;         /* of the flat buffer */
    int target_count;
    tutti_target targets[TUTTI_MOST_TARGETS];
    char answers[96];               /* the answer's, in words */
    int judges[TUTTI_MOST_TARGETS]; /* of each target: the last layer that is a loss of it */
};

/* What the net suggests with lines "default KEY VALUE", and the usual values for the rest. */
typedef struct tutti_suggested {
    int batch;
    double epochs, lr, weight_decay, clip, label_smoothing, ema;
    bool decay_all;
    tutti_precision precision;
    tutti_chosen_optimizer optimizer;
    char lr_schedule[64], warmup[32]; /* as written */
} tutti_suggested;

/* TUTTI_PARSE with file:line:column for a key or a value that does not fit. */
tutti_status tutti_net_suggested(tutti_suggested *out, const tutti_net *net) TUTTI_MUST_CHECK;

/* Is the input an image of fewer than 16 channels, given as [n][h][w][c]? All other inputs are
 * [n][c/16][h][w][16], vectors thus [n][c rounded up to 16]. */
bool tutti_net_input_is_compact(const tutti_net *net);

/* Floats from one sample of the input to the next: images are rounded up to 16, too. */
size_t tutti_net_input_floats(const tutti_net *net);

/* The number of values of a shape, and of its floats in the blocked layout. */
static inline size_t tutti_shape_count(tutti_shape s)
{
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

static inline size_t tutti_shape_floats(tutti_shape s)
{
    const size_t blocks = ((size_t)s.c + TUTTI_BLOCK - 1) / TUTTI_BLOCK;
    return blocks * TUTTI_BLOCK * (size_t)s.h * (size_t)s.w;
}

/* The shape of input number 'input' of the layer. */
tutti_shape tutti_layer_input_shape(const tutti_net *net, const tutti_layer *layer, int input);

/* A layer's floats in the flat buffer: all its parameters, contiguous. 0 if it has none. */
size_t tutti_layer_offset(const tutti_net *net, int layer);
size_t tutti_layer_floats(const tutti_net *net, int layer);
size_t tutti_layer_trained(const tutti_net *net, int layer); /* of these the first, trained */

/* Does it have parameters that are trained? Or would be, if it were not frozen? */
bool tutti_layer_trains(const tutti_net *net, const tutti_layer *layer);
bool tutti_layer_learns(const tutti_net *net, const tutti_layer *layer);

/* Does it measure the samples of a statistics group when it is trained? A frozen one takes what it
 * has. */
bool tutti_layer_measures(const tutti_layer *layer);

/* The target that the last layer, which gives the net's answers, is a loss of. */
static inline int tutti_net_answer(const tutti_net *net)
{
    return net->layers[net->layer_count - 1].target;
}

/* ---- tune.c: what is trained, and how fast; by patterns: tutti/net.h ---- */

#define TUTTI_LEAST_LR_SCALE 1e-9
#define TUTTI_MOST_LR_SCALE  1e9

/* Does the backward pass reach the layer, because it is trained or something below it? */
bool tutti_layer_flows_into(const tutti_net *net, const tutti_layer *layer);

/* Sets trains_below, once that is known of the layers below. */
void tutti_layer_look_below(const tutti_net *net, tutti_layer *layer);

/* Of a layer with its parameters; after freezing, those above must look below again. */
void tutti_layer_scale_lr(tutti_net *net, tutti_layer *layer, double scale);
void tutti_layer_freeze(tutti_net *net, tutti_layer *layer);

/* May the layer be split over groups of workers/groups workers each, which hold whole blocks of
 * TUTTI_FC_LEAF output features? groups == workers is no split and always allowed. The second form
 * fails with a sentence that says why not. */
bool tutti_layer_can_split(const tutti_layer *layer, int workers, int groups);
tutti_status tutti_layer_check_split(const tutti_layer *layer, int workers,
                                     int groups) TUTTI_MUST_CHECK;

/* Floating-point operations of a layer in one training step, for one sample. */
uint64_t tutti_layer_train_flops(const tutti_layer *layer);

/* Those of the whole net that kernels really make, fewer than the sums have by their definition. */
double tutti_net_made_flops(const tutti_net *net);

/* Characters of the longest name of a layer, or 'least': the width of a column of names. */
int tutti_net_name_width(const tutti_net *net, int least);

/* The layer or parameter of that name, -1 if there is none. */
int tutti_net_find_layer(const tutti_net *net, const char *name);
int tutti_net_find_param(const tutti_net *net, const char *name);

/* ---- identity.c: what a layer is, option by option ---- */

/* The value of the layer's option or argument of that name ("kernel", "rate"); 'index' chooses the
 * first or second number of a pair; a flag is 0 or 1. NaN if the kind has none of that name. */
double tutti_layer_number(const tutti_layer *layer, const char *name, int index);

/* A hash of what makes two nets compute the same: layers, options, shapes, parameters; not of
 * comments and suggestions. The second leaves out what only matters in training, which layers are
 * frozen and their rates. */
tutti_status tutti_net_hash(const tutti_net *net, char hex[TUTTI_HASH_HEX]) TUTTI_MUST_CHECK;
tutti_status tutti_net_hash_answers(const tutti_net *net,
                                    char hex[TUTTI_HASH_HEX]) TUTTI_MUST_CHECK;

/* Samples that layers with statistics take together, 0: all of the minibatch (nn/statistics.h). */
enum { TUTTI_MOST_GROUP = 1 << 24 };
void tutti_net_regroup(tutti_net *net, int samples);

/* Another loss takes the place of the one that ends the net, which must be the only one; it is
 * copied. */
tutti_status tutti_net_take_loss(tutti_net *net, const tutti_own_loss *loss) TUTTI_MUST_CHECK;

/* The algorithm (kernel/conv.h) of all convolutions whose text names none and that one of
 * Winograd's pays for. */
void tutti_net_convolve(tutti_net *net, int algorithm);

/* ---- precision.c: what is rounded to bf16 ---- */

/* "auto", "fp32", "bf16": what a layer's line may say, 1 + a tutti_precision. */
extern const char *const tutti_precision_words[];

/* Sets is_end of every layer of a whole net. */
void tutti_net_find_ends(tutti_net *net);

/* The precision of that word; 'option' is what a complaint calls it. */
tutti_status tutti_precision_named(const char *text, const char *option,
                                   tutti_precision *out) TUTTI_MUST_CHECK;

/* Gives the layers the precision of a run. */
void tutti_net_round(tutti_net *net, tutti_precision precision);

/* Does the layer round what it multiplies, in forward and backward passes? Does any? */
bool tutti_layer_rounds(const tutti_layer *layer);
bool tutti_net_rounds(const tutti_net *net);

/* "2 of 4 layers round to bf16"; "" if none does. */
void tutti_net_describe_precision(const tutti_net *net, char text[64]);

/* "bf16" if it rounds, else "fp32"; "" of a layer that multiplies nothing by weights. */
const char *tutti_layer_precision(const tutti_layer *layer);

/* TUTTI_PARSE where its line asks for what its kernels cannot do. */
tutti_status tutti_layer_check_precision(const tutti_layer *layer) TUTTI_MUST_CHECK;

/* Takes the noise out of training: dropout and the like no longer do anything. */
void tutti_net_still(tutti_net *net);

#endif
