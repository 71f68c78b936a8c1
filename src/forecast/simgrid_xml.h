/* A platform's network in the words of SimGrid. */
#ifndef TUTTI_FORECAST_SIMGRID_XML_H
#define TUTTI_FORECAST_SIMGRID_XML_H

#include "format/json.h"
#include "plan/platform.h"

/* The network that joins hosts node-0 .. node-(nodes-1), or more hosts. TUTTI_ARGUMENT for a
 * topology that is not known. */
tutti_status tutti_simgrid_xml_network(tutti_string *out, const tutti_platform *platform,
                                       int nodes) TUTTI_MUST_CHECK;

/* Rank i on node-i. */
void tutti_simgrid_xml_ranks(tutti_string *out, int nodes);

#endif
