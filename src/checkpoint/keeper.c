#include "checkpoint/keeper.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/names.h"
#include "checkpoint/tensors.h"

/* A network's file system may show a file to others late. */
enum { MARK_SECONDS = 90 };

tutti_status tutti_keeper_create(tutti_keeper **out, tutti_comm *comm, tutti_session *session,
                                 const tutti_log *log)
{
    tutti_keeper *k = NULL;
    TUTTI_TRY(tutti_alloc(&k, 1, sizeof *k));
    *k = (tutti_keeper){.comm = comm,
                        .session = session,
                        .model = tutti_session_model(session),
                        .net = tutti_model_net(tutti_session_model(session)),
                        .log = log};
    const tutti_status s = tutti_tensors_create(k);
    if (s == TUTTI_OK) *out = k;
    else tutti_keeper_destroy(&k);
    return s;
}

void tutti_keeper_destroy(tutti_keeper **keeper)
{
    if (!*keeper) return;
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
        .layouts = {k->layouts[TUTTI_PART_MODEL], k->layouts[TUTTI_PART_OPTIMIZER]},
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

/* All ranks have flushed and agreed on it: their marks are there, or will be seen. */
static tutti_status finish(tutti_checkpoint **ck, const char *state,
                           tutti_checkpoint_finish_options options)
{
    bool all = false;
    for (int i = 0; i < MARK_SECONDS * 10; i++) {
        TUTTI_TRY(tutti_checkpoint_is_flushed(*ck, &all));
        if (all) return tutti_checkpoint_finish(ck, state, options);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return tutti_fail(TUTTI_IO,
                      "'%s': not all ranks' pieces appear: do all ranks see the same "
                      "directory?",
                      tutti_checkpoint_name(*ck));
}

tutti_status tutti_keeper_save(tutti_keeper *k, const char *run, const tutti_state *state,
                               tutti_checkpoint_finish_options options)
{
    tutti_checkpoint *ck = NULL;
    char *text = NULL;
    tutti_status s = tutti_tensors_create_collects(k);
    if (s == TUTTI_OK) s = tutti_state_text(&text, state);
    if ((s = tutti_comm_agree(k->comm, s)) != TUTTI_OK) goto out;
    if ((s = begin(k, run, state->step, &ck)) != TUTTI_OK) goto out;
    if ((s = tutti_comm_agree(k->comm, tutti_tensors_write(k, ck))) != TUTTI_OK) goto out;
    if (tutti_comm_rank(k->comm) == 0) s = finish(&ck, text, options);
    s = tutti_comm_agree(k->comm, s);
out:
    tutti_checkpoint_abandon(&ck);
    tutti_free(text);
    return s;
}

/* A run or a checkpoint stands for its weights: the best ones of a run. */
static const char *weights_in(const char *path, char *out, size_t size)
{
    static const char *const places[] = {"best/model.safetensors", "latest/model.safetensors",
                                         "model.safetensors"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int n = snprintf(out, size, "%s/%s", path, places[i]);
        if (n > 0 && (size_t)n < size && access(out, R_OK) == 0) return out;
    }
    return path;
}

tutti_status tutti_keeper_load_weights(tutti_keeper *k, const char *where, bool all)
{
    int missing = 0;
    char found[TUTTI_PATH_BYTES + 64];
    const char *path = weights_in(where, found, sizeof found);
    tutti_status s = tutti_checkpoint_verify_file(path);
    if (s == TUTTI_OK) s = tutti_tensors_read(k, TUTTI_PART_MODEL, path, &missing);
    if (s == TUTTI_OK && (all ? missing > 0 : missing == k->net->param_count))
        s = tutti_fail(TUTTI_DATA, "%s: %d of the %d tensors of %s are missing or do not fit", path,
                       missing, k->net->param_count, k->net->name);
    return tutti_comm_agree(k->comm, s);
}
