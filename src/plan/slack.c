#include "plan/slack.h"

#include <math.h>

static const double WANTED = 1.0 / 32; /* of a step's computing */
static const double EXCHANGES = 4;     /* and this many times the layer's own exchange */

static double all_passes(const tutti_pass_seconds *s)
{
    return s->forward + s->weights + s->data;
}

/* With late layers up to k, layer i's slack is the forward pass of all layers before it and the
 * weight gradients of the late ones after it, up to k. 'enough' is how long the weight gradients of
 * all late layers must take for those seen so far. */
int tutti_slack_layers(const tutti_net *net, const tutti_plan *plan, const tutti_prediction *p)
{
    double step = 0, forward = 0, weights = 0, enough = 0;
    for (int i = 0; i < p->layers; i++) step += all_passes(&p->layer[i].compute);
    for (int i = 0; i < p->layers && plan->groups[i] == plan->nodes; i++) {
        const tutti_layer_prediction *layer = &p->layer[i];
        if (tutti_layer_trains(net, &net->layers[i])) {
            const double wanted = fmax(WANTED * step, EXCHANGES * layer->comm);
            weights += layer->compute.weights;
            enough = fmax(enough, wanted - forward + weights);
            if (weights >= enough) return i + 1;
        }
        forward += layer->compute.forward;
    }
    return 0;
}
