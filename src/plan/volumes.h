/* The layers of a net in the terms of the balance equations. */
#ifndef TUTTI_PLAN_VOLUMES_H
#define TUTTI_PLAN_VOLUMES_H

#include "nn/net.h"
#include "plan/balance.h"

/* Of a layer without parameters all is 0. */
tutti_balance_layer tutti_balance_of(const tutti_layer *layer);

#endif
