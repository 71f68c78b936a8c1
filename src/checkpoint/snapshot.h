/* A snapshot: what this rank writes into a checkpoint, as it was at one step. Its pieces of all
 * tensors are in memory, in the files' layout and order, so that a thread can write them while
 * training changes what they were copied from. Inside the room only. */
#ifndef TUTTI_CHECKPOINT_SNAPSHOT_H
#define TUTTI_CHECKPOINT_SNAPSHOT_H

#include "checkpoint/files.h"

typedef struct tutti_snapshot tutti_snapshot;

/* 'counts' are the tensors of each file. */
tutti_status tutti_snapshot_create(tutti_snapshot **out,
                                   const int counts[TUTTI_PARTS]) TUTTI_MUST_CHECK;
void tutti_snapshot_destroy(tutti_snapshot **snapshot);

/* Says that this rank writes elements first .. first+count-1 of a tensor. Once for a tensor, and
 * before the memory is taken; of tensors that are not named it writes nothing. */
void tutti_snapshot_add(tutti_snapshot *snapshot, tutti_checkpoint_part part, int tensor,
                        int64_t first, int64_t count);
tutti_status tutti_snapshot_take_memory(tutti_snapshot *snapshot) TUTTI_MUST_CHECK;

/* Where element 'element' of a tensor goes; those after it follow. */
float *tutti_snapshot_place(const tutti_snapshot *snapshot, tutti_checkpoint_part part, int tensor,
                            int64_t element);

/* Writes all pieces, in the order of the files. */
tutti_status tutti_snapshot_write(const tutti_snapshot *snapshot,
                                  tutti_checkpoint *checkpoint) TUTTI_MUST_CHECK;

#endif
