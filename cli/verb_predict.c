#include "cli.h"

#include <string.h>
#include <unistd.h>

#include <tutti/train.h>

typedef struct predict_options {
    const char *data, *weights;
    int top, threads;
    cli_list files; /* the first may be a net */
} predict_options;

#define AT(field) offsetof(predict_options, field)

// clang-format off
static const cli_option options[] = {
    {"FILES",   CLI_REST, AT(files), .required = true,
     .help = "images, JPEG or PNG; before them NET, for weights that do not tell theirs"},
    {"data|d",  CLI_TEXT, AT(data), .value = "SPEC",
     .help = "the data set the net was trained on, for weights that do not tell"},
    {"weights", CLI_TEXT, AT(weights), .value = "FILE", .required = true,
     .help = "a run (its best), a checkpoint, or a safetensors file"},
    {"top",     CLI_INT,  AT(top), 1, 1000, "5", .help = "classes to name for each file"},
    {"threads|t", CLI_INT, AT(threads), 1, 4096, .help = "threads to compute with",
     .otherwise = "OMP_NUM_THREADS, else one per core"},
    {.name = NULL},
};
// clang-format on

/* "lenet", "my.net": a name that no picture has. */
static bool names_net(const char *word)
{
    const char *slash = strrchr(word, '/'), *dot = strrchr(slash ? slash + 1 : word, '.');
    if (dot) return !strcmp(dot, ".net");
    return access(word, F_OK) != 0;
}

static int run(const cli_call *call)
{
    const predict_options *given = call->values;
    tutti_train_options o = tutti_train_defaults();
    const bool has_net = names_net(given->files.items[0]);
    const int count = given->files.count - has_net;
    if (!count) return cli_misused(call, "FILES is missing: images, JPEG or PNG");
    if (has_net) o.net = given->files.items[0];
    o.data = given->data;
    o.weights = given->weights;
    o.threads = given->threads;
    o.show = stdout;
    o.log = tutti_log_stderr(TUTTI_LOG_INFO);
    const tutti_status s = tutti_predict(&o, given->files.items + has_net, count, given->top);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_predict = {
    "predict",
    "classify images",
    options,
    sizeof(predict_options),
    run,
    "Examples:\n"
    "  tutti predict --weights runs/flowers x.jpg\n"
    "  tutti predict alexnet --data images:photos --weights from-elsewhere.safetensors x.jpg\n"};
