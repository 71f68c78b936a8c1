/* What a run is done with: the options, filled up with what the net suggests and with defaults. */
#ifndef TUTTI_TRAIN_SETTINGS_H
#define TUTTI_TRAIN_SETTINGS_H

#include <tutti/net.h>
#include <tutti/train.h>
#include "nn/optimizers/optimizer.h"
#include "train/schedule.h"
#include "train/span.h"

typedef struct tutti_settings {
    int batch;    /* samples of a step, all ranks together */
    int grains;   /* leaves of the tree over samples, a power of two */
    int keep;     /* checkpoints; 0: all */
    int patience; /* evaluations without a better one that end the run; 0: none do */
    int64_t seed;
    double epochs, usual_epochs; /* asked for, and suggested by the net */
    double lr, weight_decay, clip, label_smoothing, ema;
    tutti_chosen_optimizer optimizer;
    char optimizer_text[TUTTI_OPTIMIZER_TEXT];
    bool decay_all, shuffle, augment, dropout, skip_bad;
    char bn_group[16];               /* as written; "net": as the net says */
    char conv[16];                   /* one of tutti_conv_algorithm_words, never auto */
    char precision[8];               /* one of tutti_precision_words, never auto */
    char init[64], lr_schedule[256]; /* as written */
    char freeze[512], lr_scale[512]; /* likewise; "": as the net says */
    char warmup[TUTTI_SPAN_TEXT], checkpoint_text[TUTTI_SPAN_TEXT], eval_text[TUTTI_SPAN_TEXT];
    tutti_schedule schedule;
    tutti_pace pace;
    tutti_span checkpoint_every, eval_every;
    bool evaluates;
    char eval_weights[8]; /* "ema" or "model" */
    char note[200];       /* what the user should know about it; empty: nothing */
} tutti_settings;

/* Everything that does not depend on the length of an epoch. Failures name the option, or
 * file:line:column of the net's suggestion. */
tutti_status tutti_settings_resolve(tutti_settings *out, const tutti_train_options *options,
                                    const tutti_net *net) TUTTI_MUST_CHECK;

/* How the minibatch is divided, once the net's layers have their precision. */
tutti_status tutti_settings_divide(tutti_settings *settings, const tutti_train_options *options,
                                   const tutti_net *net) TUTTI_MUST_CHECK;

/* The rest: the length of the run, its schedule, when it tests and saves. 'samples' is the size of
 * the training set. */
tutti_status tutti_settings_pace(tutti_settings *settings, const tutti_train_options *options,
                                 int64_t samples) TUTTI_MUST_CHECK;

#endif
