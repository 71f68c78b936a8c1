/* A keeper's tensors. Inside the room only. */
#ifndef TUTTI_CHECKPOINT_TENSORS_H
#define TUTTI_CHECKPOINT_TENSORS_H

#include "checkpoint/keeper.h"

struct tutti_keeper {
    tutti_comm *comm;
    tutti_session *session;
    tutti_model *model; /* the session's, and its net */
    const tutti_net *net;
    const tutti_log *log;
    tutti_safetensors_layout *layout; /* of parameters, and of their momentum */
    float *scratch;                   /* rows in torch's layout */
    float *collected;                 /* one layer's momentum */
    tutti_exchange **collects; /* by layer: the momentum of all strips; NULL where one has it all */
};

tutti_status tutti_tensors_create(tutti_keeper *keeper) TUTTI_MUST_CHECK;
void tutti_tensors_destroy(tutti_keeper *keeper);

/* Before the first write: exchanges are created in one order on all ranks. */
tutti_status tutti_tensors_create_collects(tutti_keeper *keeper) TUTTI_MUST_CHECK;

/* Collective. Writes this rank's pieces and flushes. */
tutti_status tutti_tensors_write(tutti_keeper *keeper,
                                 tutti_checkpoint *checkpoint) TUTTI_MUST_CHECK;

/* Reads what this rank holds from the file at 'path'; *missing counts tensors that are not there or
 * do not fit, which the log names. */
tutti_status tutti_tensors_read(tutti_keeper *keeper, tutti_checkpoint_part part, const char *path,
                                int *missing) TUTTI_MUST_CHECK;

#endif
