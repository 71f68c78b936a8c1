#include "cli.h"

#include <stdlib.h>

#include <tutti/watch.h>

typedef struct report_options {
    cli_list runs;
    const char *output;
} report_options;

#define AT(field) offsetof(report_options, field)

// clang-format off
static const cli_option options[] = {
    {"RUN",    CLI_REST, AT(runs), .required = true, .help = "directories of runs; several are compared"},
    {"output|o", CLI_TEXT, AT(output), .value = "FILE", .help = "the page to write",
     .otherwise = "report.html in the first run"},
    {.name = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const report_options *o = call->values;
    char path[4096];
    if (o->output) snprintf(path, sizeof path, "%s", o->output);
    else snprintf(path, sizeof path, "%s/report.html", o->runs.items[0]);
    const tutti_status s = tutti_report_write(o->runs.items, o->runs.count, path);
    if (s != TUTTI_OK) return cli_failed(call, s);
    printf("%s\n", path);
    return 0;
}

const cli_verb cli_verb_report = {
    "report",
    "write the page of a run, or of several side by side",
    options,
    sizeof(report_options),
    run,
    "Examples:\n"
    "  tutti report runs/lenet                     # runs/lenet/report.html\n"
    "  tutti report runs/a runs/b --output ab.html # compared\n\n"
    "Every run that is kept (tutti train --run) has such a page at its end. It is one file that\n"
    "needs no network: open it in a browser. tutti watch serves the same page, live.\n",
    NULL,
};
