/* What data.c and the kinds of data sets share. A kind is a row of functions: pictures come as
 * pixels and are cut and normalised by data.c; everything else comes as finished numbers. */
#ifndef TUTTI_DATA_SOURCE_H
#define TUTTI_DATA_SOURCE_H

#include <sched.h> /* cpu_set_t: include this header under _GNU_SOURCE */
#include <stdatomic.h>
#include "base/hash.h"
#include "data/data.h"
#include "data/file.h"
#include "data/image.h"
#include "data/spec.h"
#include "data/view.h"

enum { TUTTI_MAX_CLASSES = 1 << 20, TUTTI_MAX_PICTURE_BYTES = 1 << 28 };
enum { TUTTI_STORED = TUTTI_SPLIT_TEST + 1 }; /* splits that every kind stores: train and test */
enum { TUTTI_SAMPLE_BLOCK = 16 }; /* channels stored together, where there are that many */

typedef struct tutti_source {
    const char *kind;
    /* Reads the index: fills count, classes, names, and for pictures native and augment, for
     * others shape and frame. It keeps what it needs in data->state. One that has places for
     * validation samples looks into val_place. It may put another row of its kind into
     * data->source. close also cleans up after a failed open. */
    tutti_status (*open)(tutti_data *data, tutti_spec *spec);
    void (*close)(tutti_data *data);
    /* One of these two. pixels fills reader->image with data->picture.channels channels. */
    tutti_status (*pixels)(tutti_reader *reader, tutti_split split, uint32_t id,
                           const tutti_fit *fit, int *label);
    /* numbers fills values[height][width][channels]; random is NULL for an unvaried sample. */
    tutti_status (*numbers)(tutti_reader *reader, tutti_split split, uint32_t id,
                            const uint32_t random[4], float *values, int *label);
    /* One of these two, for targets that are more than one label; NULL: there are none. goal fills
     * the words of a target; of a picture, view is the part that became the sample. mask fills
     * reader->mask, a class for each pixel of the picture in reader->image, 255: none. */
    tutti_status (*goal)(tutti_reader *reader, tutti_split split, uint32_t id, int target,
                         const tutti_view *view, void *words);
    tutti_status (*mask)(tutti_reader *reader, tutti_split split, uint32_t id);
    /* Fills mean and std from the training samples; NULL where the usual values will do. */
    tutti_status (*measure)(tutti_data *data);
    /* The label of training sample 'id' as stored; NULL: it must be fetched to know. */
    int (*label)(const tutti_data *data, uint32_t id);
    /* The number of what training sample 'id' is a part of, never less than that of the one before;
     * NULL: each stands for itself. Validation sets are drawn by these. */
    uint32_t (*unit)(const tutti_data *data, uint32_t id);
    /* tutti_data_sequence, ids as stored; NULL: there are none. */
    bool (*sequence)(const tutti_data *data, tutti_split split, uint32_t id, tutti_sequence *out);
    /* tutti_data_place, ids as stored; NULL: samples are no files. */
    const char *(*place)(const tutti_data *data, tutti_split split, uint32_t id);
    bool takes_mean; /* numbers that know the keys mean= and std=; pictures always do */
} tutti_source;

extern const tutti_source tutti_source_npy, tutti_source_lmdb, tutti_source_fashion,
    tutti_source_idx, tutti_source_cifar10, tutti_source_cifar100, tutti_source_images,
    tutti_source_kaldi, tutti_source_synthetic, tutti_source_own, tutti_source_masks;

struct tutti_data {
    const tutti_source *source;
    void *state;
    tutti_data_options options;
    cpu_set_t cpus; /* where the thread that opened it may run */
    int count[TUTTI_SPLITS];
    int val_percent;              /* of the training set, drawn for validation; 0: none */
    const char *val_place;        /* while opening: where val= has samples, or NULL */
    uint32_t *part[TUTTI_SPLITS]; /* ids in the training set as stored, where it is divided */
    int classes;
    bool unlabelled; /* set by open, for those who ask: the training set is there to test on */
    tutti_names names;
    tutti_sample_shape native;  /* pictures: as stored; the size to crop where sizes vary */
    tutti_sample_shape picture; /* pictures: as cut */
    tutti_sample_shape shape;   /* as the net sees it */
    int frame;                  /* numbers that mean and std are for: channels, or a frame */
    tutti_augment augment;
    float *mean, *std;  /* [frame] */
    tutti_hash *digest; /* while opening */
    char hash[TUTTI_HASH_HEX];
    char note[96]; /* what the description should say about the split */
    char description[512];
    atomic_uint *bad[TUTTI_SPLITS]; /* a bit for each sample known to be damaged */
    atomic_int bad_count;
    atomic_bool said_clipped;
};

struct tutti_reader {
    tutti_data *data;
    tutti_decoder *decoder;
    tutti_image image, mask;
    tutti_resampler resampler;
    tutti_buffer bytes;  /* a record or a file as stored */
    tutti_buffer values; /* of an image that is not laid out yet */
    tutti_buffer other;  /* the sample that one is mixed with */
};

/* ---- goals.c: targets that are more than one label ---- */

/* After the source is open: can it give what the net wants? */
tutti_status tutti_goals_check(const tutti_data *data) TUTTI_MUST_CHECK;

/* When its augmentation is settled. */
tutti_status tutti_goals_check_mixing(const tutti_data *data) TUTTI_MUST_CHECK;

/* After the sample is there; 'view' of a picture, else NULL. */
tutti_status tutti_goals_fetch(tutti_reader *reader, tutti_split split, uint32_t id,
                               const tutti_view *view,
                               const tutti_sample_room *room) TUTTI_MUST_CHECK;

/* The part of reader->mask that the view takes, at the target's size, by the nearest pixel. */
tutti_status tutti_goals_render(const tutti_reader *reader, const tutti_view *view,
                                const tutti_target *target, int32_t *classes) TUTTI_MUST_CHECK;

/* Reads val=, a percentage or a place; fails for a place that the kind did not look into. */
tutti_status tutti_data_read_val(tutti_data *data, tutti_spec *spec) TUTTI_MUST_CHECK;
tutti_status tutti_data_check_val(const tutti_data *data) TUTTI_MUST_CHECK;

/* For a source to call when it has counted its training samples: draws 'percent' of them for
 * testing, always the same ones. Counts and parts change. */
tutti_status tutti_data_hold_out(tutti_data *data, int percent) TUTTI_MUST_CHECK;

/* Draws val_percent of the training set for validation, likewise. */
tutti_status tutti_data_divide(tutti_data *data) TUTTI_MUST_CHECK;

/* The id in the training set as stored, where that is divided. */
static inline uint32_t tutti_data_stored_id(const tutti_data *data, tutti_split split, uint32_t id)
{
    return data->part[split] ? data->part[split][id] : id;
}

/* Reads class names, lines "word" in order, or "word number" in any. */
tutti_status tutti_data_read_names(tutti_data *data, const char *path) TUTTI_MUST_CHECK;

/* Agrees on shape, picture, augmentation and normalisation; fails for keys nobody knows. */
tutti_status tutti_data_settle(tutti_data *data, tutti_spec *spec) TUTTI_MUST_CHECK;

/* Are they the same numbers in the same order, but for dimensions of one? Vectors take any. */
bool tutti_shapes_fit(tutti_sample_shape have, tutti_sample_shape want);

/* Mean and deviation are numbers to divide by. */
tutti_status tutti_data_check_normalisation(const tutti_data *data,
                                            const char *kind) TUTTI_MUST_CHECK;

/* A sample of the program's own: to values[pixels][channels], or as a picture to reader->image. */
tutti_status tutti_own_numbers(const tutti_data *data, const void *stored,
                               float *values) TUTTI_MUST_CHECK;
tutti_status tutti_own_pixels(tutti_reader *reader, const void *stored) TUTTI_MUST_CHECK;

/* The usual values for photographs (those of ImageNet); numbers stay as they are. */
void tutti_data_normalise_usually(tutti_data *data);

/* The mean and deviation of all pixels, or of all numbers, as stored. */
tutti_status tutti_measure_pictures(tutti_data *data) TUTTI_MUST_CHECK;
tutti_status tutti_measure_numbers(tutti_data *data) TUTTI_MUST_CHECK;

/* The moments of one number of a frame over all frames seen. */
typedef struct tutti_moments {
    double count, sum, square;
} tutti_moments;
void tutti_moments_add(tutti_moments *of, double value);
void tutti_moments_finish(const tutti_moments of[], tutti_data *data); /* [data->frame] */

/* Reads and decodes a JPEG or PNG file into reader->image. */
tutti_status tutti_reader_decode(tutti_reader *reader, const char *path, int channels,
                                 const tutti_fit *fit) TUTTI_MUST_CHECK;

/* Fills reader->image from bytes [c][h][w]; 'reversed': the last colour comes first. */
tutti_status tutti_reader_planes(tutti_reader *reader, tutti_sample_shape shape,
                                 const uint8_t *planes, bool reversed) TUTTI_MUST_CHECK;

/* values[pixels][frame], by mean and std; false where one is not finite. */
bool tutti_data_normalise_values(const tutti_data *data, float *values, size_t count);

/* Shows that 'what' ("reading") has come to 'done' of 'total', which ends it. */
void tutti_data_tell(const tutti_data *data, const char *what, int64_t done, int64_t total);

/* Adds to the data set's hash. Strings count with their final 0. */
void tutti_data_digest(tutti_data *data, const void *bytes, size_t size);
void tutti_data_digest_text(tutti_data *data, const char *text);
void tutti_data_digest_int(tutti_data *data, int64_t value);

/* Whether number i of a sequence is among the 'percent' percent held out for testing. */
static inline bool tutti_held_out(int i, int percent)
{
    return (int64_t)(i + 1) * percent / 100 > (int64_t)i * percent / 100;
}

#endif
