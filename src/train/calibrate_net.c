/* A net's layers, timed where they stand: whole training steps of a model on this rank alone, so
 * that caches, memory and the layers in between are as in training. Every layer's best passes are
 * kept; what a step takes beyond its layers and its update (bringing the input into its layout,
 * losses, going from layer to layer) is kept as the row of the net's input. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "train/calibrate.h"
#include "train/settings.h"

enum { STEP_OF_SAMPLES = 4, LEAST_TRIES = 2, MOST_TRIES = 200 };

typedef struct probe {
    tutti_calibration *c;
    const tutti_net *net;
    int samples;
    tutti_model *model;
    float *input, *momentum;
    int32_t *labels;
    double updating; /* seconds, in this step */
    size_t updated;  /* parameters, in this step */
    tutti_pass_seconds *best;
    double best_update, best_rest, best_step;
} probe;

/* ---- a step ---- */

/* SGD on the strip this rank would own: with several ranks the communication thread's work. */
static tutti_status update(void *user, int layer)
{
    probe *p = user;
    const tutti_sgd sgd = {.lr = 0, .momentum = 0.9f, .gradient_scale = 1};
    const tutti_region r = tutti_model_region(p->model, layer);
    const size_t count = r.count / (size_t)p->c->ranks;
    const double start = tutti_now();
    tutti_sgd_step(p->c->row, p->c->ranks > 1 ? NULL : p->c->team, &sgd, count,
                   tutti_model_gradient(p->model, layer, 0), p->momentum + r.offset,
                   tutti_model_parameters(p->model) + r.offset);
    p->updating += tutti_now() - start;
    p->updated += count;
    return TUTTI_OK;
}

static void keep_least(double *best, double seconds)
{
    if (seconds < *best) *best = seconds;
}

static void keep_best(probe *p, double seconds)
{
    double rest = seconds - p->updating;
    for (int i = 0; i < p->net->layer_count; i++) {
        const tutti_layer_times t = tutti_model_times(p->model, i);
        keep_least(&p->best[i].forward, t.forward);
        keep_least(&p->best[i].weights, t.backward_weights);
        keep_least(&p->best[i].data, t.backward_data);
        rest -= t.forward + t.backward_weights + t.backward_data;
    }
    keep_least(&p->best_rest, rest);
    keep_least(&p->best_update, p->updating);
    keep_least(&p->best_step, seconds);
}

/* Collective: all ranks step together, as in training. */
static tutti_status step(probe *p, double *seconds)
{
    TUTTI_TRY(tutti_comm_barrier(p->c->comm));
    p->updating = 0;
    p->updated = 0;
    tutti_model_reset_times(p->model);
    const double start = tutti_now();
    TUTTI_TRY(tutti_model_train(p->model, 0, p->input, p->labels));
    *seconds = tutti_now() - start;
    keep_best(p, *seconds);
    return tutti_calibration_slowest(p->c, seconds, 1);
}

/* ---- a model ---- */

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1;
}

/* Values of an ordinary size: zeros would be cheaper, tiny ones dearer than those of training. */
static void fill(probe *p)
{
    uint32_t state = 1;
    float *parameters = tutti_model_parameters(p->model);
    for (int i = 0; i < p->net->layer_count; i++) {
        const tutti_region r = tutti_model_region(p->model, i);
        if (!r.count) continue;
        const float scale = sqrtf(6.0f * (float)r.features / (float)r.weight_count);
        for (size_t k = 0; k < r.weight_count; k++)
            parameters[r.offset + k] = scale * noise(&state);
    }
    const size_t floats = tutti_net_input_floats(p->net) * (size_t)p->samples;
    for (size_t k = 0; k < floats; k++) p->input[k] = noise(&state);
    for (int k = 0; k < p->samples; k++) p->labels[k] = k % tutti_net_classes(p->net);
}

static tutti_status open_probe(probe *p)
{
    const tutti_model_options o = {.row = p->c->row,
                                   .team = p->c->team,
                                   .caches = p->c->caches,
                                   .batch = p->samples,
                                   .grains = tutti_default_grains(p->samples),
                                   .workers = 1,
                                   .hooks = {.user = p, .weights_released = update}};
    const size_t layers = (size_t)p->net->layer_count, samples = (size_t)p->samples;
    TUTTI_TRY(tutti_alloc(&p->best, layers, sizeof *p->best));
    TUTTI_TRY(tutti_alloc(&p->labels, samples, sizeof *p->labels));
    TUTTI_TRY(tutti_alloc(&p->input, samples * tutti_net_input_floats(p->net), sizeof(float)));
    TUTTI_TRY(tutti_model_create(&p->model, p->net, &o));
    TUTTI_TRY(
        tutti_alloc(&p->momentum, tutti_model_parameter_floats(p->model), sizeof *p->momentum));
    for (size_t i = 0; i < layers; i++)
        p->best[i] = (tutti_pass_seconds){INFINITY, INFINITY, INFINITY};
    p->best_update = p->best_rest = p->best_step = INFINITY;
    fill(p);
    return TUTTI_OK;
}

static void close_probe(probe *p)
{
    tutti_model_destroy(&p->model);
    tutti_free(p->input);
    tutti_free(p->momentum);
    tutti_free(p->labels);
    tutti_free(p->best);
}

/* ---- what was found ---- */

static tutti_status keep_rows(probe *p)
{
    tutti_platform *platform = p->c->platform;
    const int layers = p->net->layer_count;
    TUTTI_TRY(tutti_calibration_slowest(p->c, &p->best[0].forward, 3 * layers));
    for (int i = 0; i < layers; i++) {
        const tutti_layer *l = &p->net->layers[i];
        tutti_layer_rate r = {.samples = p->samples, .seconds = p->best[i]};
        tutti_platform_key(l, l->out.c, r.key);
        TUTTI_TRY(tutti_platform_add_layer(platform, &r));
    }
    double rest_and_update[] = {fmax(p->best_rest, 0), p->best_update};
    TUTTI_TRY(tutti_calibration_slowest(p->c, rest_and_update, 2));
    tutti_layer_rate r = {.samples = p->samples, .seconds.forward = rest_and_update[0]};
    tutti_platform_input_key(p->net, r.key);
    if (p->updated > p->c->updated) {
        p->c->updated = p->updated;
        platform->update = rest_and_update[1] / (double)p->updated;
    }
    return tutti_platform_add_layer(platform, &r);
}

/* Steps for about 'seconds'; *took is set to a step's time. */
static tutti_status measure(probe *p, double seconds, double *took)
{
    TUTTI_TRY(tutti_comm_agree(p->c->comm, open_probe(p)));
    double spent = 0;
    for (int i = 0; i < LEAST_TRIES || (i < MOST_TRIES && spent < seconds); i++) {
        TUTTI_TRY(step(p, took));
        spent += *took;
    }
    *took = p->best_step;
    TUTTI_TRY(tutti_calibration_slowest(p->c, took, 1));
    return keep_rows(p);
}

static tutti_status suggested_share(const tutti_calibration *c, const tutti_net *net, int *share)
{
    const tutti_train_options defaults = tutti_train_defaults();
    tutti_settings settings;
    TUTTI_TRY(tutti_settings_resolve(&settings, &defaults, net, 1));
    *share = tutti_ceil_div(settings.batch, c->ranks);
    return TUTTI_OK;
}

static tutti_status has_memory(const tutti_calibration *c, const tutti_net *net, int samples,
                               bool *fits)
{
    tutti_memory memory;
    TUTTI_TRY(tutti_net_memory(net, samples, tutti_team_size(c->team), &memory));
    *fits = (double)memory.peak < 0.8 * c->memory_free;
    return TUTTI_OK;
}

tutti_status tutti_calibrate_net(tutti_calibration *c, const tutti_net *net, double seconds)
{
    int most;
    double took = 0;
    const double end = tutti_now() + seconds;
    TUTTI_TRY(suggested_share(c, net, &most));
    for (int n = 1, last = 0; last < most; last = n, n *= STEP_OF_SAMPLES) {
        if (n > most) n = most;
        double left = tutti_now() - end; /* the latest rank's clock decides */
        bool fits;
        TUTTI_TRY(tutti_calibration_slowest(c, &left, 1));
        TUTTI_TRY(has_memory(c, net, n, &fits));
        const double expected = last ? took * n / last * LEAST_TRIES : 0;
        if (expected > -left || !fits) break;
        probe p = {.c = c, .net = net, .samples = n};
        const tutti_status s = measure(&p, fmin(0.5, -left / 8), &took);
        close_probe(&p);
        TUTTI_TRY(s);
        tutti_calibration_say(c, "  %-14s %6d samples a rank  %9.2f ms, %.1f samples/s a rank",
                              tutti_net_name(net), n, took * 1e3, n / took);
    }
    return TUTTI_OK;
}
