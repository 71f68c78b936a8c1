/* A plan: how each layer of a net is split over N nodes.
 *
 * N nodes form G groups of N/G consecutive nodes. The minibatch is split over the groups, the
 * output features of the layer over the nodes of a group. G = N is data parallelism, G = 1 model
 * parallelism, anything in between is hybrid. Layers without parameters follow their input.
 *
 * As text, a plan has one line per layer; layers that are not named are data parallel:
 *
 *     tutti plan 1
 *     fc6 hybrid groups=4
 *     fc7 model
 *     conv1 data
 */
#ifndef TUTTI_PLAN_PLAN_H
#define TUTTI_PLAN_PLAN_H

#include "nn/net.h"

typedef struct tutti_plan {
    int nodes;
    int layers;   /* of the net */
    int late;     /* how many first layers compute their weight gradients last: plan/slack.h */
    int groups[]; /* of each layer of the net */
} tutti_plan;

/* Everything data parallel. */
tutti_status tutti_plan_create(tutti_plan **out, const tutti_net *net, int nodes) TUTTI_MUST_CHECK;
void tutti_plan_destroy(tutti_plan **plan);

/* Splits every layer that can be split over all nodes. */
void tutti_plan_set_model(tutti_plan *plan, const tutti_net *net);

/* What --plan names: "data", "model", or a file with the plan's text; TUTTI_ARGUMENT if there is no
 * such word or file. */
tutti_status tutti_plan_named(tutti_plan **out, const tutti_net *net, int nodes,
                              const char *name) TUTTI_MUST_CHECK;

/* Reads the plan's text from a file or from memory ('name' stands for the file in messages). */
tutti_status tutti_plan_read(tutti_plan **out, const tutti_net *net, int nodes,
                             const char *path) TUTTI_MUST_CHECK;
tutti_status tutti_plan_parse(tutti_plan **out, const tutti_net *net, int nodes, const char *name,
                              const char *content) TUTTI_MUST_CHECK;

/* "data", "model" or "hybrid". */
const char *tutti_plan_split(const tutti_plan *plan, int layer);

/* The plan as text, one line per layer with parameters, with its sum (base/text.h); tutti_free. */
tutti_status tutti_plan_text(char **out, const tutti_plan *plan,
                             const tutti_net *net) TUTTI_MUST_CHECK;

#endif
