/* A stepper: a net trained by all ranks together, one step after another. It owns the model and
 * keeps its parameters the same everywhere, behind the computing; it knows no data sets, plans,
 * files or runs. A loop of one's own over it:
 *
 *     tutti_stepper_create(&stepper, &options);
 *     tutti_model_init(tutti_stepper_model(stepper), seed, TUTTI_INIT_AUTO, 0);
 *     while (...) tutti_stepper_step(stepper, &samples, lr, (tutti_note){0}, &news);
 *     tutti_stepper_settle(stepper, &news);
 *     tutti_stepper_destroy(&stepper);
 *
 * Inside the room (parts.h):
 *
 *   stepper.c         the parts together: a step, questions
 *   footprint.c       the memory it takes
 *   sync.c            each layer's parameters: the model's hooks and the exchanges behind them
 *   update.c          how parameters follow their gradient
 *   average.c         an average of the parameters over steps
 *   moves.c           data between layers that are placed differently
 *   gradient_norm.c   the norm of the gradient, for clipping
 *   divisor.c         what the loss is divided by where classes have weights
 *   gather.c          a few doubles of every rank, on all ranks
 *   pulse.c           what ranks tell each other about a step, one step later */
#ifndef TUTTI_STEP_STEPPER_H
#define TUTTI_STEP_STEPPER_H

#include "comm/comm.h"
#include "format/trace.h"
#include "nn/model.h"

/* The version of the arithmetic rises with every change that moves recorded bits
 * (tests/bits/recorded.txt): runs of different versions are different runs. */
enum { TUTTI_ARITHMETIC = 2 };

typedef struct tutti_stepper tutti_stepper;

/* All pointers are borrowed and must outlive the stepper. */
typedef struct tutti_stepper_options {
    tutti_comm *comm;
    const tutti_net *net;
    tutti_exec exec;
    tutti_caches caches;        /* a thread's share */
    int batch, grains;          /* of the minibatch of all ranks */
    int micro_batch;            /* samples of a rank in a pass, at most; 0: all it has */
    const int *groups;          /* of each layer, 0 for a whole one; NULL when none is split */
    int late;                   /* as in tutti_model_options */
    uint64_t seed;              /* of dropout */
    double smoothing;           /* of labels: kernel/targets.h */
    const float *class_weights; /* one a class; the loss is divided by their sum; NULL: all 1. Of */
                                /* the net's answer, as smoothing */
    tutti_chosen_optimizer optimizer;
    double weight_decay;
    bool decay_all; /* false: not of parameters that are better left out (tutti_param) */
    double ema;     /* of parameters: average = ema * average + (1 - ema) * them; 0: none is kept */
    double clip;    /* the largest norm of a gradient; 0: any */
    bool overlap;   /* communicate behind the computing */
    bool priority;  /* the layer that forward needs first is served first */
    const char *part_reduce, *part_broadcast; /* algorithms by name; NULL chooses, or needs none */
    tutti_trace *trace;                       /* NULL: none */
    const tutti_stand_in *stand_in;           /* a simulator's; NULL computes */
    bool forward_only; /* no steps: a model without gradients and exchanges, much less memory */
} tutti_stepper_options;

/* About what such a stepper takes to train on this rank, with the samples that are read ahead for
 * it, in bytes, without taking it; 'saves': with the copy that checkpoints are written from. */
tutti_status tutti_stepper_measure(const tutti_stepper_options *options, bool saves,
                                   uint64_t *bytes) TUTTI_MUST_CHECK;

/* Collective. Parameters are zero. */
tutti_status tutti_stepper_create(tutti_stepper **out,
                                  const tutti_stepper_options *options) TUTTI_MUST_CHECK;
void tutti_stepper_destroy(tutti_stepper **stepper); /* settled, or after a failure */

/* What this rank brings into a step: its samples, as tutti_model_train and tutti_model_mix want
 * them. */
typedef struct tutti_samples {
    const float *values;
    const int32_t *labels;
    const int32_t *others;
    const float *shares;
    tutti_goals goals; /* targets that are more than these labels */
} tutti_samples;

/* What this rank has to say beside its losses. */
typedef struct tutti_note {
    unsigned asked;   /* bits that all ranks shall hear of */
    double data_wait; /* seconds it waited for its samples */
} tutti_note;

/* What a rank did in a step, in seconds. */
typedef struct tutti_rank_times {
    double compute;
    double exposed; /* waited for parameters and moves that were under way */
    double waiting; /* waited for the other ranks' news of the step before */
    double data;    /* waited for its samples */
    double memory;  /* bytes that its process has had in memory at most */
} tutti_rank_times;

/* What all ranks know alike about a step, when the next one is done. */
typedef struct tutti_news {
    int64_t step; /* steps done; 0 when there is no news */
    double loss;
    double norm;               /* of the gradient, where clipping asks for it; else NaN */
    int64_t hits, judged;      /* of the whole minibatch: right ones, of samples or of pixels; */
                               /* judged 0 where outputs are values */
    unsigned asked;            /* bits of any rank */
    double data_wait;          /* seconds, the longest of any rank */
    double exposed;            /* likewise: waiting for communication */
    int slowest;               /* the rank that computed longest */
    int diverged_rank;         /* the first whose loss is not finite; -1: none */
    tutti_nonfinite nonfinite; /* that it met */
    const tutti_rank_times *ranks; /* of each rank, until the next step */
} tutti_news;

/* Collective. One step with learning rate 'lr'. *news is of the step before. A failure on one rank
 * leaves the others waiting. */
tutti_status tutti_stepper_step(tutti_stepper *stepper, const tutti_samples *samples, double lr,
                                tutti_note mine, tutti_news *news) TUTTI_MUST_CHECK;

/* Collective. Waits for all that steps have begun, parameters and news: before they are read, and
 * before anything is taken apart. *news is of the last step, unless it was told already. */
tutti_status tutti_stepper_settle(tutti_stepper *stepper, tutti_news *news) TUTTI_MUST_CHECK;

/* Collective. Waits for the news of the last step alone, unless they were told already; its
 * parameters may still be under way. */
tutti_status tutti_stepper_hear(tutti_stepper *stepper, tutti_news *news) TUTTI_MUST_CHECK;

tutti_model *tutti_stepper_model(tutti_stepper *stepper);
const tutti_chosen_optimizer *tutti_stepper_optimizer(const tutti_stepper *stepper);
bool tutti_stepper_shares_memory(const tutti_stepper *stepper); /* parameters in common memory */

/* Collective. What is in common memory goes back to the system; then only destroy may follow. */
tutti_status tutti_stepper_release(tutti_stepper *stepper) TUTTI_MUST_CHECK;

/* With an average of the parameters, which follows every step: it begins as what the parameters are
 * now. Running statistics are averaged like all others, as timm and torchvision do; minibatches
 * counted, and what is never updated, are the parameters' own. */
bool tutti_stepper_has_average(const tutti_stepper *stepper);
void tutti_stepper_begin_average(tutti_stepper *stepper);

/* Collective. The stepper is settled. The parameters and their average change places, on all ranks:
 * to evaluate the average, and back again before the next step. */
tutti_status tutti_stepper_swap_average(tutti_stepper *stepper) TUTTI_MUST_CHECK;

/* Steps done. A stepper that goes on with parameters of an earlier one begins at its number. */
int64_t tutti_stepper_steps(const tutti_stepper *stepper);
void tutti_stepper_begin_at(tutti_stepper *stepper, int64_t step);

/* Seconds this rank waited for communication since its last step began, and seconds it computed in
 * all steps. */
double tutti_stepper_exposed(const tutti_stepper *stepper);
double tutti_stepper_computed(const tutti_stepper *stepper);

/* What a layer has exchanged so far on this rank: parameters and moves. Layer -1: all. */
typedef struct tutti_traffic {
    double busy;    /* seconds of communicating */
    double exposed; /* seconds waited for parameters; the model's times have those for moves */
    uint64_t bytes; /* sent */
} tutti_traffic;
tutti_traffic tutti_stepper_traffic(const tutti_stepper *stepper, int layer);

/* What this rank keeps of a layer's parameters. A settled stepper's may be read and written. */
typedef struct tutti_holding {
    tutti_region region;            /* count 0: the layer has none */
    const tutti_group *across;      /* the ranks that hold the same features; NULL: all ranks */
    int holders, place;             /* their number, and this one's among them */
    size_t begin, end;              /* the strip this rank updates, within the region */
    float *state[TUTTI_MAX_STATES]; /* of the strip, the optimizer's; NULL: it has none */
    float *average;                 /* of the strip; NULL: none is kept */
} tutti_holding;
tutti_holding tutti_stepper_holding(const tutti_stepper *stepper, int layer);

#endif
