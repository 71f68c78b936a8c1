#include "cli.h"

#include <tutti/plan.h>

typedef struct plan_options {
    tutti_planner_options plan;
    cli_texts freeze;
    int overlap, priority; /* places in "off|on" */
} plan_options;

#define AT(field) offsetof(plan_options, field)
#define TO(field) offsetof(plan_options, plan.field)

// clang-format off
static const cli_option options[] = {
    {"NET",          CLI_TEXT, TO(net), .required = true,
     .help = "a net of the zoo (tutti info), or a file"},
    {"platform",     CLI_TEXT, TO(platform), .value = "NAME", .fallback = "cori-phase1",
     .help = "here (see tutti calibrate), cori-phase1, endeavor-fdr, aws-c4, ethernet-100g, workstations-1g, or a file"},
    {"nodes|n",      CLI_TEXT, TO(nodes), .value = "N", .fallback = "1..128",
     .help = "64, a list 1,2,4 or a range 1..1024"},
    {"batch-size|b", CLI_INT,  TO(batch_size), 1, 1 << 24,
     .help = "samples per step, all nodes together", .otherwise = "the net's"},
    {"micro-batch",  CLI_INT,  TO(micro_batch), 1, 1 << 24,
     .help = "samples of a node in memory at a time", .otherwise = "all it has of a step"},
    {"precision",    CLI_TEXT, TO(precision), .value = "fp32|bf16",
     .help = "of what layers multiply", .otherwise = "the net's, usually fp32"},
    {"plan",         CLI_TEXT, TO(plan), .value = "PLAN", .fallback = "auto",
     .help = "auto searches; data, model, or a file to predict"},
    {"freeze",       CLI_TEXTS, AT(freeze), .value = "PATTERN,...",
     .help = "layers that are not trained: conv1, 'conv*'"},
    {"overlap",      CLI_CHOICE, AT(overlap), .choices = "off|on", .fallback = "on",
     .help = "communicate while computing"},
    {"priority",     CLI_CHOICE, AT(priority), .choices = "off|on", .fallback = "on",
     .help = "exchange the first layers first"},
    {"samples",      CLI_REAL, TO(samples), 1, 1e12, .help = "samples per epoch",
     .otherwise = "ImageNet's 1,281,167"},
    {"epochs",       CLI_REAL, TO(epochs), 1e-6, 1e6, .help = "epochs of the training",
     .otherwise = "the net's"},
    {"deadline",     CLI_REAL, TO(deadline), 1e-6, 1e9, .value = "HOURS",
     .help = "name the cheapest number of nodes that meets it"},
    {"node-hours|budget", CLI_REAL, TO(node_hours), 1e-6, 1e12, .value = "HOURS",
     .help = "name the fastest number of nodes within it"},
    {"save|plan-out", CLI_TEXT, TO(save), .value = "FILE",
     .help = "write the plan for the last number of nodes, for tutti train --plan"},
    {"plot",         CLI_TEXT, TO(plot), .value = "FILE.svg", .help = "draw the scaling curve"},
    {"html",         CLI_TEXT, TO(html), .value = "FILE.html", .help = "write a page with all of it"},
    {"json",         CLI_FLAG, TO(json), .help = "print JSON"},
    {.name = NULL},
};

static const cli_group groups[] = {
    {"most used", "platform|nodes|batch-size|plan|plot"},
    {"what", "freeze|samples|epochs|deadline|node-hours"},
    {"machine", "micro-batch|precision|overlap|priority"},
    {"files", "save|html|json"},
    {.title = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const plan_options *given = call->values;
    tutti_planner_options o = given->plan;
    o.freeze = given->freeze.joined;
    o.overlap = given->overlap;
    o.priority = given->priority;
    o.show = stdout;
    const tutti_status s = tutti_plan_show(&o);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_plan = {
    "plan",
    "say how a net should be split over nodes, and how fast that will be",
    options,
    sizeof(plan_options),
    run,
    "Examples:\n"
    "  tutti plan vgg-a --nodes 64 --batch-size 256 --platform cori-phase1\n"
    "  tutti plan vgg-a --nodes 1..1024 --batch-size 1024 --plot vgg-a.svg\n"
    "  tutti plan cd-dnn --nodes 16 --platform endeavor-fdr --save cd-dnn.plan\n",
    groups,
};
