/* Checkpoints while training goes on: at most one is being written, what becomes of it is known
 * later, and a full disk is no reason to end. */
#ifndef TUTTI_TRAIN_SAVING_H
#define TUTTI_TRAIN_SAVING_H

#include "train/run.h"

typedef struct tutti_saving {
    bool owes; /* a checkpoint that the disk had no room for */
    char why[256];
    tutti_rhythm retry; /* when it is tried again */
    double kept_best;   /* of the best checkpoint on the disk, and its step */
    int64_t kept_step;
    double sent_best; /* likewise, as the one being written says itself */
    int64_t sent_step;
    int64_t sent; /* the step of the one being written */
    bool said;    /* that training had to wait for one */
    bool warned;  /* that a launcher will not wait for one */
    double began; /* when it was started */
    double took;  /* seconds of the first one */
} tutti_saving;

/* Beginning or resumed: what is on the disk. */
void tutti_saving_init(tutti_saving *saving, const tutti_run *run);

/* What a rank says of its checkpoint in its notes, beside the requests it heard (signals.h). */
unsigned tutti_saving_bits(const tutti_run *run);

/* Collective. The stepper is settled. Waits for the one before. */
tutti_status tutti_saving_start(tutti_saving *saving, tutti_run *run) TUTTI_MUST_CHECK;

/* Collective. Waits for the one being written, if there is one. */
tutti_status tutti_saving_end(tutti_saving *saving, tutti_run *run) TUTTI_MUST_CHECK;

/* Collective, with the same news on all ranks: ends it when they say that it is done. */
tutti_status tutti_saving_hear(tutti_saving *saving, tutti_run *run,
                               const tutti_news *news) TUTTI_MUST_CHECK;

/* Says, once, if a stop request would come too late for a checkpoint: a step takes 'step' seconds,
 * the request is heard a step later, and the launcher kills after 'grace' seconds (0: it does
 * not). */
void tutti_saving_foresee(tutti_saving *saving, const tutti_run *run, double step, double grace);

#endif
