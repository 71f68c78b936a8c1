/* From text to a net; see tutti_net_parse for the public door. */
#ifndef TUTTI_NN_PARSE_H
#define TUTTI_NN_PARSE_H

#include "base/text.h"
#include "nn/net.h"

/* Fills the empty 'net' from 'text', which messages call 'where'. What a failed call leaves in
 * 'net' is fit for tutti_net_destroy. */
tutti_status tutti_net_read(tutti_net *net, tutti_text *text, const char *where) TUTTI_MUST_CHECK;

#endif
