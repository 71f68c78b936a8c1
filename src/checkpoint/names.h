/* Names of a checkpoint's files, shared by writing and finding. */
#ifndef TUTTI_CHECKPOINT_NAMES_H
#define TUTTI_CHECKPOINT_NAMES_H

#include <stdint.h>
#include "base/status.h"
#include "checkpoint/files.h"

#define TUTTI_SUMS_FILE "SHA256SUMS"

enum {
    TUTTI_CHECKPOINT_FILES = 3,
    TUTTI_STEP_NAME_BYTES = 32 /* "step_" and any number of steps */
};
extern const char *const tutti_checkpoint_files[TUTTI_CHECKPOINT_FILES];

/* 'directory'/'name' with 'suffix' behind it. */
tutti_status tutti_checkpoint_path(char out[TUTTI_PATH_BYTES], const char *directory,
                                   const char *name, const char *suffix) TUTTI_MUST_CHECK;

void tutti_checkpoint_step_name(char out[TUTTI_STEP_NAME_BYTES], int64_t step);
int64_t tutti_checkpoint_step_of(const char *name); /* -1: not the name of a finished checkpoint */

/* The steps of the finished checkpoints of a run in increasing order, to be given to tutti_free. */
tutti_status tutti_checkpoint_steps(int64_t **out, int *count, const char *run) TUTTI_MUST_CHECK;

/* Where a link of the run ("latest", "best") points to; -1: nowhere. */
int64_t tutti_checkpoint_link(const char *run, const char *link);

#endif
