/* An average of the parameters over steps. Like the optimizer's states it exists only where it is
 * updated, in the strips. To be used it changes places with the parameters: each rank swaps its
 * strip, and the strips become everybody's as those of new parameters do. */
#include "step/parts.h"

void tutti_average_follow(const tutti_sync *sync, tutti_exec exec, const tutti_treatment *treatment,
                          tutti_range run)
{
    const double ema = sync->stepper->options.ema;
    const tutti_average follow = {treatment->counts ? 0 : (float)ema,
                                  treatment->counts ? 1 : (float)(1 - ema)};
    if (!sync->average) return;
    const tutti_update update = {
        .count = tutti_range_length(run),
        .a = tutti_model_parameters(sync->stepper->model) + sync->region.offset + run.begin,
        .w = sync->average + (run.begin - sync->begin),
    };
    tutti_average_step(exec, &follow, &update);
}

bool tutti_stepper_has_average(const tutti_stepper *s)
{
    return s->options.ema > 0 && !s->options.forward_only;
}

static float *strip_of(const tutti_sync *sync)
{
    return tutti_model_parameters(sync->stepper->model) + sync->region.offset + sync->begin;
}

void tutti_stepper_begin_average(tutti_stepper *s)
{
    for (int i = 0; i < s->sync_count; i++) {
        const tutti_sync *sync = &s->syncs[i];
        const float *strip = strip_of(sync);
        for (size_t k = 0; sync->average && k < sync->end - sync->begin; k++)
            sync->average[k] = strip[k];
    }
}

tutti_status tutti_stepper_swap_average(tutti_stepper *s)
{
    for (int i = 0; i < s->sync_count; i++) {
        const tutti_sync *sync = &s->syncs[i];
        float *strip = strip_of(sync);
        for (size_t k = 0; k < sync->end - sync->begin; k++) {
            const float value = strip[k];
            strip[k] = sync->average[k];
            sync->average[k] = value;
        }
        tutti_exchange *everywhere = sync->swap ? sync->swap : sync->broadcast;
        if (everywhere) TUTTI_TRY(tutti_exchange_run(everywhere));
    }
    return TUTTI_OK;
}
