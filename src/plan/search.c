/* The best plan. Layers affect each other in two ways: an activation must move where two neighbours
 * are split differently, and all gradients share one channel beside one computation. The first is a
 * chain, so dynamic programming finds its optimum: best[layer][G] = the cheapest way to have all
 * layers up to this one done with this one in G groups. The second is not a sum over layers, so
 * dynamic programming is run for several prices of a second on the channel (0: all hidden, 1: all
 * exposed), each result is timed as a whole step, and the best is improved layer by layer until
 * nothing helps. Plain data parallelism is one of the candidates, and wins against a plan that
 * promises hardly more: a split adds meetings of ranks, and no prediction is that exact. */
#include "plan/predict.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "nn/kinds/kind.h"

enum { MOST_CHOICES = 64 };

/* The part of a step that a plan must gain over data parallelism to be chosen. */
static const double least_gain = 0.01;

typedef struct search {
    const tutti_net *net;
    const tutti_platform *platform;
    const tutti_predict_options *options;
    int nodes;
    int splits[256], split_count;            /* layers that can be split */
    int choices[MOST_CHOICES], choice_count; /* divisors of the nodes, ascending */
    tutti_plan *best, *trial;
    double best_seconds;
} search;

static bool may(const search *s, int layer, int groups)
{
    return tutti_layer_can_split(&s->net->layers[layer], s->nodes, groups);
}

static tutti_status seconds_of(const search *s, const tutti_plan *plan, double *seconds)
{
    tutti_prediction *p = NULL;
    TUTTI_TRY(tutti_predict_step(&p, s->net, s->platform, plan, s->options));
    *seconds = p->step_s;
    tutti_prediction_destroy(&p);
    return TUTTI_OK;
}

static tutti_status try_plan(search *s, bool *better)
{
    double seconds;
    TUTTI_TRY(seconds_of(s, s->trial, &seconds));
    *better = seconds < s->best_seconds * (1 - 1e-9);
    if (!*better) return TUTTI_OK;
    s->best_seconds = seconds;
    memcpy(s->best->groups, s->trial->groups, sizeof *s->best->groups * (size_t)s->best->layers);
    return TUTTI_OK;
}

/* ---- dynamic programming over the layers that can be split ---- */

/* What a layer costs in 'groups' groups when a second on the channel is worth 'price'. */
static double own_cost(const search *s, int layer, int groups, double price)
{
    const double members = (double)s->nodes / groups;
    const double samples = ceil((double)s->options->batch / groups);
    const int outputs = tutti_ceil_div(s->net->layers[layer].out.c, (int)members);
    const tutti_pass_seconds t = tutti_platform_layer(s->platform, s->net, layer, samples, outputs);
    const double bytes = 4 * (double)tutti_layer_floats(s->net, layer) / members;
    const double channel = tutti_platform_reduce(s->platform, groups, bytes) +
                           tutti_platform_broadcast(s->platform, groups, bytes);
    return t.forward + t.weights + t.data + price * channel;
}

/* Moving a layer's input, forward and back, from where it is to where it is needed. */
static double move_cost(const search *s, int layer, int from, int to)
{
    const double own =
        4 * (double)tutti_shape_floats(s->net->layers[layer].in) * s->options->batch / s->nodes;
    double bytes = 0;
    if (from != to && from < s->nodes) bytes += own * (1 - (double)from / s->nodes);
    if (to < s->nodes) bytes += own * ((double)s->nodes / to - 1);
    if (bytes <= 0) return 0;
    const double members = (double)s->nodes / (from < to ? from : to);
    return 2 * (tutti_platform_move(s->platform, members, bytes) + s->platform->meeting);
}

static void programme(search *s, double price)
{
    double cost[256][MOST_CHOICES];
    int came[256][MOST_CHOICES];
    const int n = s->split_count, last = s->choice_count - 1; /* the last choice is data parallel */
    for (int i = 0; i < n; i++)
        for (int g = 0; g < s->choice_count; g++) {
            cost[i][g] = INFINITY;
            came[i][g] = last;
            if (!may(s, s->splits[i], s->choices[g])) continue;
            const double own = own_cost(s, s->splits[i], s->choices[g], price);
            for (int f = i ? 0 : last; f < s->choice_count; f++) {
                const double before = i ? cost[i - 1][f] : 0;
                const double all =
                    before + own + move_cost(s, s->splits[i], s->choices[f], s->choices[g]);
                if (all < cost[i][g]) {
                    cost[i][g] = all;
                    came[i][g] = f;
                }
            }
        }
    int g = last;
    for (int f = 0; n && f < s->choice_count; f++)
        if (cost[n - 1][f] < cost[n - 1][g]) g = f;
    for (int i = n - 1; i >= 0; i--) {
        s->trial->groups[s->splits[i]] = s->choices[g];
        g = came[i][g];
    }
}

/* ---- improving layer by layer ---- */

static tutti_status improve(search *s)
{
    for (bool better = true; better;) {
        better = false;
        for (int i = 0; i < s->split_count; i++)
            for (int g = 0; g < s->choice_count; g++) {
                bool helps = false;
                if (!may(s, s->splits[i], s->choices[g])) continue;
                memcpy(s->trial->groups, s->best->groups,
                       sizeof *s->best->groups * (size_t)s->best->layers);
                s->trial->groups[s->splits[i]] = s->choices[g];
                TUTTI_TRY(try_plan(s, &helps));
                better |= helps;
            }
    }
    return TUTTI_OK;
}

static tutti_status find(search *s)
{
    static const double prices[] = {0, 0.1, 0.25, 0.5, 1};
    bool better;
    for (int d = 1; d <= s->nodes; d++)
        if (s->nodes % d == 0 && s->choice_count < MOST_CHOICES) s->choices[s->choice_count++] = d;
    for (int i = 0; i < s->net->layer_count && s->split_count < 256; i++)
        if (s->net->layers[i].kind->splits) s->splits[s->split_count++] = i;
    TUTTI_TRY(tutti_plan_create(&s->best, s->net, s->nodes));
    TUTTI_TRY(tutti_plan_create(&s->trial, s->net, s->nodes));
    TUTTI_TRY(seconds_of(s, s->best, &s->best_seconds));
    const double plain = s->best_seconds;
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        programme(s, prices[i]);
        TUTTI_TRY(try_plan(s, &better));
    }
    TUTTI_TRY(improve(s));
    for (int i = 0; i < s->best->layers && s->best_seconds > plain * (1 - least_gain); i++)
        s->best->groups[i] = s->nodes;
    return TUTTI_OK;
}

tutti_status tutti_plan_search(tutti_plan **out, const tutti_net *net,
                               const tutti_platform *platform, int nodes,
                               const tutti_predict_options *options)
{
    search s = {.net = net, .platform = platform, .options = options, .nodes = nodes};
    const tutti_status status = find(&s);
    tutti_plan_destroy(&s.trial);
    if (status == TUTTI_OK) *out = s.best;
    else tutti_plan_destroy(&s.best);
    return status;
}
