#include "cli.h"

#include <string.h>

#include <tutti/interchange.h>

typedef struct export_options {
    const char *what, *weights, *onnx;
} export_options;

#define AT(field) offsetof(export_options, field)

// clang-format off
static const cli_option options[] = {
    {"RUN",     CLI_TEXT, AT(what), .required = true,
     .help = "a run (its best), a checkpoint, or weights that know their net; with --weights the net"},
    {"weights", CLI_TEXT, AT(weights), .value = "FILE",
     .help = "weights of the net that RUN names, which do not know theirs"},
    {"onnx",    CLI_TEXT, AT(onnx), .value = "FILE", .required = true, .help = "the file to write"},
    {.name = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const export_options *given = call->values;
    const tutti_export_options o = {.net = given->weights ? given->what : NULL,
                                    .weights = given->weights ? given->weights : given->what,
                                    .onnx = given->onnx};
    tutti_export_result result;
    const tutti_status s = tutti_export(&o, &result);
    if (s != TUTTI_OK) return cli_failed(call, s);
    printf("%s: %d nodes, %d tensors\n", given->onnx, result.nodes, result.tensors);
    return 0;
}

const cli_verb cli_verb_export = {
    "export",
    "write a trained net as a model of ONNX",
    options,
    sizeof(export_options),
    run,
    "Examples:\n"
    "  tutti export runs/flowers --onnx flowers.onnx\n"
    "  tutti export mine.net --weights mine.safetensors --onnx mine.onnx\n\n"
    "The model computes what evaluation does: its output are the probabilities of the classes,\n"
    "whose names it carries.\n",
    NULL,
};
