/* The index of speech data: each utterance's matrix of features and its label or labels. */
#ifndef TUTTI_DATA_UTTERANCES_H
#define TUTTI_DATA_UTTERANCES_H

#include "data/ark.h"
#include "data/source.h"

typedef struct tutti_utterance {
    tutti_ark_matrix matrix;
    int64_t label;   /* where its labels begin */
    int labels;      /* 1 for all of it, or as many as there are rows */
    int64_t samples; /* up to and including its own */
    int key;         /* its place among the keys, for those who ask */
} tutti_utterance;

typedef struct tutti_utterances {
    tutti_utterance *item;
    int count, capacity;
    int *label;
    int64_t label_count, label_capacity;
    tutti_file **file; /* pointers, as matrices refer to them */
    int files;
    tutti_names keys;    /* of data that are asked about; else empty */
    int unlabelled, cut; /* utterances left out: without a label; damaged at the end */
    bool by_frame;       /* labels are per frame */
    int columns;
} tutti_utterances;

/* Reads features (.ark or .scp) and labels: lines "key label" or "key label label ...", one for
 * each frame. Labels are numbers, or words of 'words' (may be NULL). Without labels (NULL) every
 * utterance is taken. */
tutti_status tutti_utterances_open(tutti_utterances *u, tutti_data *data, const char *features,
                                   const char *labels, const tutti_names *words) TUTTI_MUST_CHECK;
void tutti_utterances_close(tutti_utterances *u);

#endif
