/* Adam; weight decay is part of the gradient. */
#include "nn/optimizers/adam_settings.h"

static void update(tutti_exec exec, const void *settings, const tutti_how *how,
                   const tutti_update *u)
{
    tutti_adam adam = tutti_adam_of(settings, how);
    adam.weight_decay = (float)how->decay;
    tutti_adam_step(exec, &adam, u);
}

const tutti_optimizer tutti_optimizer_adam = {
    .name = "adam",
    .what = "Adam, with weight decay in the gradient",
    .keys = tutti_adam_keys,
    .settings_size = sizeof(tutti_adam_settings),
    .defaults = &tutti_adam_defaults,
    .usual_lr = 1e-3,
    .states = tutti_adam_states,
    .state_names = {".exp_avg", ".exp_avg_sq"},
    .counts_steps = true,
    .accesses = tutti_adam_accesses,
    .prepare = tutti_adam_prepare,
    .update = update,
};
