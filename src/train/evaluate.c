/* The test or validation set: each rank evaluates its places of every batch, each sample once, in
 * as many passes as a step of training has, for ranks that share a layer must meet equally often.
 * Counts are integers, and the loss is added up in fixed point, so no order of adding can show. */
#include "train/run.h"

#include <math.h>

#include "base/log.h"
#include "base/memory.h"

enum { LOSS_BITS = 24 };

tutti_status tutti_tables_create(tutti_tables *tables, int classes)
{
    const size_t count = (size_t)classes;
    *tables = (tutti_tables){0};
    TUTTI_TRY(tutti_alloc(&tables->classes, count, sizeof *tables->classes));
    if (classes > TUTTI_CONFUSION_MOST) return TUTTI_OK;
    return tutti_alloc(&tables->confusion, count * count, sizeof *tables->confusion);
}

void tutti_tables_destroy(tutti_tables *tables)
{
    tutti_free(tables->classes);
    tutti_free(tables->confusion);
}

typedef struct tally {
    int64_t samples, hits1, hits5, loss, infinite;
} tally;

static void count_answer(const tutti_tables *tables, int classes, int label, const float *p)
{
    int answer = 0;
    for (int c = 1; c < classes; c++)
        if (p[c] > p[answer]) answer = c;
    tables->classes[label].support++;
    tables->classes[answer].answered++;
    tables->classes[label].right += label == answer;
    if (tables->confusion) tables->confusion[(int64_t)label * classes + answer]++;
}

/* Samples of a batch that are evaluated together. */
typedef struct piece {
    int first, count;
} piece;

static void add_piece(const tutti_run *run, const tutti_batch *batch, piece at,
                      const int32_t *labels, tally *sum, const tutti_tables *tables)
{
    const int classes = tutti_net_classes(run->net);
    const size_t row = tutti_round_up((size_t)classes, TUTTI_BLOCK);
    const tutti_model *model = tutti_stepper_model(run->stepper);
    const float *losses = tutti_model_losses(model), *p = tutti_model_probabilities(model);
    const int32_t *beaten_by = tutti_model_beaten_by(model);
    for (int i = 0; i < at.count; i++) {
        if (batch->labels[at.first + i] == TUTTI_LABEL_NONE) continue;
        sum->samples++;
        sum->hits1 += beaten_by[i] < 1;
        sum->hits5 += beaten_by[i] < 5;
        if (fabsf(losses[i]) < 1e6f) sum->loss += llrint(ldexp(losses[i], LOSS_BITS));
        else sum->infinite++;
        if (tables) count_answer(tables, classes, labels[at.first + i], p + (size_t)i * row);
    }
}

/* Samples without a label are computed, not counted. */
static tutti_status evaluate_batch(tutti_run *run, const tutti_batch *batch, int32_t *labels,
                                   tally *sum, const tutti_tables *tables)
{
    for (int i = 0; i < batch->count; i++) {
        const int label = batch->labels[i] == TUTTI_LABEL_NONE ? 0 : batch->labels[i];
        labels[i] = run->outputs ? run->outputs[label] : label;
    }
    tutti_model *model = tutti_stepper_model(run->stepper);
    const int most = tutti_model_most_samples(model);
    const size_t stride = tutti_net_input_floats(run->net);
    for (int p = 0, first = 0; p < tutti_model_passes(model); p++) {
        const int left = batch->count - first;
        const piece at = {first, left < most ? left : most};
        const float *samples = batch->samples + (size_t)first * stride;
        TUTTI_TRY(tutti_model_evaluate(model, at.count, samples, labels + first));
        add_piece(run, batch, at, labels, sum, tables);
        first += at.count;
    }
    return TUTTI_OK;
}

static tutti_status evaluate_own(tutti_run *run, tutti_split split, tally *sum,
                                 const tutti_tables *tables)
{
    tutti_loader *loader = NULL;
    int32_t *labels = NULL;
    const tutti_model *model = tutti_stepper_model(run->stepper);
    const int first = tutti_model_first_sample(model), own = tutti_model_samples(model);
    tutti_loader_options o = tutti_loader_defaults();
    o.split = split;
    o.batch = run->settings.batch;
    o.first = first;
    o.end = first + own;
    o.threads = run->options->data_threads;
    tutti_status s = tutti_alloc(&labels, (size_t)own + 1, sizeof *labels);
    if (s == TUTTI_OK) s = tutti_loader_create(&loader, run->data, &o);
    for (int64_t i = 0; s == TUTTI_OK && i < tutti_loader_steps(loader); i++) {
        tutti_batch batch;
        tutti_progress_task(run->progress, split == TUTTI_SPLIT_VAL ? "validating" : "testing", i,
                            tutti_loader_steps(loader));
        s = tutti_loader_next(loader, &batch);
        if (s == TUTTI_OK) s = evaluate_batch(run, &batch, labels, sum, tables);
    }
    tutti_progress_task(run->progress, "", 1, 1);
    tutti_loader_destroy(&loader);
    tutti_free(labels);
    if (s != TUTTI_OK && tutti_model_move_count(model) > 0) {
        /* the others wait for this rank's activations and cannot come to an agreement */
        tutti_error(&run->log, "%s", tutti_message());
        tutti_comm_abort(run->me.comm, s);
    }
    return s;
}

/* Adds up 'count' integers over all ranks, in pieces. */
static tutti_status add_up(tutti_run *run, int64_t *values, int64_t count)
{
    enum { PIECE = 4096 };
    int64_t *all = NULL;
    if (run->me.size == 1) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&all, (size_t)run->me.size * PIECE, sizeof *all));
    tutti_status s = TUTTI_OK;
    for (int64_t at = 0; s == TUTTI_OK && at < count; at += PIECE) {
        const int64_t n = count - at < PIECE ? count - at : PIECE;
        s = tutti_comm_allgather(run->me.comm, values + at, (size_t)n * sizeof *all, all);
        for (int64_t i = 0; s == TUTTI_OK && i < n; i++) {
            values[at + i] = 0;
            for (int r = 0; r < run->me.size; r++) values[at + i] += all[r * n + i];
        }
    }
    tutti_free(all);
    return s;
}

tutti_split tutti_run_judge(const tutti_run *run)
{
    return tutti_data_count(run->data, TUTTI_SPLIT_VAL) ? TUTTI_SPLIT_VAL : TUTTI_SPLIT_TEST;
}

tutti_status tutti_run_evaluate(tutti_run *run, tutti_split split, tutti_evaluation *out,
                                const tutti_tables *tables)
{
    tally sum = {0};
    TUTTI_TRY(tutti_comm_agree(run->me.comm, evaluate_own(run, split, &sum, tables)));
    TUTTI_TRY(add_up(run, (int64_t *)&sum, (int64_t)(sizeof sum / sizeof(int64_t))));
    const int64_t classes = tutti_net_classes(run->net);
    const int64_t each = (int64_t)(sizeof(tutti_class_count) / sizeof(int64_t));
    if (tables) TUTTI_TRY(add_up(run, (int64_t *)tables->classes, classes * each));
    if (tables && tables->confusion) TUTTI_TRY(add_up(run, tables->confusion, classes * classes));
    if (!sum.samples && run->me.rank == 0)
        tutti_warn(&run->log, "every sample to %s on is damaged: there is no accuracy",
                   split == TUTTI_SPLIT_VAL ? "validate" : "test");
    const double n = sum.samples ? (double)sum.samples : NAN;
    *out = (tutti_evaluation){
        .samples = sum.samples,
        .loss = sum.infinite ? INFINITY : ldexp((double)sum.loss, -LOSS_BITS) / n,
        .top1 = (double)sum.hits1 / n,
        .top5 = (double)sum.hits5 / n,
    };
    return TUTTI_OK;
}
