#include "train/session.h"

#include <string.h>

#include "base/memory.h"

int tutti_session_parameter_count(const tutti_session *s)
{
    return s->run.net->param_count;
}

tutti_parameter tutti_session_parameter(const tutti_session *s, int index)
{
    const tutti_param *p = &s->run.net->params[index];
    tutti_parameter out = {.name = p->name,
                           .dim_count = p->dim_count,
                           .count = p->count,
                           .is_trained = p->role == TUTTI_TRAINED};
    memcpy(out.dims, p->dims, sizeof out.dims);
    return out;
}

int tutti_session_find(const tutti_session *s, const char *name)
{
    return tutti_net_find_param(s->run.net, name);
}

static tutti_status check_index(const tutti_session *s, int index)
{
    const int count = s->run.net->param_count;
    if (index >= 0 && index < count) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "parameter %d: %s has 0 to %d", index, s->run.net->name,
                      count - 1);
}

/* ---- reading ---- */

/* Member m of a group holds rows of its own: floats cuts[m] .. cuts[m+1]-1 of the tensor. */
static tutti_status rows_of_members(tutti_session *s, const tutti_param *p, tutti_rows mine,
                                    int members, size_t *cuts)
{
    tutti_comm *comm = s->run.me.comm;
    const size_t row = p->count / (size_t)p->dims[0];
    int *firsts = NULL;
    TUTTI_TRY(tutti_alloc(&firsts, (size_t)s->run.me.size, sizeof *firsts));
    const tutti_status status = tutti_comm_allgather(comm, &mine.first, sizeof mine.first, firsts);
    for (int m = 0; m < members; m++) cuts[m] = (size_t)firsts[m] * row;
    cuts[members] = p->count;
    tutti_free(firsts);
    return status;
}

/* Collective. Every member of a group brings its rows. */
static tutti_status gather(tutti_session *s, const tutti_param *p, int groups, float *values)
{
    tutti_group *inside = NULL;
    tutti_exchange *x = NULL;
    size_t *cuts = NULL;
    tutti_comm *comm = s->run.me.comm;
    const int members = s->run.me.size / groups;
    const tutti_slice slice =
        tutti_model_slice(tutti_stepper_model(s->run.stepper), (int)(p - s->run.net->params));
    tutti_status status = tutti_alloc(&cuts, (size_t)members + 1, sizeof *cuts);
    if (status == TUTTI_OK) status = tutti_group_create_inside(&inside, comm, groups);
    status = tutti_comm_agree(comm, status);
    if (status == TUTTI_OK) status = rows_of_members(s, p, slice.rows, members, cuts);
    const tutti_exchange_spec spec = {
        .name = p->name, .group = inside, .count = p->count, .cuts = cuts, .whole = values};
    if (status == TUTTI_OK) status = tutti_exchange_create(&x, comm, &spec);
    if (status == TUTTI_OK) status = tutti_exchange_run(x);
    tutti_exchange_destroy(&x);
    tutti_group_destroy(&inside);
    tutti_free(cuts);
    return status;
}

tutti_status tutti_session_read(tutti_session *s, int index, float *values)
{
    TUTTI_TRY(check_index(s, index));
    TUTTI_TRY(tutti_session_settle(s, NULL));
    tutti_model *model = tutti_stepper_model(s->run.stepper);
    const tutti_param *p = &s->run.net->params[index];
    const tutti_holding h = tutti_stepper_holding(s->run.stepper, p->layer);
    tutti_model_export(model, index, tutti_model_parameters(model), values);
    return h.holders == s->run.me.size ? TUTTI_OK : gather(s, p, h.holders, values);
}

/* ---- writing ---- */

/* Where all ranks hold parameters once, nobody may still read the old or already the new ones. */
tutti_status tutti_session_write(tutti_session *s, int index, const float *values)
{
    TUTTI_TRY(check_index(s, index));
    TUTTI_TRY(tutti_session_settle(s, NULL));
    tutti_model *model = tutti_stepper_model(s->run.stepper);
    const bool shares = tutti_stepper_shares_memory(s->run.stepper);
    if (shares) TUTTI_TRY(tutti_comm_barrier(s->run.me.comm));
    tutti_model_import(model, index, values, tutti_model_parameters(model));
    if (shares) TUTTI_TRY(tutti_comm_barrier(s->run.me.comm));
    if (!tutti_session_steps(s)) tutti_stepper_begin_average(s->run.stepper);
    return TUTTI_OK;
}

/* ---- checkpoints ---- */

tutti_status tutti_session_save(tutti_session *s)
{
    if (!s->options.run)
        return tutti_fail(TUTTI_ARGUMENT, "this session was created without 'run', the directory "
                                          "to save it in");
    TUTTI_TRY(tutti_session_settle(s, NULL));
    TUTTI_TRY(tutti_run_save(&s->run));
    return tutti_keeper_has_one(s->run.keeper) ? tutti_keeper_wait(s->run.keeper) : TUTTI_OK;
}
