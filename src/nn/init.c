/* Initial parameters: each number depends on the seed, the layer, the parameter and its place in
 * torch's tensor, whoever holds it. */
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "kernel/layout.h"
#include "nn/unit.h"

typedef enum distribution { CONSTANT, UNIFORM, NORMAL } distribution;

typedef struct filler {
    tutti_weight_shape shape; /* of the rows held */
    uint64_t first;           /* of their numbers in torch's tensor */
    float *to;
    tutti_random_key key;
    distribution how;
    double scale; /* the value, half the width, the deviation */
} filler;

/* What the net says comes first, then what is asked for, then what suits the activation. */
static tutti_init init_of(const tutti_layer *layer, const tutti_param *param, tutti_init asked)
{
    if (param->fill.init != TUTTI_INIT_AUTO) return param->fill.init;
    if (asked != TUTTI_INIT_AUTO) return asked;
    return layer->activation ? layer->activation->init : TUTTI_INIT_XAVIER;
}

static void set_distribution(filler *f, const tutti_param *param, tutti_init init, float std)
{
    const double fan_in = (double)param->count / param->dims[0];
    const double taps = param->dim_count == 4 ? (double)param->dims[2] * param->dims[3] : 1;
    const double fan_out = param->dims[0] * taps;
    const float own = param->fill.value > 0 ? param->fill.value : std;
    f->how = init == TUTTI_INIT_CONSTANT ? CONSTANT : init == TUTTI_INIT_XAVIER ? UNIFORM : NORMAL;
    if (init == TUTTI_INIT_CONSTANT) f->scale = (double)param->fill.value;
    else if (init == TUTTI_INIT_XAVIER) f->scale = sqrt(6 / (fan_in + fan_out));
    else if (init == TUTTI_INIT_HE) f->scale = sqrt(2 / fan_in);
    else f->scale = own > 0 ? (double)own : 0.01;
}

/* Number 'at' of torch's tensor; 'drawn' keeps the pair it is from, for its neighbour. */
static float draw(const filler *f, uint64_t at, double drawn[2])
{
    if (f->how == CONSTANT) return (float)f->scale;
    if (f->how == UNIFORM) return (float)(f->scale * (2 * tutti_random_uniform(&f->key, at) - 1));
    if (at % 2 == 0) tutti_random_normals(drawn, &f->key, at / 2);
    return (float)(f->scale * drawn[at % 2]);
}

/* The numbers of one row, in the order of torch's tensor. */
static void fill_row(const filler *f, int row)
{
    const tutti_weight_shape *shape = &f->shape;
    const int taps = shape->r * shape->s;
    const size_t block =
        tutti_weight_blocked_count(shape) / (size_t)tutti_ceil_div(shape->k, TUTTI_BLOCK);
    float *to = f->to + (size_t)(row / TUTTI_BLOCK) * block + row % TUTTI_BLOCK;
    uint64_t at = f->first + (uint64_t)row * (uint64_t)(shape->c * taps);
    double drawn[2];
    if (f->how == NORMAL && at % 2) tutti_random_normals(drawn, &f->key, at / 2);
    for (int c = 0; c < shape->c; c++)
        for (int tap = 0; tap < taps; tap++, at++) {
            const int place = shape->compact
                                  ? tap * shape->c + c
                                  : (c / TUTTI_BLOCK * taps + tap) * TUTTI_BLOCK + c % TUTTI_BLOCK;
            to[(size_t)place * TUTTI_BLOCK] = draw(f, at, drawn);
        }
}

static void fill_share(void *arg, int thread, int threads)
{
    const filler *f = arg;
    const int blocks = tutti_ceil_div(f->shape.k, TUTTI_BLOCK);
    const int end = tutti_share_begin(blocks, threads, thread + 1) * TUTTI_BLOCK;
    for (int k = tutti_share_begin(blocks, threads, thread) * TUTTI_BLOCK;
         k < end && k < f->shape.k; k++)
        fill_row(f, k);
}

void tutti_model_init(tutti_model *m, uint64_t seed, tutti_init init, float std)
{
    for (int i = 0; i < m->net->param_count; i++) {
        const tutti_param *param = &m->net->params[i];
        const tutti_layer *layer = &m->net->layers[param->layer];
        const tutti_slice held = tutti_model_slice(m, i);
        filler f = {.shape = param->layout,
                    .first = (uint64_t)held.rows.first * (param->count / (size_t)param->dims[0]),
                    .to = m->parameters + held.offset,
                    .key = {.seed = seed,
                            .purpose = TUTTI_RANDOM_INIT,
                            .layer = (uint32_t)param->layer,
                            .when = (uint32_t)(i - layer->first_param)}};
        f.shape.k = held.rows.end - held.rows.first;
        set_distribution(&f, param, init_of(layer, param, init), std);
        tutti_team_run(m->options.team, fill_share, &f);
    }
}
