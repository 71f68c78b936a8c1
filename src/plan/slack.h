/* Slack: how late a node may be before others wait for it.
 *
 * The next step needs the first layer's parameters first, and the usual order of backward computes
 * their gradient last: every node waits for the one that is slowest in this step, even if another
 * is slowest in the next. Where it pays, the weight gradients of the first layers come after all
 * gradients by inputs instead, the first layer's first (w: weight gradient, d: gradient by the
 * input, f: the next step's forward):
 *
 *   usual   w4 d4 w3 d3 w2 d2 w1 | f1 f2 f3 f4      nothing between w1 and f1
 *   late    w4 d4 d3 d2 w1 w2 w3 | f1 f2 f3 f4      w2, w3 between w1 and f1; f1, f2 before f3
 *
 * A node that is late by less than what lies between a gradient and its use delays nobody, and a
 * good step of its own makes up for a bad one, which is no longer everybody's. No sum changes. The
 * price: the late layers' gradients by outputs are kept until the end, and their exchanges begin
 * later. So no more layers are late than it takes to have a given part of a step as slack, and none
 * unless every late layer's slack is several times its exchange. */
#ifndef TUTTI_PLAN_SLACK_H
#define TUTTI_PLAN_SLACK_H

#include "plan/predict.h"

/* How many first layers are late (those of them with weights); 0: none. Of the prediction only the
 * seconds of computing and exchange are read. A split layer, where its group meets anyway, and the
 * layers above it are never late. */
int tutti_slack_layers(const tutti_net *net, const tutti_plan *plan,
                       const tutti_prediction *prediction);

#endif
