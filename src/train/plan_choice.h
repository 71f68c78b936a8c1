/* Which plan a run has, and what is expected of it. */
#ifndef TUTTI_TRAIN_PLAN_CHOICE_H
#define TUTTI_TRAIN_PLAN_CHOICE_H

#include "plan/predict.h"
#include "step/rank.h"

typedef struct tutti_plan_question {
    const tutti_rank *me;
    const tutti_net *net;
    const char *name; /* "data", "model", a file; "auto" (or NULL) searches for the fastest */
    int batch;
    int grains;
    int micro_batch; /* 0: all samples at once */
    tutti_optimizer_cost optimizer;
    bool overlaps; /* communicates behind the computing */
    bool sends;    /* messages were asked for, also where memory could be shared */
    double peak;   /* FLOP/s of a rank */
    const tutti_log *log;
} tutti_plan_question;

typedef struct tutti_forecast {
    tutti_plan *plan;             /* the same on all ranks */
    tutti_prediction *prediction; /* of a step; on rank 0 and if there is a platform, else NULL */
    char note[160];               /* on what it stands */
    bool is_accountable;          /* on measurements of this machine */
    double peak;                  /* FLOP/s of a rank as measured, on rank 0; 0: not measured */
} tutti_forecast;

/* Collective. */
tutti_status tutti_forecast_init(tutti_forecast *out,
                                 const tutti_plan_question *question) TUTTI_MUST_CHECK;

/* Collective. Predicts the same plan's step anew, when more is known than when it was chosen. */
tutti_status tutti_forecast_again(tutti_forecast *forecast,
                                  const tutti_plan_question *question) TUTTI_MUST_CHECK;
void tutti_forecast_deinit(tutti_forecast *forecast); /* all zero is fine; leaves it so */

#endif
