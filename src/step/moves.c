/* Data between layers that are placed differently travels inside a group of ranks, when the model
 * asks for it. One move at a time may begin before it is asked for. */
#include "base/memory.h"
#include "step/parts.h"

tutti_status tutti_moves_carry_out(void *user, int index)
{
    tutti_stepper *s = user;
    tutti_moves *m = &s->moves;
    tutti_exchange *e = m->exchanges[index];
    if (m->begun != index + 1) tutti_exchange_start(e);
    else m->begun = 0;
    double exposed = 0,
           recorded = 0; /* the model times its moves itself; each is waited for once */
    return tutti_sync_wait(s, e, tutti_model_move(s->model, index)->layer, &exposed, &recorded);
}

tutti_status tutti_moves_start(void *user, int index)
{
    tutti_stepper *s = user;
    if (!s->options.overlap || s->moves.begun) return TUTTI_OK;
    tutti_exchange_start(s->moves.exchanges[index]);
    s->moves.begun = index + 1;
    return TUTTI_OK;
}

/* ---- putting it together ---- */

static tutti_status inside_group(tutti_stepper *s, int groups, tutti_group **out)
{
    tutti_moves *m = &s->moves;
    *out = NULL;
    if (groups == 1) return TUTTI_OK; /* all ranks */
    for (int i = 0; i < m->inside_count; i++)
        if (m->groups[i] == groups) {
            *out = m->inside[i];
            return TUTTI_OK;
        }
    TUTTI_ASSERT(m->inside_count < TUTTI_MOST_SPLITS);
    TUTTI_TRY(tutti_group_create_inside(out, s->options.comm, groups));
    m->inside[m->inside_count] = *out;
    m->groups[m->inside_count++] = groups;
    return TUTTI_OK;
}

static tutti_status create_move(tutti_stepper *s, const tutti_move *m, tutti_exchange **out)
{
    tutti_group *group;
    TUTTI_TRY(inside_group(s, m->groups, &group));
    if (m->kind == TUTTI_MOVE_ALLTOALL) {
        const tutti_alltoall_spec spec = {m->name,      -1,         group,           m->send,
                                          m->send_cuts, m->receive, m->receive_cuts, true};
        return tutti_exchange_create_alltoall(out, s->options.comm, &spec);
    }
    const bool reduces = m->kind == TUTTI_MOVE_REDUCE;
    const tutti_exchange_spec spec = {
        .name = m->name,
        .priority = -1,
        .exclusive = true,
        .group = group,
        .count = m->cuts[m->members],
        .cuts = m->cuts,
        .leaves = reduces ? m->leaves : 0,
        .partials = reduces ? m->partials : NULL,
        .whole = reduces ? NULL : m->whole,
    };
    return tutti_exchange_create(out, s->options.comm, &spec);
}

tutti_status tutti_moves_create(tutti_stepper *s)
{
    const int count = tutti_model_move_count(s->model);
    TUTTI_TRY(tutti_alloc(&s->moves.exchanges, (size_t)count + 1, sizeof *s->moves.exchanges));
    for (int i = 0; i < count; i++)
        TUTTI_TRY(create_move(s, tutti_model_move(s->model, i), &s->moves.exchanges[i]));
    return TUTTI_OK;
}

void tutti_moves_destroy(tutti_stepper *s)
{
    tutti_moves *m = &s->moves;
    for (int i = 0; m->exchanges && m->exchanges[i]; i++) tutti_exchange_destroy(&m->exchanges[i]);
    for (int i = 0; i < m->inside_count; i++) tutti_group_destroy(&m->inside[i]);
    tutti_free(m->exchanges);
}
