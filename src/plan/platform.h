/* A cluster as text (platforms/NAME.platform): what a node computes and what joins the nodes.
 *
 *     tutti platform 1
 *     title "Cori phase I: 2x E5-2698v3, Aries"
 *     nodes 1630
 *     peak 2355GF                           # of a node, nominal
 *     memory 128GB
 *     memory-bandwidth 136GB/s
 *     link 8GB/s latency=1.5us overlap=1    # per direction; 1: full duplex, 0: half
 *     steals 0.4 beside=2                   # the part of the channel's time that computing loses;
 *                                           # how many times longer the channel takes beside it
 *     meeting 50us                          # what ranks lose whenever they wait for each other
 *     topology dragonfly                    # star, fat-tree, dragonfly, torus
 *     rate conv 1 0.55                      # fraction of the peak at 1 sample per node,
 *     rate conv 16 0.65                     # at 16; in between it follows the logarithm
 *     rate fc 64 0.5
 *     net vgg-a 30 256                      # samples/s of one node at a minibatch of 256,
 *                                           # measured: scales the above
 *
 * A measured platform (tutti calibrate) also knows which machine it is, and the times of layers and
 * exchanges; a node is then one rank with its threads:
 *
 *     machine "Xeon, avx512" threads=16 ranks=2  # of each rank; on each host
 *     layer conv 64x112x112 128x112x112 3x3/1 16 1.2e-2 1.3e-2 1.4e-2
 *           # in, out, kernel/stride, samples: seconds forward, backward-weights, backward-data
 *     layer input 3x224x224 3x224x224 1x1/1 16 1e-3 0 0   # what a step does outside its layers
 *     exchange 2 1048576 3.1e-4 2.9e-4      # ranks, bytes: seconds part-reduce, part-broadcast
 *     update 6.0e-10                        # seconds per parameter, SGD with momentum
 *     common 7.5e-10                        # the same and the sum before it, where all ranks of a
 *                                           # host have their gradients in common memory
 *
 * A measured platform of one node needs no link. */
#ifndef TUTTI_PLAN_PLATFORM_H
#define TUTTI_PLAN_PLATFORM_H

#include "nn/net.h"

enum { TUTTI_PLATFORM_VERSION = 1 };

typedef enum tutti_rate_kind {
    TUTTI_RATE_FIRST,
    TUTTI_RATE_CONV,
    TUTTI_RATE_FC,
    TUTTI_RATE_KINDS
} tutti_rate_kind;

extern const char *const tutti_rate_words[TUTTI_RATE_KINDS + 1]; /* ends with NULL */

typedef struct tutti_rate {
    tutti_rate_kind kind;
    double samples, fraction;
} tutti_rate;

typedef struct tutti_net_rate {
    char name[64];
    double samples_per_s;
    double batch; /* at this minibatch */
} tutti_net_rate;

typedef struct tutti_pass_seconds {
    double forward, weights, data;
} tutti_pass_seconds;

/* What identifies a layer's work, as text: "conv 64x112x112 128x112x112 3x3/1", with
 * ",winograd-4x4" where that is how it is computed. */
enum { TUTTI_LAYER_KEY = 128, TUTTI_HERE_NAME = 48 };
typedef struct tutti_layer_rate {
    char key[TUTTI_LAYER_KEY];
    double samples;
    tutti_pass_seconds seconds;
} tutti_layer_rate;

typedef struct tutti_exchange_rate {
    double ranks, bytes, reduce, broadcast;
} tutti_exchange_rate;

typedef struct tutti_platform {
    bool has_sum; /* of its text, and it is right */
    char name[64], title[160], topology[32];
    char machine[160];  /* "": not measured */
    int threads, ranks; /* of each rank, on each host: as measured */
    double nodes;
    double peak;             /* FLOP/s */
    double memory;           /* bytes */
    double memory_bandwidth; /* bytes/s */
    double link;             /* bytes/s, each direction */
    double latency;          /* seconds */
    double overlap;          /* of sending and receiving */
    double steals, beside;
    double meeting; /* seconds */
    double update;  /* seconds per parameter; 0: by the memory bandwidth */
    double common;  /* seconds per parameter; 0: ranks of a host send messages */
    int rate_count, net_count, layer_count, exchange_count;
    tutti_rate *rates;
    tutti_net_rate *nets;
    tutti_layer_rate *layers;
    tutti_exchange_rate *exchanges;
} tutti_platform;

/* 'name' is a platform's name, looked up as NAME.platform in the directories of the environment
 * variable TUTTI_PLATFORMS (separated by colons), in tutti_platform_home, then among those that
 * come with the library; a name with a '/' or ending in ".platform" is a path. What is in
 * tutti_platform_home must have a sum; the sentence of one that cannot be used is a single line
 * with its path and the command that measures it again. */
tutti_status tutti_platform_load(tutti_platform **out, const char *name) TUTTI_MUST_CHECK;
/* Is there such a file (tutti_platform_load may still find it wrong)? */
bool tutti_platform_exists(const char *name);
tutti_status tutti_platform_parse(tutti_platform **out, const char *name,
                                  const char *content) TUTTI_MUST_CHECK;
struct tutti_text;
/* Takes the text. */
tutti_status tutti_platform_read(tutti_platform **out, const char *name,
                                 struct tutti_text *text) TUTTI_MUST_CHECK;
void tutti_platform_destroy(tutti_platform **platform);

/* Where tutti calibrate keeps what it measured: tutti in the user's directory for caches. The
 * latest measurement is here.platform; that of 'ranks' ranks of 'threads' threads on a host is
 * here-2x16.platform, for 2 ranks of 16 threads. */
tutti_status tutti_platform_home(char *path, size_t size) TUTTI_MUST_CHECK;
void tutti_platform_here(char name[TUTTI_HERE_NAME], int ranks, int threads);

/* The platforms that come with the library, NULL after the last. */
const char *tutti_platform_known(int index);

/* The platform as text, with its sum (base/text.h), to be read again; 'remark' becomes a comment,
 * unless it is NULL. tutti_free. */
tutti_status tutti_platform_text(char **out, const tutti_platform *platform,
                                 const char *remark) TUTTI_MUST_CHECK;

/* One more measurement. */
tutti_status tutti_platform_add_layer(tutti_platform *platform,
                                      const tutti_layer_rate *rate) TUTTI_MUST_CHECK;
tutti_status tutti_platform_add_exchange(tutti_platform *platform,
                                         const tutti_exchange_rate *rate) TUTTI_MUST_CHECK;

/* The key of what a net's step does outside its layers. */
void tutti_platform_input_key(const tutti_net *net, char key[TUTTI_LAYER_KEY]);

/* The seconds it takes with 'samples' samples on a node; 0 where it was not measured. */
double tutti_platform_input(const tutti_platform *platform, const tutti_net *net, double samples);

/* The key of a layer of which 'outputs' output features are computed. */
void tutti_platform_key(const tutti_layer *layer, int outputs, char key[TUTTI_LAYER_KEY]);

/* Seconds of a layer's passes on one node with 'samples' samples (fractions are fine), of which
 * 'outputs' output features are computed. */
tutti_pass_seconds tutti_platform_layer(const tutti_platform *platform, const tutti_net *net,
                                        int layer, double samples, int outputs);

/* Updates are measured with SGD and momentum: w and the momentum, read and written. */
enum { TUTTI_MEASURED_ACCESSES = 4 };

/* Seconds of a part-reduce or part-broadcast of a buffer of 'bytes' among 'ranks' ranks; of moving
 * 'bytes' out of and into every node; of updating 'count' parameters,
 * each by 'accesses' reads and writes beside its gradient. */
double tutti_platform_reduce(const tutti_platform *platform, double ranks, double bytes);
double tutti_platform_broadcast(const tutti_platform *platform, double ranks, double bytes);
double tutti_platform_move(const tutti_platform *platform, double ranks, double bytes);
double tutti_platform_update(const tutti_platform *platform, double count, int accesses);

#endif
