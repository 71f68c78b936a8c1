/* The trainer: everything a rank needs for a run, and the parts its work is divided into.
 *
 *   trainer.c    puts a run together: rank, net, data, plan, session
 *   plan_choice.c   the plan, and what is expected of it
 *   checkpoints.c   what a run writes into its checkpoints and takes from one
 *   evaluate.c   the test set, each sample once
 *   report.c     what happened: layers, ranks, trace
 *   account.c    what was predicted against what happened
 *   train.c      the loop, and the public calls
 */
#ifndef TUTTI_TRAIN_TRAINER_H
#define TUTTI_TRAIN_TRAINER_H

#include <tutti/train.h>
#include "base/hash.h"
#include "data/loader.h"
#include "format/metrics.h"
#include "format/trace.h"
#include "step/rank.h"
#include "step/session.h"
#include "checkpoint/keeper.h"
#include "train/plan_choice.h"
#include "train/progress.h"
#include "train/settings.h"

typedef struct tutti_trainer {
    const tutti_train_options *options;
    tutti_settings settings;
    tutti_log log;
    tutti_rank me;
    tutti_net *net;
    char net_hash[TUTTI_HASH_HEX];
    tutti_data *data;
    tutti_loader *loader;
    tutti_forecast forecast; /* of one that trains */
    tutti_session *session;

    tutti_keeper *keeper; /* NULL where nothing is read or written */
    double best_top1;
    int64_t best_step;
    double last_top1, last_top5, last_loss;

    tutti_metrics *metrics;
    tutti_progress *progress;
    tutti_trace *trace;
    double begun;     /* when the first step began: time 0 of a trace */
    double data_wait; /* seconds of this step spent waiting for data */
    double stepping;  /* seconds of all steps of this rank; evaluations, checkpoints left out */
    double steady;    /* seconds of the steps of this call after the first, and their number */
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

/* ---- train.c ---- */

/* Collective. One step with the next samples. */
tutti_status tutti_trainer_step(tutti_trainer *trainer, tutti_news *news) TUTTI_MUST_CHECK;

/* ---- checkpoints.c ---- */

/* Collective. The session is settled. */
tutti_status tutti_trainer_save(tutti_trainer *trainer, bool best) TUTTI_MUST_CHECK;

/* Collective. Goes on with what --resume names. */
tutti_status tutti_trainer_resume(tutti_trainer *trainer) TUTTI_MUST_CHECK;

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
    tutti_traffic traffic; /* exposed: with the waiting for moves */
} tutti_layer_report;

tutti_layer_report tutti_trainer_layer(const tutti_trainer *trainer, int layer);

void tutti_trainer_show_header(tutti_trainer *trainer);

/* Collective. Per layer and per rank; also to metrics.jsonl and the trace. */
tutti_status tutti_trainer_report(tutti_trainer *trainer, double seconds,
                                  int64_t steps) TUTTI_MUST_CHECK;

/* ---- account.c ---- */

/* Says how the prediction fared, and writes plan.json into the run. Only where it stands on
 * measurements of this machine. */
tutti_status tutti_trainer_account(tutti_trainer *trainer, int64_t steps) TUTTI_MUST_CHECK;

#endif
