/* Batch normalisation: channel by channel, the samples of a statistics group are brought to mean 0
 * and variance 1, then scaled and shifted; an evaluation takes the running mean and variance, and a
 * frozen layer always does. */
#include "kernel/norm.h"
#include "kernel/planes.h"

#include <string.h>

#include "base/memory.h"
#include "nn/kinds/kind.h"
#include "nn/statistics.h"

typedef struct options {
    int group; /* samples; 0: all of the minibatch */
    double eps, momentum;
} options;

static const options defaults = {.group = 32, .eps = 1e-5, .momentum = 0.1};

static const char *const all[] = {"all", NULL};

static const tutti_key keys[] = {
    {"group", TUTTI_KEY_COUNT, offsetof(options, group), 1, TUTTI_MOST_GROUP, false, all},
    {"eps", TUTTI_KEY_REAL, offsetof(options, eps), 1e-30, 1, false, NULL},
    {"momentum", TUTTI_KEY_REAL, offsetof(options, momentum), 0, 1, false, NULL},
    {.name = NULL}};

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR, TRACKED };

/* ---- description ---- */

static tutti_status add_params(tutti_net *net, const tutti_layer *layer)
{
    static const struct {
        const char *name;
        tutti_role role;
        float first;
    } params[] = {[WEIGHT] = {"weight", TUTTI_TRAINED, 1},
                  [BIAS] = {"bias", TUTTI_TRAINED, 0},
                  [RUNNING_MEAN] = {"running_mean", TUTTI_AVERAGED, 0},
                  [RUNNING_VAR] = {"running_var", TUTTI_AVERAGED, 1}};
    const options *o = layer->options;
    const int c = layer->out.c;
    for (int i = 0; i <= RUNNING_VAR; i++) {
        const tutti_param param = {.dim_count = 1,
                                   .dims = {c},
                                   .layout = {c, 1, 1, 1, true},
                                   .role = params[i].role,
                                   .fill = {TUTTI_INIT_CONSTANT, params[i].first},
                                   .keep = (float)(1 - o->momentum),
                                   .add = (float)o->momentum};
        TUTTI_TRY(tutti_layer_add_param(net, params[i].name, &param));
    }
    return tutti_layer_add_param(net, "num_batches_tracked",
                                 &(tutti_param){.dims = {1},
                                                .layout = {1, 1, 1, 1, true},
                                                .role = TUTTI_AVERAGED,
                                                .fill = {TUTTI_INIT_CONSTANT, 0},
                                                .keep = 1,
                                                .add = 1,
                                                .counts = true});
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    layer->out = layer->in;
    return add_params(net, layer);
}

static int group(const tutti_layer *layer)
{
    return ((const options *)layer->options)->group;
}

static void regroup(tutti_layer *layer, int samples)
{
    ((options *)layer->options)->group = samples;
}

/* ---- memory ---- */

/* From forward to backward: the state of each group, then the leaves of each sample; and room for
 * a pair. */
static size_t saved(const tutti_layer *layer, int samples)
{
    const int size = group(layer) ? group(layer) : samples;
    if (layer->frozen) return 0;
    const size_t groups = (size_t)(samples / size + 2), row = tutti_norm_pair(layer->out.c) / 2;
    return (2 + groups * TUTTI_NORM_STATE + (size_t)samples * 2) * row * sizeof(double);
}

typedef struct own {
    size_t group_bytes; /* of coefficients */
    int size;
} own;

static tutti_status create(void **out, const tutti_layer *layer, const tutti_setup *setup)
{
    own *o = NULL;
    (void)setup;
    TUTTI_TRY(tutti_alloc(&o, 1, sizeof *o));
    o->group_bytes = TUTTI_NORM_ROWS * tutti_norm_pair(layer->out.c) / 2 * sizeof(float);
    o->size = group(layer);
    *out = o;
    return TUTTI_OK;
}

static void destroy(void *o)
{
    tutti_free(o);
}

static size_t scratch(const void *o, int samples)
{
    const int size = ((const own *)o)->size;
    return ((size_t)(size ? samples / size : 0) + 2) * ((const own *)o)->group_bytes;
}

/* ---- running ---- */

static tutti_norm norm_of(const tutti_call *c)
{
    return (tutti_norm){c->out.c, ((const options *)c->options)->eps, c->param[WEIGHT],
                        c->param[BIAS]};
}

static size_t row_of(const tutti_call *c)
{
    return tutti_norm_pair(c->out.c) / 2;
}

static double *state_of(const tutti_call *c, int number)
{
    return (double *)c->saved + (2 + (size_t)number * TUTTI_NORM_STATE) * row_of(c);
}

static double *leaves_of(const tutti_call *c)
{
    return state_of(c, c->statistics->group_count);
}

static float *rows_of(const tutti_call *c, int number)
{
    return (float *)c->scratch + (size_t)number * TUTTI_NORM_ROWS * row_of(c);
}

static double values_of(const tutti_call *c, int number)
{
    return (double)tutti_statistics_samples(c->statistics, number) * c->out.pixels;
}

static void measure(const tutti_call *c)
{
    tutti_norm_moments(c->exec, c->out, c->in->x, leaves_of(c));
    tutti_statistics_measure(c->statistics, c->exec, c->out, true, leaves_of(c), c->sums);
}

static void forward_trained(const tutti_call *c)
{
    const tutti_norm norm = norm_of(c);
    for (int g = 0; g < c->statistics->group_count; g++) {
        tutti_statistics_join(c->statistics, c->exec, c->out, true, g, c->sums, state_of(c, g));
        tutti_norm_coefficients(&norm, values_of(c, g), state_of(c, g), rows_of(c, g));
    }
    tutti_norm_forward(c->exec, c->out, tutti_statistics_groups(c->statistics), rows_of(c, 0),
                       c->in->x, c->plus, c->relu, c->y);
}

static void forward(const tutti_call *c)
{
    const tutti_norm norm = norm_of(c);
    if (c->training && c->statistics) {
        forward_trained(c);
        return;
    }
    tutti_norm_given(&norm, c->param[RUNNING_MEAN], c->param[RUNNING_VAR], rows_of(c, 0));
    tutti_norm_forward(c->exec, c->out, (tutti_norm_groups){0, c->out.n + 1}, rows_of(c, 0),
                       c->in->x, c->plus, c->relu, c->y);
}

static void measure_back(const tutti_call *c)
{
    tutti_norm_sums(c->exec, c->out, tutti_statistics_groups(c->statistics), state_of(c, 0),
                    c->in->x, c->dy, leaves_of(c));
    tutti_statistics_measure(c->statistics, c->exec, c->out, false, leaves_of(c), c->sums);
}

static void backward_parameters(const tutti_call *c)
{
    const tutti_norm_groups groups = tutti_statistics_groups(c->statistics);
    float *tracked = c->gradient[TRACKED];
    tutti_norm_gradients(c->exec, c->out.c, groups, state_of(c, 0), c->grains, leaves_of(c),
                         c->gradient[WEIGHT], c->gradient[BIAS]);
    tutti_norm_averages(c->exec, c->out, groups, state_of(c, 0), c->statistics->first_group,
                        c->batch, c->grains, c->gradient[RUNNING_MEAN], c->gradient[RUNNING_VAR]);
    memset(tracked, 0, TUTTI_BLOCK * sizeof *tracked);
    tracked[0] = c->first_sample + c->grains->begin[0] == 0; /* one root has the first sample */
}

/* Mean and variance do not depend on x: what is left is a factor for each channel. */
static void backward_frozen(const tutti_call *c)
{
    const tutti_norm norm = norm_of(c);
    tutti_norm_given(&norm, c->param[RUNNING_MEAN], c->param[RUNNING_VAR], rows_of(c, 0));
    const tutti_factors factors = {rows_of(c, 0) + TUTTI_NORM_FACTOR * row_of(c), 0, TUTTI_BLOCK};
    tutti_scale_planes(c->exec, c->out, factors, c->dy, c->in->gate, c->in->dx);
}

static void backward_data(const tutti_call *c)
{
    const tutti_norm norm = norm_of(c);
    if (!c->statistics) {
        backward_frozen(c);
        return;
    }
    double *sums = c->saved; /* of one group after the other */
    for (int g = 0; g < c->statistics->group_count; g++) {
        tutti_statistics_join(c->statistics, c->exec, c->out, false, g, c->sums, sums);
        tutti_norm_back_coefficients(&norm, values_of(c, g), state_of(c, g), sums, rows_of(c, g));
    }
    tutti_norm_backward(c->exec, c->out, tutti_statistics_groups(c->statistics), rows_of(c, 0),
                        c->in->x, c->dy, c->in->gate != NULL, c->in->dx);
}

const tutti_kind tutti_kind_batchnorm = {
    .word = "batchnorm",
    .what = "batch normalisation",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .takes_activation = true,
    .complete = complete,
    .group = group,
    .regroup = regroup,
    .fuses_gate = true,
    .fuses_sum = true,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS | TUTTI_AGAIN_X_STATISTICS,
    .create = create,
    .destroy = destroy,
    .scratch = scratch,
    .saved = saved,
    .measure = measure,
    .measure_back = measure_back,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
