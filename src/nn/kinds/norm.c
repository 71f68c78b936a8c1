#include "nn/kinds/norm.h"

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
