/* Statistics over samples (batch normalisation): which samples of the minibatch are measured
 * together, and who has which part of them.
 *
 * A statistics group is 'size' consecutive samples of the minibatch; the last may have fewer. What
 * is measured of a group is a pair of rows for each sample, joined by the tree over the group's
 * samples (kernel/norm.h). A worker joins the subtrees it owns completely; where a group has
 * samples of several workers, each gets the roots of all of them by a move, and joins these: the
 * same bits for everybody, and for any number of workers. */
#ifndef TUTTI_NN_STATISTICS_H
#define TUTTI_NN_STATISTICS_H

#include "kernel/norm.h"
#include "nn/net.h"

/* A subtree of a group's samples whose pair one worker measures. */
typedef struct tutti_statistics_root {
    int group; /* counted from the worker's first */
    tutti_subtree subtree;
    int first, end; /* its samples in the minibatch */
    int slot;       /* where in the sums its pair is */
} tutti_statistics_root;

/* Who measures what, for one worker. */
typedef struct tutti_statistics {
    int batch, size;              /* samples of the minibatch, and of a group */
    int first_sample, samples;    /* of this worker, in a pass */
    int first_group, group_count; /* those that have some of them */
    int group_total;              /* of the minibatch */
    int members;                  /* workers next to each other that need each other's roots */
    int root_count;
    tutti_statistics_root *roots; /* of this worker's groups, in the order of groups and samples */
    int *cuts;                    /* [members + 1] slots that each member measures */
    int slot_count;               /* of them and of the groups that are this worker's alone */
    tutti_norm_part *parts;       /* room to join as many as there can be */
} tutti_statistics;

/* How the minibatch is shared out (nn/model.h). */
typedef struct tutti_sharing {
    int batch, grains, workers, worker;
} tutti_sharing;

/* The first sample of a grain. */
static inline int tutti_sharing_sample(const tutti_sharing *s, int grain)
{
    return tutti_share_begin(s->batch, s->grains, grain);
}

/* 'group' samples are measured together, 0: the whole minibatch. Of the worker's samples those from
 * 'begin' to 'end'-1 of the minibatch: all of them, or whole groups. */
tutti_status tutti_statistics_create(tutti_statistics **out, const tutti_sharing *sharing,
                                     int group, int begin, int end) TUTTI_MUST_CHECK;
void tutti_statistics_destroy(tutti_statistics **statistics);

/* Fails unless every group of the minibatch has two values or more of each channel. */
tutti_status tutti_statistics_check(const tutti_layer *layer, int batch,
                                    int group) TUTTI_MUST_CHECK;

/* How many workers next to each other must exchange roots; 1: none. */
int tutti_statistics_members(const tutti_sharing *sharing, int group);

/* Bytes that each of these receives in a pass, at most. */
size_t tutti_statistics_bytes(const tutti_layer *layer, const tutti_sharing *sharing, int group);

/* Samples of group number 'group' of this worker. */
int tutti_statistics_samples(const tutti_statistics *statistics, int group);

/* The groups as kernels want them, for all samples of the worker. */
tutti_norm_groups tutti_statistics_groups(const tutti_statistics *statistics);

/* Joins the leaves of the worker's samples to the roots that it measures, in their slots of
 * 'sums'. */
void tutti_statistics_measure(const tutti_statistics *statistics, tutti_exec exec,
                              tutti_extent extent, bool moments, const double *leaves,
                              double *sums);

/* The pair of this worker's group 'group', from all slots. */
void tutti_statistics_join(const tutti_statistics *statistics, tutti_exec exec, tutti_extent extent,
                           bool moments, int group, const double *sums, double *pair);

#endif
