/* Arrays of samples and of targets (--data npy:). */
#ifndef TUTTI_DATA_ARRAYS_H
#define TUTTI_DATA_ARRAYS_H

#include "data/npy.h"
#include "data/source.h"

typedef struct tutti_array {
    tutti_file file;
    tutti_npy npy;
} tutti_array;

typedef struct tutti_npy_set {
    tutti_array samples[TUTTI_SPLITS];
    int *labels[TUTTI_SPLITS]; /* where there are no other targets */
    tutti_array goals[TUTTI_SPLITS][TUTTI_MOST_TARGETS];
    bool goal_is_planar[TUTTI_MOST_TARGETS]; /* [c][h][w] */
    bool planar;                             /* likewise */
} tutti_npy_set;

tutti_status tutti_array_open(tutti_data *data, tutti_array *array,
                              const char *path) TUTTI_MUST_CHECK;

/* ---- array_goals.c: targets that are more than one label ---- */

/* After the samples are open. */
tutti_status tutti_array_goals_open(tutti_data *data, tutti_spec *spec) TUTTI_MUST_CHECK;

/* Of the source. */
tutti_status tutti_array_goal(tutti_reader *reader, tutti_split split, uint32_t id, int target,
                              const tutti_view *view, void *words) TUTTI_MUST_CHECK;

#endif
