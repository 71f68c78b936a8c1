/* A training whose loop the caller writes: step by step, with samples from wherever they come.
 *
 *     tutti_train_options o = tutti_train_defaults();
 *     o.net = "lenet";
 *     o.batch_size = 64;
 *     tutti_session *session = NULL;
 *     if (tutti_session_create(&session, &o) != TUTTI_OK) ...
 *     for (int i = 0; i < 1000; i++) {
 *         tutti_step_news news;
 *         ... fill pictures[64][784] and labels[64] ...
 *         if (tutti_session_step(session, pictures, labels, 0.01, &news) != TUTTI_OK) ...
 *         printf("%lld %g\n", (long long)news.step, news.loss);
 *     }
 *     tutti_session_destroy(&session);
 *
 * The options are those of a training (train.h), and so are the bits: a session that is handed the
 * samples that 'tutti train' takes ends with the weights that 'tutti train' ends with. Those about
 * data sets, evaluations and when to save do nothing unless a function below says so.
 *
 * On several ranks each brings its own part of every minibatch (tutti_session_share). A step that
 * fails on one rank only, for want of memory or for a label that is none, ends the job with a
 * sentence, as in tutti train, because the others wait in its midst; MPI_Abort of the communicator
 * does that.
 *
 * "Collective." and threads: see ranks.h. examples/own_loop.c is a page of all this. */
#ifndef TUTTI_SESSION_H
#define TUTTI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tutti/data.h>
#include <tutti/net.h>
#include <tutti/ranks.h>
#include <tutti/status.h>
#include <tutti/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_session tutti_session;

/* Collective. Options and all they point to are copied or borrowed as train.h says; own_data,
 * own_loss and ranks are borrowed as long as the session lasts. With 'run' the session can be saved
 * there, with 'resume' it goes on from there, with 'weights' it begins with those; without 'net' it
 * then has theirs, their precision and their algorithm of convolutions, unless told. 'data' and
 * own_data are for samples: without either they are floats in CHW. On failure *out is NULL. */
TUTTI_API tutti_status tutti_session_create(tutti_session **out,
                                            const tutti_train_options *options) TUTTI_MUST_CHECK;

/* Collective. NULL inside is fine; leaves NULL. */
TUTTI_API void tutti_session_destroy(tutti_session **session);

/* ---- what it is ---- */

TUTTI_API int tutti_session_rank(const tutti_session *session);
TUTTI_API int tutti_session_ranks(const tutti_session *session);
TUTTI_API const tutti_net *tutti_session_net(const tutti_session *session); /* the session's */
TUTTI_API int tutti_session_batch_size(const tutti_session *session); /* of all ranks together */
TUTTI_API int64_t tutti_session_steps(const tutti_session *session); /* done, of resumed runs too */

/* The samples of each minibatch that are this rank's: *count from *first on. */
TUTTI_API void tutti_session_share(const tutti_session *session, int *first, int *count);

/* Floats from one blocked sample to the next (data.h). */
TUTTI_API size_t tutti_session_stride(const tutti_session *session);

/* ---- steps ---- */

/* What all ranks know alike about a step. */
typedef struct tutti_step_news {
    int64_t step;         /* steps done with it */
    double loss;          /* mean over the minibatch, before the update */
    double top1;          /* the part of the minibatch whose best output is the label's */
    double gradient_norm; /* where clip asks for it; else NaN */
    double lr;
} tutti_step_news;

/* Collective. Forward, backward and update. 'samples' are this rank's, in the form that own_data
 * says, and borrowed until the call returns; with the net's own form (data.h) nothing is copied.
 * 'labels' are one for each; NULL only with own_loss. 'lr' below 0 is the rate of the options'
 * schedule, which needs to know the length of an epoch: 'data' or epoch_samples.
 *
 * With 'news' the call waits until all ranks are done and tells of this step. Without it does not:
 * the new weights travel on behind what the caller does next. tutti_session_settle tells of the
 * last.
 *
 * TUTTI_DIVERGED if the loss of this step (or, without news, of the one before) is not a finite
 * number. */
TUTTI_API tutti_status tutti_session_step(tutti_session *session, const void *samples,
                                          const int32_t *labels, double lr,
                                          tutti_step_news *news) TUTTI_MUST_CHECK;

/* Collective. The same with the next minibatch of the data set that 'data' or own_data names, in
 * the order and with the variations of tutti train. */
TUTTI_API tutti_status tutti_session_step_data(tutti_session *session, double lr,
                                               tutti_step_news *news) TUTTI_MUST_CHECK;

/* Collective. Waits for all that steps have begun. 'news', unless NULL, are of the last step. */
TUTTI_API tutti_status tutti_session_settle(tutti_session *session,
                                            tutti_step_news *news) TUTTI_MUST_CHECK;

/* The rate of the options' schedule for the next step. */
TUTTI_API double tutti_session_rate(const tutti_session *session);

/* ---- forward only ---- */

/* As a trained net answers: without dropout, with running statistics. Any number of samples; each
 * rank has its own. Collective where the plan splits layers (split=true below), then with the same
 * count on all ranks; after steps it first waits for all ranks to have done them. 'outputs' gets
 * [count][outputs of the net]: probabilities, with own_loss what the last layer was given. 'losses'
 * gets one for each sample. Either may be NULL; 'labels' too, without losses. */
TUTTI_API tutti_status tutti_session_forward(tutti_session *session, const void *samples,
                                             const int32_t *labels, int count, float *outputs,
                                             float *losses) TUTTI_MUST_CHECK;
TUTTI_API bool tutti_session_is_split(const tutti_session *session);

typedef struct tutti_session_score {
    int64_t samples;
    double loss, top1, top5;
} tutti_session_score;

/* Collective. All samples of a split of the data set, each once. */
TUTTI_API tutti_status tutti_session_evaluate(tutti_session *session, tutti_split split,
                                              tutti_session_score *score) TUTTI_MUST_CHECK;

/* ---- parameters, under PyTorch's names and in its layout ---- */

typedef struct tutti_parameter {
    const char *name;       /* "conv1.weight"; the session's */
    int dim_count, dims[4]; /* 0 of a scalar */
    size_t count;           /* of floats */
    bool is_trained;        /* false: running statistics, or its layer is frozen */
} tutti_parameter;

TUTTI_API int tutti_session_parameter_count(const tutti_session *session);
TUTTI_API tutti_parameter tutti_session_parameter(const tutti_session *session, int index);
TUTTI_API int tutti_session_find(const tutti_session *session, const char *name); /* -1: none */

/* Collective. Copies all 'count' floats, on all ranks; written ones must be the same everywhere.
 * What the optimizer keeps of them stays as it is. */
TUTTI_API tutti_status tutti_session_read(tutti_session *session, int index,
                                          float *values) TUTTI_MUST_CHECK;
TUTTI_API tutti_status tutti_session_write(tutti_session *session, int index,
                                           const float *values) TUTTI_MUST_CHECK;

/* ---- checkpoints ---- */

/* Collective. Writes RUN/step_00001200 as tutti train does and returns when it is on the disk:
 * tutti test and predict take it (--weights RUN), and sessions with the same options go on from it
 * (resume), on any number of ranks. The options' 'run' says where. */
TUTTI_API tutti_status tutti_session_save(tutti_session *session) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
