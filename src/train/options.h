/* The options of a run by name, in one table: what state.json keeps of them, what a run that goes
 * on takes from there, what it may change, and what all ranks must have alike. */
#ifndef TUTTI_TRAIN_OPTIONS_H
#define TUTTI_TRAIN_OPTIONS_H

#include <tutti/train.h>
#include "checkpoint/state.h"
#include "comm/comm.h"
#include "train/settings.h"

enum { TUTTI_KEPT_MOST = 64 };

/* Everything that makes two runs equal, as text: equal texts, equal runs. */
typedef struct tutti_kept {
    tutti_state_option list[TUTTI_KEPT_MOST]; /* owns the values */
    int count;
    int first; /* of those that state.json has no field of its own for */
} tutti_kept;

/* What files hold that options name. */
typedef struct tutti_contents {
    const char *data, *class_weights; /* their hashes */
} tutti_contents;

/* Of resolved options. */
tutti_status tutti_kept_init(tutti_kept *out, const tutti_train_options *options,
                             const tutti_settings *settings,
                             const tutti_contents *contents) TUTTI_MUST_CHECK;
void tutti_kept_deinit(tutti_kept *kept); /* all zero is fine; leaves it so */

/* Sets what is unset to what the run at 'path' was doing. Texts belong to 'was'. */
tutti_status tutti_options_take(tutti_train_options *options, const tutti_state *was,
                                const char *path) TUTTI_MUST_CHECK;

/* Is this still the run at 'path'? TUTTI_OTHER_RUN names the first option that is not as it was and
 * may not change. What may goes into 'note' as "lr 0.1 -> 0.01, keep 3 -> 5". */
tutti_status tutti_kept_compare(const tutti_kept *now, const tutti_state *was, const char *path,
                                char *note, size_t size) TUTTI_MUST_CHECK;

/* Collective. TUTTI_MISMATCH names an option that is not the same on all ranks: of these, and of
 * those that must be alike for ranks to meet. */
tutti_status tutti_kept_check_same(const tutti_kept *kept, const tutti_train_options *options,
                                   tutti_comm *comm) TUTTI_MUST_CHECK;

#endif
