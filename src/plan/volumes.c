#include "plan/volumes.h"

/* A kernel that slides has four dimensions, a matrix two, for a whole sample or for each pixel;
 * layers with neither multiply nothing. */
tutti_balance_layer tutti_balance_of(const tutti_net *net, const tutti_layer *l)
{
    if (!tutti_layer_trains(net, l)) return (tutti_balance_layer){0};
    const tutti_param *w = &net->params[l->first_param];
    const bool slides = w->dim_count == 4;
    if (!slides && w->dim_count != 2) return (tutti_balance_layer){0};
    if (!slides && l->out.h * l->out.w == 1)
        return (tutti_balance_layer){w->dims[1], w->dims[0], 1, 1, 1, 1, 1, 1};
    return (tutti_balance_layer){
        w->dims[1], w->dims[0], slides ? w->dims[3] : 1, slides ? w->dims[2] : 1, l->in.w, l->in.h,
        l->out.w,   l->out.h};
}
