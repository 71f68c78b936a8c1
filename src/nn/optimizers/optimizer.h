/* An optimizer is one record, in one file of this folder: its options, what it keeps for every
 * parameter from step to step and under which names, the bytes it moves, and the update itself. A
 * new one is its file and its name in meson.build here, which makes the table; it also needs a
 * kernel with the same bits on every instruction set (kernel/elementwise_tmpl.c, ops_kernels.h).
 *
 * What is kept is stored in strips: every rank has it for the parameters that it updates.
 * Checkpoints, the planner's times, memory and the header all read the record. */
#ifndef TUTTI_NN_OPTIMIZERS_OPTIMIZER_H
#define TUTTI_NN_OPTIMIZERS_OPTIMIZER_H

#include "base/text.h"
#include "kernel/ops.h"

/* One step for parameters that are treated alike. */
typedef struct tutti_how {
    double lr;        /* scaled as the parameters want it */
    double decay;     /* 0 for those that are left out of weight decay */
    float scale;      /* of the gradient: 1, or less to clip its norm */
    double number[4]; /* the optimizer's own, from prepare */
} tutti_how;

typedef struct tutti_optimizer {
    const char *name; /* in --optimizer and "default optimizer" */
    const char *what; /* it is */

    const tutti_key *keys; /* into the settings; NULL: none. A checkpoint keeps all of them */
    size_t settings_size;  /* at most TUTTI_OPTIMIZER_BYTES */
    const void *defaults;
    double usual_lr, usual_decay; /* where nobody says other ones */

    /* Floats kept for each parameter, and what they are called in files, after the parameter's own
     * name. */
    int (*states)(const void *settings);
    const char *state_names[TUTTI_MAX_STATES];
    /* Is the number of updates done part of what it keeps? Then files hold it as "step". */
    bool counts_steps;
    /* Floats that an update reads and writes for each parameter, besides its gradient. */
    int (*accesses)(const void *settings);

    /* Sets how->number for step 'step', 0 the first; in double, same bits everywhere. NULL: no. */
    void (*prepare)(tutti_how *how, const void *settings, int64_t step);
    void (*update)(tutti_exec exec, const void *settings, const tutti_how *how,
                   const tutti_update *update);
} tutti_optimizer;

extern const tutti_optimizer *const tutti_optimizers[]; /* ends with NULL */

/* ---- one, with its settings ---- */

enum { TUTTI_OPTIMIZER_BYTES = 64, TUTTI_OPTIMIZER_TEXT = 160 };

typedef struct tutti_chosen_optimizer {
    const tutti_optimizer *is;
    union {
        double aligned;
        char bytes[TUTTI_OPTIMIZER_BYTES];
    } settings;
} tutti_chosen_optimizer;

/* "adamw" or "adamw,beta2=0.99", of the optimizers given: tutti_optimizers, or a test's own. What
 * is not said is the default. 'where' names the option or the place in messages. */
tutti_status tutti_optimizer_parse(tutti_chosen_optimizer *out, const char *text, const char *where,
                                   const tutti_optimizer *const *known) TUTTI_MUST_CHECK;

/* All of it as such a text, every setting named: equal texts, equal updates. */
void tutti_optimizer_text(const tutti_chosen_optimizer *chosen, char text[TUTTI_OPTIMIZER_TEXT]);

/* Sets one setting by name; false if the optimizer has none of that name. */
bool tutti_optimizer_set(tutti_chosen_optimizer *chosen, const char *name, double value);

/* What it keeps and moves for each parameter, in floats; accesses besides the gradient. */
typedef struct tutti_optimizer_cost {
    int states, accesses;
} tutti_optimizer_cost;
tutti_optimizer_cost tutti_optimizer_cost_of(const tutti_chosen_optimizer *chosen);

/* x^n, n >= 0, by multiplications alone. */
double tutti_power(double x, int64_t n);

#endif
