/* What parsing and printing of options share; not for verbs. */
#ifndef TUTTI_CLI_VALUES_H
#define TUTTI_CLI_VALUES_H

#include "cli.h"

/* Where the sentence about what is wrong goes. */
typedef struct cli_complaint {
    char *text;
    size_t size;
} cli_complaint;

/* Keeps the sentence; always false. */
bool cli_complain(const cli_complaint *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool cli_is_operand(const cli_option *option);
bool cli_is_flag(const cli_option *option); /* needs no value */

/* The place of 'word' in "a|b|c", -1 if it is not there. '_' is as good as '-'. */
int cli_name_place(const char *names, const char *word, int length);

/* "--batch-size", "-b", "MODEL": what messages call an option. */
enum { CLI_NAME_BYTES = 64 };
const char *cli_called(const cli_option *option, char out[CLI_NAME_BYTES]);

/* What --help calls the value, NULL for a flag. */
const char *cli_value_name(const cli_option *option);

size_t cli_field_size(const cli_option *option);

/* Reads the word into the option's field of 'values'. */
bool cli_set(const cli_option *option, const char *word, void *values, const cli_complaint *c);

/* The field as it is where the option is not given. */
void cli_unset(const cli_option *option, void *values);

/* Does it hold anything: a text, a list, a number that was given or has a default? */
bool cli_is_set(const cli_option *option, const void *values);

/* Writes the field as the user would. */
void cli_write(const cli_option *option, const void *values, FILE *out);

#endif
