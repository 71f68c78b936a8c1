#include "cli.h"

extern const cli_verb cli_verb_calibrate;
extern const cli_verb cli_verb_doctor;
extern const cli_verb cli_verb_export;
extern const cli_verb cli_verb_import;
extern const cli_verb cli_verb_info;
extern const cli_verb cli_verb_plan;
extern const cli_verb cli_verb_predict;
extern const cli_verb cli_verb_report;
extern const cli_verb cli_verb_simulate;
extern const cli_verb cli_verb_status;
extern const cli_verb cli_verb_test;
extern const cli_verb cli_verb_train;
extern const cli_verb cli_verb_watch;

const cli_verb *const cli_verbs[] = {
    &cli_verb_train,     &cli_verb_test,
    &cli_verb_predict,   &cli_verb_status,
    &cli_verb_watch,     &cli_verb_report,
    &cli_verb_plan,      &cli_verb_simulate,
    &cli_verb_calibrate, &cli_verb_info,
    &cli_verb_import,    &cli_verb_export,
    &cli_verb_doctor,    NULL,
};
