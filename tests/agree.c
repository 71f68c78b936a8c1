#include "agree.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"

static const reference_mode training_step = {.training = true, .seed = SEED, .step = STEP};

reference_sample reference_sample_of(const batch *b, int i)
{
    const size_t count = tutti_shape_count(tutti_net_input(b->net));
    return (reference_sample){.x = b->reference + (size_t)i * count, .place = i, .batch = BATCH};
}

reference_net *reference_of(const batch *b, tutti_model *model)
{
    reference_net *net = reference_read(b->text);
    assert_int_equal(reference_parameters(net), b->net->param_count);
    for (int i = 0; i < b->net->param_count; i++) {
        const size_t count = b->net->params[i].count;
        float *torch = NULL;
        assert_int_equal(reference_parameter_count(net, i), count);
        must(tutti_alloc(&torch, count, sizeof(float)));
        tutti_model_export(model, i, tutti_model_parameters(model), torch);
        for (size_t k = 0; k < count; k++) reference_parameter(net, i)[k] = (double)torch[k];
        tutti_free(torch);
    }
    return net;
}

void reference_step(reference_net *net, const batch *b)
{
    reference_sample samples[BATCH];
    for (int i = 0; i < BATCH; i++) samples[i] = reference_sample_of(b, i);
    reference_backward(net, &training_step, samples, BATCH);
}

void reference_minibatch(reference_net *net, const batch *b, const reference_mode *mode,
                         double *losses, double *deviations)
{
    reference_sample samples[BATCH];
    for (int i = 0; i < BATCH; i++) samples[i] = reference_sample_of(b, i);
    reference_losses(net, mode, samples, BATCH, losses, deviations);
}

/* The error as a share of what is allowed; NaN is too much. */
static double share_of_bound(double got, double want, double deviation)
{
    const double error = fabs(got - want), allowed = REFERENCE_DEVIATIONS * deviation;
    return error == 0 ? 0 : isfinite(error) ? error / allowed : INFINITY;
}

double losses_agree(reference_net *net, const batch *b, bool training, const float *losses)
{
    reference_mode mode = training_step;
    double worst = 0, want[BATCH], deviation[BATCH];
    mode.training = training;
    reference_minibatch(net, b, &mode, want, deviation);
    for (int i = 0; i < BATCH; i++) {
        const double share = share_of_bound((double)losses[i], want[i], deviation[i]);
        if (share > 1)
            fail_msg("sample %d: loss %.9g, the reference has %.9g and allows %.3g", i,
                     (double)losses[i], want[i], REFERENCE_DEVIATIONS * deviation[i]);
        worst = fmax(worst, share);
    }
    return worst;
}

static double parameter_agrees(const reference_net *net, const batch *b, int i, const float *torch)
{
    const tutti_param *p = &b->net->params[i];
    double worst = 0;
    for (size_t k = 0; k < p->count; k++) {
        double deviation;
        const double want = reference_gradient(net, i, k, &deviation);
        const double share = share_of_bound((double)torch[k], want, deviation);
        if (share > 1)
            fail_msg("%s[%zu]: gradient %.9g, the reference has %.9g and allows %.3g", p->name, k,
                     (double)torch[k], want, REFERENCE_DEVIATIONS * deviation);
        worst = fmax(worst, share);
    }
    return worst;
}

double gradients_agree(const reference_net *net, const batch *b, tutti_model *model)
{
    double worst = 0;
    float *flat = NULL;
    must(tutti_alloc(&flat, tutti_model_parameter_floats(model), sizeof(float)));
    for (int i = 0; i < tutti_net_layer_count(b->net); i++) {
        const tutti_region r = tutti_model_region(model, i);
        if (r.trained)
            memcpy(flat + r.offset, tutti_model_gradient(model, i, 0), r.trained * sizeof(float));
    }
    for (int i = 0; i < b->net->param_count; i++) {
        float *torch = NULL;
        if (b->net->params[i].role == TUTTI_KEPT) continue;
        must(tutti_alloc(&torch, b->net->params[i].count, sizeof(float)));
        tutti_model_export(model, i, flat, torch);
        worst = fmax(worst, parameter_agrees(net, b, i, torch));
        tutti_free(torch);
    }
    tutti_free(flat);
    return worst;
}
