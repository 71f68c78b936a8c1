/* A run: everything a rank needs to train, test or predict, put together.
 *
 *   run.c           opens and closes it: rank, net, data, plan, stepper
 *   plan_choice.c   the plan, and what is expected of it
 *   micro.c         how many samples are in memory at a time
 *   loop.c          steps, and what is due between them
 *   saving.c        checkpoints while training goes on
 *   class_weights.c how much each class counts in the loss
 *   launcher.c      whether there is still somebody who started it
 *   options.c       its options by name: kept, taken, compared
 *   checkpoints.c   what a run writes into its checkpoints and takes from one
 *   evaluate.c      the test or validation set, each sample once
 *   telling.c       what files and the caller hear of each step
 *   begun.c         what a run is, before its first step
 *   ended.c         how it ended, for those who look on
 *   chronicle.c     what they are told
 *   report.c        what happened in it: layers, ranks, trace
 *   predicted.c     what was predicted against what happened
 *   about.c         what a model's file tells about itself
 *   trained.c       whether that fits what it is used for
 *   test.c          testing a trained net
 *   predict.c       asking it about files and samples
 *   answers.c       what it says
 *   session.c, session_*.c   a run whose loop is the caller's
 *   worst.c         the samples with the greatest losses
 *   seen.c          their pictures
 *   judge.c         figures of evaluations, by what a net's outputs are
 *   found.c         what an evaluation found, told to people and to files
 *   figures.c       what a test found: classes, confusions, JSON
 */
#ifndef TUTTI_TRAIN_RUN_H
#define TUTTI_TRAIN_RUN_H

#include <tutti/train.h>
#include "base/hash.h"
#include "checkpoint/claim.h"
#include "checkpoint/keeper.h"
#include "data/loader.h"
#include "format/events.h"
#include "format/metrics.h"
#include "format/trace.h"
#include "step/rank.h"
#include "step/stepper.h"
#include "train/about.h"
#include "train/chronicle.h"
#include "train/class_weights.h"
#include "train/judge.h"
#include "train/options.h"
#include "train/plan_choice.h"
#include "train/progress.h"
#include "train/settings.h"
#include "train/worst.h"

/* What evaluations have found; NaN before the first. */
typedef struct tutti_score {
    tutti_found last; /* the last one's, of the net's answer */
    double best;      /* of what decides (judge.h), by the split that judges */
    int64_t best_step;
    int64_t stale;    /* evaluations since then */
    tutti_found test; /* of the test at the end of a run that validates */
    double loss;      /* of the last step that is known of */
} tutti_score;

/* Seconds of this rank. */
typedef struct tutti_run_times {
    double begun;     /* when the first step began: time 0 of a trace */
    double data_wait; /* of the last step, for data */
    double stepping;  /* all steps; evaluations and checkpoints left out */
    double steady;    /* the steps of this call after the first, and their number */
    int64_t steady_steps;
    double steady_data; /* ... of which waiting for data */
} tutti_run_times;

typedef enum tutti_run_use {
    TUTTI_RUN_TRAINS,
    TUTTI_RUN_STEPS, /* a session's: somebody else makes the loop, and may have the samples, too */
    TUTTI_RUN_TESTS, /* has no exchanges, no loader of training samples and less memory */
    TUTTI_RUN_ASKS   /* likewise; about files, or samples that need no labels */
} tutti_run_use;

typedef struct tutti_run {
    tutti_run_use use;
    const tutti_train_options *options; /* 'filled': as given, filled up with what a run that goes
                                         * on was doing */
    tutti_train_options filled;
    tutti_settings settings;
    tutti_kept kept;
    char begins_at[TUTTI_PATH_BYTES]; /* the checkpoint it goes on from; "": none */
    tutti_state_file *was;            /* its state, or NULL */
    tutti_chronicle *chronicle;
    tutti_log log;      /* the chronicle listens */
    tutti_rank me;      /* its own, unless options->ranks has one */
    tutti_claim *claim; /* rank 0's, of the directory it keeps the run in */
    double peak;        /* FLOP/s of all threads of all ranks */
    tutti_net *net;
    char net_hash[TUTTI_HASH_HEX];
    tutti_data *data;
    tutti_about *about; /* what the weights, or the run that goes on, tell; NULL: nothing */
    int *outputs;       /* by the data set's label: the model's output of that name; NULL: as is */
    tutti_class_weights class_weights;
    tutti_loader *loader;    /* of training samples */
    tutti_forecast forecast; /* of one that trains */
    int micro_batch;         /* samples in memory at a time; 0: all that this rank has of a step */
    char micro_note[128];    /* why, where that was not asked for */
    uint64_t room; /* bytes that were free for this rank before it trained; 0: not known */
    tutti_stepper *stepper;
    tutti_keeper *keeper; /* NULL where nothing is read or written */
    tutti_score score;
    tutti_metrics *metrics;
    tutti_events *events; /* NULL: nobody asked for them */
    bool ends_by_watch;   /* the caller's watch function has asked for the end */
    tutti_progress *progress;
    tutti_trace *trace;
    tutti_run_times times;
    bool was_said; /* why it failed, by rank 0 for all */
} tutti_run;

/* ---- run.c ---- */

/* Collective. On failure everything is closed again. */
tutti_status tutti_run_open(tutti_run *run, const tutti_train_options *options,
                            tutti_run_use use) TUTTI_MUST_CHECK;
void tutti_run_close(tutti_run *run);

/* A failure of one rank in the middle of a step: the others wait for it somewhere else, so it ends
 * the job. What all ranks know of is given back. */
tutti_status tutti_run_fatal(tutti_run *run, tutti_status status) TUTTI_MUST_CHECK;

/* The learning rate of step 'step', counted from 0. */
float tutti_run_rate(const tutti_run *run, int64_t step);

/* TUTTI_DIVERGED where the loss of the step is not a finite number, and where that began. */
tutti_status tutti_run_check_loss(const tutti_run *run, const tutti_news *news) TUTTI_MUST_CHECK;

/* What its stepper is created with, but for run->micro_batch. */
tutti_stepper_options tutti_run_stepper_options(const tutti_run *run, bool evaluates_only);

/* The part of the FMA peak that so many samples a second take, of the operations that are really
 * made. More than all of it shows that the peak was measured too low, on a busy machine, and raises
 * it. NAN: nothing is known. */
double tutti_run_percent_of_peak(tutti_run *run, double samples_per_s);

/* Collective, unless communication itself failed. Before the run is closed: with several ranks all
 * return what the one that failed does, and one of them says it before any can leave, because the
 * launcher ends the others as soon as one exits with a failure. Gives that status. */
tutti_status tutti_run_conclude(tutti_run *run, tutti_status status) TUTTI_MUST_CHECK;

/* ---- trained.c ---- */

/* What a file of weights tells about itself, into run->about. */
tutti_status tutti_run_read_about(tutti_run *run, bool evaluates_only) TUTTI_MUST_CHECK;

/* The net that NET names, or that the weights tell; where both do, they are the same. */
tutti_status tutti_run_open_net(tutti_run *run, bool evaluates_only) TUTTI_MUST_CHECK;

/* Convolutions are computed as --conv says, which is no part of the net's hash. Answers are, and so
 * is a net that its weights bring along, unless told, as the weights were trained; what says
 * nothing of it is older than the choice. */
void tutti_run_convolve(tutti_run *run, bool evaluates_only);

/* Gives layers the precision of --precision; likewise that of the weights. */
tutti_status tutti_run_round(tutti_run *run, bool evaluates_only) TUTTI_MUST_CHECK;

/* Finds the outputs of the data set's classes by their names. TUTTI_OTHER_RUN for a class that the
 * model does not know; and where the data themselves number classes or values, as masks do, for one
 * that it calls otherwise. */
tutti_status tutti_run_match_classes(tutti_run *run) TUTTI_MUST_CHECK;

/* Rank 0 warns of outputs that no class has. */
void tutti_run_mention_spare_outputs(const tutti_run *run);

/* Do the options and the use suit the net's loss? */
tutti_status tutti_run_check_kind_of_loss(const tutti_run *run) TUTTI_MUST_CHECK;

/* The classes that answers are among, and their names. */
int tutti_run_classes(const tutti_run *run);
const char *tutti_run_class_name(const tutti_run *run, int output);

/* ---- checkpoints.c ---- */

/* Collective. The stepper is settled. */
tutti_status tutti_run_save(tutti_run *run) TUTTI_MUST_CHECK;

/* The checkpoint with the best evaluation so far; -1: there is none. */
int64_t tutti_run_best_step(const tutti_run *run);

/* Have there been as many evaluations without a better one as --patience allows? */
bool tutti_run_is_stale(const tutti_run *run);

/* Collective. Finds what --resume names and takes from it what the options leave open. */
tutti_status tutti_run_find(tutti_run *run) TUTTI_MUST_CHECK;

/* Is what was found still this run, as it was resolved? Notes what changes. */
tutti_status tutti_run_compare_options(tutti_run *run) TUTTI_MUST_CHECK;

/* Collective. The stepper goes on with what was found, if anything. */
tutti_status tutti_run_resume(tutti_run *run) TUTTI_MUST_CHECK;

/* Collective. The weights that --weights names, all of them. */
tutti_status tutti_run_load_weights(tutti_run *run) TUTTI_MUST_CHECK;

/* ---- evaluate.c ---- */

/* What an evaluation counts class by class, all zero before; on every rank the same after. */
typedef struct tutti_tables {
    tutti_class_count *classes; /* [classes]; NULL: the net does not tell those of samples */
    int64_t *confusion;         /* [truth][answer]; NULL: there are too many */
    int64_t *sums;              /* all that the judge of the net's answer has; NULL: not wanted */
    tutti_worst *worst;
} tutti_tables;

/* All zero; without a table of confusions where there are too many classes. Destroy is fine after a
 * failure. */
tutti_status tutti_tables_create(tutti_tables *tables, const tutti_run *run) TUTTI_MUST_CHECK;
void tutti_tables_destroy(tutti_tables *tables);

typedef struct tutti_evaluation {
    int64_t samples;
    double loss;       /* of all targets */
    double top1, top5; /* where the net's answer is a class, else NaN */
    tutti_found findings[TUTTI_MOST_TARGETS];
} tutti_evaluation;

/* Of the net's answer: how it is judged. */
const tutti_target *tutti_run_target(const tutti_run *run);
const tutti_judge *tutti_run_judge_of_answer(const tutti_run *run);

/* By which samples checkpoints are judged: those for validation, where there are any. */
tutti_split tutti_run_judge(const tutti_run *run);

/* Collective. 'tables' may be NULL. Where all samples are damaged (with --skip-bad) there are 0,
 * rank 0 says so, and the rest is NaN. */
tutti_status tutti_run_evaluate(tutti_run *run, tutti_split split, tutti_evaluation *evaluation,
                                const tutti_tables *tables) TUTTI_MUST_CHECK;

/* ---- found.c ---- */

/* Shows an evaluation of a run that trains, 'best' so far or not, and writes it to the metrics.
 * Gives the bits that those who watch the run ask for. */
unsigned tutti_run_tell(tutti_run *run, tutti_split split, const tutti_evaluation *evaluation,
                        bool best, double seconds);

/* ---- figures.c ---- */

/* Shows what a test found, for people or as one JSON object. */
tutti_status tutti_figures_show(const tutti_run *run, const tutti_evaluation *evaluation,
                                const tutti_tables *tables) TUTTI_MUST_CHECK;

/* ---- micro.c ---- */

/* Collective. Sets micro_batch for a stepper that would otherwise be created with these options. A
 * warning says when it will hardly fit. */
tutti_status tutti_run_choose_micro_batch(tutti_run *run,
                                          const tutti_stepper_options *stepper) TUTTI_MUST_CHECK;

/* A run that trains and failed for want of memory, on any rank: the same failure, and which
 * --micro-batch would do. Any other status stays. */
tutti_status tutti_run_advise_memory(tutti_run *run, tutti_status status) TUTTI_MUST_CHECK;

/* ---- telling.c ---- */

/* Opens the files, on rank 0 of a run that has a directory. */
tutti_status tutti_telling_open(tutti_run *run) TUTTI_MUST_CHECK;

/* Tells of a step or an evaluation. Gives what all ranks are asked for by that, as of now; what a
 * rank of several asks for they hear in its next note. */
unsigned tutti_tell(tutti_run *run, const tutti_metrics_row *row);

/* ---- begun.c ---- */

/* Shows what the run is, and writes it down. */
void tutti_run_begin(tutti_run *run);

/* ---- ended.c ---- */

/* The table of an evaluation; not that of so many classes that nobody could read it. */
void tutti_run_write_confusion(tutti_run *run, const char *phase, const tutti_tables *tables);

/* How the run ended, and its page. */
void tutti_run_write_end(tutti_run *run, tutti_status status);

/* ---- seen.c ---- */

/* The worst samples of an evaluation, with pictures of those that can be seen. */
void tutti_run_write_worst(tutti_run *run, tutti_split split, const char *phase,
                           const tutti_worst *worst);

/* ---- report.c ---- */

/* Seconds of this call on one layer, of this rank. */
typedef struct tutti_layer_report {
    tutti_layer_times times;
    tutti_traffic traffic; /* exposed: with the waiting for moves */
} tutti_layer_report;

tutti_layer_report tutti_run_layer(const tutti_run *run, int layer);

/* Collective. Per layer and per rank; also to metrics.jsonl and the trace. */
tutti_status tutti_run_report(tutti_run *run, double seconds, int64_t steps) TUTTI_MUST_CHECK;

/* ---- predicted.c ---- */

/* Says how the prediction fared, and writes plan.json into the run. Only where it stands on
 * measurements of this machine. */
tutti_status tutti_run_compare(tutti_run *run, int64_t steps) TUTTI_MUST_CHECK;

#endif
