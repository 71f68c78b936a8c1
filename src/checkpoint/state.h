/* state.json: where a run stands, beside its weights.
 *
 * The bytes are a function of the values: fields in a fixed order, reals with seventeen digits.
 * Nothing in it may depend on the number of ranks, the machine or the hour. */
#ifndef TUTTI_CHECKPOINT_STATE_H
#define TUTTI_CHECKPOINT_STATE_H

#include <stdint.h>
#include "base/status.h"

typedef struct tutti_state_option {
    const char *name, *value;
} tutti_state_option;

typedef struct tutti_state_metric {
    const char *name;
    double value; /* comes back bit for bit; NaN and infinities are left out */
} tutti_state_metric;

typedef struct tutti_state {
    int64_t step;         /* steps done */
    int64_t epoch;        /* where the next step begins: epoch, and sample in its order */
    int64_t epoch_sample; /* 0 .. samples-1 */
    int64_t seed;
    int64_t batch_size, grains;
    const char *net; /* its name, and the SHA-256 of its text in hexadecimal */
    const char *net_sha256;
    const tutti_state_option *options; /* what must be equal for equal runs, in a fixed order */
    int option_count;
    const tutti_state_metric *metrics; /* loss, top1, best_top1, best_step, ... */
    int metric_count;
} tutti_state;

/* Gives the bytes of state.json, to be given to tutti_free. */
tutti_status tutti_state_text(char **out, const tutti_state *state) TUTTI_MUST_CHECK;

/* Reads a state; everything in it belongs to the handle. What is not a state is TUTTI_CHECKPOINT
 * and names the file and the field. */
typedef struct tutti_state_file tutti_state_file;
tutti_status tutti_state_open(tutti_state_file **out, const char *path) TUTTI_MUST_CHECK;
void tutti_state_close(tutti_state_file **file);
const tutti_state *tutti_state_of(const tutti_state_file *file);

const char *tutti_state_option_value(const tutti_state *state, const char *name); /* or NULL */
double tutti_state_metric_value(const tutti_state *state, const char *name);      /* or NaN */

#endif
