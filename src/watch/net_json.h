/* A net as the page draws it: its layers, how they are joined and split, what they are said to
 * take. */
#ifndef TUTTI_WATCH_NET_JSON_H
#define TUTTI_WATCH_NET_JSON_H

#include "format/json.h"
#include "plan/predict.h"

/* Appends an array, one object a layer. 'prediction' may be NULL. */
void tutti_net_json(tutti_string *out, const tutti_net *net, const tutti_plan *plan,
                    const tutti_prediction *prediction);

/* Appends an array of arrays, one a layer with times: its number, groups, and in seconds forward,
 * weights, data, communicating and exposed, then the bytes that a node sends. */
void tutti_prediction_json(tutti_string *out, const tutti_plan *plan,
                           const tutti_prediction *prediction);

#endif
