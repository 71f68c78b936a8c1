#include "cli.h"

#include <stdio.h>
#include <string.h>

int cli_run_alone(const cli_verb *verb, void *values, int argc, char **argv)
{
    char why[512];
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        cli_help(verb, "", stdout);
        return 0;
    }
    if (!cli_parse(verb, values, argc - 1, argv + 1, why, sizeof why)) {
        fprintf(stderr, "%s: %s\n", verb->name, why);
        return CLI_USAGE_ERROR;
    }
    return verb->run(&(cli_call){verb, values, ""});
}
