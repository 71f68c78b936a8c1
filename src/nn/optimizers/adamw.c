/* AdamW: weight decay shrinks the parameters themselves, beside the gradient
 * (Loshchilov and Hutter 2019). */
#include "nn/optimizers/adam_settings.h"

static void update(tutti_exec exec, const void *settings, const tutti_how *how,
                   const tutti_update *u)
{
    tutti_adam adam = tutti_adam_of(settings, how);
    adam.shrink = (float)(1 - how->lr * how->decay);
    tutti_adam_step(exec, &adam, u);
}

const tutti_optimizer tutti_optimizer_adamw = {
    .name = "adamw",
    .what = "Adam with weight decay beside the gradient",
    .keys = tutti_adam_keys,
    .settings_size = sizeof(tutti_adam_settings),
    .defaults = &tutti_adam_defaults,
    .usual_lr = 1e-3,
    .usual_decay = 0.01,
    .states = tutti_adam_states,
    .state_names = {".exp_avg", ".exp_avg_sq"},
    .counts_steps = true,
    .accesses = tutti_adam_accesses,
    .prepare = tutti_adam_prepare,
    .update = update,
};
