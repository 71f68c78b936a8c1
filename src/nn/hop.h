/* How activations get from one layer to another that is placed differently, and their gradients
 * back. A whole layer holds all features of the worker's own samples; a split one holds some
 * features of its group's samples; a split fully connected layer reads all features of its group's
 * samples.
 *
 *   hop        from     to                    forward                   backward
 *   ASSEMBLE   split    whole                 all-to-all                all-to-all
 *   SHARE      whole    the group's samples   part-broadcast, samples   part-reduce, samples
 *   MERGE      split    the group's samples   part-broadcast, features  part-reduce, features
 *
 * Between groups of different sizes there are two hops, ASSEMBLE and SHARE. What others must do is
 * a tutti_move; what is left, done here, is to bring features or samples next to each other. */
#ifndef TUTTI_NN_HOP_H
#define TUTTI_NN_HOP_H

#include <stdbool.h>
#include <stddef.h>
#include "base/status.h"

typedef enum tutti_hop_kind { TUTTI_HOP_ASSEMBLE, TUTTI_HOP_SHARE, TUTTI_HOP_MERGE } tutti_hop_kind;

enum { TUTTI_MAX_HOPS = 2 };

typedef struct tutti_hop {
    tutti_hop_kind kind;
    int groups, members, member;
    int *samples;     /* [members + 1] member m has room from samples[m] to samples[m+1]-1 */
    size_t *features; /* [members + 1] and these floats of a row; not for SHARE */
    size_t row;       /* floats of a whole row */
    int leaves;       /* of the layer above, and how many roots of them this member has */
    int root_count;   /* 1 for ASSEMBLE */

    float *x;        /* what comes out forward */
    float *stage[2]; /* as it arrives (forward of ASSEMBLE and MERGE), leaves (backward of
                      * ASSEMBLE) */
    float **partial; /* [root_count] where the layer above puts its gradient */
    float **ordered; /* [root_count] the same, member after member (MERGE) */
    int x_lease, stage_lease[2], partial_lease, ordered_lease; /* -1 for none */

    int move[2];     /* forward, backward; -1 for none */
    size_t *cuts[2]; /* [members + 1] of the moves; an all-to-all has two */
} tutti_hop;

struct tutti_model;
struct tutti_unit;
struct tutti_pass;

/* Finds out which hops input 'edge' of the unit needs. The unit and those below know how they are
 * placed. */
tutti_status tutti_hops_init(const struct tutti_model *model, struct tutti_unit *unit,
                             int edge) TUTTI_MUST_CHECK;
void tutti_hops_deinit(struct tutti_unit *unit, int edge);

/* Floats of what comes out forward, and of one of the gradients that go in backward. */
size_t tutti_hop_floats(const tutti_hop *hop);

/* Describes all moves, once everything has its address. */
tutti_status tutti_moves_init(struct tutti_model *model) TUTTI_MUST_CHECK;

/* Has a move carried out; its time is the unit's. */
tutti_status tutti_move_carry_out(struct tutti_model *model, struct tutti_unit *unit,
                                  int move) TUTTI_MUST_CHECK;

/* Carry one input of the layer, or its gradient, over its hops. */
tutti_status tutti_hops_forward(struct tutti_model *model, struct tutti_unit *unit, int edge,
                                const struct tutti_pass *pass) TUTTI_MUST_CHECK;
/* Begins the first of the moves back, which tutti_hops_backward then finds under way. */
tutti_status tutti_hops_start_back(struct tutti_model *model, struct tutti_unit *unit,
                                   int edge) TUTTI_MUST_CHECK;
tutti_status tutti_hops_backward(struct tutti_model *model, struct tutti_unit *unit,
                                 int edge) TUTTI_MUST_CHECK;

#endif
