/* Nets: read from text, described layer by layer.
 *
 * A net is a text with one line per layer (see models/ and doc/NETS.md):
 *
 *     input 1 28 28
 *     conv1 conv 32 kernel=5 relu
 *     pool1 maxpool kernel=2 stride=2
 *     fc2   fc 10
 *     loss  softmax
 *
 * Lines that repeat are written once, as a block, and used by name.
 */
#ifndef TUTTI_NET_H
#define TUTTI_NET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_net tutti_net;

/* Reads a net. 'name' is a net's name, looked up as NAME.net in the directories of the
 * environment variable TUTTI_MODELS (separated by colons), then among the nets that come with
 * the library; a name with a '/' or ending in ".net" is a path. Gives *out to the caller, who
 * gives it to tutti_net_destroy. On failure *out is untouched. */
TUTTI_API tutti_status tutti_net_load(tutti_net **out, const char *name) TUTTI_MUST_CHECK;

/* Reads a net from memory; 'where' stands for the file in messages. */
TUTTI_API tutti_status tutti_net_parse(tutti_net **out, const char *content,
                                       const char *where) TUTTI_MUST_CHECK;
TUTTI_API void tutti_net_destroy(tutti_net **net); /* NULL inside is fine; leaves NULL */

/* The nets that come with the library, from 0 in alphabetical order; NULL after the last. */
TUTTI_API const char *tutti_net_known(int index);

TUTTI_API const char *tutti_net_name(const tutti_net *net); /* "vgg-a" */

/* What one sample looks like: channels, height, width; a vector is C x 1 x 1. */
typedef struct tutti_shape {
    int c, h, w;
} tutti_shape;

TUTTI_API tutti_shape tutti_net_input(const tutti_net *net);
TUTTI_API int tutti_net_classes(const tutti_net *net); /* channels of what its last loss reads */

/* In words: "10 classes", "21 classes for each of 64x64 pixels", "3 values", "any of 20 classes".
 * Belongs to the net. */
TUTTI_API const char *tutti_net_answers(const tutti_net *net);

/* One layer as numbers. Texts belong to the net. */
typedef struct tutti_layer_info {
    const char *name;       /* "conv1" */
    const char *kind;       /* "conv" */
    const char *activation; /* "relu", "sigmoid", "tanh" or "" */
    const char *precision;  /* of what it multiplies by weights: "fp32" or "bf16"; else "" */
    tutti_shape in, out;    /* of the first input */
    uint64_t parameters;    /* weights and biases */
    uint64_t trained;       /* of these; none where the layer is frozen */
    uint64_t macs;          /* multiply-adds of the forward pass of one sample */
    uint64_t train_flops;   /* of one sample: forward, weight gradient unless the layer is frozen,
                             * and backward-data where there is something below to train */
    uint64_t weight_bytes;
    uint64_t activation_bytes; /* of the output of one sample, as stored */
} tutti_layer_info;

TUTTI_API int tutti_net_layer_count(const tutti_net *net);
TUTTI_API tutti_layer_info tutti_net_layer_info(const tutti_net *net, int layer);

/* The sums over the layers, with the net's name and shapes. */
TUTTI_API tutti_layer_info tutti_net_total(const tutti_net *net);

/* Writes the net as text without blocks and comments: one line per layer, which reads as the same
 * net. */
TUTTI_API tutti_status tutti_net_print(const tutti_net *net, FILE *out) TUTTI_MUST_CHECK;

/* Keeps layers as they are in training, running statistics too: those whose names match one of the
 * patterns, as in a shell, "conv1*,norm1*". TUTTI_ARGUMENT for a pattern without such a layer, and
 * if nothing is left to train; the net is then of no use. NULL and "" freeze nothing. */
TUTTI_API tutti_status tutti_net_freeze(tutti_net *net, const char *patterns) TUTTI_MUST_CHECK;

/* Multiplies learning rates: "conv*=0.1,fc8=10"; of several patterns that match the last holds. */
TUTTI_API tutti_status tutti_net_scale_lr(tutti_net *net, const char *scales) TUTTI_MUST_CHECK;

/* Layers whose lines do not say round what they multiply to bf16, "bf16", or do not, "fp32"; NULL:
 * as the net suggests, else fp32. doc/NETS.md says which layers can. */
TUTTI_API tutti_status tutti_net_set_precision(tutti_net *net,
                                               const char *precision) TUTTI_MUST_CHECK;

/* The hyperparameters the net's author suggests ("default lr 0.01"), in the order of the text.
 * *where is "file:line:column" of the value. Returns false after the last. */
TUTTI_API int tutti_net_default(const tutti_net *net, int index, const char **key,
                                const char **value, const char **where);

/* Samples per minibatch, as the net's author suggests; 64 where the net does not say. */
TUTTI_API tutti_status tutti_net_batch_size(const tutti_net *net, int *batch) TUTTI_MUST_CHECK;

/* The memory one node needs to train with a minibatch of 'batch' samples, in bytes. */
typedef struct tutti_memory {
    int passes; /* of a step */
    uint64_t parameters;
    uint64_t momentum;    /* all that the net's own optimizer keeps */
    uint64_t average;     /* of the weights: --ema */
    uint64_t gradients;   /* with those that are kept from pass to pass */
    uint64_t activations; /* with their gradients and the kernels' scratch, reused in a step */
    uint64_t data;        /* batches being read ahead */
    uint64_t snapshot;    /* the copy that a checkpoint is written from; none without --run, or */
                          /* with --checkpoint-sync */
    uint64_t program;
    uint64_t peak;     /* the sum */
    uint64_t separate; /* what 'activations' would be if no memory were reused */
} tutti_memory;

/* At most 'micro_batch' samples in a pass; 0: all. threads as in tutti train; 0: one per core.
 * 'ema' as in tutti_train_options: 0 keeps no average, below 0 it is kept if the net suggests
 * one. */
TUTTI_API tutti_status tutti_net_memory(const tutti_net *net, int batch, int micro_batch,
                                        int threads, double ema,
                                        tutti_memory *out) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
