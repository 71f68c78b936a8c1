#include "nn/kinds/weights.h"

static tutti_status check(const tutti_layer *layer, const tutti_weights *w)
{
    if (w->std > 0 && w->init != TUTTI_INIT_GAUSSIAN)
        return tutti_fail(TUTTI_PARSE, "%s: std= is the deviation of init=gaussian: give that, too",
                          layer->name);
    if (w->nobias && !isnan(w->bias))
        return tutti_fail(TUTTI_PARSE, "%s: bias=%g is the initial bias, and nobias leaves it out",
                          layer->name, w->bias);
    return TUTTI_OK;
}

tutti_status tutti_layer_add_weights(tutti_net *net, tutti_layer *layer, tutti_weights *w,
                                     const tutti_param *like)
{
    TUTTI_TRY(check(layer, w));
    if (isnan(w->bias)) w->bias = 0;
    tutti_param weight = *like;
    weight.decays = true;
    weight.fill = (tutti_fill){(tutti_init)w->init, (float)w->std};
    TUTTI_TRY(tutti_layer_add_param(net, "weight", &weight));
    if (w->nobias) return TUTTI_OK;
    const int features = layer->out.c;
    return tutti_layer_add_param(net, "bias",
                                 &(tutti_param){.dim_count = 1,
                                                .dims = {features},
                                                .layout = {features, 1, 1, 1, true},
                                                .fill = {TUTTI_INIT_CONSTANT, (float)w->bias}});
}
