#include "plan/balance.h"

#include <math.h>

enum { FLOAT_BYTES = 4 };

double tutti_balance_weights(const tutti_balance_layer *l)
{
    return l->ifm * l->ofm * l->kw * l->kh;
}

double tutti_balance_flops(const tutti_balance_layer *l, double points)
{
    return 3 * 2 * points * tutti_balance_weights(l) * l->out_w * l->out_h;
}

double tutti_balance_data_bytes(const tutti_balance_layer *l, double overlap)
{
    return FLOAT_BYTES * tutti_balance_weights(l) * (2 - overlap);
}

double tutti_balance_data_ratio(const tutti_balance_layer *l, double points, double overlap)
{
    return tutti_balance_flops(l, points) / tutti_balance_data_bytes(l, overlap);
}

double tutti_balance_min_points(const tutti_balance_layer *layers, int count, double flop_per_byte,
                                double overlap)
{
    double bytes = 0, flops = 0;
    for (int i = 0; i < count; i++) {
        bytes += tutti_balance_data_bytes(&layers[i], overlap);
        flops += tutti_balance_flops(&layers[i], 1);
    }
    return flop_per_byte * bytes / flops;
}

double tutti_balance_model_bytes(const tutti_balance_layer *l, double minibatch)
{
    return 2 * FLOAT_BYTES * l->ifm * l->in_w * l->in_h * minibatch;
}

double tutti_balance_hybrid_bytes(const tutti_balance_layer *l, double minibatch, double overlap,
                                  double nodes, double groups)
{
    const double activations = tutti_balance_model_bytes(l, minibatch) / groups;
    const double weights = tutti_balance_data_bytes(l, overlap) * groups / nodes;
    return (groups < nodes ? activations : 0) + (groups > 1 ? weights : 0);
}

double tutti_balance_best_groups(const tutti_balance_layer *l, double minibatch, double overlap,
                                 double nodes)
{
    return sqrt(2 * nodes * minibatch * l->in_w * l->in_h /
                (l->ofm * l->kw * l->kh * (2 - overlap)));
}

int tutti_balance_search_groups(const tutti_balance_layer *l, double minibatch, double overlap,
                                int nodes)
{
    int best = 1;
    for (int groups = 2; groups <= nodes; groups++)
        if (nodes % groups == 0 &&
            tutti_balance_hybrid_bytes(l, minibatch, overlap, nodes, groups) <
                tutti_balance_hybrid_bytes(l, minibatch, overlap, nodes, best))
            best = groups;
    return best;
}
