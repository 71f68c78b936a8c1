#include "nn/kinds/losses.h"

#include <stddef.h>

const tutti_key tutti_loss_keys[] = {
    {"weight", TUTTI_KEY_REAL, offsetof(tutti_loss_options, weight), 1e-6, 1e6, false, NULL},
    {.name = NULL},
};

const tutti_loss_options tutti_loss_defaults = {.weight = 1};

/* Evaluations do without losses before the last. */
static bool adds(const tutti_call *c)
{
    return c->training && c->layer->adds_loss;
}

double tutti_loss_weight(const tutti_call *c)
{
    return ((const tutti_loss_options *)c->options)->weight;
}

size_t tutti_loss_saved(const tutti_layer *layer, int samples)
{
    return layer->adds_loss ? (size_t)samples * sizeof(float) : 0;
}

float *tutti_loss_place(const tutti_call *c)
{
    if (!c->labels) return NULL;
    return adds(c) ? c->saved : c->losses;
}

void tutti_loss_finish(const tutti_call *c, const float *losses)
{
    const float weight = (float)tutti_loss_weight(c);
    if (!losses) return;
    for (int i = 0; i < c->out.n; i++)
        c->losses[i] = adds(c) ? c->losses[i] + weight * losses[i] : weight * losses[i];
}
