/* What a session consists of. Inside the room only. */
#ifndef TUTTI_TRAIN_SESSION_H
#define TUTTI_TRAIN_SESSION_H

#include <tutti/session.h>
#include "train/run.h"

/* One thread's part in bringing samples into the net's form. */
typedef struct tutti_converter {
    tutti_reader *reader;
    tutti_status status;
    char why[256];
} tutti_converter;

struct tutti_session {
    tutti_run run;
    tutti_train_options options;
    bool is_open;
    tutti_own_data plain;           /* floats as the net takes them: nobody said otherwise */
    bool knows_epoch;               /* how long one is */
    const tutti_own_loss *own_loss; /* the caller's */
    tutti_own_loss relay;           /* the run's, which calls that one */
    int piece_first;                /* in a forward pass: where what is computed begins */
    tutti_converter *converters;    /* of each thread; NULL: samples come as they are read */
    int converter_count;
    float *converted;   /* [this rank's samples] */
    int32_t *no_labels; /* zeros */
    tutti_step_news last;
    double rates[2]; /* of the last two steps, by the number's parity: news are late */
};

/* The samples as the model reads them: where they are, or converted. */
tutti_status tutti_session_place(tutti_session *session, const void *samples, int count,
                                 const float **placed) TUTTI_MUST_CHECK;

tutti_status tutti_session_check_labels(const tutti_session *session, const int32_t *labels,
                                        int count) TUTTI_MUST_CHECK;

#endif
