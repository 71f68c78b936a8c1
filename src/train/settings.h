/* What a run is done with: the options, filled up with what the net suggests and with defaults. */
#ifndef TUTTI_TRAIN_SETTINGS_H
#define TUTTI_TRAIN_SETTINGS_H

#include <tutti/net.h>
#include <tutti/train.h>
#include "nn/optimizers/optimizer.h"
#include "train/schedule.h"
#include "train/span.h"

typedef struct tutti_settings {
    int batch;  /* samples of a step, all ranks together */
    int grains; /* leaves of the tree over samples, a power of two */
    double epochs;
    double lr, weight_decay, clip;
    tutti_chosen_optimizer optimizer;
    bool decay_all;
    char lr_schedule[64], warmup[32]; /* as written */
    tutti_schedule schedule;
    tutti_pace pace;
    tutti_span checkpoint_every, eval_every;
    bool evaluates;
    char note[200]; /* what the user should know about it; empty: nothing */
} tutti_settings;

/* 'samples' is the size of the training set. Failures name the option, or file:line:column of the
 * net's suggestion. */
tutti_status tutti_settings_resolve(tutti_settings *out, const tutti_train_options *options,
                                    const tutti_net *net, int64_t samples) TUTTI_MUST_CHECK;

#endif
