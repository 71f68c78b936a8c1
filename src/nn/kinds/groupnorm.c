/* Group normalisation: the pixels and channels of each group of a sample are brought to mean 0 and
 * variance 1, then each channel is scaled and shifted (Wu and He, "Group normalization", 2018). */
#include "nn/kinds/norm.h"

typedef struct options {
    int groups;
    double eps;
} options;

static const options defaults = {.eps = 1e-5};

static const tutti_key keys[] = {
    {"eps", TUTTI_KEY_REAL, offsetof(options, eps), 1e-30, 1, false, NULL}, {.name = NULL}};

enum { WEIGHT, BIAS };

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    const int groups = ((const options *)layer->options)->groups, c = layer->in.c;
    layer->out = layer->in;
    if (c % groups)
        return tutti_fail(TUTTI_SHAPE, "%s: %d groups do not divide its %d channels", layer->name,
                          groups, c);
    return tutti_layer_add_norm(net, layer, false);
}

static tutti_status create(void **out, const tutti_layer *layer, const tutti_setup *setup)
{
    (void)setup;
    return tutti_norm_own_create(out, tutti_group_norm_scratch(layer));
}

/* ---- running ---- */

static tutti_group_norm norm_of(const tutti_call *c)
{
    const options *o = c->options;
    return (tutti_group_norm){o->groups, o->eps, c->param[WEIGHT], c->param[BIAS]};
}

static void forward(const tutti_call *c)
{
    const tutti_group_norm norm = norm_of(c);
    const tutti_group_norm_places at = tutti_group_norm_at(c);
    tutti_norm_moments(c->exec, c->out, c->in->x, at.leaves);
    tutti_group_norm_coefficients(c->exec, c->out, &norm, at.leaves, at.states, at.rows);
    tutti_norm_forward(c->exec, c->out, tutti_group_norm_samples(), at.rows, c->in->x, c->plus,
                       c->relu, c->y);
}

static void measure_back(const tutti_call *c)
{
    const tutti_group_norm_places at = tutti_group_norm_at(c);
    tutti_norm_sums(c->exec, c->out, tutti_group_norm_samples(), at.states, c->in->x, c->dy,
                    at.leaves);
}

static void backward_parameters(const tutti_call *c)
{
    const tutti_group_norm_places at = tutti_group_norm_at(c);
    tutti_norm_gradients(c->exec, c->out.c, tutti_group_norm_samples(), at.states, c->grains,
                         at.leaves, c->gradient[WEIGHT], c->gradient[BIAS]);
}

static void backward_data(const tutti_call *c)
{
    const tutti_group_norm norm = norm_of(c);
    const tutti_group_norm_places at = tutti_group_norm_at(c);
    tutti_group_norm_back_coefficients(c->exec, c->out, &norm, at.states, at.leaves, at.rows);
    tutti_norm_backward(c->exec, c->out, tutti_group_norm_samples(), at.rows, c->in->x, c->dy,
                        c->in->gate != NULL, c->in->dx);
}

const tutti_kind tutti_kind_groupnorm = {
    .word = "groupnorm",
    .what = "group normalisation",
    .argument = {"groups", TUTTI_KEY_INT, offsetof(options, groups), 1, 1 << 20, true, NULL},
    .wants = "a number of groups",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .takes_activation = true,
    .complete = complete,
    .fuses_gate = true,
    .fuses_sum = true,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS | TUTTI_AGAIN_X_DATA,
    .create = create,
    .destroy = tutti_norm_own_destroy,
    .scratch = tutti_norm_own_scratch,
    .saved = tutti_group_norm_saved,
    .measure_back = measure_back,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
