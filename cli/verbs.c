#include "cli.h"

extern const cli_verb cli_verb_doctor, cli_verb_info;

const cli_verb *const cli_verbs[] = {
    &cli_verb_doctor,
    &cli_verb_info,
    NULL,
};
