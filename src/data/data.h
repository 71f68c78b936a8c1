/* A data set: samples to train on, samples to test on, and what a sample looks like.
 *
 * A data set is named by one word on the command line, KIND[:PLACE][,KEY=VALUE]...
 *
 *   fashion-mnist          Debian's package dataset-fashion-mnist
 *   idx:DIR                MNIST's idx files, plain or .gz
 *   cifar10:DIR            the binary version: data_batch_1.bin .. 5, test_batch.bin
 *   cifar100:DIR           train.bin, test.bin; the 100 fine labels
 *   images:DIR             one folder per class, JPEG and PNG; or DIR/train and DIR/val (or test);
 *                          or train=FILE,test=FILE: lists of "path [label]"
 *   images:DIR,masks=DIR   pictures, and for each a PNG of the same name: a class for each pixel
 *   npy:X.npy,Y.npy        arrays as NumPy saves them: samples and labels; test=, test-labels=
 *   lmdb:DIR               Caffe's databases, where this build has LMDB; test=DIR
 *   kaldi:FEATS,LABELS     archive (.ark) or script (.scp) of features, and "utterance label" or
 *                          "utterance label label ..." (one per frame); test=FEATS,test-labels=
 *   kaldi:DIR              the folder's feats_{train,test}.{scp,ark}, utt2label_*.txt, words.txt
 *   own                    what the program brings along (tutti/data.h)
 *   synthetic              noise with a pattern for each class, any shape, for benchmarks
 *
 * doc/DATA.md lists the keys (crop, flip, jitter, mean, context, holdout, val, ...).
 *
 * What a sample becomes depends on the data set, the options, the seed, the epoch and the sample's
 * id, and on nothing else: not on the rank, the thread or the order of fetching. */
#ifndef TUTTI_DATA_DATA_H
#define TUTTI_DATA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tutti/data.h>
#include "base/bar.h"
#include "base/log.h"
#include "base/status.h"
#include "base/target.h"

typedef struct tutti_data tutti_data;
typedef struct tutti_reader tutti_reader;

/* Pictures have 1 or 3 channels, other images any number. Vectors are 1 x 1 with as many channels
 * as there are numbers. */
typedef struct tutti_sample_shape {
    int channels, height, width;
} tutti_sample_shape;

/* One mean and one standard deviation for each channel of an image (of values 0 to 1), or for
 * each number of a frame of features: a sample's value is (raw - mean) / std. */
typedef struct tutti_normalisation {
    int count;
    const float *mean, *std;
} tutti_normalisation;

typedef struct tutti_data_options {
    tutti_sample_shape shape; /* what the net takes; all 0: as the data set has it */
    int classes;              /* what the net tells apart; only 'synthetic' cares */
    int target_count;         /* what its outputs are compared with: base/target.h; ... */
    tutti_target targets[TUTTI_MOST_TARGETS]; /* ... 0: a class for each sample */
    int answer;                               /* which of them has the net's answer */
    uint64_t seed;                            /* of the augmentation */
    bool augment;                             /* false: training samples look like test samples */
    bool skip_bad;                 /* replace damaged samples by others instead of failing */
    tutti_normalisation normalise; /* that of a trained model; count 0: the data set's own */
    bool asks; /* samples are only asked about: npy and kaldi do without labels, and then all of */
               /* them are there to test on */
    const tutti_own_data *own; /* what data set 'own' means; borrowed; NULL: there is none */
    const tutti_log *log;      /* borrowed; gets a line for each damaged sample skipped */
    tutti_bar
        *bar; /* borrowed while it is opened: shows how far what takes long has come; or NULL */
} tutti_data_options;

/* The name of the data set that the program brings along, which may have keys: "own,flip". */
#define TUTTI_OWN_KIND "own"

tutti_data_options tutti_data_defaults(void);

/* What a data set's name begins with, "images", from 0; NULL after the last. */
const char *tutti_data_known(int index);

/* Opens the data set 'spec' and reads its index, not its samples (except for idx and cifar, which
 * are read once for their mean, and packed files). Threads may share a data set. Loaders run on
 * the cores the calling thread may use now: open it before a team pins the thread. */
tutti_status tutti_data_open(tutti_data **out, const char *spec,
                             const tutti_data_options *options) TUTTI_MUST_CHECK;
void tutti_data_close(tutti_data **data);

/* How a file becomes a sample. */
typedef struct tutti_manner {
    tutti_sample_shape shape;   /* what the net takes */
    tutti_sample_shape picture; /* as cut; all 0: samples are not pictures */
    double zoom;                /* how large pictures are when they are cut; 0: as they are */
} tutti_manner;
tutti_manner tutti_data_manner(const tutti_data *data);

/* A data set without samples, for tutti_reader_fetch_file: what a model that was trained on
 * pictures tells of its own. Everything is copied. */
tutti_status tutti_data_open_manner(tutti_data **out, const tutti_manner *manner,
                                    const tutti_normalisation *normalise,
                                    const char *const *classes, int count,
                                    const tutti_log *log) TUTTI_MUST_CHECK;

const char *tutti_data_kind(const tutti_data *data); /* "idx" */
int tutti_data_count(const tutti_data *data, tutti_split split);
int tutti_data_classes(const tutti_data *data);
bool tutti_data_is_labelled(const tutti_data *data);

/* What sample 'id' is the first part of: the key and the number of samples of an utterance. False
 * for data without such, and for a sample in the midst of one. For data that are asked about. */
typedef struct tutti_sequence {
    const char *key; /* borrowed from the data set */
    int length;
} tutti_sequence;
bool tutti_data_sequence(const tutti_data *data, tutti_split split, uint32_t id,
                         tutti_sequence *out);
const char *tutti_data_class_name(const tutti_data *data, int label);
tutti_sample_shape tutti_data_shape(const tutti_data *data);
tutti_normalisation tutti_data_normalise(const tutti_data *data); /* borrowed from the data set */

/* Floats from one sample to the next. Images of fewer than 16 channels are
 * [height][width][channels], rounded up to 16 floats as a whole; all others are
 * [channels/16][height][width][16], the last block filled up to 16 channels: for vectors that is
 * one number after another. Filling is zero. This is what a model reads (nn/model.h). */
size_t tutti_data_stride(const tutti_data *data);

/* Adds to counts[label] for each training sample, of masks for each pixel; counts has
 * tutti_data_classes numbers. */
tutti_status tutti_data_count_labels(tutti_data *data, int64_t *counts) TUTTI_MUST_CHECK;

/* One line for people: "60000 + 10000 samples, 10 classes, 28x28x1, flip". */
const char *tutti_data_description(const tutti_data *data);

/* SHA-256, in hex, of what must be the same on all ranks: the index (names without the place,
 * sizes, counts, labels where the index has them), the shape, the augmentation and the
 * normalisation. It does not read the samples, so a changed pixel goes unnoticed. */
const char *tutti_data_hash(const tutti_data *data);

/* Are there targets that are more than one label? Then each has tutti_target_words a sample. */
bool tutti_data_has_goals(const tutti_data *data);

/* Distinct damaged samples met so far (with skip_bad). */
int tutti_data_bad_count(const tutti_data *data);

/* A reader fetches samples for one thread: it holds the buffers and the decoders. The data set is
 * borrowed. */
tutti_status tutti_reader_create(tutti_reader **out, tutti_data *data) TUTTI_MUST_CHECK;
void tutti_reader_destroy(tutti_reader **reader);

enum { TUTTI_LABEL_NONE = -1 };

/* Writes tutti_data_stride floats to 'sample', and its label. Samples to test or validate on do not
 * depend on the epoch. With skip_bad a damaged training sample is replaced by the next good one;
 * any other becomes zeros with TUTTI_LABEL_NONE, to be left out of the count. */
tutti_status tutti_reader_fetch(tutti_reader *reader, tutti_split split, uint32_t epoch,
                                uint32_t id, float *sample, int *label) TUTTI_MUST_CHECK;

/* The same with all targets, where there are some that are more than the label. */
typedef struct tutti_sample_room {
    float *sample;
    int *label;
    void *targets[TUTTI_MOST_TARGETS];
} tutti_sample_room;
tutti_status tutti_reader_fetch_all(tutti_reader *reader, tutti_split split, uint32_t epoch,
                                    uint32_t id, const tutti_sample_room *room) TUTTI_MUST_CHECK;

/* Are training samples mixed with others? */
bool tutti_data_mixes(const tutti_data *data);

/* A training sample as it is trained on then, and what it is made of (data/mix.h). */
typedef struct tutti_mixed {
    int label, other;
    float share; /* of the first */
} tutti_mixed;
tutti_status tutti_reader_fetch_mixed(tutti_reader *reader, uint32_t epoch, uint32_t id,
                                      float *sample, tutti_mixed *mixed) TUTTI_MUST_CHECK;

/* The file 'path' (JPEG or PNG), treated like a test sample of this data set; for predictions. */
tutti_status tutti_reader_fetch_file(tutti_reader *reader, const char *path,
                                     float *sample) TUTTI_MUST_CHECK;

/* A sample that the caller of the library has in memory, in the form that data set 'own' says,
 * treated like one to test on. */
tutti_status tutti_reader_take(tutti_reader *reader, const void *stored,
                               float *sample) TUTTI_MUST_CHECK;

/* Is it the program's own? Bytes from one such sample to the next; and whether they are what the
 * model reads, as they are: nothing is moved, filled up or normalised. */
bool tutti_data_is_own(const tutti_data *data);
size_t tutti_data_own_bytes(const tutti_data *data);
bool tutti_data_own_is_ready(const tutti_data *data);

#endif
