#include "checkpoint/keeper.h"

#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/names.h"
#include "checkpoint/tensors.h"

tutti_status tutti_keeper_create(tutti_keeper **out, const tutti_rank *rank, tutti_stepper *stepper,
                                 const tutti_log *log)
{
    tutti_keeper *k = NULL;
    TUTTI_TRY(tutti_alloc(&k, 1, sizeof *k));
    *k = (tutti_keeper){.comm = rank->comm,
                        .topology = rank->topology,
                        .in_flight = -1,
                        .stepper = stepper,
                        .model = tutti_stepper_model(stepper),
                        .net = tutti_model_net(tutti_stepper_model(stepper)),
                        .log = log};
    const tutti_status s = tutti_tensors_create(k);
    if (s == TUTTI_OK) *out = k;
    else tutti_keeper_destroy(&k);
    return s;
}

void tutti_keeper_destroy(tutti_keeper **keeper)
{
    if (!*keeper) return;
    tutti_writer_destroy(&(*keeper)->writer);
    tutti_tensors_destroy(*keeper);
    tutti_free(*keeper);
    *keeper = NULL;
}

/* Collective. Rank 0 makes the directory, under a name that the others learn from it. */
static tutti_status begin(tutti_keeper *k, const char *run, int64_t step, tutti_checkpoint **out)
{
    char name[TUTTI_TEMPORARY_BYTES] = "";
    const tutti_checkpoint_spec spec = {
        .run = run,
        .step = step,
        .layouts = {k->layouts[TUTTI_PART_MODEL], k->layouts[TUTTI_PART_OPTIMIZER],
                    k->layouts[TUTTI_PART_AVERAGE]},
        .rank = tutti_comm_rank(k->comm),
        .ranks = tutti_comm_size(k->comm),
        .name = name,
    };
    tutti_status s = TUTTI_OK;
    if (spec.rank == 0) s = tutti_checkpoint_begin(out, &spec);
    if ((s = tutti_comm_agree(k->comm, s)) != TUTTI_OK || spec.ranks == 1) return s;
    if (spec.rank == 0) snprintf(name, sizeof name, "%s", tutti_checkpoint_name(*out));
    TUTTI_TRY(tutti_comm_broadcast(k->comm, 0, name, sizeof name));
    if (spec.rank) s = tutti_checkpoint_begin(out, &spec);
    return tutti_comm_agree(k->comm, s);
}

/* What the first checkpoint needs. */
static tutti_status prepare(tutti_keeper *k, const tutti_save *save, char **state)
{
    TUTTI_TRY(tutti_state_text(state, save->state));
    if (!k->writer) TUTTI_TRY(tutti_writer_create(&k->writer, k->topology));
    if (!save->sync) TUTTI_TRY(tutti_tensors_create_snapshot(k));
    return tutti_tensors_create_collects(k);
}

/* Collective. This rank's pieces, copied or written. */
static tutti_status take(tutti_keeper *k, const tutti_save *save, tutti_checkpoint *ck)
{
    return tutti_comm_agree(k->comm,
                            save->sync ? tutti_tensors_write(k, ck) : tutti_tensors_copy(k));
}

tutti_status tutti_keeper_save(tutti_keeper *k, const tutti_save *save)
{
    tutti_checkpoint *ck = NULL;
    char *state = NULL;
    TUTTI_ASSERT(k->in_flight < 0);
    tutti_status s = tutti_comm_agree(k->comm, prepare(k, save, &state));
    if (s == TUTTI_OK) s = begin(k, save->run, save->state->step, &ck);
    if (s == TUTTI_OK) s = take(k, save, ck);
    if (s != TUTTI_OK) {
        tutti_checkpoint_abandon(&ck);
        tutti_free(state);
        return s;
    }
    const tutti_writer_job job = {.checkpoint = ck,
                                  .snapshot = save->sync ? NULL : k->snapshot,
                                  .state = state,
                                  .options = save->finish,
                                  .finishes = tutti_comm_rank(k->comm) == 0};
    tutti_writer_start(k->writer, &job);
    k->in_flight = save->state->step;
    return save->sync ? tutti_keeper_wait(k) : TUTTI_OK;
}

bool tutti_keeper_writes(tutti_keeper *k)
{
    return k->in_flight >= 0 && !tutti_writer_is_done(k->writer);
}

bool tutti_keeper_has_failed(tutti_keeper *k)
{
    return k->in_flight >= 0 && tutti_writer_has_failed(k->writer);
}

bool tutti_keeper_has_one(const tutti_keeper *k)
{
    return k->in_flight >= 0;
}

bool tutti_keeper_is_certain(const tutti_keeper *k, int64_t step, bool writes, bool failed)
{
    return k->in_flight >= 0 && step > k->in_flight && (!writes || failed);
}

tutti_status tutti_keeper_wait(tutti_keeper *k)
{
    if (k->in_flight < 0) return TUTTI_OK;
    const tutti_status flushed = tutti_comm_agree(k->comm, tutti_writer_wait_flushed(k->writer));
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%s", tutti_message());
    const tutti_status finished = tutti_writer_wait(k->writer, flushed == TUTTI_OK);
    k->in_flight = -1;
    if (flushed != TUTTI_OK) return tutti_fail(flushed, "%s", sentence);
    return tutti_comm_agree(k->comm, finished);
}
