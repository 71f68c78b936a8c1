#include <tutti/plan.h>

#include "cli.h"

typedef struct calibrate_options {
    cli_list nets;
    int threads;
    double seconds;
    const char *output, *precision;
} calibrate_options;

#define AT(field) offsetof(calibrate_options, field)
// clang-format off
static const cli_option options[] = {
    {"NETS",      CLI_REST, AT(nets), .help = "measure the layers of these nets only; default: all of the zoo"},
    {"threads|t", CLI_INT,  AT(threads), 1, 65536, .help = "threads of each rank, as in training", .otherwise = "OMP_NUM_THREADS, else one per core"},
    {"precision", CLI_TEXT, AT(precision), .value = "fp32|bf16", .help = "bf16: measure layers with and without rounding", .otherwise = "the nets', usually fp32"},
    {"seconds",   CLI_REAL, AT(seconds), 1, 86400, "100", .help = "about how many seconds to measure"},
    {"output|o",  CLI_TEXT, AT(output), .value = "FILE.platform", .help = "write this file instead of platform 'here'"},
    {.name = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const calibrate_options *given = call->values;
    tutti_calibrate_options o = tutti_calibrate_defaults();
    o.nets = given->nets.items;
    o.net_count = given->nets.count;
    o.threads = given->threads;
    o.seconds = given->seconds;
    o.output = given->output;
    o.precision = given->precision;
    o.show = stdout;
    o.log = tutti_log_stderr(TUTTI_LOG_WARNING);
    const tutti_status s = tutti_calibrate(&o);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_calibrate = {
    "calibrate",
    "measure this machine, or under mpirun this cluster, for tutti plan",
    options,
    sizeof(calibrate_options),
    run,
    "The result is kept as $XDG_CACHE_HOME/tutti/here.platform (~/.cache/tutti without that\n"
    "variable), and as here-RxT.platform for R ranks of T threads on a host: 'tutti train'\n"
    "takes the one that fits it, 'tutti plan --platform here' the latest.\n\n"
    "Examples:\n"
    "  tutti calibrate                            one rank with all cores\n"
    "  mpirun -np 16 tutti calibrate              16 ranks and what joins them\n"
    "  tutti calibrate my.net --output my.platform\n",
    NULL,
};
