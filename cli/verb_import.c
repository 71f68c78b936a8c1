#include "cli.h"

#include <string.h>

#include <tutti/interchange.h>

typedef struct import_options {
    const char *model, *output, *input, *classes, *mean, *std;
    bool operators;
} import_options;

#define AT(field) offsetof(import_options, field)

// clang-format off
static const cli_option options[] = {
    {"MODEL",     CLI_TEXT, AT(model), .help = "a file of ONNX; its weights may be in a second file beside it"},
    {"output|o",  CLI_TEXT, AT(output), .value = "PATH",
     .help = "write PATH.net and PATH.safetensors"},
    {"input",     CLI_TEXT, AT(input), .value = "CxHxW",
     .help = "what a sample looks like, where the file leaves it open"},
    {"classes",   CLI_TEXT, AT(classes), .value = "FILE",
     .help = "the classes, a name a line, in the order of the outputs", .otherwise = "the file's own"},
    {"mean",      CLI_TEXT, AT(mean), .value = "LIST",
     .help = "of each channel, 0.485,0.456,0.406, what is taken from pixels between 0 and 1"},
    {"std",       CLI_TEXT, AT(std), .value = "LIST", .help = "and by what the rest is divided"},
    {"operators", CLI_FLAG, AT(operators), .help = "list the operators that are understood"},
    {.name = NULL},
};
// clang-format on

static int list_operators(void)
{
    tutti_operator_info o;
    printf("%-22s  %-48s %s\n", "operator", "becomes", "as far as");
    for (int i = 0; tutti_import_operator(i, &o); i++)
        printf("%-22s  %-48s %s\n", o.name, o.becomes, *o.limits ? o.limits : "-");
    return fflush(stdout) ? 1 : 0;
}

/* "3x224x224" or "429". */
static bool read_shape(const char *text, tutti_shape *out)
{
    char rest;
    *out = (tutti_shape){0, 1, 1};
    if (sscanf(text, "%dx%dx%d%c", &out->c, &out->h, &out->w, &rest) != 3 &&
        (sscanf(text, "%d%c", &out->c, &rest) != 1))
        return false;
    return out->c > 0 && out->h > 0 && out->w > 0;
}

/* "0.485,0.456,0.406": as far as can be told before the model is known. */
static bool is_list(const char *text)
{
    return !text || (*text && strspn(text, "0123456789.,eE+-") == strlen(text));
}

static int run(const cli_call *call)
{
    const import_options *given = call->values;
    tutti_import_options o = {.model = given->model,
                              .output = given->output,
                              .classes = given->classes,
                              .mean = given->mean,
                              .std = given->std,
                              .log = tutti_log_stderr(TUTTI_LOG_INFO)};
    tutti_import_result result;
    if (given->operators) return list_operators();
    if (!o.model) return cli_misused(call, "MODEL is missing: a file of ONNX");
    if (!o.output) return cli_misused(call, "--output PATH is missing: where the net goes");
    if (given->input && !read_shape(given->input, &o.input))
        return cli_misused(call, "--input: '%s' is neither CxHxW nor a number of features",
                           given->input);
    if (!is_list(o.mean) || !is_list(o.std))
        return cli_misused(call, "--%s: '%s' are no numbers with commas between them",
                           is_list(o.mean) ? "std" : "mean", is_list(o.mean) ? o.std : o.mean);
    const tutti_status s = tutti_import(&o, &result);
    if (s != TUTTI_OK) return cli_failed(call, s);
    printf("%s.net: %d layers; %s.safetensors: %d tensors\n", o.output, result.layers, o.output,
           result.tensors);
    return 0;
}

const cli_verb cli_verb_import = {
    "import",
    "make a net and weights of a model of ONNX",
    options,
    sizeof(import_options),
    run,
    "Examples:\n"
    "  tutti import resnet18.onnx --output mine\n"
    "  tutti train mine.net --weights mine.safetensors --data images:photos\n\n"
    "An operator that Tutti does not have is named, with its node, and nothing is written. With\n"
    "--classes, --mean and --std the weights know what 'tutti predict' asks for.\n",
    NULL,
};
