/* A net's layers, timed where they stand: whole training steps of a model on this rank alone, so
 * that caches, memory and the layers in between are as in training. Every layer's best passes are
 * kept; what a step takes beyond its layers and its update (bringing the input into its layout,
 * losses, going from layer to layer) is kept as the row of the net's input. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "train/calibrate.h"

enum { MOST_TRIES = 200, MOST_DISTURBED = 3 };

/* Below this share of its cores a try was disturbed by other programs. */
static const double calm_share = 0.95;

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

/* Collective: all ranks step together, as in training. *seconds are the slowest rank's; *calm says
 * that no rank was disturbed. */
static tutti_status step(probe *p, double *seconds, bool *calm)
{
    TUTTI_TRY(tutti_comm_barrier(p->c->comm));
    p->updating = 0;
    p->updated = 0;
    tutti_model_reset_times(p->model);
    const double start = tutti_now(), cpu = tutti_cpu_time();
    TUTTI_TRY(tutti_model_train(p->model, 0, p->input, p->labels));
    double found[] = {tutti_now() - start, cpu - tutti_cpu_time()};
    keep_best(p, found[0]);
    found[1] /= found[0] * tutti_team_size(p->c->team);
    TUTTI_TRY(tutti_calibration_slowest(p->c, found, 2));
    *seconds = found[0];
    *calm = -found[1] > calm_share;
    return TUTTI_OK;
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

static void take_least(tutti_pass_seconds *to, const tutti_pass_seconds *from)
{
    keep_least(&to->forward, from->forward);
    keep_least(&to->weights, from->weights);
    keep_least(&to->data, from->data);
}

/* Of several measurements of the same the shortest is kept. */
static tutti_status keep_row(tutti_platform *platform, const tutti_layer_rate *rate)
{
    for (int i = 0; i < platform->layer_count; i++) {
        tutti_layer_rate *r = &platform->layers[i];
        if (r->samples != rate->samples || strcmp(r->key, rate->key)) continue;
        take_least(&r->seconds, &rate->seconds);
        return TUTTI_OK;
    }
    return tutti_platform_add_layer(platform, rate);
}

/* Layers of a net that do the same work: their mean, so that the net's sum is right. */
static tutti_pass_seconds mean_of_equals(const probe *p, const char *key)
{
    tutti_pass_seconds sum = {0};
    int count = 0;
    for (int i = 0; i < p->net->layer_count; i++) {
        char other[TUTTI_LAYER_KEY];
        tutti_platform_key(&p->net->layers[i], p->net->layers[i].out.c, other);
        if (strcmp(key, other)) continue;
        sum.forward += p->best[i].forward;
        sum.weights += p->best[i].weights;
        sum.data += p->best[i].data;
        count++;
    }
    return (tutti_pass_seconds){sum.forward / count, sum.weights / count, sum.data / count};
}

static tutti_status keep_layers(probe *p)
{
    const int layers = p->net->layer_count;
    TUTTI_TRY(tutti_calibration_slowest(p->c, &p->best[0].forward, 3 * layers));
    for (int i = 0; i < layers; i++) {
        tutti_layer_rate r = {.samples = p->samples};
        tutti_platform_key(&p->net->layers[i], p->net->layers[i].out.c, r.key);
        r.seconds = mean_of_equals(p, r.key);
        TUTTI_TRY(keep_row(p->c->platform, &r));
    }
    return TUTTI_OK;
}

/* The update's rate is that of the net with the most parameters. */
static tutti_status keep_rest(probe *p)
{
    tutti_platform *platform = p->c->platform;
    double found[] = {fmax(p->best_rest, 0), p->best_update / (double)p->updated};
    TUTTI_TRY(tutti_calibration_slowest(p->c, found, 2));
    tutti_layer_rate r = {.samples = p->samples, .seconds.forward = found[0]};
    tutti_platform_input_key(p->net, r.key);
    if (p->updated > p->c->updated) platform->update = found[1];
    else if (p->updated == p->c->updated) keep_least(&platform->update, found[1]);
    p->c->updated = p->updated > p->c->updated ? p->updated : p->c->updated;
    return keep_row(platform, &r);
}

/* Steps for about 'seconds', one at least, and if possible one that nobody disturbed. */
static tutti_status run(probe *p, double seconds)
{
    double took = 0, spent = 0;
    bool calm = false;
    for (int i = 0; i < MOST_TRIES && (spent < seconds || (!calm && i < MOST_DISTURBED)); i++) {
        bool is_calm;
        TUTTI_TRY(step(p, &took, &is_calm));
        calm |= is_calm;
        spent += took;
    }
    TUTTI_TRY(tutti_calibration_slowest(p->c, &p->best_step, 1));
    TUTTI_TRY(keep_layers(p));
    return keep_rest(p);
}

tutti_status tutti_calibrate_point(tutti_calibration *c, tutti_point *point, double seconds)
{
    probe p = {.c = c, .net = point->net, .samples = point->samples};
    const double start = tutti_now();
    tutti_status s = tutti_comm_agree(c->comm, open_probe(&p));
    point->setup = tutti_now() - start;
    if (s == TUTTI_OK) s = tutti_calibration_slowest(c, &point->setup, 1);
    if (s == TUTTI_OK) s = run(&p, seconds);
    if (s == TUTTI_OK) keep_least(&point->step, p.best_step);
    close_probe(&p);
    return s;
}
