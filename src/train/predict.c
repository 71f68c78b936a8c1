/* Asking a trained net about pictures in files, or about the samples of a data set. What cannot be
 * read gets its sentence, and the rest its answers. */
#include "train/answers.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/file.h"

typedef struct asking {
    tutti_run *run;
    tutti_answers *answers;
    tutti_reader *reader;
    tutti_names pictures;
    float *samples;     /* [batch] */
    const char **names; /* [batch] of the files that wait for an answer */
    int held, batch;
    int64_t missed;
} asking;

/* ---- files ---- */

static const float *answer_of(const tutti_run *run, int sample)
{
    const size_t row = tutti_shape_floats(run->net->layers[run->net->layer_count - 1].out);
    return tutti_model_probabilities(tutti_stepper_model(run->stepper)) + (size_t)sample * row;
}

static tutti_status answer_held(asking *a)
{
    if (!a->held) return TUTTI_OK;
    tutti_model *model = tutti_stepper_model(a->run->stepper);
    TUTTI_TRY(tutti_model_evaluate(model, a->held, a->samples, NULL));
    for (int i = 0; i < a->held; i++)
        TUTTI_TRY(tutti_answers_add(a->answers, a->names[i], 0, answer_of(a->run, i)));
    a->held = 0;
    return TUTTI_OK;
}

/* Answers come in the order of the files. */
static tutti_status miss(asking *a, const char *file)
{
    char why[512];
    snprintf(why, sizeof why, "%s", tutti_message());
    TUTTI_TRY(answer_held(a));
    a->missed++;
    tutti_error(&a->run->log, "%s", why);
    (void)tutti_fail(TUTTI_DATA, "%s", why);
    return tutti_answers_miss(a->answers, file, 0);
}

static tutti_status ask_picture(asking *a, const char *file)
{
    const size_t stride = tutti_data_stride(a->run->data);
    const tutti_status s =
        tutti_reader_fetch_file(a->reader, file, a->samples + (size_t)a->held * stride);
    if (s == TUTTI_DATA || s == TUTTI_IO) return miss(a, file);
    TUTTI_TRY(s);
    a->names[a->held++] = file;
    return a->held == a->batch ? answer_held(a) : TUTTI_OK;
}

static tutti_status ask_file(asking *a, const char *path)
{
    int next = a->pictures.count;
    const tutti_status s = tutti_pictures_below(&a->pictures, path);
    if (s == TUTTI_DATA || s == TUTTI_IO) return miss(a, path);
    TUTTI_TRY(s);
    while (next < a->pictures.count) TUTTI_TRY(ask_picture(a, a->pictures.name[next++]));
    return TUTTI_OK;
}

static bool is_array(const char *name)
{
    const size_t length = strlen(name);
    return length > 4 && !strcmp(name + length - 4, ".npy");
}

static tutti_status ask_files(asking *a, const tutti_question *question)
{
    const size_t batch = (size_t)a->batch, stride = tutti_data_stride(a->run->data);
    if (question->output && tutti_run_target(a->run)->form != TUTTI_TARGET_PIXELS)
        return tutti_fail(TUTTI_ARGUMENT, "--output is for the samples of --data; answers about "
                                          "files are lines (--json)");
    if (question->output && is_array(question->output))
        return tutti_fail(TUTTI_ARGUMENT, "--output %s: masks of files go into a folder",
                          question->output);
    TUTTI_TRY(tutti_reader_create(&a->reader, a->run->data));
    TUTTI_TRY(tutti_alloc(&a->samples, batch * stride, sizeof *a->samples));
    TUTTI_TRY(tutti_alloc(&a->names, batch, sizeof *a->names));
    TUTTI_TRY(tutti_answers_create(&a->answers, a->run, question, 0));
    for (int i = 0; i < question->count; i++) TUTTI_TRY(ask_file(a, question->files[i]));
    return answer_held(a);
}

/* ---- samples ---- */

static tutti_status answer_batch(asking *a, const tutti_batch *batch)
{
    tutti_model *model = tutti_stepper_model(a->run->stepper);
    TUTTI_TRY(tutti_model_evaluate(model, batch->count, batch->samples, NULL));
    for (int i = 0; i < batch->count; i++) {
        const bool is_damaged = batch->labels[i] == TUTTI_LABEL_NONE;
        a->missed += is_damaged;
        TUTTI_TRY(is_damaged
                      ? tutti_answers_miss(a->answers, NULL, batch->ids[i])
                      : tutti_answers_add(a->answers, NULL, batch->ids[i], answer_of(a->run, i)));
    }
    return TUTTI_OK;
}

static tutti_status ask_samples(asking *a, const tutti_question *question)
{
    tutti_loader *loader = NULL;
    tutti_loader_options o = tutti_loader_defaults();
    o.split = TUTTI_SPLIT_TEST;
    o.batch = o.end = a->batch;
    TUTTI_TRY(tutti_loader_create(&loader, a->run->data, &o));
    const int64_t rows = tutti_data_count(a->run->data, TUTTI_SPLIT_TEST);
    tutti_status s = tutti_answers_create(&a->answers, a->run, question, rows);
    for (int64_t i = 0; s == TUTTI_OK && i < tutti_loader_steps(loader); i++) {
        tutti_batch batch;
        s = tutti_loader_next(loader, &batch);
        if (s == TUTTI_OK) s = answer_batch(a, &batch);
    }
    tutti_loader_destroy(&loader);
    return s;
}

/* ---- either ---- */

static tutti_status predict(tutti_run *run, const tutti_question *question)
{
    asking a = {.run = run, .batch = run->settings.batch};
    if (run->me.size > 1)
        return tutti_fail(TUTTI_ARGUMENT, "predict runs on one rank, not under mpirun");
    TUTTI_TRY(tutti_run_load_weights(run));
    tutti_status s = question->count ? ask_files(&a, question) : ask_samples(&a, question);
    const tutti_status closed = tutti_answers_close(&a.answers, s == TUTTI_OK);
    tutti_free(a.samples);
    tutti_free(a.names);
    tutti_names_deinit(&a.pictures);
    tutti_reader_destroy(&a.reader);
    if (s != TUTTI_OK || closed != TUTTI_OK) return s != TUTTI_OK ? s : closed;
    if (!a.missed) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "%lld of those asked about could not be read%s",
                      (long long)a.missed, question->output ? ": their rows are NaN" : "");
}

tutti_status tutti_predict(const tutti_train_options *options, const tutti_question *question)
{
    tutti_run run;
    tutti_train_options asks = *options;
    asks.skip_bad = 1;
    if (!asks.batch_size)
        asks.batch_size = question->count == 1 && !tutti_path_is_dir(question->files[0]) ? 1 : 32;
    if (!question->count && !options->data)
        return tutti_fail(TUTTI_ARGUMENT, "what is asked about is missing: FILES, or --data");
    TUTTI_TRY(tutti_run_open(&run, &asks, TUTTI_RUN_ASKS));
    const tutti_status s = predict(&run, question);
    tutti_run_close(&run);
    return s;
}
