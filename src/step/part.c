/* A part is an exchange of one stage. Of a part-reduce it also holds the terms: they are added as
 * they come, like a binary counter, so that of a rank's many terms only some buffers are in memory,
 * and what is left when all have come are the roots that its exchange wants, in tree order. */
#include <tutti/part.h>

#include <string.h>

#include "base/memory.h"
#include "base/tree.h"
#include "step/ranks.h"

struct tutti_part {
    tutti_exchange *exchange;
    size_t count;
    float *whole; /* of a part-broadcast, the caller's; NULL: this is a part-reduce */
    int terms, first, end;
    int next;  /* the term asked for last is the one before it */
    int depth; /* buffers, of the most that are on the stack at a time */
    float *buffers[TUTTI_TREE_MAX_ROOTS];
    tutti_tree_stack stack;
    tutti_team *team;
};

/* ---- adding ---- */

typedef struct addition {
    float *to;
    const float *what;
    size_t count;
} addition;

static void add_share(void *arg, int thread, int threads)
{
    const addition *a = arg;
    const tutti_range own = tutti_range_of(a->count, threads, thread);
    float *restrict to = a->to;
    const float *restrict what = a->what;
    for (size_t i = own.begin; i < own.end; i++) to[i] += what[i];
}

/* Puts the last term in its place: with all that it completes. 'part' without buffers only
 * counts. */
static void take_term(tutti_part *p, int term)
{
    tutti_tree_push(&p->stack, (tutti_subtree){0, term});
    if (p->stack.depth > p->depth) p->depth = p->stack.depth;
    while (tutti_tree_join(&p->stack)) {
        const int at = p->stack.depth - 1;
        if (!p->buffers[at]) continue;
        tutti_team_run(p->team, add_share,
                       &(addition){p->buffers[at], p->buffers[at + 1], p->count});
    }
}

static void begin_terms(tutti_part *p)
{
    p->next = p->first;
    tutti_tree_stack_init(&p->stack, p->terms);
}

static tutti_status take_buffers(tutti_part *p)
{
    begin_terms(p);
    for (int t = p->first; t < p->end; t++) take_term(p, t);
    for (int i = 0; i < p->depth; i++) TUTTI_TRY(tutti_alloc_floats(&p->buffers[i], p->count));
    begin_terms(p);
    return TUTTI_OK;
}

/* ---- creating ---- */

static tutti_status check_cuts(const tutti_part_options *o, int size)
{
    if (!o->cuts) return TUTTI_OK;
    for (int r = 0; r < size; r++)
        if (o->cuts[0] || o->cuts[r] > o->cuts[r + 1] || o->cuts[size] != o->count)
            return tutti_fail(TUTTI_ARGUMENT,
                              "part %s: cuts must rise from 0 to the count, %zu, for %d ranks",
                              o->name ? o->name : "", o->count, size);
    return TUTTI_OK;
}

static tutti_exchange_spec spec_of(const tutti_part_options *o)
{
    return (tutti_exchange_spec){.name = o->name ? o->name : "part",
                                 .priority = o->priority,
                                 .count = o->count,
                                 .cuts = o->cuts};
}

static tutti_status fill_reduce(tutti_part *p, const tutti_rank *me, const tutti_part_options *o)
{
    tutti_exchange_spec spec = spec_of(o);
    p->terms = spec.leaves = o->terms ? o->terms : me->size;
    if (p->terms < me->size)
        return tutti_fail(TUTTI_ARGUMENT,
                          "part %s: %d terms are less than one for each of %d ranks", spec.name,
                          p->terms, me->size);
    p->first = tutti_share_begin(p->terms, me->size, me->rank);
    p->end = tutti_share_begin(p->terms, me->size, me->rank + 1);
    TUTTI_TRY(check_cuts(o, me->size));
    TUTTI_TRY(take_buffers(p));
    spec.partials = p->buffers;
    return tutti_exchange_create(&p->exchange, me->comm, &spec);
}

static tutti_status fill_broadcast(tutti_part *p, const tutti_rank *me, const tutti_part_options *o)
{
    tutti_exchange_spec spec = spec_of(o);
    TUTTI_TRY(check_cuts(o, me->size));
    if (!p->whole) return tutti_fail(TUTTI_ARGUMENT, "part %s: no buffer", spec.name);
    spec.whole = p->whole;
    return tutti_exchange_create(&p->exchange, me->comm, &spec);
}

static tutti_status create(tutti_part **out, tutti_ranks *ranks, float *whole,
                           const tutti_part_options *o, bool reduces)
{
    tutti_part *p = NULL;
    const tutti_rank *me = &ranks->me;
    *out = NULL;
    tutti_status s = tutti_alloc(&p, 1, sizeof *p);
    if (s == TUTTI_OK) {
        p->count = o->count;
        p->whole = whole;
        p->team = me->exec.team;
        s = reduces ? fill_reduce(p, me, o) : fill_broadcast(p, me, o);
    }
    s = tutti_comm_agree(me->comm, s);
    if (s == TUTTI_OK) *out = p;
    else tutti_part_destroy(&p);
    return s;
}

tutti_status tutti_part_reduce_create(tutti_part **out, tutti_ranks *ranks,
                                      const tutti_part_options *options)
{
    return create(out, ranks, NULL, options, true);
}

tutti_status tutti_part_broadcast_create(tutti_part **out, tutti_ranks *ranks, float *whole,
                                         const tutti_part_options *options)
{
    return create(out, ranks, whole, options, false);
}

void tutti_part_destroy(tutti_part **part)
{
    tutti_part *p = *part;
    if (!p) return;
    tutti_exchange_destroy(&p->exchange);
    for (int i = 0; i < p->depth; i++) tutti_free(p->buffers[i]);
    tutti_free(p);
    *part = NULL;
}

/* ---- running ---- */

void tutti_part_share(const tutti_part *part, int *first, int *end)
{
    *first = part->first;
    *end = part->end;
}

float *tutti_part_term(tutti_part *p)
{
    if (p->next == p->end || !tutti_exchange_is_done(p->exchange)) return NULL;
    if (p->next > p->first) take_term(p, p->next - 1);
    p->next++;
    return p->buffers[p->stack.depth];
}

tutti_status tutti_part_start(tutti_part *p)
{
    if (!tutti_exchange_is_done(p->exchange))
        return tutti_fail(TUTTI_ARGUMENT, "a part was started again before it was waited for");
    if (!p->whole) {
        if (p->next < p->end)
            return tutti_fail(TUTTI_ARGUMENT, "only %d of this rank's %d terms are there",
                              p->next - p->first, p->end - p->first);
        take_term(p, p->end - 1);
        begin_terms(p);
    }
    tutti_exchange_start(p->exchange);
    return TUTTI_OK;
}

tutti_status tutti_part_wait(tutti_part *part)
{
    return tutti_exchange_wait(part->exchange);
}

bool tutti_part_is_done(const tutti_part *part)
{
    return tutti_exchange_is_done(part->exchange);
}

float *tutti_part_strip(const tutti_part *part, size_t *begin, size_t *end)
{
    tutti_exchange_strip(part->exchange, begin, end);
    return (part->whole ? part->whole : part->buffers[0]) + *begin;
}
