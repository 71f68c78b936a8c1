#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tutti/simulate.h>

typedef struct simulate_options {
    tutti_simulate_options simulate;
    int overlap, priority; /* places in "off|on" */
    const char *jitter;
} simulate_options;

#define AT(field) offsetof(simulate_options, field)
#define TO(field) offsetof(simulate_options, simulate.field)

// clang-format off
static const cli_option options[] = {
    {"NET",          CLI_TEXT, TO(net), .required = true,
     .help = "a net of the zoo (tutti info), or a file"},
    {"nodes|n",      CLI_TEXT, TO(nodes), .value = "N", .fallback = "1..64",
     .help = "64, a list 1,2,4 or a range 1..1024"},
    {"batch-size|b", CLI_INT,  TO(batch_size), 1, 1 << 24,
     .help = "samples per step, all nodes together", .otherwise = "the net's"},
    {"micro-batch",  CLI_INT,  TO(micro_batch), 1, 1 << 24,
     .help = "samples of a node in memory at a time", .otherwise = "all it has of a step"},
    {"precision",    CLI_TEXT, TO(precision), .value = "fp32|bf16",
     .help = "of what layers multiply", .otherwise = "the net's, usually fp32"},
    {"platform",     CLI_TEXT, TO(platform), .value = "NAME", .fallback = "cori-phase1",
     .help = "cori-phase1, endeavor-fdr, aws-c4, ethernet-100g, workstations-1g, here, or a file"},
    {"plan",         CLI_TEXT, TO(plan), .value = "PLAN", .fallback = "auto",
     .help = "auto searches; data, model, or a file"},
    {"overlap",      CLI_CHOICE, AT(overlap), .choices = "off|on", .fallback = "on",
     .help = "communicate while computing"},
    {"priority",     CLI_CHOICE, AT(priority), .choices = "off|on", .fallback = "on",
     .help = "exchange the first layers first"},
    {"jitter",       CLI_TEXT, AT(jitter), .value = "PERCENT", .fallback = "0%",
     .help = "standard deviation of a node's compute time from step to step"},
    {"straggler",    CLI_REAL, TO(straggler), 1, 1000, "1", .value = "FACTOR",
     .help = "let one node compute this many times slower"},
    {"steps",        CLI_INT,  TO(steps), 2, 64,
     .help = "steps to simulate, measured from one backward pass to the next",
     .otherwise = "3, above 64 nodes 2"},
    {"plot",         CLI_TEXT, TO(plot), .value = "FILE.svg", .help = "draw the scaling curve"},
    {"html",         CLI_TEXT, TO(html), .value = "FILE.html", .help = "write a page with all of it"},
    {"trace",        CLI_TEXT, TO(trace), .value = "FILE.json",
     .help = "write what every node did when, on the last number of nodes, for ui.perfetto.dev"},
    {"json",         CLI_FLAG, TO(json), .help = "print JSON"},
    {.name = NULL},
};

static const cli_group groups[] = {
    {"most used", "nodes|batch-size|platform|plan|plot"},
    {"machine", "micro-batch|precision|overlap|priority|jitter|straggler|steps"},
    {"files", "html|trace|json"},
    {.title = NULL},
};
// clang-format on

/* "2%", or "0.02". */
static bool read_jitter(const char *text, double *jitter)
{
    char *end;
    *jitter = strtod(text, &end);
    if (end != text && *end == '%') {
        *jitter /= 100;
        end++;
    }
    return end != text && !*end && *jitter >= 0 && *jitter <= 1;
}

static int run(const cli_call *call)
{
    const simulate_options *given = call->values;
    tutti_simulate_options o = given->simulate;
    o.overlap = given->overlap;
    o.priority = given->priority;
    o.show = stdout;
    o.progress = isatty(STDERR_FILENO) ? stderr : NULL;
    if (!read_jitter(given->jitter, &o.jitter))
        return cli_misused(call, "--jitter: '%s' is not a share from 0%% to 100%%", given->jitter);
    const tutti_status s = tutti_simulate_show(&o);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_simulate = {
    "simulate",
    "simulate a net's training on a cluster you do not have",
    options,
    sizeof(simulate_options),
    run,
    "The trainer's own schedule and communication run on SimGrid; only computing is replaced by\n"
    "the platform's times. Needs libsimgrid-dev when Tutti is built.\n\n"
    "Examples:\n"
    "  tutti simulate vgg-a --nodes 1..128 --batch-size 512 --platform cori-phase1\n"
    "  tutti simulate cd-dnn --nodes 16 --plan data --overlap off --platform endeavor-fdr\n"
    "  tutti simulate vgg-a --nodes 16 --jitter 2% --straggler 1.3 --trace vgg-a.json\n",
    groups,
};
