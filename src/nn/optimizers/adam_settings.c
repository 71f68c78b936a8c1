#include "nn/optimizers/adam_settings.h"

#include <math.h>

const tutti_adam_settings tutti_adam_defaults = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};

const tutti_key tutti_adam_keys[] = {
    {"beta1", TUTTI_KEY_REAL, offsetof(tutti_adam_settings, beta1), 0, 0.999999, false, NULL},
    {"beta2", TUTTI_KEY_REAL, offsetof(tutti_adam_settings, beta2), 0, 0.999999, false, NULL},
    {"eps", TUTTI_KEY_REAL, offsetof(tutti_adam_settings, eps), 1e-30, 1, false, NULL},
    {.name = NULL}};

enum { STEP_SIZE_FACTOR, ROOT_FACTOR }; /* of tutti_how's numbers */

int tutti_adam_states(const void *settings)
{
    (void)settings;
    return 2;
}

int tutti_adam_accesses(const void *settings) /* w and two moments, read and written */
{
    (void)settings;
    return 6;
}

void tutti_adam_prepare(tutti_how *how, const void *settings, int64_t step)
{
    const tutti_adam_settings *s = settings;
    how->number[STEP_SIZE_FACTOR] = 1 / (1 - tutti_power(s->beta1, step + 1));
    how->number[ROOT_FACTOR] = 1 / sqrt(1 - tutti_power(s->beta2, step + 1));
}

tutti_adam tutti_adam_of(const tutti_adam_settings *s, const tutti_how *how)
{
    return (tutti_adam){.gradient_scale = how->scale,
                        .shrink = 1,
                        .one_minus_beta1 = (float)(1 - s->beta1),
                        .beta2 = (float)s->beta2,
                        .one_minus_beta2 = (float)(1 - s->beta2),
                        .step_size = (float)(how->lr * how->number[STEP_SIZE_FACTOR]),
                        .root_factor = (float)how->number[ROOT_FACTOR],
                        .eps = (float)s->eps};
}
