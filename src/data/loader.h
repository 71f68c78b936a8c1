/* The loader keeps the next batches ready while the current one is being trained on.
 *
 * Training sees one endless stream: the permutation of epoch 0, that of epoch 1, and so on; step s
 * takes the places s*batch .. (s+1)*batch-1, even across the end of an epoch. Testing sees the
 * test samples in order, each once; its last step may be short. A rank gets the places
 * first .. end-1 of each batch, whatever the other ranks do. */
#ifndef TUTTI_DATA_LOADER_H
#define TUTTI_DATA_LOADER_H

#include "data/data.h"

typedef struct tutti_loader tutti_loader;

typedef struct tutti_loader_options {
    tutti_split split;
    int batch;      /* samples of a step, all ranks together */
    int first, end; /* this rank's places in it */
    uint64_t seed;  /* of the order */
    bool shuffle;   /* false: the order of ids in every epoch */
    int64_t step;   /* where to begin; tutti_loader_seek changes it */
    int threads;    /* that read and decode; 0: chosen by the number of cores */
    int ahead;      /* batches kept ready; 0: two */
} tutti_loader_options;

tutti_loader_options tutti_loader_defaults(void);

/* What next() gives; valid until the next call of next, seek or destroy. */
typedef struct tutti_batch {
    int64_t step;
    int count;            /* samples here: end - first, or less at the end of the test set */
    const float *samples; /* [count] at a distance of tutti_data_stride floats */
    const int *labels;    /* [count] */
    const void *targets[TUTTI_MOST_TARGETS]; /* [count], where there is more than labels */
    const int *others;   /* [count] labels of what samples were mixed with; NULL: they were not */
    const float *shares; /* [count] ... and the part of their own label */
    const uint32_t *ids; /* [count] the samples' ids in the split */
    const uint32_t *epochs; /* [count] the epoch each was drawn in */
    double waited;          /* seconds next() had to wait for it */
} tutti_batch;

/* Starts the threads. The data set is borrowed. All memory is taken here. */
tutti_status tutti_loader_create(tutti_loader **out, tutti_data *data,
                                 const tutti_loader_options *options) TUTTI_MUST_CHECK;
void tutti_loader_destroy(tutti_loader **loader); /* each thread finishes at most one sample */

/* The next step's batch. A damaged sample (without skip_bad) makes this fail, with the sentence of
 * the first one in the batch, until seek. After the last test step count is 0. */
tutti_status tutti_loader_next(tutti_loader *loader, tutti_batch *batch) TUTTI_MUST_CHECK;

/* Throws away what is ready and goes on at 'step': after a resume, or to test again. */
void tutti_loader_seek(tutti_loader *loader, int64_t step);

/* Steps of one pass over the split: ceil(count / batch). */
int64_t tutti_loader_steps(const tutti_loader *loader);

size_t tutti_loader_bytes(const tutti_loader *loader); /* memory held for batches */

#endif
