/* What a step will cost: a net on N nodes of a platform, split by a plan. */
#ifndef TUTTI_PLAN_PREDICT_H
#define TUTTI_PLAN_PREDICT_H

#include "nn/optimizers/optimizer.h"
#include "plan/plan.h"
#include "plan/platform.h"

typedef struct tutti_predict_options {
    int batch;     /* of all nodes */
    bool overlap;  /* false: communicate after computing */
    bool priority; /* false: layers are served in the order of their gradients */
    tutti_optimizer_cost optimizer;
    int micro_batch; /* samples of a node in a pass, at most; 0: all it has (nn/passes.h) */
    int grains;      /* which it has whole; 0: by the batch, at least one a node */
} tutti_predict_options;

typedef struct tutti_layer_prediction {
    tutti_pass_seconds compute;
    double elapsed; /* of computing, beside the channel: with what that steals */
    double update;  /* of the parameters this node owns */
    double comm;    /* of the layer's own exchange and moves, hidden or not */
    double exposed; /* what computing waits for */
    double bytes;   /* sent by a node */
    double memory;  /* parameters, gradient, the optimizer's and output of this layer on a node */
} tutti_layer_prediction;

typedef struct tutti_prediction {
    int nodes, batch;
    int passes; /* of a step; layers' seconds and bytes are those of all of them */
    double step_s, compute_s, exposed_s, comm_s; /* step = compute + exposed */
    double input_s;                              /* of it outside the layers */
    double memory;                               /* bytes of a node */
    int late; /* how many first layers compute their weight gradients last: plan/slack.h */
    int layers;
    tutti_layer_prediction layer[];
} tutti_prediction;

tutti_status tutti_predict_step(tutti_prediction **out, const tutti_net *net,
                                const tutti_platform *platform, const tutti_plan *plan,
                                const tutti_predict_options *options) TUTTI_MUST_CHECK;
void tutti_prediction_destroy(tutti_prediction **prediction);

/* The plan with the shortest predicted step of the whole net, moves between layers included. Never
 * predicted slower than plain data parallelism, which is taken unless another is 1 % faster. */
tutti_status tutti_plan_search(tutti_plan **out, const tutti_net *net,
                               const tutti_platform *platform, int nodes,
                               const tutti_predict_options *options) TUTTI_MUST_CHECK;

#endif
