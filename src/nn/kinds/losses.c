#include "nn/kinds/losses.h"

#include <stddef.h>

#include "base/memory.h"
#include "kernel/ops.h"

const tutti_key tutti_loss_keys[] = {
    TUTTI_LOSS_KEYS(tutti_plain_loss),
    {.name = NULL},
};

const tutti_plain_loss tutti_loss_defaults = {TUTTI_LOSS_DEFAULTS};

tutti_status tutti_loss_complete(tutti_net *net, tutti_layer *layer)
{
    (void)net;
    layer->out = layer->in;
    layer->target = ((const tutti_loss_options *)layer->options)->target - 1;
    return TUTTI_OK;
}

/* Evaluations do without losses before the last of a target. */
static bool adds(const tutti_call *c)
{
    return c->training && c->layer->adds_loss;
}

double tutti_loss_weight(const tutti_call *c)
{
    return ((const tutti_loss_options *)c->options)->weight;
}

double tutti_loss_divisor(const tutti_call *c)
{
    return c->judging->divisors[c->layer->target];
}

size_t tutti_loss_saved(const tutti_layer *layer, int samples)
{
    return layer->adds_loss ? (size_t)samples * sizeof(float) : 0;
}

float *tutti_loss_place(const tutti_call *c)
{
    if (!c->labels && !c->values) return NULL;
    return adds(c) ? c->saved : c->losses;
}

void tutti_loss_finish(const tutti_call *c, const float *losses)
{
    const float weight = (float)tutti_loss_weight(c);
    if (!losses) return;
    for (int i = 0; i < c->out.n; i++)
        c->losses[i] = adds(c) ? c->losses[i] + weight * losses[i] : weight * losses[i];
}

tutti_targets tutti_loss_targets(const tutti_call *c)
{
    tutti_targets t = c->judging->targets;
    const int skipped = c->first_sample - c->judging->first_sample;
    if (!c->training || c->layer->target != c->judging->answer) t = (tutti_targets){0};
    t.labels = c->labels;
    if (t.others) t.others += skipped, t.shares += skipped;
    return t;
}

/* ---- losses of values ---- */

tutti_status tutti_value_loss_create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    tutti_extent *extent = NULL;
    (void)setup;
    TUTTI_TRY(tutti_alloc(&extent, 1, sizeof *extent));
    *extent = (tutti_extent){.c = layer->in.c, .pixels = layer->in.h * layer->in.w};
    *own = extent;
    return TUTTI_OK;
}

void tutti_value_loss_destroy(void *own)
{
    tutti_free(own);
}

size_t tutti_value_loss_own_scratch(const void *own, int samples)
{
    tutti_extent extent = *(const tutti_extent *)own;
    extent.n = samples;
    return tutti_value_loss_scratch(extent);
}

/* The answer is a copy, or the sigmoid: what the caller reads, and the backward pass. */
void tutti_value_loss_forward(const tutti_call *c, tutti_value_loss loss, double factor,
                              double delta)
{
    float *losses = tutti_loss_place(c);
    if (loss == TUTTI_LOSS_CROSSED) tutti_sigmoid(c->exec, c->out, c->in->x, c->y);
    else tutti_scale(c->exec, c->count, 1, c->in->x, c->y);
    if (!losses) return;
    tutti_value_losses(c->exec, loss, c->out, (float)delta, c->in->x, c->values, c->scratch,
                       losses);
    for (int i = 0; factor != 1 && i < c->out.n; i++) losses[i] *= (float)factor;
    tutti_loss_finish(c, losses);
}

void tutti_value_loss_backward(const tutti_call *c, tutti_value_loss loss, double factor,
                               double delta)
{
    const double values = (double)c->out.c * (double)c->out.pixels;
    TUTTI_ASSERT(c->values);
    const double scale = factor * tutti_loss_weight(c) / (tutti_loss_divisor(c) * values);
    tutti_value_backward(c->exec, loss, c->out, (float)delta, (float)scale, c->y, c->values,
                         c->in->dx);
}
