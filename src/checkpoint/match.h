/* Which tensor of somebody's file is which parameter of a net. Inside the room only.
 *
 * By their names, as our files have them, also behind a prefix that all names of the file share
 * ("module."). By a file of names that was given (--rename). Or, where the file knows none of the
 * net's names, by shapes and order, if these leave no doubt:
 *
 *   - tensors go by modules, what stands before the last dot: all of a module's tensors must have
 *     the suffixes and shapes of a layer's parameters;
 *   - where several modules look alike there must be as many layers that do, and their names must
 *     say in which order they come: they differ first in a number behind the same word, as in
 *     features.3 and features.10, or layer1.0.conv1 and layer2.0.conv1;
 *   - no two modules whose names say their order may come out the other way round;
 *   - layers without a counterpart come after all that have one: a new head. */
#ifndef TUTTI_CHECKPOINT_MATCH_H
#define TUTTI_CHECKPOINT_MATCH_H

#include "format/safetensors.h"

typedef struct tutti_match {
    int count;    /* parameters */
    int *tensor;  /* [count] its number in the file; -1: the file has none */
    bool by_look; /* names did not tell */
} tutti_match;

/* 'want' are the net's parameters; 'net' is what messages call it. 'rename': a file of lines THEIRS
 * OURS, each a tensor, or a module and a layer, with one '*' that stands for the same in both;
 * NULL: none. TUTTI_DATA where there is doubt, and says what about. */
tutti_status tutti_match_init(tutti_match *out, const tutti_safetensors_layout *want,
                              const char *net, const tutti_safetensors *file, const char *path,
                              const char *rename) TUTTI_MUST_CHECK;
void tutti_match_deinit(tutti_match *match);

/* What stands before the last dot of a name: its length. */
int tutti_match_stem(const char *name);

/* ---- match_look.c ---- */

/* By shapes and order. */
tutti_status tutti_match_look(tutti_match *out, const tutti_safetensors_layout *want,
                              const char *net, const tutti_safetensors *file,
                              const char *path) TUTTI_MUST_CHECK;

/* ---- match_rename.c ---- */

/* By the names that the file at 'rename' gives to tensors. */
tutti_status tutti_match_rename(tutti_match *out, const tutti_safetensors_layout *want,
                                const tutti_safetensors *file, const char *path,
                                const char *rename) TUTTI_MUST_CHECK;

#endif
