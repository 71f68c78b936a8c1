/* What the parts of the parser share: where it is, and what names mean there. */
#ifndef TUTTI_NN_PARSER_H
#define TUTTI_NN_PARSER_H

#include "base/text.h"
#include "nn/blocks.h"
#include "nn/kinds/kind.h"

enum { TUTTI_LONGEST_NAME = 63 };

/* A block that is being read. Its layers' names begin with its own. */
typedef struct tutti_frame {
    const struct tutti_frame *outer; /* where it is used; NULL: at the top */
    const tutti_block *block;
    const char *name;
    int input; /* what "input" means in it */
    int line;  /* that uses it */
} tutti_frame;

/* The name of a used block stands for its output. */
typedef struct tutti_alias {
    char *name;
    int layer, line;
} tutti_alias;

typedef struct tutti_parser {
    tutti_text *text; /* the net's, or a line of a block */
    const char *where;
    tutti_net *net;
    const tutti_kind *const *kinds;
    tutti_blocks blocks;
    const tutti_frame *in; /* NULL: in no block */
    tutti_alias *aliases;
    int alias_count, alias_room;
    int known; /* layers that were read to their end */
    int above; /* the layer, or TUTTI_NET_INPUT, that the next line follows */
} tutti_parser;

/* ---- names.c ---- */

/* The kind of that word, NULL if there is none. */
const tutti_kind *tutti_parser_kind(const tutti_parser *p, tutti_word word);

/* Fails: there is no such kind. The sentence names the one that is meant, or all. */
tutti_status tutti_parser_no_kind(const tutti_parser *p, tutti_word word) TUTTI_MUST_CHECK;
bool tutti_parser_is_activation(const tutti_parser *p, tutti_word word);

/* What a layer or a used block that is called 'name' here is called in the whole net. Fails if it
 * is not a name, or is taken. */
tutti_status tutti_parser_full_name(const tutti_parser *p, tutti_word at, const char *name,
                                    char out[TUTTI_LONGEST_NAME + 1]) TUTTI_MUST_CHECK;

/* The layer that a name means here: of this block, else where the block is used; or the input. */
tutti_status tutti_parser_find(const tutti_parser *p, tutti_word name, int *out) TUTTI_MUST_CHECK;

/* Lets 'name', as the whole net calls it, mean the layer above. */
tutti_status tutti_parser_alias(tutti_parser *p, const char *name, int line) TUTTI_MUST_CHECK;

#endif
