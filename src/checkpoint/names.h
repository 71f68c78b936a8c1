/* Names of a checkpoint's files, shared by writing and finding. */
#ifndef TUTTI_CHECKPOINT_NAMES_H
#define TUTTI_CHECKPOINT_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"
#include "checkpoint/files.h"

#define TUTTI_SUMS_FILE  "SHA256SUMS"
#define TUTTI_STATE_FILE "state.json"
#define TUTTI_MARK       "rank_" /* how the marks of ranks that have flushed begin */

enum {
    TUTTI_CHECKPOINT_FILES = 4,
    TUTTI_STEP_NAME_BYTES = 32 /* "step_" and any number of steps */
};
extern const char *const tutti_checkpoint_files[TUTTI_CHECKPOINT_FILES]; /* by part; the state */

#define TUTTI_MODEL_FILE   "model.safetensors"
#define TUTTI_AVERAGE_FILE "ema.safetensors" /* the only one that a checkpoint may do without */

/* 'directory'/'name' with 'suffix' behind it. */
tutti_status tutti_checkpoint_path(char out[TUTTI_PATH_BYTES], const char *directory,
                                   const char *name, const char *suffix) TUTTI_MUST_CHECK;

void tutti_checkpoint_step_name(char out[TUTTI_STEP_NAME_BYTES], int64_t step);
int64_t tutti_checkpoint_step_of(const char *name); /* -1: not the name of a finished checkpoint */

/* The steps of the finished checkpoints of a run in increasing order, to be given to tutti_free. */
tutti_status tutti_checkpoint_steps(int64_t **out, int *count, const char *run) TUTTI_MUST_CHECK;

/* Where a link of the run ("latest", "best") points to; -1: nowhere. */
int64_t tutti_checkpoint_link(const char *run, const char *link);

/* ---- temporary.c ---- */

enum { TUTTI_TEMPORARY_BYTES = 160 };

/* "step_00001200.node7-4711-9f86d081.tmp" for "step_00001200": host, pid and chance, so that no two
 * processes ever make the same name. */
void tutti_temporary_name(char out[TUTTI_TEMPORARY_BYTES], const char *what);

/* Is this entry of a run's directory a temporary name whose maker is gone, or is this process? On
 * another host that cannot be seen; 'alone', nobody else writes in this run, so it is. */
bool tutti_temporary_is_left(const char *entry, bool alone);

#endif
