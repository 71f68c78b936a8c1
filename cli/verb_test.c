#include "cli.h"

#include <tutti/train.h>

#define TO(field) offsetof(tutti_train_options, field)

// clang-format off
static const cli_option options[] = {
    {"NET",          CLI_TEXT, TO(net),
     .help = "a net of the zoo (tutti info), or a file; weights that Tutti wrote know theirs"},
    {"data|d",       CLI_TEXT, TO(data), .value = "SPEC", .required = true,
     .help = "the data set; its test samples are used"},
    {"weights",      CLI_TEXT, TO(weights), .value = "FILE", .required = true,
     .help = "a run (its best), a checkpoint, or a safetensors file"},
    {"rename",       CLI_TEXT, TO(rename), .value = "FILE",
     .help = "what their tensors are called here: lines THEIRS OURS", .otherwise = "found out"},
    {"batch-size|b", CLI_INT,  TO(batch_size), 1, 1 << 24, "256",
     .help = "samples computed together"},
    {"precision",    CLI_TEXT, TO(precision), .value = "fp32|bf16",
     .help = "of what layers multiply", .otherwise = "that of the training"},
    {"json",         CLI_FLAG, TO(json),
     .help = "print one JSON object: figures of every class, and the confusions"},
    {"skip-bad",     CLI_SWITCH, TO(skip_bad),
     .help = "leave damaged samples out instead of stopping"},
    {"threads|omp-num-threads|t", CLI_INT, TO(threads), 1, 4096,
     .help = "threads of each rank", .otherwise = "OMP_NUM_THREADS, else one per core"},
    {.name = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const tutti_train_options *given = call->values;
    tutti_train_options o = tutti_train_defaults();
    tutti_train_result result;
    o.net = given->net;
    o.data = given->data;
    o.weights = given->weights;
    o.rename = given->rename;
    o.batch_size = given->batch_size;
    o.precision = given->precision;
    o.skip_bad = given->skip_bad;
    o.threads = given->threads;
    o.json = given->json;
    o.show = stdout;
    o.log = tutti_log_stderr(TUTTI_LOG_INFO);
    const tutti_status s = tutti_test(&o, &result);
    if (s == TUTTI_OK) return 0;
    return result.was_said ? tutti_status_exit_code(s) : cli_failed(call, s);
}

const cli_verb cli_verb_test = {
    "test",
    "evaluate a trained net",
    options,
    sizeof(tutti_train_options),
    run,
    "Example:\n"
    "  tutti test --data fashion-mnist --weights runs/lenet\n\n"
    "It shows which class is taken for which, and of each class the precision (of those taken for\n"
    "it, how many are of it), the recall (of those of it, how many are taken for it), F1 and the\n"
    "number of samples; of more than 20 classes the most confused, and the worst.\n\n"
    "Weights that Tutti wrote know their net, their classes and their normalisation: classes are\n"
    "matched by name, whatever their order, and a class that they do not know is refused.\n",
    NULL,
};
