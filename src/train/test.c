/* Testing a trained net, and asking it about files. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"

static tutti_status load(tutti_trainer *t)
{
    if (!t->options->weights)
        return tutti_fail(TUTTI_ARGUMENT, "--weights is missing: name a run or a safetensors file");
    return tutti_keeper_load_weights(t->keeper, t->options->weights, true);
}

static tutti_status class_names(const tutti_trainer *t, const char ***out)
{
    const int classes = tutti_net_classes(t->net);
    TUTTI_TRY(tutti_alloc(out, (size_t)classes, sizeof **out));
    for (int i = 0; i < classes; i++)
        (*out)[i] = i < tutti_data_classes(t->data) ? tutti_data_class_name(t->data, i) : "-";
    return TUTTI_OK;
}

static tutti_status show_evaluation(tutti_trainer *t, const tutti_evaluation *e)
{
    enum { WIDEST_TABLE = 20 };
    const char **names = NULL;
    FILE *out = t->options->show;
    if (t->me.rank || !out) return TUTTI_OK;
    TUTTI_TRY(class_names(t, &names));
    tutti_confusion_print(out, e->confusion, tutti_net_classes(t->net), names, WIDEST_TABLE);
    fprintf(out, "%lld samples: top-1 %.2f %%, top-5 %.2f %%, loss %.6f\n", (long long)e->samples,
            100 * e->top1, 100 * e->top5, e->loss);
    tutti_free(names);
    return TUTTI_OK;
}

static tutti_status test(tutti_trainer *t, tutti_train_result *result)
{
    int64_t *confusion = NULL;
    tutti_evaluation e;
    const size_t classes = (size_t)tutti_net_classes(t->net);
    TUTTI_TRY(load(t));
    tutti_status s = tutti_alloc(&confusion, classes * classes, sizeof *confusion);
    s = tutti_comm_agree(t->me.comm, s);
    if (s == TUTTI_OK) s = tutti_trainer_evaluate(t, &e, confusion);
    if (s == TUTTI_OK && !e.samples)
        s = tutti_fail(TUTTI_DATA, "%s has no test samples", t->options->data);
    if (s == TUTTI_OK) {
        *result = (tutti_train_result){.rank = t->me.rank,
                                       .ranks = t->me.size,
                                       .loss = e.loss,
                                       .top1 = e.top1,
                                       .top5 = e.top5};
        s = show_evaluation(t, &e);
    }
    tutti_free(confusion);
    return s;
}

tutti_status tutti_test(const tutti_train_options *options, tutti_train_result *result)
{
    tutti_trainer t;
    TUTTI_TRY(tutti_trainer_open(&t, options, true));
    const tutti_status s = test(&t, result);
    tutti_trainer_close(&t);
    return s;
}

/* ---- files ---- */

static void print_answer(const tutti_trainer *t, const char *file, const float *p, int top)
{
    const int classes = tutti_data_classes(t->data);
    FILE *out = t->options->show;
    double above = INFINITY; /* what was printed last; equal ones go by number */
    int last = -1;
    fprintf(out, "%s:", file);
    for (int i = 0; i < top && i < classes; i++) {
        int best = -1;
        for (int c = 0; c < classes; c++)
            if ((p[c] < above || (p[c] == above && c > last)) && (best < 0 || p[c] > p[best]))
                best = c;
        if (best < 0) break;
        above = p[best];
        last = best;
        fprintf(out, "%s %s %.1f %%", i ? "," : "", tutti_data_class_name(t->data, best),
                100 * (double)p[best]);
    }
    fprintf(out, "\n");
}

static tutti_status predict_file(tutti_trainer *t, tutti_reader *reader, float *sample,
                                 const char *file, int top)
{
    TUTTI_TRY(tutti_reader_fetch_file(reader, file, sample));
    tutti_model *model = tutti_session_model(t->session);
    TUTTI_TRY(tutti_model_evaluate(model, 1, sample, NULL));
    print_answer(t, file, tutti_model_probabilities(model), top);
    return TUTTI_OK;
}

static tutti_status predict(tutti_trainer *t, const char *const *files, int count, int top)
{
    tutti_reader *reader = NULL;
    float *sample = NULL;
    if (t->me.size > 1)
        return tutti_fail(TUTTI_ARGUMENT, "predict runs on one rank, not under mpirun");
    TUTTI_TRY(load(t));
    tutti_status s = tutti_reader_create(&reader, t->data);
    if (s == TUTTI_OK) s = tutti_alloc(&sample, tutti_data_stride(t->data), sizeof *sample);
    for (int i = 0; s == TUTTI_OK && i < count; i++)
        s = predict_file(t, reader, sample, files[i], top);
    tutti_free(sample);
    tutti_reader_destroy(&reader);
    return s;
}

tutti_status tutti_predict(const tutti_train_options *options, const char *const *files, int count,
                           int top)
{
    tutti_trainer t;
    tutti_train_options one = *options;
    if (!one.batch_size) one.batch_size = 1;
    TUTTI_TRY(tutti_trainer_open(&t, &one, true));
    const tutti_status s = predict(&t, files, count, top);
    tutti_trainer_close(&t);
    return s;
}
