/* Samples of the caller's own: how they lie in memory, and how to get at them.
 *
 * A session (session.h) is handed minibatches of them. A training (train.h) fetches them itself, in
 * its own order, behind the computing, and treats them as it does arrays of NumPy (npy:,
 * doc/DATA.md): bytes count from 0 to 1; bytes with one or three channels are pictures, which can
 * be shifted and flipped; all other samples are numbers. */
#ifndef TUTTI_DATA_H
#define TUTTI_DATA_H

#include <stdint.h>

#include <tutti/net.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tutti_split {
    TUTTI_SPLIT_TRAIN,
    TUTTI_SPLIT_TEST,
    TUTTI_SPLIT_VAL, /* most data sets have none unless asked for some */
    TUTTI_SPLITS
} tutti_split;

typedef enum tutti_number {
    TUTTI_FLOAT, /* float; what is not finite is damage */
    TUTTI_BYTE   /* a byte; 255 is 1 */
} tutti_number;

/* Vectors are C x 1 x 1, alike in all of them. */
typedef enum tutti_layout {
    TUTTI_CHW,    /* as PyTorch has it, sample after sample: NCHW */
    TUTTI_HWC,    /* as pictures are: NHWC */
    TUTTI_BLOCKED /* as the net reads them, only floats: tutti_session_stride floats apart. Fewer
                   * than 16 channels are [h][w][c], others [c/16][h][w][16]; filling is zero */
} tutti_layout;

/* Fills 'sample' with sample 'index' of the split, in the form said below, and its label. Called by
 * several threads at once, in any order. A failure (tutti_own_data_fail says why) ends the
 * training; as TUTTI_DATA it is a damaged sample, which --skip-bad replaces. */
typedef tutti_status tutti_read_fn(void *user, tutti_split split, int64_t index, void *sample,
                                   int32_t *label);

/* Everything is borrowed as long as the session or the training lasts. What is 0 or NULL is the
 * value in brackets. */
typedef struct tutti_own_data {
    tutti_number number;
    tutti_layout layout;
    tutti_shape shape;              /* of a sample as it lies in memory [the net's] */
    int classes;                    /* labels are 0 to classes-1 [the net's outputs] */
    const char *const *class_names; /* [classes]; for answers [numbers] */
    const float *mean, *std; /* [channels] of values after bytes became 0 to 1: what the net */
    int means;               /* gets is (value - mean) / std. 1: the same for all channels; */
                             /* 0: [as measured in the training samples; without, 0 and 1] */
    /* A data set to train on; without 'read' there is none, only what a session is handed. Without
     * samples to test on a tenth of those to train on is held out (holdout= in 'data'). */
    int count[TUTTI_SPLITS];
    tutti_read_fn *read;
    void *user;
    const char *identity; /* what tells it from other data when a run goes on [nothing] */
} tutti_own_data;

/* Sets the sentence that tutti_message() gives in this thread, and returns the status. */
TUTTI_API tutti_status tutti_own_data_fail(tutti_status status, const char *sentence);

/* A read function for samples that are in memory as a whole: 'user' is a tutti_arrays. */
typedef struct tutti_arrays {
    const void *samples[TUTTI_SPLITS]; /* sample after sample */
    const int32_t *labels[TUTTI_SPLITS];
    uint64_t bytes; /* of a sample */
} tutti_arrays;
TUTTI_API tutti_status tutti_arrays_read(void *arrays, tutti_split split, int64_t index,
                                         void *sample, int32_t *label) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
