#include "cli.h"

#include <tutti/train.h>

typedef struct predict_options {
    const char *net, *data, *weights;
    int top, threads;
    cli_list files;
} predict_options;

#define AT(field) offsetof(predict_options, field)

// clang-format off
static const cli_option options[] = {
    {"NET",     CLI_TEXT, AT(net), .required = true,
     .help = "a net of the zoo (tutti info), or a file"},
    {"FILES",   CLI_REST, AT(files), .required = true, .help = "images, JPEG or PNG"},
    {"data|d",  CLI_TEXT, AT(data), .value = "SPEC", .required = true,
     .help = "the data set the net was trained on"},
    {"weights", CLI_TEXT, AT(weights), .value = "FILE", .required = true,
     .help = "a run (its best), a checkpoint, or a safetensors file"},
    {"top",     CLI_INT,  AT(top), 1, 1000, "5", .help = "classes to name for each file"},
    {"threads|t", CLI_INT, AT(threads), 1, 4096, .help = "threads to compute with",
     .otherwise = "OMP_NUM_THREADS, else one per core"},
    {.name = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const predict_options *given = call->values;
    tutti_train_options o = tutti_train_defaults();
    o.net = given->net;
    o.data = given->data;
    o.weights = given->weights;
    o.threads = given->threads;
    o.show = stdout;
    o.log = tutti_log_stderr(TUTTI_LOG_INFO);
    const tutti_status s = tutti_predict(&o, given->files.items, given->files.count, given->top);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_predict = {
    "predict",
    "classify images",
    options,
    sizeof(predict_options),
    run,
    "Example:\n"
    "  tutti predict alexnet --data images:photos --weights runs/a/best/model.safetensors x.jpg\n"};
