/* The layers of a net in the terms of the balance equations. */
#ifndef TUTTI_PLAN_VOLUMES_H
#define TUTTI_PLAN_VOLUMES_H

#include "nn/net.h"
#include "plan/balance.h"

/* All 0 for a layer that multiplies nothing. */
tutti_balance_layer tutti_balance_of(const tutti_net *net, const tutti_layer *layer);

#endif
