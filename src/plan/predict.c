/* A step as a program for the timeline: what each layer computes, submits, waits for and moves, and
 * the seconds it takes on the platform. Every node does the same, so one is enough. A step of
 * several passes (nn/passes.h) goes through all layers several times, with fewer samples, and
 * submits in the last one. */
#include "plan/predict.h"

#include <math.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/fc.h"
#include "nn/kinds/kind.h"
#include "nn/model.h"
#include "nn/passes.h"
#include "plan/slack.h"
#include "plan/timeline.h"

enum { FLOAT_BYTES = 4, OPS_PER_LAYER = 12 };

typedef struct builder {
    const tutti_net *net;
    const tutti_platform *platform;
    const tutti_plan *plan;
    const tutti_predict_options *options;
    tutti_prediction *out;
    tutti_op *ops;
    int op_count;
    tutti_chain *chains;
    int *lives; /* groups in which each layer's output lies */
    int passes;
    bool in_common;
} builder;

static void add_op(builder *b, tutti_op_kind kind, int layer, double seconds)
{
    b->ops[b->op_count++] = (tutti_op){kind, layer, seconds};
}

/* ---- where activations are and how they get there ---- */

static int input_groups(const builder *b, int layer)
{
    const int from = b->net->layers[layer].from[0];
    return from == TUTTI_NET_INPUT ? b->plan->nodes : b->lives[from];
}

static void place_layers(builder *b)
{
    for (int i = 0; i < b->net->layer_count; i++)
        b->lives[i] = b->net->layers[i].kind->follows ? input_groups(b, i) : b->plan->groups[i];
}

/* How many partial sums a node sends of a gradient that a group's nodes must add up: one for each
 * subtree of its own features, in blocks (base/tree.h). */
static int partial_sums(const builder *b, int layer)
{
    const int members = b->plan->nodes / b->lives[layer];
    const int leaves = tutti_ceil_div(b->net->layers[layer].out.c, TUTTI_FC_LEAF);
    int most = 1;
    for (int m = 0; m < members; m++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int count = tutti_tree_roots(roots, leaves, tutti_share_begin(leaves, members, m),
                                           tutti_share_begin(leaves, members, m + 1));
        if (count > most) most = count;
    }
    return most;
}

/* Bytes every node receives in a pass so that layer 'layer' has its input: from features of a group
 * to whole samples (all-to-all), from the members' samples or features to the group's
 * (part-broadcast). Or so that the layer below has its gradient: the same back, partial sums
 * instead of samples. */
static double move_bytes(const builder *b, int layer, bool back)
{
    const int nodes = b->plan->nodes, have = input_groups(b, layer), need = b->lives[layer];
    const double own = FLOAT_BYTES * (double)tutti_shape_floats(b->net->layers[layer].in) *
                       b->options->batch / nodes / b->passes;
    double bytes = 0;
    if (have != need && have < nodes) bytes += own * (1 - (double)have / nodes);
    if (need < nodes && !b->net->layers[layer].kind->follows)
        bytes += own * ((double)nodes / need - 1) * (back ? partial_sums(b, layer) : 1);
    return bytes;
}

/* The statistics of a layer whose samples are normalised together, where ranks share them: bytes
 * every node receives, and how many nodes meet. */
static double statistics_bytes(const builder *b, int layer, int *members)
{
    const tutti_layer *l = &b->net->layers[layer];
    const int batch = b->options->batch, nodes = b->plan->nodes;
    const tutti_sharing sharing = {batch, tutti_default_grains(b->net, batch), nodes, 0};
    *members = 1;
    if (!tutti_layer_measures(l) || nodes > sharing.grains || b->passes > 1) return 0;
    *members = tutti_statistics_members(&sharing, l->kind->group(l));
    return (double)tutti_statistics_bytes(l, &sharing, l->kind->group(l));
}

static double statistics_seconds(const builder *b, int layer)
{
    int members;
    const double bytes = statistics_bytes(b, layer, &members);
    return bytes > 0 ? tutti_platform_move(b->platform, members, bytes) + b->platform->meeting : 0;
}

/* Forward and backward each, in a pass: the move itself, and meeting the other ranks for it. */
static double move_seconds(const builder *b, int layer, bool back)
{
    const int smaller =
        input_groups(b, layer) < b->lives[layer] ? input_groups(b, layer) : b->lives[layer];
    const double bytes = move_bytes(b, layer, back), statistics = statistics_seconds(b, layer);
    if (!(bytes > 0)) return statistics;
    return tutti_platform_move(b->platform, (double)b->plan->nodes / smaller, bytes) +
           b->platform->meeting + statistics;
}

/* ---- layers ---- */

static double samples_of(const builder *b, int groups)
{
    return ceil((double)b->options->batch / groups);
}

/* Of all passes, with the adding of what each but the first leaves. */
static tutti_pass_seconds compute_of(const builder *b, int layer, int outputs, double parameters)
{
    enum { ACCESSES_OF_A_SUM = 3 };
    const double passes = b->passes, samples = ceil(samples_of(b, b->lives[layer]) / passes);
    tutti_pass_seconds t = tutti_platform_layer(b->platform, b->net, layer, samples, outputs);
    t.forward *= passes;
    t.data *= passes;
    t.weights *= passes;
    if (b->passes > 1 && tutti_layer_trains(b->net, &b->net->layers[layer]))
        t.weights +=
            tutti_platform_update(b->platform, (passes - 1) * parameters, ACCESSES_OF_A_SUM);
    return t;
}

static int outputs_of(const builder *b, int layer)
{
    return tutti_ceil_div(b->net->layers[layer].out.c, b->plan->nodes / b->lives[layer]);
}

static double parameters_of(const builder *b, int layer)
{
    return (double)tutti_layer_floats(b->net, layer) * b->lives[layer] / b->plan->nodes;
}

/* Ranks of one host that hold all parameters add up gradients and update in place. */
static bool are_in_common(const builder *b)
{
    const int nodes = b->plan->nodes;
    if (!(b->platform->common > 0) || nodes == 1 || nodes > b->platform->ranks) return false;
    for (int i = 0; i < b->net->layer_count; i++)
        if (b->lives[i] != nodes) return false;
    return true;
}

/* Measured with SGD and momentum: what other optimizers move beside the gradients costs more. */
static double common_update(const builder *b)
{
    const double ranks = b->plan->nodes, measured = ranks + TUTTI_MEASURED_ACCESSES;
    return b->platform->common * ((ranks + b->options->optimizer.accesses) / measured);
}

/* The exchange of a layer's gradient and parameters among the nodes that hold the same ones. */
static void set_chain(builder *b, int layer)
{
    const double holders = b->lives[layer], count = parameters_of(b, layer);
    const double bytes = FLOAT_BYTES * count;
    tutti_layer_prediction *p = &b->out->layer[layer];
    p->update = b->in_common ? common_update(b) * count / holders
                             : tutti_platform_update(b->platform, count / holders,
                                                     b->options->optimizer.accesses);
    if (b->in_common) p->bytes += bytes * (holders - 1) / holders;
    if (b->in_common || holders <= 1) return;
    b->chains[layer].reduce = tutti_platform_reduce(b->platform, holders, bytes);
    b->chains[layer].broadcast = tutti_platform_broadcast(b->platform, holders, bytes) + p->update;
    p->comm += b->chains[layer].reduce + b->chains[layer].broadcast - p->update;
    p->bytes += 2 * bytes * (holders - 1) / holders;
}

static void set_layer(builder *b, int layer)
{
    const tutti_layer *l = &b->net->layers[layer];
    tutti_layer_prediction *p = &b->out->layer[layer];
    const double held = parameters_of(b, layer);
    int members;
    p->compute = compute_of(b, layer, outputs_of(b, layer), held);
    for (int back = 0; back <= l->trains_below; back++) {
        p->comm += b->passes * move_seconds(b, layer, back);
        p->bytes += b->passes * move_bytes(b, layer, back) + statistics_bytes(b, layer, &members);
    }
    if (tutti_layer_trains(b->net, l)) set_chain(b, layer);
    const double shown =
        (double)tutti_shape_floats(l->out) * b->options->batch / b->plan->nodes / b->passes;
    const int gradients = b->passes > 1 ? tutti_tree_height(b->passes) : 1;
    const double states = b->options->optimizer.states / (double)b->lives[layer];
    p->memory = FLOAT_BYTES * (held * (l->frozen ? 1 : 1 + gradients + states) + 2 * shown);
}

/* ---- the program ---- */

static bool exchanges(const builder *b, int layer)
{
    return tutti_layer_trains(b->net, &b->net->layers[layer]) && b->lives[layer] > 1 &&
           !b->in_common;
}

static void add_forward(builder *b, int layer, bool is_first)
{
    if (is_first && exchanges(b, layer) && b->options->overlap) add_op(b, TUTTI_OP_WAIT, layer, 0);
    add_op(b, TUTTI_OP_EXCHANGE, layer, move_seconds(b, layer, false));
    add_op(b, TUTTI_OP_COMPUTE, layer, b->out->layer[layer].compute.forward / b->passes);
}

/* What is left of the move back where a split layer's weight gradient is computed meanwhile. */
static double move_back_seconds(const builder *b, int layer)
{
    const tutti_layer *l = &b->net->layers[layer];
    const bool hides =
        b->options->overlap && tutti_layer_trains(b->net, l) && b->lives[layer] < b->plan->nodes;
    const double hidden = hides ? b->out->layer[layer].compute.weights / b->passes : 0;
    return l->trains_below ? fmax(move_seconds(b, layer, true) - hidden, 0) : 0;
}

static void add_weights(builder *b, int layer, bool is_last)
{
    add_op(b, TUTTI_OP_COMPUTE, layer, b->out->layer[layer].compute.weights / b->passes);
    if (is_last && exchanges(b, layer) && b->options->overlap) add_op(b, TUTTI_OP_SUBMIT, layer, 0);
}

static void add_release(builder *b, int layer, bool is_last)
{
    if (!is_last) return;
    if (!exchanges(b, layer)) add_op(b, TUTTI_OP_COMPUTE, -1, b->out->layer[layer].update);
    else if (b->options->overlap) add_op(b, TUTTI_OP_GATE, layer, 0);
}

static bool is_late(const builder *b, int layer)
{
    return layer < b->out->late && tutti_layer_trains(b->net, &b->net->layers[layer]);
}

static void add_backward(builder *b, int layer, bool is_last)
{
    const tutti_layer *l = &b->net->layers[layer];
    const double data = b->out->layer[layer].compute.data / b->passes;
    const bool inputs_first = b->lives[layer] < b->plan->nodes;
    if (l->trains_below && inputs_first) add_op(b, TUTTI_OP_COMPUTE, layer, data);
    if (!is_late(b, layer)) add_weights(b, layer, is_last);
    if (l->trains_below && !inputs_first) add_op(b, TUTTI_OP_COMPUTE, layer, data);
    add_op(b, TUTTI_OP_EXCHANGE, layer, move_back_seconds(b, layer));
    if (!is_late(b, layer)) add_release(b, layer, is_last);
}

static void add_late(builder *b, int layer, bool is_last)
{
    if (!is_late(b, layer)) return;
    add_weights(b, layer, is_last);
    add_release(b, layer, is_last);
}

static void add_pass(builder *b, int number)
{
    const bool is_last = number == b->passes - 1;
    for (int i = 0; i < b->net->layer_count; i++) add_forward(b, i, number == 0);
    for (int i = b->net->layer_count - 1; i >= 0; i--) add_backward(b, i, is_last);
    for (int i = 0; i < b->out->late; i++) add_late(b, i, is_last);
}

static void add_exchanges_at_the_end(builder *b)
{
    for (int i = b->net->layer_count - 1; i >= 0; i--)
        if (exchanges(b, i)) {
            add_op(b, TUTTI_OP_SUBMIT, i, 0);
            add_op(b, TUTTI_OP_GATE, i, 0);
            add_op(b, TUTTI_OP_WAIT, i, 0);
        }
}

static void run(builder *b)
{
    tutti_prediction *out = b->out;
    place_layers(b);
    b->in_common = are_in_common(b);
    for (int i = 0; i < b->net->layer_count; i++) set_layer(b, i);
    const bool meets = b->plan->nodes > 1 && !b->in_common; /* in common it costs next to nothing */
    const bool overlaps = meets && b->options->overlap;
    out->late = overlaps ? tutti_slack_layers(b->net, b->plan, out) : 0;
    out->input_s = tutti_platform_input(b->platform, b->net, samples_of(b, b->plan->nodes));
    add_op(b, TUTTI_OP_COMPUTE, -1, out->input_s);
    if (meets) add_op(b, TUTTI_OP_EXCHANGE, -1, b->platform->meeting);
    for (int p = 0; p < b->passes; p++) add_pass(b, p);
    if (!b->options->overlap) add_exchanges_at_the_end(b);
    const tutti_channel channel = {b->platform->steals, b->platform->beside, !b->options->priority};
    out->step_s =
        tutti_timeline_step(b->ops, b->op_count, b->chains, b->net->layer_count, &channel, NULL);
    if (meets) out->exposed_s = b->platform->meeting;
    for (int i = 0; i < b->net->layer_count; i++) {
        tutti_layer_prediction *p = &out->layer[i];
        p->exposed =
            b->chains[i].waited + b->passes * (move_seconds(b, i, false) + move_back_seconds(b, i));
        p->elapsed = b->chains[i].computed;
        out->exposed_s += p->exposed;
        out->comm_s += p->comm;
        out->memory += p->memory;
    }
    out->compute_s = out->step_s - out->exposed_s;
}

/* As the trainer cuts the minibatch. */
static tutti_status count_passes(builder *b)
{
    const int batch = b->options->batch, nodes = b->plan->nodes;
    const int usual = tutti_default_grains(b->net, batch);
    const int grains = b->options->grains ? b->options->grains : usual;
    tutti_sharing sharing = {batch, grains, nodes, 0};
    tutti_passes passes;
    b->passes = 1;
    while (sharing.grains < nodes) sharing.grains *= 2;
    if (!b->options->micro_batch || sharing.grains > batch) return TUTTI_OK;
    TUTTI_TRY(tutti_passes_init(&passes, b->net, &sharing, true, b->options->micro_batch));
    b->passes = passes.count;
    tutti_passes_deinit(&passes);
    return TUTTI_OK;
}

tutti_status tutti_predict_step(tutti_prediction **out, const tutti_net *net,
                                const tutti_platform *platform, const tutti_plan *plan,
                                const tutti_predict_options *options)
{
    const size_t layers = (size_t)net->layer_count;
    builder b = {.net = net, .platform = platform, .plan = plan, .options = options};
    tutti_status s = TUTTI_OK;
    if (plan->nodes > 1 && !(platform->link > 0))
        return tutti_fail(TUTTI_ARGUMENT,
                          "platform %s was measured on one rank and knows no network; run 'mpirun "
                          "-n %d tutti calibrate'",
                          platform->name, plan->nodes);
    if ((s = count_passes(&b))) goto out;
    if ((s = tutti_alloc(&b.out, 1, sizeof *b.out + layers * sizeof *b.out->layer))) goto out;
    if ((s = tutti_alloc(&b.ops, layers * (size_t)b.passes * OPS_PER_LAYER + 2, sizeof *b.ops)))
        goto out;
    if ((s = tutti_alloc(&b.chains, layers, sizeof *b.chains))) goto out;
    if ((s = tutti_alloc(&b.lives, layers, sizeof *b.lives))) goto out;
    b.out->nodes = plan->nodes;
    b.out->batch = options->batch;
    b.out->passes = b.passes;
    b.out->layers = net->layer_count;
    run(&b);
    *out = b.out;
    b.out = NULL;
out:
    tutti_prediction_destroy(&b.out);
    tutti_free(b.ops);
    tutti_free(b.chains);
    tutti_free(b.lives);
    return s;
}

void tutti_prediction_destroy(tutti_prediction **prediction)
{
    tutti_free(*prediction);
    *prediction = NULL;
}
