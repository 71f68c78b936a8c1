/* A keeper's tensors. Inside the room only. */
#ifndef TUTTI_CHECKPOINT_TENSORS_H
#define TUTTI_CHECKPOINT_TENSORS_H

#include "checkpoint/keeper.h"
#include "checkpoint/writer.h"

struct tutti_keeper {
    tutti_comm *comm;
    tutti_stepper *stepper;
    tutti_model *model; /* the stepper's, and its net */
    const tutti_net *net;
    const tutti_log *log;
    const tutti_optimizer *optimizer; /* NULL: the stepper has none, it only evaluates */
    int states;                       /* that the optimizer keeps of each trained parameter */
    tutti_safetensors_layout *layouts[TUTTI_PARTS];
    int *state_at;    /* by parameter: the tensor of its first state; -1: it is not trained */
    char **names;     /* of the states' tensors */
    float *scratch;   /* rows in torch's layout */
    float *collected; /* one state of a layer */
    tutti_exchange **collects; /* by layer: a state of all strips; NULL where one rank has it all */
    const tutti_topology *topology;
    tutti_snapshot *snapshot; /* NULL: none was needed yet */
    tutti_writer *writer;     /* likewise */
    int64_t in_flight;        /* the step of the checkpoint being written; -1: none is */
};

tutti_status tutti_tensors_create(tutti_keeper *keeper) TUTTI_MUST_CHECK;
void tutti_tensors_destroy(tutti_keeper *keeper);

/* Before the first write: exchanges are created in one order on all ranks. */
tutti_status tutti_tensors_create_collects(tutti_keeper *keeper) TUTTI_MUST_CHECK;

/* Collective. Writes this rank's pieces and flushes. */
tutti_status tutti_tensors_write(tutti_keeper *keeper,
                                 tutti_checkpoint *checkpoint) TUTTI_MUST_CHECK;

/* Makes the keeper's snapshot, if it has none. */
tutti_status tutti_tensors_create_snapshot(tutti_keeper *keeper) TUTTI_MUST_CHECK;

/* Collective. Copies this rank's pieces into the snapshot. */
tutti_status tutti_tensors_copy(tutti_keeper *keeper) TUTTI_MUST_CHECK;

/* Reads what this rank holds from the file at 'path'; *missing counts tensors that are not there or
 * do not fit, which the log names. */
tutti_status tutti_tensors_read(tutti_keeper *keeper, tutti_checkpoint_part part, const char *path,
                                int *missing) TUTTI_MUST_CHECK;

/* Reads what this rank holds of one parameter from tensor 'at' of a file, which has its shape. */
tutti_status tutti_tensors_read_parameter(tutti_keeper *keeper, const tutti_safetensors *file,
                                          int at, int param) TUTTI_MUST_CHECK;

/* ---- layouts.c ---- */

/* Which tensors the two files hold: the parameters; what the optimizer keeps of those that are
 * trained, under their names and the optimizer's, and if it counts steps their number, "step". */
tutti_status tutti_layouts_create(tutti_keeper *keeper) TUTTI_MUST_CHECK;
void tutti_layouts_destroy(tutti_keeper *keeper);

#endif
