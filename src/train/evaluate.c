/* The test or validation set: each rank evaluates its places of every batch, each sample once, in
 * as many passes as a step of training has, for ranks that share a layer must meet equally often.
 * Counts are integers, and sums are exact, so no order of adding can show. */
#include "train/run.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

tutti_status tutti_tables_create(tutti_tables *tables, const tutti_run *run)
{
    const size_t classes = (size_t)tutti_net_classes(run->net);
    const tutti_target *target = tutti_run_target(run);
    *tables = (tutti_tables){0};
    TUTTI_TRY(tutti_alloc(&tables->sums, tutti_judge_words(target), sizeof *tables->sums));
    TUTTI_TRY(tutti_alloc(&tables->worst, 1, sizeof *tables->worst));
    if (target->form != TUTTI_TARGET_CLASS) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&tables->classes, classes, sizeof *tables->classes));
    if (classes > TUTTI_CONFUSION_MOST) return TUTTI_OK;
    return tutti_alloc(&tables->confusion, classes * classes, sizeof *tables->confusion);
}

void tutti_tables_destroy(tutti_tables *tables)
{
    tutti_free(tables->classes);
    tutti_free(tables->confusion);
    tutti_free(tables->sums);
    tutti_free(tables->worst);
}

/* Of a rank: what the judges of all targets count and add up (judge.h), one after another. */
typedef struct tally {
    int64_t *sums;
    size_t first[TUTTI_MOST_TARGETS], words; /* where each target's begin, and all of them */
} tally;

static tutti_status open_tally(tally *t, const tutti_net *net)
{
    for (int k = 0; k < net->target_count; k++) {
        t->first[k] = t->words;
        t->words += tutti_judge_words(&net->targets[k]);
    }
    return tutti_alloc(&t->sums, t->words, sizeof *t->sums);
}

static int largest(const float *p, int count)
{
    int at = 0;
    for (int i = 1; i < count; i++)
        if (p[i] > p[at]) at = i;
    return at;
}

static void count_answer(const tutti_tables *tables, int label, int answer)
{
    tables->classes[label].support++;
    tables->classes[answer].answered++;
    tables->classes[label].right += label == answer;
}

/* Of a sample of a piece: what the tables want of it. 'truth' is its label, of classes. */
static void note_sample(const tutti_run *run, const tutti_tables *tables, uint32_t id, int i,
                        const int32_t *truth)
{
    const tutti_model *model = tutti_stepper_model(run->stepper);
    const int classes = tutti_net_classes(run->net);
    tutti_bad_answer one = {.id = id, .truth = -1, .answer = -1};
    one.loss = tutti_model_verdict(model, tutti_net_answer(run->net)).losses[i];
    if (tables->classes) {
        const size_t row = tutti_round_up((size_t)classes, TUTTI_BLOCK);
        const float *p = tutti_model_probabilities(model) + (size_t)i * row;
        one.truth = *truth;
        one.answer = largest(p, classes);
        one.of_truth = p[*truth];
        one.sure = p[one.answer];
        count_answer(tables, *truth, one.answer);
        if (tables->confusion) tables->confusion[(int64_t)*truth * classes + one.answer]++;
    }
    if (tables->worst) tutti_worst_add(tables->worst, &one);
}

/* Samples of a batch that are evaluated together. */
typedef struct piece {
    int first, count;
} piece;

/* Where a target of a batch begins with sample 'first'; labels are for nets that have no other. */
static const void *goal_of(const tutti_run *run, const tutti_batch *batch, int target, int first,
                           const int32_t *labels)
{
    const size_t words = tutti_target_words(&run->net->targets[target]);
    const int32_t *own = batch->targets[target];
    return own ? own + (size_t)first * words : labels + first;
}

/* What a sample of a piece, which begins with 'first', got from a target's loss. */
static void judge(const tutti_run *run, const tutti_batch *batch, int target, int first, int i,
                  const int32_t *labels, const tally *t)
{
    const tutti_target *to = &run->net->targets[target];
    const tutti_judgement v = tutti_model_verdict(tutti_stepper_model(run->stepper), target);
    const tutti_shape out = run->net->layers[run->net->judges[target]].out;
    const void *goal = goal_of(run, batch, target, first + i, labels);
    const bool values = tutti_target_is_values(to);
    const tutti_judged judged = {.loss = v.losses[i],
                                 .beaten_by = v.beaten_by[i],
                                 .answer = v.answers + (size_t)i * tutti_shape_floats(out),
                                 .classes = values ? NULL : goal,
                                 .values = values ? goal : NULL};
    tutti_judge_sample(to, &judged, t->sums + t->first[target]);
}

static void add_piece(const tutti_run *run, const tutti_batch *batch, piece at,
                      const int32_t *labels, const tally *t, const tutti_tables *tables)
{
    const int answer = tutti_net_answer(run->net);
    for (int i = 0; i < at.count; i++) {
        if (batch->labels[at.first + i] == TUTTI_LABEL_NONE) continue;
        for (int k = 0; k < run->net->target_count; k++)
            judge(run, batch, k, at.first, i, labels, t);
        if (!tables) continue;
        const int32_t *truth = goal_of(run, batch, answer, at.first + i, labels);
        note_sample(run, tables, batch->ids[at.first + i], i, truth);
    }
}

static void aim(tutti_run *run, const tutti_batch *batch, int first, const int32_t *labels)
{
    tutti_goals goals = {{0}};
    for (int k = 0; k < run->net->target_count; k++)
        goals.of[k] = goal_of(run, batch, k, first, labels);
    tutti_model_aim(tutti_stepper_model(run->stepper), &goals);
}

/* Samples without a label are computed, not counted. */
static tutti_status evaluate_batch(tutti_run *run, const tutti_batch *batch, int32_t *labels,
                                   const tally *t, const tutti_tables *tables)
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
        aim(run, batch, first, labels);
        TUTTI_TRY(tutti_model_evaluate(model, at.count, samples, NULL));
        add_piece(run, batch, at, labels, t, tables);
        first += at.count;
    }
    tutti_model_aim(model, NULL);
    return TUTTI_OK;
}

static tutti_status evaluate_own(tutti_run *run, tutti_split split, const tally *sums,
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
        if (s == TUTTI_OK) s = evaluate_batch(run, &batch, labels, sums, tables);
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

/* Every rank has the worst of all. */
static tutti_status gather_worst(tutti_run *run, tutti_worst *worst)
{
    tutti_worst *all = NULL;
    if (run->me.size == 1) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&all, (size_t)run->me.size, sizeof *all));
    const tutti_status s = tutti_comm_allgather(run->me.comm, worst, sizeof *all, all);
    for (int r = 0; s == TUTTI_OK && r < run->me.size; r++)
        if (r != run->me.rank) tutti_worst_merge(worst, &all[r]);
    tutti_free(all);
    return s;
}

const tutti_target *tutti_run_target(const tutti_run *run)
{
    return &run->net->targets[tutti_net_answer(run->net)];
}

const tutti_judge *tutti_run_judge_of_answer(const tutti_run *run)
{
    return tutti_judge_of(tutti_run_target(run));
}

tutti_split tutti_run_judge(const tutti_run *run)
{
    return tutti_data_count(run->data, TUTTI_SPLIT_VAL) ? TUTTI_SPLIT_VAL : TUTTI_SPLIT_TEST;
}

/* The answer's figures stand for all, the losses of all targets are added up. */
static tutti_evaluation finish(const tutti_run *run, const tally *t)
{
    const tutti_net *net = run->net;
    const int answer = tutti_net_answer(net);
    tutti_evaluation e = {.samples = tutti_judge_samples(t->sums), .top1 = NAN, .top5 = NAN};
    for (int k = 0; k < net->target_count; k++) {
        e.findings[k] = tutti_judge_finish(&net->targets[k], t->sums + t->first[k]);
        e.loss += e.findings[k].loss;
    }
    if (net->targets[answer].form != TUTTI_TARGET_CLASS) return e;
    e.top1 = e.findings[answer].figures[0];
    e.top5 = e.findings[answer].figures[1];
    return e;
}

static tutti_status evaluate(tutti_run *run, tutti_split split, const tally *t,
                             tutti_evaluation *out, const tutti_tables *tables)
{
    const int answer = tutti_net_answer(run->net);
    const int64_t classes = tutti_net_classes(run->net);
    const int64_t each = (int64_t)(sizeof(tutti_class_count) / sizeof(int64_t));
    TUTTI_TRY(tutti_comm_agree(run->me.comm, evaluate_own(run, split, t, tables)));
    TUTTI_TRY(add_up(run, t->sums, (int64_t)t->words));
    if (tables && tables->classes)
        TUTTI_TRY(add_up(run, (int64_t *)tables->classes, classes * each));
    if (tables && tables->confusion) TUTTI_TRY(add_up(run, tables->confusion, classes * classes));
    if (tables && tables->worst) TUTTI_TRY(gather_worst(run, tables->worst));
    *out = finish(run, t);
    if (tables && tables->sums)
        memcpy(tables->sums, t->sums + t->first[answer],
               tutti_judge_words(&run->net->targets[answer]) * sizeof *t->sums);
    return TUTTI_OK;
}

tutti_status tutti_run_evaluate(tutti_run *run, tutti_split split, tutti_evaluation *out,
                                const tutti_tables *tables)
{
    tally t = {0};
    tutti_status s = tutti_comm_agree(run->me.comm, open_tally(&t, run->net));
    if (s == TUTTI_OK) s = evaluate(run, split, &t, out, tables);
    tutti_free(t.sums);
    if (s == TUTTI_OK && !out->samples && run->me.rank == 0)
        tutti_warn(&run->log, "every sample to %s on is damaged: there is no accuracy",
                   split == TUTTI_SPLIT_VAL ? "validate" : "test");
    return s;
}
