/* What a stepper consists of. Inside the room only. */
#ifndef TUTTI_STEP_PARTS_H
#define TUTTI_STEP_PARTS_H

#include "kernel/ops.h"
#include "kernel/targets.h"
#include "step/stepper.h"

/* Parameters that are updated alike: floats up to 'end' of a layer's region. */
typedef struct tutti_treatment {
    size_t end;
    double lr_scale;
    bool decays;
    bool averages; /* instead: keep * w + add * g */
    float keep, add;
    bool counts; /* whole numbers, whose average would be none */
} tutti_treatment;

/* How one layer's parameters are kept the same everywhere. */
typedef struct tutti_sync {
    tutti_stepper *stepper;
    int layer;
    tutti_region region;
    tutti_group *across;       /* the ranks that hold the same parameters; NULL: all */
    int holders;               /* their number */
    tutti_exchange *exchange;  /* reduce, update, broadcast; NULL with one holder or clipping */
    tutti_exchange *reduce;    /* with clipping: the sum only; then, when the norm is known, */
    tutti_exchange *broadcast; /* the new parameters */
    tutti_exchange *swap;      /* the average, or the parameters again; NULL: broadcast does that */
    size_t begin, end;         /* the strip this rank updates, within the region */
    float *state[TUTTI_MAX_STATES]; /* of the strip: what the optimizer keeps */
    float *average;                 /* of the strip; NULL: none is kept */
    tutti_how how;                  /* of the step whose gradient is under way */
    int treatment_count;
    tutti_treatment *treatments; /* of the region, run after run */
    double exposed;              /* seconds the forward pass waited for these parameters */
    double recorded;             /* when the exchange that a trace shows last was submitted */
} tutti_sync;

enum { TUTTI_MOST_SPLITS = 32 };

/* Moves of the model, and the groups of ranks they are inside of. */
typedef struct tutti_moves {
    tutti_exchange **exchanges; /* by move; NULL behind the last */
    int begun;                  /* the one that was started early, plus 1; 0: none */
    tutti_group *inside[TUTTI_MOST_SPLITS];
    int groups[TUTTI_MOST_SPLITS], inside_count;
} tutti_moves;

typedef struct tutti_pulse tutti_pulse;
typedef struct tutti_divisor tutti_divisor;

struct tutti_stepper {
    tutti_stepper_options options;
    int rank, size;
    tutti_common *common; /* where parameters and gradients lie; NULL: in memory of this rank */
    tutti_model *model;
    tutti_sync *syncs; /* one for each layer with parameters, in the order of the net */
    int sync_count;
    int *sync_of; /* by layer, -1 for none */
    tutti_moves moves;
    tutti_pulse *pulse;
    tutti_divisor *divisor;                   /* NULL: it is the number of samples */
    double loss_divisors[TUTTI_MOST_TARGETS]; /* of the last step */
    tutti_how how;                            /* of the step that is being computed */
    int64_t step;                             /* steps done */
    double norm;                              /* of the last step's gradient */
    double exposed, computed;
};

/* ---- stepper.c ---- */

tutti_model_options tutti_stepper_model_options(tutti_stepper *stepper);

/* ---- sync.c ---- */

tutti_status tutti_sync_create(tutti_stepper *stepper) TUTTI_MUST_CHECK;
void tutti_sync_destroy(tutti_stepper *stepper);
tutti_model_hooks tutti_sync_hooks(tutti_stepper *stepper);

/* Collective. After the model's pass: what was not overlapped is done now. */
tutti_status tutti_sync_finish(tutti_stepper *stepper) TUTTI_MUST_CHECK;

/* Collective. Waits until all parameters have arrived. */
tutti_status tutti_sync_settle(tutti_stepper *stepper) TUTTI_MUST_CHECK;

/* Waits for an exchange of a layer and adds the seconds to *exposed and the stepper's; the trace
 * gets the waiting, and the exchange once for each run, however often it is waited for. */
tutti_status tutti_sync_wait(tutti_stepper *stepper, tutti_exchange *exchange, int layer,
                             double *exposed, double *recorded) TUTTI_MUST_CHECK;

/* ---- update.c ---- */

/* What the next step's updates are done with. */
void tutti_update_prepare(tutti_stepper *stepper, double lr);

/* Memory for what the optimizer keeps of the strip. */
tutti_status tutti_update_create(tutti_sync *sync) TUTTI_MUST_CHECK;
void tutti_update_destroy(tutti_sync *sync);

/* The exchange's update (tutti_update_fn); 'user' is the sync. */
void tutti_update_piece(void *user, const float *a, const float *b, size_t begin, size_t end);

/* The whole strip, by all threads, from the sum in the first partial gradient. */
void tutti_update_strip(tutti_sync *sync);

/* ---- average.c ---- */

/* After an update of floats begin .. end-1 of the region, which are treated alike. */
void tutti_average_follow(const tutti_sync *sync, tutti_exec exec, const tutti_treatment *treatment,
                          tutti_range run);

/* ---- moves.c ---- */

tutti_status tutti_moves_create(tutti_stepper *stepper) TUTTI_MUST_CHECK;
void tutti_moves_destroy(tutti_stepper *stepper);

/* The model's hooks. */
tutti_status tutti_moves_carry_out(void *stepper, int index) TUTTI_MUST_CHECK;
tutti_status tutti_moves_start(void *stepper, int index) TUTTI_MUST_CHECK;

/* ---- gradient_norm.c ---- */

/* Collective. The Euclidean norm of the gradient whose sums the reduce exchanges left behind; the
 * same bits for any number of ranks and any plan. */
tutti_status tutti_gradient_norm(tutti_stepper *stepper, double *norm) TUTTI_MUST_CHECK;

/* ---- gather.c ---- */

typedef struct tutti_gather {
    tutti_exchange *exchange; /* NULL with one rank */
    double *all;              /* [rank][stride] */
    size_t *cuts;
    size_t stride; /* doubles of a rank */
} tutti_gather;

tutti_status tutti_gather_create(tutti_gather *gather, const tutti_stepper *stepper,
                                 const char *name, int doubles) TUTTI_MUST_CHECK;
void tutti_gather_destroy(tutti_gather *gather);
double *tutti_gather_of(const tutti_gather *gather, int rank);

/* A sum over all grains: each rank puts the roots of its leaves, one a grain, at out[0] and on;
 * what was gathered, 'place' doubles into each rank's, is joined in the order of the tree. */
int tutti_gather_roots_most(const tutti_stepper *stepper); /* of any rank */
void tutti_gather_put_roots(const tutti_stepper *stepper, const double *leaves, double *out);
double tutti_gather_join_roots(const tutti_stepper *stepper, const tutti_gather *gather, int place);

/* ---- divisor.c ---- */

tutti_status tutti_divisor_create(tutti_stepper *stepper) TUTTI_MUST_CHECK;
void tutti_divisor_destroy(tutti_divisor **divisor);

/* Collective. Before the model's pass. */
void tutti_divisor_start(tutti_stepper *stepper, const tutti_samples *samples);

/* Collective. The model's hook. */
tutti_status tutti_divisor_wait(void *stepper,
                                double divisors[TUTTI_MOST_TARGETS]) TUTTI_MUST_CHECK;

/* ---- pulse.c ---- */

tutti_status tutti_pulse_create(tutti_stepper *stepper) TUTTI_MUST_CHECK;
void tutti_pulse_destroy(tutti_pulse **pulse);

/* Collective. Sends what this rank has to say about the step just done, after taking in the news
 * of the step before (none after the first). */
tutti_status tutti_pulse_beat(tutti_stepper *stepper, tutti_note mine,
                              tutti_news *news) TUTTI_MUST_CHECK;

/* Collective. Waits for the news of the last step sent. */
tutti_status tutti_pulse_flush(tutti_stepper *stepper, tutti_news *news) TUTTI_MUST_CHECK;

#endif
