/* Going on where a run stood. */
#include <stdio.h>

#include "checkpoint/tensors.h"

static tutti_status find(const char *where, bool must_exist, char path[TUTTI_PATH_BYTES],
                         tutti_state_file **found)
{
    char state[TUTTI_PATH_BYTES + 64];
    bool exists = false;
    TUTTI_TRY(tutti_checkpoint_find(path, &exists, where));
    if (!exists) path[0] = 0;
    if (!exists && must_exist)
        return tutti_fail(TUTTI_IO, "--resume %s: there is no checkpoint", where);
    if (!exists) return TUTTI_OK;
    snprintf(state, sizeof state, "%s/state.json", path);
    return tutti_state_open(found, state);
}

tutti_status tutti_resume_find(tutti_comm *comm, const char *where, bool must_exist,
                               char path[TUTTI_PATH_BYTES], tutti_state_file **found)
{
    *found = NULL;
    tutti_status s = tutti_comm_agree(comm, find(where, must_exist, path, found));
    if (s == TUTTI_OK)
        s = tutti_comm_check_same(comm, "the checkpoint's step",
                                  *found ? (uint64_t)tutti_state_of(*found)->step : UINT64_MAX);
    if (s != TUTTI_OK) tutti_state_close(found);
    return s;
}

static tutti_status read_tensors(tutti_keeper *k, const char *directory)
{
    char path[TUTTI_PATH_BYTES + 64];
    int missing = 0;
    snprintf(path, sizeof path, "%s/model.safetensors", directory);
    TUTTI_TRY(tutti_tensors_read(k, TUTTI_PART_MODEL, path, &missing));
    if (!missing && k->states) {
        snprintf(path, sizeof path, "%s/optimizer.safetensors", directory);
        TUTTI_TRY(tutti_tensors_read(k, TUTTI_PART_OPTIMIZER, path, &missing));
    }
    if (!missing && tutti_stepper_has_average(k->stepper)) {
        snprintf(path, sizeof path, "%s/ema.safetensors", directory);
        if (tutti_tensors_read(k, TUTTI_PART_AVERAGE, path, &missing))
            return tutti_fail(TUTTI_CHECKPOINT, "the checkpoint is damaged: %s", tutti_message());
    }
    if (!missing) return TUTTI_OK;
    return tutti_fail(TUTTI_CHECKPOINT, "%s: %d tensors do not fit", path, missing);
}

tutti_status tutti_keeper_restore(tutti_keeper *k, const char *path, int64_t step)
{
    TUTTI_TRY(tutti_comm_agree(k->comm, read_tensors(k, path)));
    tutti_stepper_begin_at(k->stepper, step);
    return TUTTI_OK;
}
