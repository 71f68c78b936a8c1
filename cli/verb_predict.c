#include "cli.h"

#include <string.h>
#include <unistd.h>

#include <tutti/train.h>

typedef struct predict_options {
    const char *data, *weights, *rename, *output, *precision;
    int top, threads, batch_size;
    bool json;
    cli_list files; /* the first may be a net */
} predict_options;

#define AT(field) offsetof(predict_options, field)

// clang-format off
static const cli_option options[] = {
    {"FILES",   CLI_REST, AT(files),
     .help = "images, JPEG or PNG, and folders of them; before them NET, for weights that do not tell theirs"},
    {"data|d",  CLI_TEXT, AT(data), .value = "SPEC",
     .help = "without FILES: the samples, npy:X.npy, kaldi:FEATS, or a data set's test samples; "
             "with FILES: the data set the net was trained on, for weights that do not tell"},
    {"weights", CLI_TEXT, AT(weights), .value = "FILE", .required = true,
     .help = "a run (its best), a checkpoint, or a safetensors file"},
    {"rename",  CLI_TEXT, AT(rename), .value = "FILE",
     .help = "what their tensors are called here: lines THEIRS OURS", .otherwise = "found out"},
    {"top",     CLI_INT,  AT(top), 1, 1000, "5", .help = "classes to name for each"},
    {"json",    CLI_FLAG, AT(json), .help = "print a JSON object a line"},
    {"output|o", CLI_TEXT, AT(output), .value = "FILE",
     .help = "write what all outputs say, a row per sample: an array (.npy), or of Kaldi's features "
             "an archive (.ark); of nets that tell the class of each pixel a folder, for masks"},
    {"batch-size|b", CLI_INT, AT(batch_size), 1, 1 << 24, .otherwise = "32",
     .help = "samples computed together"},
    {"precision", CLI_TEXT, AT(precision), .value = "fp32|bf16",
     .help = "of what layers multiply", .otherwise = "that of the training"},
    {"threads|t", CLI_INT, AT(threads), 1, 4096, .help = "threads to compute with",
     .otherwise = "OMP_NUM_THREADS, else one per core"},
    {.name = NULL},
};
// clang-format on

/* "lenet", "my.net": a name that no picture has. */
static bool names_net(const cli_list *files)
{
    if (!files->count) return false;
    const char *word = files->items[0], *slash = strrchr(word, '/');
    const char *dot = strrchr(slash ? slash + 1 : word, '.');
    if (dot) return !strcmp(dot, ".net");
    return access(word, F_OK) != 0;
}

static int run(const cli_call *call)
{
    const predict_options *given = call->values;
    tutti_train_options o = tutti_train_defaults();
    const bool has_net = names_net(&given->files);
    const tutti_question question = {
        .files = given->files.items + has_net,
        .count = given->files.count - has_net,
        .top = given->top,
        .json = given->json,
        .output = given->output,
    };
    if (!question.count && !given->data)
        return cli_misused(call, "FILES is missing: images, JPEG or PNG, or folders of them");
    if (has_net) o.net = given->files.items[0];
    o.data = given->data;
    o.weights = given->weights;
    o.rename = given->rename;
    o.batch_size = given->batch_size;
    o.precision = given->precision;
    o.threads = given->threads;
    o.show = stdout;
    o.log = tutti_log_stderr(TUTTI_LOG_INFO);
    const tutti_status s = tutti_predict(&o, &question);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_predict = {
    "predict",
    "classify images, or the samples of an array",
    options,
    sizeof(predict_options),
    run,
    "Examples:\n"
    "  tutti predict --weights runs/flowers x.jpg more/\n"
    "  tutti predict --weights runs/mine --data npy:X.npy --output P.npy\n"
    "  tutti predict --weights runs/streets photos/ --output masks\n"
    "  tutti predict --weights runs/phones --data kaldi:feats.scp --output posteriors.ark\n"
    "  tutti predict alexnet --data images:photos --weights from-elsewhere.safetensors x.jpg\n\n"
    "What cannot be read is named, the others are answered, and the exit code is 1.\n",
    NULL,
};
