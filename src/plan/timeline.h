/* What a step costs when computing and communication overlap.
 *
 * Two actors. The compute thread runs a program: computes, submits a layer's gradient, opens a
 * gate, waits for weights, takes part in an exchange that it cannot go on without. The channel
 * (communication thread and wire) serves what was submitted, the lowest layer first, and drops
 * what it is doing for something more urgent (in the engine: at the end of a chunk). A layer's
 * chain is a part-reduce, then, once the gate is open, a part-broadcast. The bubble is the time
 * the compute thread waits:
 *
 *   forward  conv1 ..... fc8 | backward  fc8 w b  fc7 w b .. conv1 w b | forward conv1 ...
 *   channel                             [fc8 reduce][fc8 bcast][fc7 ..   ^ must be done here
 *
 * Where cores are scarce, the channel's own work (adding, copying) is done by a core that would
 * otherwise compute. Then the channel is slower beside computing than alone, and computing loses
 * part of the time that the channel is busy. */
#ifndef TUTTI_PLAN_TIMELINE_H
#define TUTTI_PLAN_TIMELINE_H

#include <stdbool.h>

typedef enum tutti_op_kind {
    TUTTI_OP_COMPUTE,  /* for 'seconds'; of no layer: -1 */
    TUTTI_OP_SUBMIT,   /* the chain of 'layer' may begin */
    TUTTI_OP_GATE,     /* ... and go on with its part-broadcast */
    TUTTI_OP_WAIT,     /* until the chain of 'layer' is done; at once if never submitted */
    TUTTI_OP_EXCHANGE, /* the channel serves nothing but this for 'seconds' */
} tutti_op_kind;

typedef struct tutti_op {
    tutti_op_kind kind;
    int layer;
    double seconds;
} tutti_op;

/* A layer's chain on the channel, and what came out of it. */
typedef struct tutti_chain {
    double reduce, broadcast; /* seconds of the channel */
    double waited;            /* out: seconds the compute thread waited for it, in the last step */
    double computed;          /* out: ... computed for the layer, slowed down by the channel */
} tutti_chain;

typedef struct tutti_channel {
    double steals; /* the part of its busy time beside computing that computing loses */
    double beside; /* times as slow beside computing as alone; below 1 counts as 1 */
    bool in_order; /* serves layers as submitted, not the lowest first */
} tutti_channel;

/* Seconds of one step in the steady state. 'ops' is the program of one step; chains[layer] has
 * 'chain_count' entries, layer 0 being the most urgent. exchanged (may be NULL) is set to the
 * seconds spent in exchanges. */
double tutti_timeline_step(const tutti_op *ops, int op_count, tutti_chain *chains, int chain_count,
                           const tutti_channel *channel, double *exchanged);

#endif
