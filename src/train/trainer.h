/* The trainer: everything a rank needs for a run, and the parts its work is divided into.
 *
 *   trainer.c    puts a rank together: machine, ranks, net, data, plan, model
 *   choose.c     the plan, and what is expected of it
 *   sync.c       the model's hooks and the exchanges behind them: overlap lives here
 *   norm.c       the norm of the gradient, for clipping
 *   pulse.c      what ranks tell each other about a step, one step later
 *   save.c       checkpoints out and in
 *   evaluate.c   the test set, each sample once
 *   report.c     what happened: layers, ranks, trace
 *   account.c    what was predicted against what happened
 *   train.c      the loop, and the public calls
 */
#ifndef TUTTI_TRAIN_TRAINER_H
#define TUTTI_TRAIN_TRAINER_H

#include <tutti/train.h>
#include "comm/comm.h"
#include "base/hash.h"
#include "data/loader.h"
#include "format/metrics.h"
#include "format/trace.h"
#include "kernel/ops.h"
#include "nn/model.h"
#include "plan/predict.h"
#include "step/rank.h"
#include "train/checkpoint.h"
#include "train/progress.h"
#include "train/settings.h"

/* How one layer's parameters are kept the same everywhere. */
typedef struct tutti_sync {
    struct tutti_trainer *trainer;
    int layer;
    tutti_region region;
    tutti_group *across;       /* the ranks that hold the same parameters; NULL: all */
    int holders;               /* how many these are */
    tutti_exchange *exchange;  /* reduce, update, broadcast; NULL with one holder or clipping */
    tutti_exchange *reduce;    /* with clipping: the sum only; then, when the norm is known, */
    tutti_exchange *broadcast; /* the new parameters */
    tutti_exchange *collect;   /* for checkpoints: the momentum of all strips */
    size_t begin, end;         /* the strip this rank updates, within the region */
    float *momentum;           /* of the strip */
    tutti_sgd sgd;             /* of the step whose gradient is under way */
    double exposed;            /* seconds the forward pass waited for these parameters */
    double recorded;           /* when the exchange that a trace shows last was submitted */
} tutti_sync;

/* What all ranks know about a step once its pulse has arrived. */
typedef struct tutti_pulse_news {
    int64_t step; /* steps done; 0 when there is no news */
    double loss;
    int64_t hits;              /* top-1, of the whole minibatch */
    unsigned asked;            /* bits of any rank */
    double data_wait;          /* seconds, the longest of any rank */
    double exposed;            /* likewise */
    int slowest;               /* the rank that computed longest */
    int diverged_rank;         /* the first whose loss is not finite; -1: none */
    tutti_nonfinite nonfinite; /* that it met */
} tutti_pulse_news;

typedef struct tutti_pulse tutti_pulse;

typedef struct tutti_trainer {
    const tutti_train_options *options;
    tutti_settings settings;
    tutti_log log;
    tutti_rank me;
    tutti_net *net;
    char net_hash[TUTTI_HASH_HEX];
    tutti_data *data;
    tutti_loader *loader;
    tutti_plan *plan;
    tutti_prediction *prediction; /* of a step; on rank 0, NULL elsewhere */
    char prediction_note[160];    /* on what it stands */
    bool is_accountable;          /* on measurements of this machine */
    tutti_common *common; /* where parameters and gradients lie; NULL: in memory of this rank */
    tutti_model *model;

    tutti_sync *syncs; /* one per layer with parameters, in the order of the net */
    int sync_count;
    int *sync_of; /* by layer, -1 for none */
    tutti_group *inside[32];
    int inside_groups[32], inside_count;
    tutti_exchange **moves;         /* by move of the model */
    int move_begun;                 /* the one that was started early, plus 1; 0: none */
    tutti_sgd sgd;                  /* of the step that is being computed */
    const tutti_stand_in *stand_in; /* a simulator's; NULL trains */
    tutti_pulse *pulse;

    int64_t step;     /* steps done */
    float *scratch;   /* rows in torch's layout, for checkpoints */
    float *collected; /* one layer's momentum, for checkpoints */
    tutti_safetensors_layout *layout;
    double best_top1;
    int64_t best_step;
    double last_top1, last_top5, last_loss;

    tutti_metrics *metrics;
    tutti_progress *progress;
    tutti_trace *trace;
    double begun;        /* when the first step began: time 0 of a trace */
    double step_exposed; /* seconds of this step spent waiting for communication */
    double data_wait;    /* ... for data */
    double stepping;     /* seconds of all steps of this rank; evaluations, checkpoints left out */
    double compute;      /* ... and without waiting */
    double steady;       /* seconds of the steps of this call after the first, and how many */
    int64_t steady_steps;
    double steady_data; /* ... of which waiting for data */
    double peak;        /* FLOP/s of all threads of all ranks */
} tutti_trainer;

/* ---- trainer.c ---- */

/* Collective. Puts the rank together; on failure everything is closed again. A trainer that only
 * evaluates has no exchanges, no loader of training samples and less memory. */
tutti_status tutti_trainer_open(tutti_trainer *trainer, const tutti_train_options *options,
                                bool evaluates_only) TUTTI_MUST_CHECK;
void tutti_trainer_close(tutti_trainer *trainer);

/* ---- choose.c ---- */

/* Collective. A trainer that only evaluates is data parallel: its ranks exchange nothing. */
tutti_status tutti_trainer_choose_plan(tutti_trainer *trainer,
                                       bool evaluates_only) TUTTI_MUST_CHECK;

/* ---- train.c ---- */

/* Collective. One step. Sets *norm to the gradient's norm where clipping asks for it (else NaN) and
 * *news to what all ranks know of the step before. */
tutti_status tutti_trainer_step(tutti_trainer *trainer, double *norm,
                                tutti_pulse_news *news) TUTTI_MUST_CHECK;

/* Collective. Waits for what steps have begun and what is still under way, parameters and news:
 * it reads and writes the model, and must arrive before anything is taken apart. */
tutti_status tutti_trainer_rest(tutti_trainer *trainer) TUTTI_MUST_CHECK;

/* ---- sync.c ---- */

tutti_status tutti_sync_create(tutti_trainer *trainer) TUTTI_MUST_CHECK;
void tutti_sync_destroy(tutti_trainer *trainer);
tutti_model_hooks tutti_sync_hooks(tutti_trainer *trainer);

/* Collective. After the model's pass: what was not overlapped is done now. Sets *norm to the
 * gradient's norm where clipping asks for it, else to NaN. */
tutti_status tutti_sync_finish(tutti_trainer *trainer, double *norm) TUTTI_MUST_CHECK;

/* Collective. Waits until all parameters have arrived: before checkpoints and evaluation. */
tutti_status tutti_sync_settle(tutti_trainer *trainer) TUTTI_MUST_CHECK;

/* ---- norm.c ---- */

/* Collective. The Euclidean norm of the gradient whose sums the reduce exchanges left behind; the
 * same bits for any number of ranks and any plan. */
tutti_status tutti_gradient_norm(tutti_trainer *trainer, double *norm) TUTTI_MUST_CHECK;

/* ---- pulse.c ---- */

tutti_status tutti_pulse_create(tutti_trainer *trainer) TUTTI_MUST_CHECK;
void tutti_pulse_destroy(tutti_pulse **pulse);

/* Collective. Sends what this rank has to say about the step just done, after taking in the news
 * of the step before (none after the first). 'asked' are bits that all ranks shall hear of. */
tutti_status tutti_pulse_beat(tutti_trainer *trainer, const int32_t *ranks_of_labels,
                              unsigned asked, tutti_pulse_news *news) TUTTI_MUST_CHECK;

/* Collective. Waits for the news of the last step sent. */
tutti_status tutti_pulse_flush(tutti_trainer *trainer, tutti_pulse_news *news) TUTTI_MUST_CHECK;

/* ---- save.c ---- */

/* Collective. */
tutti_status tutti_trainer_save(tutti_trainer *trainer, bool best) TUTTI_MUST_CHECK;
tutti_status tutti_trainer_resume(tutti_trainer *trainer, const char *where,
                                  bool must_exist) TUTTI_MUST_CHECK;
tutti_status tutti_trainer_load_weights(tutti_trainer *trainer, const char *path,
                                        bool all) TUTTI_MUST_CHECK;

/* ---- evaluate.c ---- */

typedef struct tutti_evaluation {
    int64_t samples;
    double loss, top1, top5;
    int64_t *confusion; /* [truth][answer], or NULL */
} tutti_evaluation;

/* Collective. 'confusion' (classes x classes zeros, or NULL) is filled in on every rank. */
tutti_status tutti_trainer_evaluate(tutti_trainer *trainer, tutti_evaluation *evaluation,
                                    int64_t *confusion) TUTTI_MUST_CHECK;

/* ---- report.c ---- */

/* Seconds of this call on one layer, of this rank. */
typedef struct tutti_layer_report {
    tutti_layer_times times;
    double busy, exposed; /* communicating, and waited for */
    uint64_t bytes;       /* sent */
} tutti_layer_report;

tutti_layer_report tutti_trainer_layer(const tutti_trainer *trainer, int layer);

void tutti_trainer_show_header(tutti_trainer *trainer);

/* Collective. Per layer and per rank; also to metrics.jsonl and the trace. */
tutti_status tutti_trainer_report(tutti_trainer *trainer, double seconds,
                                  int64_t steps) TUTTI_MUST_CHECK;

/* Collective. Writes what the trace recorded, if the options ask for one. */
tutti_status tutti_trainer_write_trace(tutti_trainer *trainer) TUTTI_MUST_CHECK;

/* ---- account.c ---- */

/* Says how the prediction fared, and writes plan.json into the run. Only where it stands on
 * measurements of this machine. */
tutti_status tutti_trainer_account(tutti_trainer *trainer, int64_t steps) TUTTI_MUST_CHECK;

#endif
