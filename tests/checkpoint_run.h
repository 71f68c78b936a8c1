/* A small run whose checkpoints are tested. The system calls that change a disk are wrapped, so
 * that each of them can fail, or be the last one. */
#ifndef CHECKPOINT_RUN_H
#define CHECKPOINT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/names.h"
#include "checkpoint/state.h"
#include "scratch.h"

extern int calls_left;   /* until the fault; negative: none */
extern bool fault_kills; /* it ends the process; else the call fails */

extern int64_t best_so_far; /* the step; -1: none */
extern int warnings;        /* that the log has heard */

typedef struct fixture {
    scratch dir;
    char run[512];
    tutti_safetensors_layout *layout;
} fixture;

int setup(void **state);
int teardown(void **state);

tutti_state state_at(int64_t step);

tutti_status begin(const fixture *f, tutti_checkpoint **out, int64_t step, int rank, int ranks,
                   const char *name);

/* Rank 'share' of 'shares' writes and flushes its pieces. */
tutti_status write_all(tutti_checkpoint *c, int64_t step, int share, int shares);

/* A checkpoint from begin to finish, by one rank. */
tutti_status save(const fixture *f, int64_t step, bool best, int keep);
void assert_saved(const fixture *f, int64_t step, bool best, int keep);

/* The step that would be resumed; it is whole and holds that step's numbers. -1: none. */
int64_t resumed(const fixture *f);

bool exists(const fixture *f, const char *name); /* in the run */

/* Runs 'format' with the run's path for every @. */
int shell(const char *format, const char *run);

#endif
