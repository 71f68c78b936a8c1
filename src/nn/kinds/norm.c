#include "nn/kinds/norm.h"

#include "base/memory.h"

tutti_status tutti_layer_add_norm(tutti_net *net, const tutti_layer *layer, bool each_value)
{
    const int c = layer->in.c, h = each_value ? layer->in.h : 1, w = each_value ? layer->in.w : 1;
    tutti_param param = {.dim_count = each_value ? 3 : 1,
                         .dims = {c, h, w},
                         .layout = {c, 1, h, w, true},
                         .fill = {TUTTI_INIT_CONSTANT, 1}};
    TUTTI_TRY(tutti_layer_add_param(net, "weight", &param));
    param.fill.value = 0;
    return tutti_layer_add_param(net, "bias", &param);
}

tutti_status tutti_norm_own_create(void **out, size_t sample_bytes)
{
    tutti_norm_own *own = NULL;
    TUTTI_TRY(tutti_alloc(&own, 1, sizeof *own));
    own->sample_bytes = sample_bytes;
    *out = own;
    return TUTTI_OK;
}

void tutti_norm_own_destroy(void *own)
{
    tutti_free(own);
}

size_t tutti_norm_own_scratch(const void *own, int samples)
{
    return (size_t)samples * ((const tutti_norm_own *)own)->sample_bytes;
}

size_t tutti_group_norm_saved(const tutti_layer *layer, int samples)
{
    const size_t row = tutti_norm_pair(layer->out.c) / 2;
    return (size_t)samples * (TUTTI_NORM_STATE + 2) * row * sizeof(double);
}

size_t tutti_group_norm_scratch(const tutti_layer *layer)
{
    const size_t row = tutti_norm_pair(layer->out.c) / 2;
    return tutti_group_norm_saved(layer, 1) + TUTTI_NORM_ROWS * row * sizeof(float);
}

tutti_group_norm_places tutti_group_norm_at(const tutti_call *c)
{
    const size_t n = (size_t)c->out.n, row = tutti_norm_pair(c->out.c) / 2;
    double *scratch = c->scratch, *states = c->saved ? c->saved : scratch;
    return (tutti_group_norm_places){states, states + n * TUTTI_NORM_STATE * row,
                                     (float *)(scratch + n * (TUTTI_NORM_STATE + 2) * row)};
}
