#include "plan/volumes.h"

tutti_balance_layer tutti_balance_of(const tutti_layer *l)
{
    if (l->kind == TUTTI_KIND_FC)
        return (tutti_balance_layer){(double)tutti_shape_count(l->in), l->out.c, 1, 1, 1, 1, 1, 1};
    if (l->kind != TUTTI_KIND_CONV) return (tutti_balance_layer){0};
    return (tutti_balance_layer){l->in.c, l->out.c, l->window.s, l->window.r,
                                 l->in.w, l->in.h,  l->out.w,    l->out.h};
}
