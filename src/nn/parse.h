/* From text to a net; see tutti_net_parse for the public door. */
#ifndef TUTTI_NN_PARSE_H
#define TUTTI_NN_PARSE_H

#include "base/text.h"
#include "nn/kinds/kind.h"

/* Fills the empty 'net' from 'text', which messages call 'where', with layers of the kinds given:
 * tutti_kinds, or a test's own. After a failure 'net' can still be given to tutti_net_destroy. */
tutti_status tutti_net_read(tutti_net *net, tutti_text *text, const char *where,
                            const tutti_kind *const *kinds) TUTTI_MUST_CHECK;

/* tutti_net_parse with the kinds given. */
tutti_status tutti_net_parse_kinds(tutti_net **out, const char *content, const char *where,
                                   const tutti_kind *const *kinds) TUTTI_MUST_CHECK;

/* Of a net that ends in a loss: sets what layers know of losses; complains of those that are wrong,
 * and of layers that read one. */
tutti_status tutti_net_check_losses(tutti_net *net, const char *where) TUTTI_MUST_CHECK;

#endif
