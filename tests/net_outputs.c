/* net_outputs NET WEIGHTS SAMPLES PROBABILITIES: evaluates a net, for comparisons elsewhere.
 * SAMPLES are floats [n][c][h][w]; PROBABILITIES become floats [n][classes]; of a net that answers
 * for each pixel [n][classes][h][w], of one that answers with values those. */
#include <stdio.h>

#include "base/memory.h"
#include "format/safetensors.h"
#include "nn/model.h"

static tutti_status load_weights(tutti_model *model, const char *path)
{
    const tutti_net *net = tutti_model_net(model);
    tutti_safetensors *file = NULL;
    TUTTI_TRY(tutti_safetensors_open(&file, path));
    tutti_status s = TUTTI_OK;
    for (int i = 0; s == TUTTI_OK && i < net->param_count; i++) {
        const tutti_param *param = &net->params[i];
        const int tensor = tutti_safetensors_find(file, param->name);
        float *values = NULL;
        if (tensor < 0) s = tutti_fail(TUTTI_DATA, "%s: there is no %s", path, param->name);
        if (s == TUTTI_OK) s = tutti_alloc(&values, param->count, sizeof *values);
        if (s == TUTTI_OK)
            s = tutti_safetensors_read(file, tensor, 0, values, (int64_t)param->count);
        if (s == TUTTI_OK) tutti_model_import(model, i, values, tutti_model_parameters(model));
        tutti_free(values);
    }
    tutti_safetensors_close(&file);
    return s;
}

/* One sample, [c][h][w], as models want it. */
static void place_sample(const tutti_net *net, const float *from, float *to)
{
    const tutti_shape in = net->input;
    const bool compact = tutti_net_input_is_compact(net);
    const int pixels = in.h * in.w;
    for (int c = 0; c < in.c; c++)
        for (int p = 0; p < pixels; p++)
            to[compact ? p * in.c + c
                       : (c / TUTTI_BLOCK * pixels + p) * TUTTI_BLOCK + c % TUTTI_BLOCK] =
                from[c * pixels + p];
}

static bool write_answer(const tutti_net *net, const float *answer, FILE *out)
{
    const tutti_target *t = &net->targets[tutti_net_answer(net)];
    const int pixels = t->h * t->w;
    for (int c = 0; c < t->c; c++)
        for (int p = 0; p < pixels; p++) {
            const int at = (c / TUTTI_BLOCK * pixels + p) * TUTTI_BLOCK + c % TUTTI_BLOCK;
            if (fwrite(answer + at, sizeof *answer, 1, out) != 1) return false;
        }
    return true;
}

static tutti_status evaluate(tutti_model *model, FILE *samples, FILE *out)
{
    const tutti_net *net = tutti_model_net(model);
    const size_t count = tutti_shape_count(net->input);
    float *raw = NULL, *placed = NULL;
    tutti_status s = tutti_alloc(&raw, count, sizeof *raw);
    if (s == TUTTI_OK) s = tutti_alloc(&placed, tutti_net_input_floats(net), sizeof *placed);
    while (s == TUTTI_OK && fread(raw, sizeof *raw, count, samples) == count) {
        place_sample(net, raw, placed);
        s = tutti_model_evaluate(model, 1, placed, NULL);
        if (s == TUTTI_OK && !write_answer(net, tutti_model_probabilities(model), out))
            s = tutti_fail(TUTTI_IO, "cannot write the probabilities");
    }
    tutti_free(raw);
    tutti_free(placed);
    return s;
}

static tutti_status run(char **names, FILE *samples, FILE *out)
{
    tutti_net *net = NULL;
    tutti_model *model = NULL;
    tutti_model_options options;
    tutti_status s = tutti_net_load(&net, names[1]);
    if (s == TUTTI_OK) s = tutti_model_defaults(&options, net, 1);
    if (s == TUTTI_OK) {
        options.workers = 1;
        options.forward_only = true;
        s = tutti_model_create(&model, net, &options);
    }
    if (s == TUTTI_OK) s = load_weights(model, names[2]);
    if (s == TUTTI_OK) s = evaluate(model, samples, out);
    tutti_model_destroy(&model);
    tutti_net_destroy(&net);
    return s;
}

int main(int argc, char **argv)
{
    FILE *samples = argc == 5 ? fopen(argv[3], "rb") : NULL;
    FILE *out = samples ? fopen(argv[4], "wb") : NULL;
    if (!out) {
        fprintf(stderr, "usage: net_outputs NET WEIGHTS SAMPLES PROBABILITIES\n");
        return 2;
    }
    const tutti_status s = run(argv, samples, out);
    if (s) fprintf(stderr, "net_outputs: %s\n", tutti_message());
    fclose(samples);
    return fclose(out) || s ? 1 : 0;
}
