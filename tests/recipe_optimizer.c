/* An optimizer written as doc/ARCHITECTURE.md says: a step down the gradient. It also counts
 * its updates, in a float for each parameter. */
#include <math.h>

#include "recipes.h"

typedef struct settings {
    double stretch; /* of the learning rate */
} settings;

static const settings defaults = {1};

static const tutti_key keys[] = {
    {"stretch", TUTTI_KEY_REAL, offsetof(settings, stretch), 0, 10, false, NULL}, {.name = NULL}};

static int states(const void *s)
{
    (void)s;
    return 1;
}

static int accesses(const void *s)
{
    (void)s;
    return 4;
}

static void update(tutti_exec exec, const void *s, const tutti_how *how, const tutti_update *u)
{
    const float lr = (float)(how->lr * ((const settings *)s)->stretch), decay = (float)how->decay;
    (void)exec;
    for (size_t i = 0; i < u->count; i++) {
        const float sum = u->b ? u->a[i] + u->b[i] : u->a[i];
        const float d = fmaf(decay, u->w[i], how->scale * sum);
        u->w[i] = fmaf(-lr, d, u->w[i]);
        u->state[0][i] += 1;
    }
}

const tutti_optimizer recipe_optimizer = {
    .name = "down",
    .what = "a step down the gradient",
    .keys = keys,
    .settings_size = sizeof(settings),
    .defaults = &defaults,
    .usual_lr = 0.1,
    .states = states,
    .state_names = {".updates"},
    .accesses = accesses,
    .update = update,
};
