/* A net's layers, timed where they stand: whole training steps of a model on this rank alone, so
 * that caches, memory and the layers in between are as in training. The passes of the shortest step
 * are kept, the least blurred picture of how a step divides into layers, and stretched to the
 * median step. What a step takes beyond its layers and its update (bringing the input into its
 * layout, losses, going from layer to layer) is kept as the row of the net's input. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "machine/calibrate.h"

enum { MOST_TRIES = 200, MOST_DISTURBED = 3, LONG_VISIT = 8 };

/* Below this share of its cores a try was disturbed by other programs. */
static const double calm_share = 0.95;

typedef struct probe {
    tutti_calibration *c;
    const tutti_net *net;
    int samples;
    tutti_model *model;
    float *input, *momentum;
    void *targets[TUTTI_MOST_TARGETS]; /* classes in turn, values of 0 */
    tutti_goals goals;
    double updating; /* seconds, in this step */
    size_t updated;  /* parameters, in this step */
    tutti_pass_seconds *best;
    double best_step, rest, update_seconds; /* the shortest step, its parts outside the layers */
} probe;

/* ---- a step ---- */

/* SGD on the strip this rank would own: with several ranks the communication thread's work. */
static tutti_status update(void *user, int layer)
{
    probe *p = user;
    const tutti_sgd sgd = {.lr = 0, .momentum = 0.9f, .gradient_scale = 1};
    const tutti_region r = tutti_model_region(p->model, layer);
    const size_t count = r.count / (size_t)p->c->me.size;
    const tutti_exec exec = {p->c->me.exec.row, p->c->me.size > 1 ? NULL : p->c->me.exec.team};
    const tutti_update update = {
        .count = count,
        .a = tutti_model_gradient(p->model, layer, 0),
        .w = tutti_model_parameters(p->model) + r.offset,
        .state = {p->momentum + r.offset},
    };
    const double start = tutti_now();
    tutti_sgd_step(exec, &sgd, &update);
    p->updating += tutti_now() - start;
    p->updated += count;
    return TUTTI_OK;
}

/* What the step just done took on this rank, 'seconds', becomes what is known. The layers of one
 * step, not each one's luckiest: their sum has to be a step, one of all ranks' 'whole' seconds. */
static void keep_step(probe *p, double seconds, double whole)
{
    const double scale = whole / seconds;
    p->update_seconds = p->updating * scale;
    p->rest = whole - p->update_seconds;
    for (int i = 0; i < p->net->layer_count; i++) {
        const tutti_layer_times t = tutti_model_times(p->model, i);
        p->best[i] = (tutti_pass_seconds){t.forward * scale, t.backward_weights * scale,
                                          t.backward_data * scale};
        p->rest -= (t.forward + t.backward_weights + t.backward_data) * scale;
    }
}

/* Collective: all ranks step together, as in training; *seconds is what that took them, *calm says
 * that no rank was disturbed. */
static tutti_status step(probe *p, double *seconds, bool *calm)
{
    TUTTI_TRY(tutti_comm_barrier(p->c->me.comm));
    p->updating = 0;
    p->updated = 0;
    tutti_model_reset_times(p->model);
    const double start = tutti_now(), cpu = tutti_cpu_time();
    tutti_model_aim(p->model, &p->goals);
    TUTTI_TRY(tutti_model_train(p->model, 0, p->input, NULL));
    const double end = tutti_now();
    double idle = (cpu - tutti_cpu_time()) / ((end - start) * tutti_team_size(p->c->me.exec.team));
    TUTTI_TRY(tutti_calibration_slowest(p->c, &idle, 1));
    TUTTI_TRY(tutti_calibration_span(p->c, start, end, seconds));
    if (*seconds < p->best_step) {
        p->best_step = *seconds;
        keep_step(p, end - start, *seconds);
    }
    *calm = -idle > calm_share;
    return TUTTI_OK;
}

/* ---- a model ---- */

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1;
}

static void fill_target(const probe *p, int target)
{
    const tutti_target *t = &p->net->targets[target];
    int32_t *classes = p->targets[target];
    const size_t words = (size_t)p->samples * tutti_target_words(t);
    for (size_t k = 0; k < words && !tutti_target_is_values(t); k++)
        classes[k] = (int32_t)(k % (size_t)t->c);
}

static tutti_status open_targets(probe *p)
{
    for (int t = 0; t < p->net->target_count; t++) {
        const size_t words = tutti_target_words(&p->net->targets[t]);
        TUTTI_TRY(tutti_alloc(&p->targets[t], (size_t)p->samples * words, sizeof(int32_t)));
        p->goals.of[t] = p->targets[t];
    }
    return TUTTI_OK;
}

/* Values of an ordinary size: zeros would be cheaper, tiny ones dearer than those of training. */
static void fill(probe *p)
{
    uint32_t state = 1;
    float *parameters = tutti_model_parameters(p->model);
    for (int i = 0; i < p->net->param_count; i++) {
        const tutti_slice held = tutti_model_slice(p->model, i);
        if (p->net->params[i].dim_count == 1) continue;
        const int rows = held.rows.end - held.rows.first;
        const float scale = sqrtf(6.0f * (float)rows / (float)held.count);
        for (size_t k = 0; k < held.count; k++) parameters[held.offset + k] = scale * noise(&state);
    }
    const size_t floats = tutti_net_input_floats(p->net) * (size_t)p->samples;
    for (size_t k = 0; k < floats; k++) p->input[k] = noise(&state);
    for (int t = 0; t < p->net->target_count; t++) fill_target(p, t);
}

static tutti_status open_probe(probe *p)
{
    const tutti_model_options o = {.row = p->c->me.exec.row,
                                   .team = p->c->me.exec.team,
                                   .caches = p->c->me.caches,
                                   .batch = p->samples,
                                   .grains = tutti_default_grains(p->net, p->samples),
                                   .workers = 1,
                                   .hooks = {.user = p, .weights_released = update}};
    const size_t layers = (size_t)p->net->layer_count, samples = (size_t)p->samples;
    TUTTI_TRY(tutti_alloc(&p->best, layers, sizeof *p->best));
    TUTTI_TRY(open_targets(p));
    TUTTI_TRY(tutti_alloc(&p->input, samples * tutti_net_input_floats(p->net), sizeof(float)));
    TUTTI_TRY(tutti_model_create(&p->model, p->net, &o));
    TUTTI_TRY(
        tutti_alloc(&p->momentum, tutti_model_parameter_floats(p->model), sizeof *p->momentum));
    p->best_step = INFINITY;
    fill(p);
    return TUTTI_OK;
}

static void close_probe(probe *p)
{
    tutti_model_destroy(&p->model);
    tutti_free(p->input);
    tutti_free(p->momentum);
    for (int t = 0; t < TUTTI_MOST_TARGETS; t++) tutti_free(p->targets[t]);
    tutti_free(p->best);
}

/* ---- what was found ---- */

static double sum_of(const probe *p)
{
    double sum = 0;
    for (int i = 0; i < p->net->layer_count; i++)
        sum += p->best[i].forward + p->best[i].weights + p->best[i].data;
    return sum;
}

static void stretch(tutti_pass_seconds *layers, int count, double factor)
{
    for (int i = 0; i < count; i++) {
        layers[i].forward *= factor;
        layers[i].weights *= factor;
        layers[i].data *= factor;
    }
}

/* The shortest step so far. Of each layer the slowest rank's, and of their sum: not all layers are
 * slow on the same rank. */
static tutti_status keep_best(probe *p, tutti_point *point)
{
    const int layers = p->net->layer_count;
    double sum = sum_of(p);
    double found[] = {fmax(p->rest, 0), p->update_seconds / (double)p->updated};
    TUTTI_TRY(tutti_calibration_slowest(p->c, &sum, 1));
    TUTTI_TRY(tutti_calibration_slowest(p->c, &p->best[0].forward, 3 * layers));
    TUTTI_TRY(tutti_calibration_slowest(p->c, found, 2));
    stretch(p->best, layers, sum / sum_of(p));
    tutti_free(point->layers);
    point->layers = p->best;
    p->best = NULL;
    point->best = p->best_step;
    point->rest = found[0];
    point->update = found[1];
    point->updated = p->updated;
    return TUTTI_OK;
}

static void note(tutti_point *point, double seconds)
{
    point->seconds[point->steps++ % TUTTI_POINT_STEPS] = seconds;
}

/* Whether a visit of 'seconds' goes on after i steps. The first one meets memory that nobody has
 * touched: it counts only where a second one would take far too long. */
static bool goes_on(int i, double spent, double seconds, bool calm)
{
    if (i == MOST_TRIES) return false;
    return spent < seconds || (i == 1 && spent < LONG_VISIT * seconds) ||
           (!calm && i < MOST_DISTURBED);
}

/* Steps for about 'seconds', and if possible one that nobody disturbed. */
static tutti_status run(probe *p, tutti_point *point, double seconds)
{
    double took = 0, spent = 0;
    bool calm = false;
    int i = 0;
    for (; goes_on(i, spent, seconds, calm); i++) {
        bool is_calm;
        TUTTI_TRY(step(p, &took, &is_calm));
        calm |= is_calm;
        spent += took;
        if (i > 0) note(point, took);
    }
    if (i == 1) note(point, took);
    return TUTTI_OK;
}

tutti_status tutti_calibrate_point(tutti_calibration *c, tutti_point *point, double seconds)
{
    probe p = {.c = c, .net = point->net, .samples = point->samples};
    const double start = tutti_now();
    tutti_status s = tutti_comm_agree(c->me.comm, open_probe(&p));
    point->setup = tutti_now() - start;
    if (s == TUTTI_OK) s = tutti_calibration_slowest(c, &point->setup, 1);
    if (s == TUTTI_OK) s = run(&p, point, seconds);
    if (s == TUTTI_OK && p.best_step < point->best) s = keep_best(&p, point);
    close_probe(&p);
    return s;
}

void tutti_point_destroy(tutti_point *point)
{
    tutti_free(point->layers);
    point->layers = NULL;
}

/* ---- into the platform ---- */

static tutti_status keep_row(tutti_platform *platform, const tutti_layer_rate *rate)
{
    for (int i = 0; i < platform->layer_count; i++) {
        tutti_layer_rate *r = &platform->layers[i];
        if (r->samples != rate->samples || strcmp(r->key, rate->key)) continue;
        *r = *rate;
        return TUTTI_OK;
    }
    return tutti_platform_add_layer(platform, rate);
}

/* Layers of a net that do the same work: their mean, so that the net's sum is right. */
static tutti_pass_seconds mean_of_equals(const tutti_point *p, const char *key)
{
    tutti_pass_seconds sum = {0};
    int count = 0;
    for (int i = 0; i < p->net->layer_count; i++) {
        char other[TUTTI_LAYER_KEY];
        tutti_platform_key(&p->net->layers[i], p->net->layers[i].out.c, other);
        if (strcmp(key, other)) continue;
        sum.forward += p->layers[i].forward;
        sum.weights += p->layers[i].weights;
        sum.data += p->layers[i].data;
        count++;
    }
    return (tutti_pass_seconds){sum.forward / count, sum.weights / count, sum.data / count};
}

static double usual_step(const tutti_point *point)
{
    double sorted[TUTTI_POINT_STEPS];
    const int count = point->steps < TUTTI_POINT_STEPS ? point->steps : TUTTI_POINT_STEPS;
    memcpy(sorted, point->seconds, (size_t)count * sizeof *sorted);
    return tutti_calibration_median(sorted, count);
}

/* The update's rate is that of the net with the most parameters. */
tutti_status tutti_calibration_keep(tutti_calibration *c, const tutti_point *point)
{
    const double step = usual_step(point), factor = step / point->best;
    tutti_calibration_say(c, "  %-14s %6d samples a rank %10.2f ms, %8.1f samples/s a rank",
                          tutti_net_name(point->net), point->samples, step * 1e3,
                          point->samples / step);
    for (int i = 0; i < point->net->layer_count; i++) {
        tutti_layer_rate r = {.samples = point->samples};
        tutti_platform_key(&point->net->layers[i], point->net->layers[i].out.c, r.key);
        r.seconds = mean_of_equals(point, r.key);
        stretch(&r.seconds, 1, factor);
        TUTTI_TRY(keep_row(c->platform, &r));
    }
    if (point->updated >= c->updated) {
        c->updated = point->updated;
        c->platform->update = point->update * factor;
    }
    tutti_layer_rate rest = {.samples = point->samples, .seconds.forward = point->rest * factor};
    tutti_platform_input_key(point->net, rest.key);
    return keep_row(c->platform, &rest);
}
