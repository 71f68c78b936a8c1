/* A thread that makes checkpoints, one at a time, while its owner goes on. It never communicates:
 * ranks see each other's marks in the file system, and agree on the outcome when they talk anyway
 * (keeper.c). Inside the room only. */
#ifndef TUTTI_CHECKPOINT_WRITER_H
#define TUTTI_CHECKPOINT_WRITER_H

#include "base/topology.h"
#include "checkpoint/snapshot.h"

typedef struct tutti_writer tutti_writer;

/* The caller may be pinned to a core; the thread is not: it has all of 'topology' (borrowed; NULL:
 * what the caller has). */
tutti_status tutti_writer_create(tutti_writer **out,
                                 const tutti_topology *topology) TUTTI_MUST_CHECK;

/* What was started is finished first, if this rank can do so without waiting for others. */
void tutti_writer_destroy(tutti_writer **writer);

typedef struct tutti_writer_job {
    tutti_checkpoint *checkpoint;   /* taken: finished or abandoned */
    const tutti_snapshot *snapshot; /* borrowed; NULL: this rank has flushed its pieces already */
    char *state;                    /* of state.json; taken (tutti_free) */
    tutti_checkpoint_finish_options options;
    bool finishes; /* rank 0: waits for the others' marks and finishes */
} tutti_writer_job;

/* The one before must have been waited for. */
void tutti_writer_start(tutti_writer *writer, const tutti_writer_job *job);

bool tutti_writer_is_done(tutti_writer *writer);
bool tutti_writer_has_failed(tutti_writer *writer); /* so far */

/* Waits until this rank's pieces are on the disk, or have failed to get there. */
tutti_status tutti_writer_wait_flushed(tutti_writer *writer) TUTTI_MUST_CHECK;

/* Waits for the end of the job. 'flushed' says whether all ranks have: then their marks are waited
 * for, though not for ever; else they will never come. Without a job: TUTTI_OK. */
tutti_status tutti_writer_wait(tutti_writer *writer, bool flushed) TUTTI_MUST_CHECK;

#endif
