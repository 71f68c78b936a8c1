/* Stochastic gradient descent, with or without momentum. */
#include "nn/optimizers/optimizer.h"

typedef struct settings {
    double momentum;
    bool nesterov;
} settings;

static const settings defaults = {.momentum = 0.9};

static const tutti_key keys[] = {
    {"momentum", TUTTI_KEY_REAL, offsetof(settings, momentum), 0, 1, false, NULL},
    {"nesterov", TUTTI_KEY_BOOL, offsetof(settings, nesterov), 0, 0, false, NULL},
    {.name = NULL}};

static int states(const void *s)
{
    return ((const settings *)s)->momentum > 0 ? 1 : 0;
}

static int accesses(const void *s) /* w and the momentum, read and written */
{
    return 2 + 2 * states(s);
}

static void update(tutti_exec exec, const void *s, const tutti_how *how, const tutti_update *u)
{
    const settings *own = s;
    const tutti_sgd sgd = {.lr = (float)how->lr,
                           .momentum = (float)own->momentum,
                           .weight_decay = (float)how->decay,
                           .gradient_scale = how->scale,
                           .nesterov = own->nesterov};
    tutti_sgd_step(exec, &sgd, u);
}

const tutti_optimizer tutti_optimizer_sgd = {
    .name = "sgd",
    .what = "stochastic gradient descent with momentum",
    .keys = keys,
    .settings_size = sizeof(settings),
    .defaults = &defaults,
    .usual_lr = 0.01,
    .states = states,
    .state_names = {""},
    .accesses = accesses,
    .update = update,
};
