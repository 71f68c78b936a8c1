/* Parameters in the layout others know, and where they come from at first. */
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "kernel/layout.h"
#include "nn/unit.h"

/* ---- torch's layout ---- */

/* The part of a parameter a model holds: its shape, where it is in the flat buffer, and how far
 * into torch's tensor it begins. */
typedef struct part {
    tutti_weight_shape shape;
    size_t offset, count;
    size_t torch_offset;
} part;

static part part_of(const tutti_model *m, int param)
{
    const tutti_param *p = &m->net->params[param];
    const tutti_unit *unit = &m->units[p->layer];
    const tutti_layer *layer = unit->layer;
    const int k = unit->region.features;
    const size_t first = (size_t)unit->region.first_feature;
    part out = {.offset = unit->region.offset,
                .torch_offset = first * (p->count / (size_t)p->dims[0])};
    if (p->is_bias) {
        out.shape = (tutti_weight_shape){k, 1, 1, 1, true};
        out.offset += unit->region.weight_count;
    } else if (layer->kind == TUTTI_KIND_CONV)
        out.shape =
            (tutti_weight_shape){k, p->dims[1], p->dims[2], p->dims[3], layer->window.compact};
    else
        out.shape =
            (tutti_weight_shape){k, layer->in.c, layer->in.h, layer->in.w, layer->reads_compact};
    out.count = tutti_weight_blocked_count(&out.shape);
    return out;
}

void tutti_model_import(const tutti_model *m, int param, const float *torch, float *flat)
{
    const part p = part_of(m, param);
    tutti_weights_from_torch(m->options.team, &p.shape, torch + p.torch_offset, flat + p.offset);
}

void tutti_model_export(const tutti_model *m, int param, const float *flat, float *torch)
{
    const part p = part_of(m, param);
    tutti_weights_to_torch(m->options.team, &p.shape, flat + p.offset, torch + p.torch_offset);
}

/* The part that is these rows, as a tensor of its own. */
static part rows_of(const tutti_model *m, int param, tutti_rows rows)
{
    part p = part_of(m, param);
    const int skipped = rows.first - m->units[m->net->params[param].layer].region.first_feature;
    const size_t block = p.count / (size_t)tutti_ceil_div(p.shape.k, TUTTI_BLOCK);
    p.offset += (size_t)(skipped / TUTTI_BLOCK) * block;
    p.shape.k = rows.end - rows.first;
    p.count = tutti_weight_blocked_count(&p.shape);
    p.torch_offset = 0;
    return p;
}

/* What the strip begin .. end-1 of the flat buffer has of the part, counted from the part. */
static bool meet(const part *p, size_t begin, size_t end, size_t *first, size_t *last)
{
    if (end <= p->offset || begin >= p->offset + p->count) return false;
    *first = begin > p->offset ? begin - p->offset : 0;
    *last = end < p->offset + p->count ? end - p->offset : p->count;
    return true;
}

void tutti_model_import_rows(const tutti_model *m, int param, tutti_rows rows, const float *torch,
                             size_t begin, size_t end, float *strip)
{
    const part p = rows_of(m, param, rows);
    size_t first, last;
    if (meet(&p, begin, end, &first, &last))
        tutti_strip_from_torch(&p.shape, first, last, torch, strip + (p.offset + first - begin));
}

void tutti_model_export_rows(const tutti_model *m, int param, tutti_rows rows, size_t begin,
                             size_t end, const float *strip, float *torch)
{
    const part p = rows_of(m, param, rows);
    size_t first, last;
    if (meet(&p, begin, end, &first, &last))
        tutti_strip_to_torch(&p.shape, first, last, strip + (p.offset + first - begin), torch);
}

/* ---- initial values ---- */

typedef struct filler {
    const part *part;
    tutti_random_key key;
    bool uniform;
    double scale; /* deviation, or half the width */
    float *flat;
} filler;

static tutti_init init_of(const tutti_layer *layer, tutti_init asked)
{
    if (layer->init != TUTTI_INIT_AUTO) return layer->init;
    if (asked != TUTTI_INIT_AUTO) return asked;
    return layer->activation == TUTTI_ACT_RELU ? TUTTI_INIT_HE : TUTTI_INIT_XAVIER;
}

static void set_scale(filler *f, const tutti_layer *layer, const tutti_param *param,
                      tutti_init init, float std)
{
    const double fan_in = (double)param->count / param->dims[0];
    const double taps = param->dim_count == 4 ? (double)param->dims[2] * param->dims[3] : 1;
    const double fan_out = param->dims[0] * taps;
    const float own = layer->init_std > 0 ? layer->init_std : std;
    f->uniform = init == TUTTI_INIT_XAVIER;
    if (init == TUTTI_INIT_XAVIER) f->scale = sqrt(6 / (fan_in + fan_out));
    else if (init == TUTTI_INIT_HE) f->scale = sqrt(2 / fan_in);
    else f->scale = own > 0 ? own : 0.01;
}

/* Number 'at' of torch's tensor; 'drawn' keeps the pair it is of, for its neighbour. */
static float draw(const filler *f, uint64_t at, double drawn[2])
{
    if (f->uniform) return (float)(f->scale * (2 * tutti_random_uniform(&f->key, at) - 1));
    if (at % 2 == 0) tutti_random_normals(drawn, &f->key, at / 2);
    return (float)(f->scale * drawn[at % 2]);
}

/* The weights of one output feature, in the order of torch's tensor. */
static void fill_feature(const filler *f, int feature)
{
    const tutti_weight_shape *shape = &f->part->shape;
    const int taps = shape->r * shape->s;
    const size_t block =
        tutti_weight_blocked_count(shape) / (size_t)tutti_ceil_div(shape->k, TUTTI_BLOCK);
    float *to =
        f->flat + f->part->offset + (size_t)(feature / TUTTI_BLOCK) * block + feature % TUTTI_BLOCK;
    uint64_t at = f->part->torch_offset + (uint64_t)feature * (uint64_t)(shape->c * taps);
    double drawn[2];
    if (at % 2) tutti_random_normals(drawn, &f->key, at / 2);
    for (int c = 0; c < shape->c; c++)
        for (int tap = 0; tap < taps; tap++, at++) {
            const int row = shape->compact
                                ? tap * shape->c + c
                                : (c / TUTTI_BLOCK * taps + tap) * TUTTI_BLOCK + c % TUTTI_BLOCK;
            to[(size_t)row * TUTTI_BLOCK] = draw(f, at, drawn);
        }
}

static void fill_share(void *arg, int member, int size)
{
    const filler *f = arg;
    const int blocks = tutti_ceil_div(f->part->shape.k, TUTTI_BLOCK);
    const int end = tutti_share_begin(blocks, size, member + 1) * TUTTI_BLOCK;
    for (int k = tutti_share_begin(blocks, size, member) * TUTTI_BLOCK;
         k < end && k < f->part->shape.k; k++)
        fill_feature(f, k);
}

void tutti_model_init(tutti_model *m, uint64_t seed, tutti_init init, float std)
{
    for (int i = 0; i < m->net->param_count; i++) {
        const tutti_param *param = &m->net->params[i];
        const tutti_layer *layer = &m->net->layers[param->layer];
        const part p = part_of(m, i);
        if (param->is_bias) {
            for (int k = 0; k < p.shape.k; k++)
                m->parameters[p.offset + (size_t)k] = layer->init_bias;
            continue;
        }
        filler f = {.part = &p, .flat = m->parameters};
        f.key = (tutti_random_key){
            .seed = seed, .purpose = TUTTI_RANDOM_INIT, .layer = (uint32_t)param->layer};
        set_scale(&f, layer, param, init_of(layer, init), std);
        tutti_team_run(m->options.team, fill_share, &f);
    }
}
