/* Testing a trained net. */
#include "train/run.h"

#include <stdio.h>

#include "base/memory.h"

static tutti_status class_names(const tutti_run *run, const char ***out)
{
    const int classes = tutti_net_classes(run->net);
    TUTTI_TRY(tutti_alloc(out, (size_t)classes, sizeof **out));
    for (int i = 0; i < classes; i++) (*out)[i] = tutti_run_class_name(run, i);
    return TUTTI_OK;
}

static tutti_status show_evaluation(tutti_run *run, const tutti_evaluation *e)
{
    enum { WIDEST_TABLE = 20 };
    const char **names = NULL;
    FILE *out = run->options->show;
    if (run->me.rank || !out) return TUTTI_OK;
    TUTTI_TRY(class_names(run, &names));
    tutti_confusion_print(out, e->confusion, tutti_net_classes(run->net), names, WIDEST_TABLE);
    fprintf(out, "%lld samples: top-1 %.2f %%, top-5 %.2f %%, loss %.6f\n", (long long)e->samples,
            100 * e->top1, 100 * e->top5, e->loss);
    tutti_free(names);
    return TUTTI_OK;
}

static tutti_status test(tutti_run *run, tutti_train_result *result)
{
    int64_t *confusion = NULL;
    tutti_evaluation e;
    const size_t classes = (size_t)tutti_net_classes(run->net);
    TUTTI_TRY(tutti_run_load_weights(run));
    tutti_status s = TUTTI_OK;
    if (classes <= TUTTI_CONFUSION_MOST)
        s = tutti_alloc(&confusion, classes * classes, sizeof *confusion);
    s = tutti_comm_agree(run->me.comm, s);
    if (s == TUTTI_OK) s = tutti_run_evaluate(run, TUTTI_SPLIT_TEST, &e, confusion);
    if (s == TUTTI_OK && !e.samples)
        s = tutti_fail(TUTTI_DATA, "%s has no test samples that can be read", run->options->data);
    if (s == TUTTI_OK) {
        *result = (tutti_train_result){.rank = run->me.rank,
                                       .ranks = run->me.size,
                                       .loss = e.loss,
                                       .top1 = e.top1,
                                       .top5 = e.top5};
        s = show_evaluation(run, &e);
    }
    tutti_free(confusion);
    return s;
}

tutti_status tutti_test(const tutti_train_options *options, tutti_train_result *result)
{
    tutti_run run;
    *result = (tutti_train_result){0};
    if (!options->data) return tutti_fail(TUTTI_ARGUMENT, "--data is missing: name a data set");
    tutti_status s = tutti_run_open(&run, options, true);
    if (s == TUTTI_OK) {
        s = tutti_run_conclude(&run, test(&run, result));
        tutti_run_close(&run);
    }
    result->was_said = run.was_said;
    return s;
}
