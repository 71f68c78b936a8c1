#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tutti/watch.h>

typedef struct status_options {
    const char *run;
    bool json;
} status_options;

#define AT(field) offsetof(status_options, field)

// clang-format off
static const cli_option options[] = {
    {"RUN",  CLI_TEXT, AT(run), .required = true, .help = "the directory of a run"},
    {"json", CLI_FLAG, AT(json), .help = "print one JSON object"},
    {.name = NULL},
};
// clang-format on

/* Can what we print on be expected to show block characters? */
static bool shows_blocks(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    if (!isatty(STDOUT_FILENO)) return false;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value) return strstr(value, "UTF-8") || strstr(value, "utf8");
    }
    return false;
}

static int run(const cli_call *call)
{
    const status_options *o = call->values;
    tutti_run_state state = TUTTI_RUN_DONE;
    const tutti_status s = tutti_run_status(o->run, o->json, shows_blocks(), stdout, &state);
    return s == TUTTI_OK ? tutti_run_state_exit_code(state) : cli_failed(call, s);
}

const cli_verb cli_verb_status = {
    "status",
    "say in one line how a run is doing",
    options,
    sizeof(status_options),
    run,
    "Example:\n"
    "  while tutti status runs/vgg; [ $? = 10 ]; do sleep 60; done\n\n"
    "The exit code is 0 for a run that is done, 10 running, 11 stalled (its process lives, but\n"
    "its files have not changed for a minute, and twenty steps), 12 failed or stopped before its\n"
    "end. It reads the run's files only, and may run anywhere that sees them.\n",
    NULL,
};
