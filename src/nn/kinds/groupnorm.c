/* Group normalisation: the pixels and channels of each group of a sample are brought to mean 0 and
 * variance 1, then each channel is scaled and shifted (Wu and He, "Group normalization", 2018). */
#include "kernel/group_norm.h"

#include "base/memory.h"
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

/* ---- memory ---- */

/* From forward to backward the state of each sample; then its pairs. */
static size_t saved(const tutti_layer *layer, int samples)
{
    const size_t row = tutti_norm_pair(layer->out.c) / 2;
    return (size_t)samples * (TUTTI_NORM_STATE + 2) * row * sizeof(double);
}

typedef struct own {
    size_t sample_bytes; /* of states, pairs and coefficients */
} own;

static tutti_status create(void **out, const tutti_layer *layer, const tutti_setup *setup)
{
    const size_t row = tutti_norm_pair(layer->out.c) / 2;
    own *o = NULL;
    (void)setup;
    TUTTI_TRY(tutti_alloc(&o, 1, sizeof *o));
    o->sample_bytes = saved(layer, 1) + TUTTI_NORM_ROWS * row * sizeof(float);
    *out = o;
    return TUTTI_OK;
}

static void destroy(void *o)
{
    tutti_free(o);
}

static size_t scratch(const void *o, int samples)
{
    return (size_t)samples * ((const own *)o)->sample_bytes;
}

/* Where everything is: what will not go back has only scratch. */
typedef struct places {
    double *states, *leaves;
    float *rows;
} places;

static places places_of(const tutti_call *c)
{
    const size_t n = (size_t)c->out.n, row = tutti_norm_pair(c->out.c) / 2;
    double *scratch_states = c->scratch;
    double *states = c->saved ? c->saved : scratch_states;
    return (places){states, states + n * TUTTI_NORM_STATE * row,
                    (float *)(scratch_states + n * (TUTTI_NORM_STATE + 2) * row)};
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
    const places at = places_of(c);
    tutti_norm_moments(c->exec, c->out, c->in->x, at.leaves);
    tutti_group_norm_coefficients(c->exec, c->out, &norm, at.leaves, at.states, at.rows);
    tutti_norm_forward(c->exec, c->out, tutti_group_norm_samples(), at.rows, c->in->x, c->relu,
                       c->y);
}

static void measure_back(const tutti_call *c)
{
    const places at = places_of(c);
    tutti_norm_sums(c->exec, c->out, tutti_group_norm_samples(), at.states, c->in->x, c->dy,
                    at.leaves);
}

static void backward_parameters(const tutti_call *c)
{
    const places at = places_of(c);
    tutti_norm_gradients(c->exec, c->out.c, tutti_group_norm_samples(), at.states, c->grains,
                         at.leaves, c->gradient[WEIGHT], c->gradient[BIAS]);
}

static void backward_data(const tutti_call *c)
{
    const tutti_group_norm norm = norm_of(c);
    const places at = places_of(c);
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
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS | TUTTI_AGAIN_X_DATA,
    .create = create,
    .destroy = destroy,
    .scratch = scratch,
    .saved = saved,
    .measure_back = measure_back,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
