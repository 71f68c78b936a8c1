#include "cli.h"

const cli_verb *const cli_verbs[] = {
    NULL,
};
