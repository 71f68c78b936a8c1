/* From text to a net; see tutti_net_parse for the public door. */
#ifndef TUTTI_NN_PARSE_H
#define TUTTI_NN_PARSE_H

#include "nn/net.h"

/* Fills the empty 'net' from 'text'. 'where' stands for the file in messages. What a failed call
 * leaves in 'net' is fit for tutti_net_destroy. */
tutti_status tutti_net_read_text(tutti_net *net, const char *text,
                                 const char *where) TUTTI_MUST_CHECK;

#endif
