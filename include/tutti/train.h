/* Training, testing and predicting: the whole job in one call each.
 *
 *     tutti_train_options o = tutti_train_defaults();
 *     o.net = "lenet";
 *     o.data = "fashion-mnist";
 *     tutti_train_result r;
 *     if (tutti_train(&o, &r) != TUTTI_OK) fprintf(stderr, "%s\n", tutti_message());
 *
 * Under mpirun or srun every rank makes the same call with the same options, and the result is
 * the same, bit for bit, as that of a single rank. */
#ifndef TUTTI_TRAIN_H
#define TUTTI_TRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tutti/data.h>
#include <tutti/log.h>
#include <tutti/loss.h>
#include <tutti/ranks.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known about a step, or about an evaluation; the same on all ranks but for the times. What
 * is not known is NaN. */
typedef struct tutti_train_news {
    int64_t step, steps;   /* done, and of the run */
    double epoch;          /* 1.5: in the middle of the second */
    const char *phase;     /* "train", "val", "test" */
    double loss;           /* of the step, or the mean of the evaluation */
    double top1, top5, lr; /* top5 of evaluations, lr of steps */
    double gradient_norm;  /* where it is clipped */
    double seconds, samples_per_s;
} tutti_train_news;

/* Called on every rank, in the thread that called tutti_train: about a step when the next one is
 * done, about an evaluation at once. false asks to end the run: all ranks end after the same step,
 * at once on a single rank, a step or two later on several, with a checkpoint if there is 'run',
 * and tutti_train returns TUTTI_OK. */
typedef bool tutti_watch_fn(void *user, const tutti_train_news *news);

/* Texts are borrowed until the call returns. A number that is not among the values of an option
 * (below 0, or 0 where it says so) and a text that is NULL are unset. What is unset is the value in
 * brackets; where it says "the net's", the net's own text may suggest another ("default lr 0.01");
 * and in a run that goes on (resume) it is what the checkpoint says. Switches are 0 or 1. */
typedef struct tutti_train_options {
    const char *net; /* a name of the zoo, a path, or the text itself, which has lines; may be unset
                       * with resume */
    const char *data; /* "fashion-mnist", "images:DIR", ...: see doc/DATA.md; likewise */
    const char *run;  /* directory for checkpoints and metrics; NULL: none are written */
    bool overwrite;   /* a run that is there already is moved to run.old, not refused */

    int batch_size;            /* of all ranks together; 0: the net's [64] */
    double epochs;             /* 0: the net's [10]; fractions are fine */
    int64_t steps;             /* > 0: this many steps instead of epochs */
    double lr;                 /* < 0: the net's, or what is usual with the optimizer [0.01] */
    double weight_decay;       /* < 0: likewise [0] */
    int decay_all;             /* 0: not of biases and normalisation; < 0: the net's [1] */
    const char *optimizer;     /* "sgd", "adamw,beta2=0.99"; NULL: the net's ["sgd"] */
    double momentum;           /* of sgd; < 0: the net's [0.9] */
    int nesterov;              /* of sgd; < 0: the net's [0] */
    const char *lr_schedule;   /* NULL: the net's ["fixed"]; see train/schedule.h */
    const char *warmup;        /* NULL: the net's [none]; "500steps", "1epoch" */
    double clip;               /* largest norm of the gradient; 0: no limit; < 0: the net's [0] */
    double label_smoothing;    /* 0 to 1, as in PyTorch; < 0: the net's [0] */
    const char *class_weights; /* "auto", a file, "none"; NULL: ["none"]; doc/RUNS.md */
    double ema;                /* decay of an average of weights; 0: none; < 0: the net's [0] */
    const char *eval_weights;  /* that training evaluates: "model"; NULL: ["ema"], if it is kept */
    int64_t seed;              /* of everything random [0] */
    int grains;           /* leaves of the sum over samples, a power of two; 0: by the batch size */
    const char *bn_group; /* samples that batchnorm layers take together: "32", "all"; NULL or */
                          /* "net": as the net says */
    const char *conv;     /* "direct", "winograd-2x2", "winograd-4x4": how 3x3 convolutions are */
                          /* computed whose text does not say; NULL or "auto": the usual way */
    const char *precision; /* "bf16": layers round what they multiply; NULL: the net's ["fp32"] */
    int shuffle;           /* 0: the order of the data set in every epoch [1] */
    int augment;           /* 0: training samples look like test samples [1] */
    int dropout;           /* 0: dropout and stochastic depth do nothing, for comparisons [1] */
    int skip_bad;          /* 1: replace damaged samples instead of stopping [0] */
    const char *init;      /* NULL: as the net says; "he", "xavier", "gaussian:0.01" */
    const char *resume;   /* NULL: fresh; a run or checkpoint to go on from; "auto": 'run' if any */
    const char *weights;  /* a safetensors file to start from (fine-tuning) */
    const char *rename;   /* what its tensors are called here: doc/FINETUNING.md; NULL: found out */
    const char *freeze;   /* layers to keep as they are, "conv1*,norm1*"; NULL or "": as the net */
                          /* says: see tutti_net_freeze */
    const char *lr_scale; /* "conv*=0.1,fc8=10"; likewise: see tutti_net_scale_lr */

    const char *plan;               /* "data", "model", "auto", or a file; NULL: "auto" */
    int micro_batch;                /* samples of a rank that are in memory at a time, in whole */
                                    /* grains and statistics groups; 0: all it has of a step, or */
                                    /* as many as fit */
    bool overlap;                   /* false: communicate after computing, for comparisons */
    bool priority;                  /* false: gradients travel as they come, for comparisons */
    int threads;                    /* of this rank; 0: OMP_NUM_THREADS, else one per core */
    int data_threads;               /* that read and decode; 0: by the number of cores */
    int comm_core;                  /* core of the communication thread; -1: auto, -2: not pinned */
    double stall_warn, stall_abort; /* seconds; 0: never */
    const char *part_reduce, *part_broadcast; /* algorithms by name; NULL: by size and ranks */

    const char *checkpoint_every; /* "1000steps", "1epoch", "600s"; NULL: "1epoch" */
    bool checkpoint_sync;         /* training waits until a checkpoint is on the disk */
    int keep;                     /* besides step 0 and the best; 0: all; < 0: [3] */
    const char *eval_every;       /* "1epoch"; NULL: after every epoch; "never". On the validation
                                     set where 'data' has one (val=), else on the test set */
    int patience;      /* evaluations without a better one that end the run; 0: none do; < 0: [0] */
    const char *trace; /* a Chrome/Perfetto trace of all ranks goes here */
    bool tensorboard;  /* 'run' gets the curves as an event file of TensorBoard's, too */
    bool json;         /* tutti_test shows JSON */

    /* Of programs that use the library; borrowed until the call returns, by sessions until they are
     * destroyed. */
    tutti_ranks *ranks;             /* NULL: all processes of the job, opened for this call */
    const tutti_own_data *own_data; /* what the data set "own" is; then 'data' may be NULL */
    const tutti_own_loss *own_loss; /* instead of the net's; NULL: the net's */
    tutti_watch_fn *watch;          /* hears of every step; NULL: nobody does */
    void *user;                     /* its argument */
    int64_t epoch_samples; /* of a session without a data set: the length of an epoch; 0: unknown */

    FILE *show; /* header, progress and summary; NULL: silence */
    tutti_log log;
} tutti_train_options;

TUTTI_API tutti_train_options tutti_train_defaults(void);

/* What 'data' can begin with, "images", from 0; NULL after the last. */
TUTTI_API const char *tutti_train_data_kind(int index);

typedef struct tutti_train_result {
    int rank, ranks;
    int64_t steps;     /* done in all */
    double loss;       /* of the last step */
    double top1, top5; /* of nets that tell classes: of the last evaluation, which is the test
                          where a run that validates has come to its end; NaN: there was none */
    double seconds;    /* of the training steps of this call */
    double samples_per_s;
    int exit_code; /* 0, or what a program stopped by a signal should end with */
    bool was_said; /* one of several ranks has logged why the call failed, for all of them */
} tutti_train_result;

/* Collective. TUTTI_INTERRUPTED after a signal and its checkpoint; 'result' is filled then, too.
 * With several ranks all return the status of the one that failed, and rank 0 logs its sentence.
 * TUTTI_OTHER_RUN where an option that was set is not the checkpoint's and may not change:
 * doc/RUNS.md says which may. */
TUTTI_API tutti_status tutti_train(const tutti_train_options *options,
                                   tutti_train_result *result) TUTTI_MUST_CHECK;

/* Collective. Evaluates 'weights' on the test samples of 'data' and shows top-1, top-5, loss and
 * the table of confusions, with 'json' as one JSON object. Uses net, data, weights, batch_size,
 * precision, threads, json, show, log; the precision is that of the training where it is unset.
 * Weights that Tutti wrote know their net, which may be unset then, and their classes, which are
 * matched by name. */
TUTTI_API tutti_status tutti_test(const tutti_train_options *options,
                                  tutti_train_result *result) TUTTI_MUST_CHECK;

/* What a net is asked about. */
typedef struct tutti_question {
    const char *const *files; /* pictures, and folders of them; none: the samples of 'data' */
    int count;
    int top;            /* classes to name for each */
    bool json;          /* a line of JSON for each */
    const char *output; /* an array of answers (.npy), an archive (.ark), or a folder for masks; */
                        /* NULL: lines */
} tutti_question;

/* Classifies pictures, or samples: all of npy:X.npy and kaldi:FEATS, of other data those to test
 * on. Shows a line for each with its best classes, or writes the probabilities of all outputs.
 * Weights that Tutti wrote know the rest; for others 'net' names their net, and for pictures 'data'
 * the data set it was trained on (for class names and normalisation). What cannot be read is named
 * and passed over, its row is NaN; then the status at the end is TUTTI_DATA. */
TUTTI_API tutti_status tutti_predict(const tutti_train_options *options,
                                     const tutti_question *question) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
