/* How a strip of parameters follows its gradient: by the stepper's optimizer. What that keeps of a
 * parameter exists only on the rank that updates it. */
#include "base/memory.h"
#include "step/parts.h"

void tutti_update_prepare(tutti_stepper *s, double lr)
{
    const tutti_chosen_optimizer *o = &s->options.optimizer;
    s->how = (tutti_how){.lr = lr, .decay = s->options.weight_decay, .scale = 1};
    if (o->is->prepare) o->is->prepare(&s->how, o->settings.bytes, s->step);
}

/* ---- treatments ---- */

static bool is_alike(const tutti_treatment *a, const tutti_treatment *b)
{
    return a->lr_scale == b->lr_scale && a->decays == b->decays && a->averages == b->averages &&
           a->keep == b->keep && a->add == b->add && a->counts == b->counts;
}

/* Neighbours that are treated alike are one run: usually the whole region is. */
static tutti_status find_treatments(tutti_sync *sync)
{
    const tutti_stepper *s = sync->stepper;
    const tutti_layer *layer = &s->options.net->layers[sync->layer];
    TUTTI_TRY(tutti_alloc(&sync->treatments, (size_t)layer->param_count, sizeof *sync->treatments));
    for (int i = 0; i < layer->param_count; i++) {
        const tutti_param *p = &s->options.net->params[layer->first_param + i];
        const tutti_slice held = tutti_model_slice(s->model, layer->first_param + i);
        if (p->role == TUTTI_KEPT) break; /* they come last */
        tutti_treatment *last = sync->treatments + sync->treatment_count;
        *last = (tutti_treatment){.end = held.offset + held.count - sync->region.offset,
                                  .lr_scale = (double)p->lr_scale,
                                  .decays = p->decays || s->options.decay_all,
                                  .averages = p->role == TUTTI_AVERAGED,
                                  .keep = p->keep,
                                  .add = p->add,
                                  .counts = p->counts};
        if (sync->treatment_count && is_alike(last - 1, last)) last[-1].end = last->end;
        else sync->treatment_count++;
    }
    return TUTTI_OK;
}

tutti_status tutti_update_create(tutti_sync *sync)
{
    const int states = tutti_optimizer_cost_of(&sync->stepper->options.optimizer).states;
    for (int i = 0; i < states; i++)
        TUTTI_TRY(tutti_alloc_floats(&sync->state[i], sync->end - sync->begin));
    if (tutti_stepper_has_average(sync->stepper))
        TUTTI_TRY(tutti_alloc_floats(&sync->average, sync->end - sync->begin));
    return find_treatments(sync);
}

void tutti_update_destroy(tutti_sync *sync)
{
    for (int i = 0; i < TUTTI_MAX_STATES; i++) tutti_free(sync->state[i]);
    tutti_free(sync->average);
    tutti_free(sync->treatments);
}

/* ---- updates ---- */

/* A stretch of the region whose sum of gradients, a + b, is known. */
typedef struct stretch {
    const float *a, *b;
    size_t begin, end;
} stretch;

/* The part of it that is treated in one way. */
static void update_run(const tutti_sync *sync, tutti_exec exec, const tutti_treatment *treatment,
                       const stretch *whole, tutti_range run)
{
    const tutti_stepper *s = sync->stepper;
    const tutti_chosen_optimizer *o = &s->options.optimizer;
    const size_t skipped = run.begin - whole->begin;
    tutti_how how = sync->how;
    tutti_update update = {
        .count = tutti_range_length(run),
        .a = whole->a + skipped,
        .b = whole->b ? whole->b + skipped : NULL,
        .w = tutti_model_parameters(s->model) + sync->region.offset + run.begin,
    };
    if (treatment->averages) {
        tutti_average_step(exec, &(tutti_average){treatment->keep, treatment->add}, &update);
        return;
    }
    for (int i = 0; i < TUTTI_MAX_STATES; i++)
        update.state[i] = sync->state[i] ? sync->state[i] + (run.begin - sync->begin) : NULL;
    how.lr *= treatment->lr_scale;
    if (!treatment->decays) how.decay = 0;
    o->is->update(exec, o->settings.bytes, &how, &update);
}

static void update_stretch(const tutti_sync *sync, tutti_exec exec, const stretch *whole)
{
    size_t begin = whole->begin;
    for (int i = 0; i < sync->treatment_count && begin < whole->end; i++) {
        const tutti_treatment *treatment = &sync->treatments[i];
        const size_t end = treatment->end < whole->end ? treatment->end : whole->end;
        if (end <= begin) continue;
        update_run(sync, exec, treatment, whole, (tutti_range){begin, end});
        tutti_average_follow(sync, exec, treatment, (tutti_range){begin, end});
        begin = end;
    }
}

/* By the communication thread or by all threads. */
static void update(const tutti_sync *sync, bool by_comm_thread, const stretch *whole)
{
    const tutti_stepper_options *o = &sync->stepper->options;
    if (o->stand_in) {
        o->stand_in->update(o->stand_in->user, whole->end - whole->begin, by_comm_thread);
        return;
    }
    update_stretch(sync, (tutti_exec){o->exec.row, by_comm_thread ? NULL : o->exec.team}, whole);
}

void tutti_update_piece(void *user, const float *a, const float *b, size_t begin, size_t end)
{
    update(user, true, &(stretch){a, b, begin, end});
}

void tutti_update_strip(tutti_sync *sync)
{
    const float *gradient = tutti_model_gradient(sync->stepper->model, sync->layer, 0);
    update(sync, false, &(stretch){gradient + sync->begin, NULL, sync->begin, sync->end});
}
