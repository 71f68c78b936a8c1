/* Parameters in the layout others know. */
#include "base/memory.h"
#include "kernel/layout.h"
#include "nn/unit.h"

/* Rows of a parameter that a model holds, as a tensor of their own: its shape, where it is in the
 * flat buffer, and where in torch's tensor it begins. */
typedef struct part {
    tutti_weight_shape shape;
    size_t offset, count;
    size_t torch_offset;
} part;

static part part_of(const tutti_model *m, int param)
{
    const tutti_param *p = &m->net->params[param];
    const tutti_slice slice = tutti_model_slice(m, param);
    part out = {.shape = p->layout,
                .offset = slice.offset,
                .count = slice.count,
                .torch_offset = (size_t)slice.rows.first * (p->count / (size_t)p->dims[0])};
    out.shape.k = slice.rows.end - slice.rows.first;
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

/* These rows as a tensor of their own. */
static part rows_of(const tutti_model *m, int param, tutti_rows rows)
{
    part p = part_of(m, param);
    const int skipped = rows.first - tutti_model_slice(m, param).rows.first;
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
