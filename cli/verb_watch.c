#include "cli.h"

#include <tutti/watch.h>

typedef struct watch_options {
    cli_list runs;
    int port;
    const char *bind, *token;
} watch_options;

#define AT(field) offsetof(watch_options, field)

// clang-format off
static const cli_option options[] = {
    {"RUN",   CLI_REST, AT(runs), .required = true, .help = "directories of runs; several are compared"},
    {"port",  CLI_INT,  AT(port), 0, 65535, "8321", .help = "of the page; 0: any that is free"},
    {"bind",  CLI_TEXT, AT(bind), .value = "ADDRESS", .fallback = "127.0.0.1",
     .help = "an address of this machine; others than its own to itself need a token"},
    {"token", CLI_TEXT, AT(token), .value = "WORD", .env = "TUTTI_TOKEN",
     .help = "what a request must have as ?token=", .otherwise = "none here, else made up"},
    {.name = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const watch_options *given = call->values;
    const tutti_watch_options o = {.runs = given->runs.items,
                                   .count = given->runs.count,
                                   .port = given->port,
                                   .bind = given->bind,
                                   .token = given->token,
                                   .show = stdout,
                                   .log = tutti_log_stderr(TUTTI_LOG_INFO)};
    if (o.token && !*o.token) return cli_misused(call, "--token is empty");
    const tutti_status s = tutti_watch(&o);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_watch = {
    "watch",
    "serve the page of a run, live",
    options,
    sizeof(watch_options),
    run,
    "Examples:\n"
    "  tutti watch runs/vgg\n"
    "  tutti watch runs/a runs/b --port 0\n"
    "  ssh -L 8321:127.0.0.1:8321 login1 tutti watch /scratch/runs/vgg\n\n"
    "It only reads the run's files, and costs the run nothing. By itself it can be reached from\n"
    "this machine alone; elsewhere (--bind 0.0.0.0) a token is asked for, which is part of the\n"
    "address that is printed. Prometheus finds /metrics.\n",
    NULL,
};
