/* How a strip of parameters follows its gradient: SGD with momentum. Its momentum exists only on
 * the rank that updates the strip. */
#include "base/memory.h"
#include "step/parts.h"

void tutti_update_prepare(tutti_session *s, double lr)
{
    s->sgd = (tutti_sgd){
        .lr = (float)lr,
        .momentum = (float)s->options.momentum,
        .weight_decay = (float)s->options.weight_decay,
        .gradient_scale = 1,
        .nesterov = s->options.nesterov,
    };
}

tutti_status tutti_update_create(tutti_sync *sync)
{
    if (sync->session->options.momentum <= 0) return TUTTI_OK;
    return tutti_alloc_floats(&sync->momentum, sync->end - sync->begin);
}

void tutti_update_destroy(tutti_sync *sync)
{
    tutti_free(sync->momentum);
}

/* Floats begin .. end-1 of the region, by the communication thread or by all threads. */
static void update(tutti_sync *sync, bool by_comm_thread, const float *a, const float *b,
                   size_t begin, size_t end)
{
    tutti_session *s = sync->session;
    const tutti_stand_in *stand_in = s->options.stand_in;
    if (stand_in) {
        stand_in->update(stand_in->user, end - begin, by_comm_thread);
        return;
    }
    const tutti_exec exec = {s->options.exec.row, by_comm_thread ? NULL : s->options.exec.team};
    const tutti_update update = {
        .count = end - begin,
        .a = a,
        .b = b,
        .w = tutti_model_parameters(s->model) + sync->region.offset + begin,
        .state = {sync->momentum ? sync->momentum + (begin - sync->begin) : NULL},
    };
    tutti_sgd_step(exec, &sync->sgd, &update);
}

void tutti_update_piece(void *user, const float *a, const float *b, size_t begin, size_t end)
{
    update(user, true, a, b, begin, end);
}

void tutti_update_strip(tutti_sync *sync)
{
    const float *gradient = tutti_model_gradient(sync->session->model, sync->layer, 0);
    update(sync, false, gradient + sync->begin, NULL, sync->begin, sync->end);
}
