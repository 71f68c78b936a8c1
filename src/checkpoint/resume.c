/* A run goes on only as what it was. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/tensors.h"

static tutti_status check_numbers(const tutti_state *was, const tutti_state *now, const char *path)
{
    const struct {
        const char *option;
        int64_t was, is;
    } same[] = {
        {"--batch-size", was->batch_size, now->batch_size},
        {"--grains", was->grains, now->grains},
        {"--seed", was->seed, now->seed},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].was != same[i].is)
            return tutti_fail(TUTTI_MISMATCH,
                              "%s was trained with %s %lld, not %lld: give it the "
                              "same to go on, or start from it with --weights",
                              path, same[i].option, (long long)same[i].was, (long long)same[i].is);
    return TUTTI_OK;
}

static tutti_status check_state(const tutti_state *was, const tutti_state *now, const char *path)
{
    if (strcmp(was->net_sha256, now->net_sha256))
        return tutti_fail(TUTTI_MISMATCH, "%s is a checkpoint of another net (%s) than %s", path,
                          was->net, now->net);
    TUTTI_TRY(check_numbers(was, now, path));
    const char *data = tutti_state_option_value(was, "data-hash");
    const char *data_now = tutti_state_option_value(now, "data-hash");
    if (data && data_now && strcmp(data, data_now))
        return tutti_fail(TUTTI_MISMATCH, "%s was trained on other data than --data names", path);
    return TUTTI_OK;
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
    if (!missing) return TUTTI_OK;
    return tutti_fail(TUTTI_CHECKPOINT, "%s: %d tensors do not fit", path, missing);
}

static tutti_status read_checkpoint(tutti_keeper *k, const char *directory, const tutti_state *now,
                                    tutti_state_file **found)
{
    char path[TUTTI_PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/state.json", directory);
    TUTTI_TRY(tutti_state_open(found, path));
    const tutti_state *was = tutti_state_of(*found);
    TUTTI_TRY(check_state(was, now, directory));
    TUTTI_TRY(read_tensors(k, directory));
    tutti_session_begin_at(k->session, was->step);
    return TUTTI_OK;
}

tutti_status tutti_keeper_resume(tutti_keeper *k, const char *where, bool must_exist,
                                 const tutti_state *now, tutti_state_file **found)
{
    char directory[TUTTI_PATH_BYTES];
    bool exists = false;
    *found = NULL;
    tutti_status s = tutti_checkpoint_find(directory, &exists, where);
    if (s == TUTTI_OK && !exists && must_exist)
        s = tutti_fail(TUTTI_IO, "--resume %s: there is no checkpoint", where);
    if (s == TUTTI_OK && exists) s = read_checkpoint(k, directory, now, found);
    s = tutti_comm_agree(k->comm, s);
    if (s == TUTTI_OK)
        s = tutti_comm_check_same(k->comm, "the checkpoint's step",
                                  (uint64_t)tutti_session_steps(k->session));
    if (s != TUTTI_OK) tutti_state_close(found);
    return s;
}
