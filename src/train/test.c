/* Testing a trained net. */
#include "train/run.h"

static tutti_status test(tutti_run *run, tutti_train_result *result)
{
    tutti_tables tables = {0};
    tutti_evaluation e;
    TUTTI_TRY(tutti_run_load_weights(run));
    tutti_status s = tutti_tables_create(&tables, run);
    s = tutti_comm_agree(run->me.comm, s);
    if (s == TUTTI_OK) s = tutti_run_evaluate(run, TUTTI_SPLIT_TEST, &e, &tables);
    if (s == TUTTI_OK && !e.samples)
        s = tutti_fail(TUTTI_DATA, "%s has no test samples that can be read", run->options->data);
    if (s == TUTTI_OK) {
        *result = (tutti_train_result){.rank = run->me.rank,
                                       .ranks = run->me.size,
                                       .loss = e.loss,
                                       .top1 = e.top1,
                                       .top5 = e.top5};
        s = tutti_figures_show(run, &e, &tables);
    }
    tutti_tables_destroy(&tables);
    return s;
}

tutti_status tutti_test(const tutti_train_options *options, tutti_train_result *result)
{
    tutti_run run;
    *result = (tutti_train_result){0};
    if (!options->data) return tutti_fail(TUTTI_ARGUMENT, "--data is missing: name a data set");
    tutti_status s = tutti_run_open(&run, options, TUTTI_RUN_TESTS);
    if (s == TUTTI_OK) {
        s = tutti_run_conclude(&run, test(&run, result));
        tutti_run_close(&run);
    }
    result->was_said = run.was_said;
    return s;
}
