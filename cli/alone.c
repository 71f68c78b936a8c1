#include "cli.h"

#include <stdio.h>

int cli_run_alone(const cli_verb *verb, void *values, int argc, char **argv)
{
    const cli_call call = {verb, values, ""};
    char why[512];
    if (cli_asks_for_help(argc - 1, argv + 1)) {
        cli_help(verb, "", stdout);
        return 0;
    }
    return cli_parse(verb, values, argc - 1, argv + 1, why, sizeof why)
               ? verb->run(&call)
               : cli_misused(&call, "%s", why);
}
