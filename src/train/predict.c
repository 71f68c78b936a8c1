/* Asking a trained net about files. */
#include "train/run.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"

static void print_answer(const tutti_run *run, const char *file, const float *p, int top)
{
    const int classes = tutti_run_classes(run);
    FILE *out = run->options->show;
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
        fprintf(out, "%s %s %.1f %%", i ? "," : "", tutti_run_class_name(run, best),
                100 * (double)p[best]);
    }
    fprintf(out, "\n");
}

static tutti_status predict_file(tutti_run *run, tutti_reader *reader, float *sample,
                                 const char *file, int top)
{
    TUTTI_TRY(tutti_reader_fetch_file(reader, file, sample));
    tutti_model *model = tutti_session_model(run->session);
    TUTTI_TRY(tutti_model_evaluate(model, 1, sample, NULL));
    print_answer(run, file, tutti_model_probabilities(model), top);
    return TUTTI_OK;
}

static tutti_status predict(tutti_run *run, const char *const *files, int count, int top)
{
    tutti_reader *reader = NULL;
    float *sample = NULL;
    if (run->me.size > 1)
        return tutti_fail(TUTTI_ARGUMENT, "predict runs on one rank, not under mpirun");
    TUTTI_TRY(tutti_run_load_weights(run));
    tutti_status s = tutti_reader_create(&reader, run->data);
    if (s == TUTTI_OK) s = tutti_alloc(&sample, tutti_data_stride(run->data), sizeof *sample);
    for (int i = 0; s == TUTTI_OK && i < count; i++)
        s = predict_file(run, reader, sample, files[i], top);
    tutti_free(sample);
    tutti_reader_destroy(&reader);
    return s;
}

tutti_status tutti_predict(const tutti_train_options *options, const char *const *files, int count,
                           int top)
{
    tutti_run run;
    tutti_train_options one = *options;
    if (!one.batch_size) one.batch_size = 1;
    TUTTI_TRY(tutti_run_open(&run, &one, true));
    const tutti_status s = predict(&run, files, count, top);
    tutti_run_close(&run);
    return s;
}
