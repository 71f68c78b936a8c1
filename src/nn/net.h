/* A net as a pure description: what each layer is, what goes in and comes out, which parameters
 * it has and where they lie. Nothing here computes or allocates activations; the executor is
 * nn/model.h. The planner reads these structures, too. */
#ifndef TUTTI_NN_NET_H
#define TUTTI_NN_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tutti/net.h>
#include "base/status.h"
#include "kernel/conv.h"
#include "kernel/ops.h"

/* name in the text, what it is */
// clang-format off
#define TUTTI_KIND_MAP(X)                                     \
    X(CONV,    "conv",    "convolution")                      \
    X(FC,      "fc",      "fully connected layer")            \
    X(MAXPOOL, "maxpool", "largest value of a window")        \
    X(AVGPOOL, "avgpool", "mean of a window")                 \
    X(RELU,    "relu",    "max(x, 0)")                        \
    X(SIGMOID, "sigmoid", "1 / (1 + exp(-x))")                \
    X(TANH,    "tanh",    "hyperbolic tangent")               \
    X(DROPOUT, "dropout", "zeroes a share of the values")     \
    X(LRN,     "lrn",     "local response normalisation")     \
    X(ADD,     "add",     "sum of equal shapes")              \
    X(CONCAT,  "concat",  "channels one after another")       \
    X(SOFTMAX, "softmax", "softmax and cross-entropy loss")
// clang-format on

typedef enum tutti_kind {
#define X(name, text, what) TUTTI_KIND_##name,
    TUTTI_KIND_MAP(X)
#undef X
        TUTTI_KIND_COUNT
} tutti_kind;

typedef enum tutti_activation {
    TUTTI_ACT_NONE,
    TUTTI_ACT_RELU,
    TUTTI_ACT_SIGMOID,
    TUTTI_ACT_TANH
} tutti_activation;

typedef enum tutti_init {
    TUTTI_INIT_AUTO,    /* He where a ReLU follows in the layer, else Xavier */
    TUTTI_INIT_HE,      /* normal, variance 2 / fan_in */
    TUTTI_INIT_XAVIER,  /* uniform, variance 2 / (fan_in + fan_out) */
    TUTTI_INIT_GAUSSIAN /* normal, a given deviation */
} tutti_init;

enum {
    TUTTI_NET_INPUT = -1,  /* in 'from': not a layer, the sample itself */
    TUTTI_MAX_INPUTS = 16, /* of an add or a concat */
    TUTTI_MAX_LAYERS = 4096,
};

/* A parameter tensor: what others call it, and where its floats lie in the flat buffer of all
 * parameters. In the buffer every layer's region is its weights, then its bias, as the kernels
 * want them (conv.h, fc.h), each rounded up to 16 floats; filled-up places are zero. */
typedef struct tutti_param {
    char *name; /* torch's: "conv1.weight" */
    int layer;
    bool is_bias;
    int dim_count;
    int dims[4];   /* torch's: O I H W, O I, or O */
    size_t count;  /* their product */
    size_t offset; /* first float in the flat buffer */
    size_t stored; /* floats there, with filling */
} tutti_param;

/* Windows slide as in kernel/conv.h; for a convolution this is its shape, for a pooling layer
 * the window over channels c. */
typedef struct tutti_layer {
    char *name;
    tutti_kind kind;
    tutti_activation activation; /* fused: applied to the layer's own output */
    int input_count;
    int from[TUTTI_MAX_INPUTS]; /* earlier layers, or TUTTI_NET_INPUT */
    tutti_shape in, out;        /* of the first input; an fc sees its input flattened */
    tutti_conv_shape window;    /* conv, maxpool, avgpool */
    bool reads_compact;         /* fc: flattens the input's [h][w][c] instead of blocks */
    float rate;                 /* dropout: the share that becomes zero */
    tutti_lrn lrn;
    tutti_init init;
    float init_std, init_bias;
    int weight, bias;  /* parameters by number, -1 for none */
    bool trains_below; /* something below has parameters: backward-data is needed */
    uint64_t macs;
    int line, column; /* where in the text */
} tutti_layer;

typedef struct tutti_net_setting {
    char *key, *value, *where;
} tutti_net_setting;

struct tutti_net {
    char *name;
    tutti_shape input;
    int layer_count, param_count, setting_count;
    tutti_layer *layers;         /* in the text's order: inputs come first; the last is the loss */
    tutti_param *params;         /* layer by layer, the weight before the bias */
    tutti_net_setting *settings; /* "default" lines */
    size_t param_floats;         /* of the flat buffer */
};

const char *tutti_kind_name(tutti_kind kind);

/* What the net suggests by lines "default KEY VALUE", and the usual where it says nothing. */
typedef struct tutti_suggested {
    int batch;
    double epochs, lr, momentum, weight_decay, clip;
    char lr_schedule[64], warmup[32]; /* as written */
} tutti_suggested;

/* TUTTI_PARSE with file:line:column for a key or a value that does not fit. */
tutti_status tutti_net_suggested(tutti_suggested *out, const tutti_net *net) TUTTI_MUST_CHECK;

/* Is the input an image of fewer than 16 channels, given as [n][h][w][c]? All other inputs are
 * [n][c/16][h][w][16], vectors thus [n][c rounded up to 16]. */
bool tutti_net_input_is_compact(const tutti_net *net);

/* Floats from one sample of the input to the next: images rounded up to 16 too. */
size_t tutti_net_input_floats(const tutti_net *net);

/* Values of a shape, and floats of it in the blocked layout. */
static inline size_t tutti_shape_count(tutti_shape s)
{
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

static inline size_t tutti_shape_floats(tutti_shape s)
{
    const size_t blocks = ((size_t)s.c + TUTTI_BLOCK - 1) / TUTTI_BLOCK;
    return blocks * TUTTI_BLOCK * (size_t)s.h * (size_t)s.w;
}

/* A layer's floats in the flat buffer: weights and bias together, contiguous. 0 for none. */
size_t tutti_layer_offset(const tutti_net *net, int layer);
size_t tutti_layer_floats(const tutti_net *net, int layer);

/* Floating-point operations of a layer in one training step, for one sample. */
uint64_t tutti_layer_train_flops(const tutti_layer *layer);

/* The layer or parameter of that name, -1 if there is none. */
int tutti_net_find_layer(const tutti_net *net, const char *name);
int tutti_net_find_param(const tutti_net *net, const char *name);

#endif
