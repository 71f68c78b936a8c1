/* Inside the room: what tutti_comm_agree needs, and the check at the start. */
#ifndef TUTTI_COMM_AGREE_H
#define TUTTI_COMM_AGREE_H

#include "comm/exchange.h"

/* Collective. */
tutti_status tutti_agreement_create(tutti_agreement **out, tutti_comm *comm) TUTTI_MUST_CHECK;
void tutti_agreement_destroy(tutti_agreement **agreement);

/* Collective. Same binary, same kernel row. */
tutti_status tutti_agreement_check_start(tutti_comm *comm, uint64_t build_id) TUTTI_MUST_CHECK;

#endif
