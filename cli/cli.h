/* The frame of the program: verbs in one table, options in one table per verb.
 *
 * To add a verb 'fly', write cli/verb_fly.c:
 *
 *     typedef struct fly_options {        // one field per option, of the type its row names
 *         const char *where;
 *         int wings;
 *         double height;
 *         bool json;
 *     } fly_options;
 *
 *     #define AT(field) offsetof(fly_options, field)
 *     static const cli_option options[] = {
 *         {"WHERE",        CLI_TEXT, AT(where),  .required = true, .help = "the place to fly to"},
 *         {"wings|n",      CLI_INT,  AT(wings),  1, 1e6, "2", .help = "wings to use"},
 *         {"height",       CLI_REAL, AT(height), 0, 1e5, .value = "M", .help = "metres"},
 *         {"json",         CLI_FLAG, AT(json),   .help = "print JSON"},
 *         {.name = NULL},
 *     };
 *
 *     static int run(const cli_call *call)
 *     {
 *         const fly_options *o = call->values;
 *         if (o->height > 0 && o->wings < 2) return cli_misused(call, "two wings are needed");
 *         const tutti_status s = tutti_fly(o->where, o->wings);
 *         return s == TUTTI_OK ? 0 : cli_failed(call, s);
 *     }
 *
 *     const cli_verb cli_verb_fly = {"fly", "fly somewhere", options, sizeof(fly_options), run,
 *         "Examples:\n  tutti fly home --wings 2\n", NULL};
 *
 * then add the file to cli/meson.build and the row to cli/verbs.c. Parsing, ranges, defaults,
 * --help, the suggestion for a misspelt name and the "run with" line all come from the table. */
#ifndef TUTTI_CLI_H
#define TUTTI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <tutti/tutti.h>

enum { CLI_USAGE_ERROR = 2 }; /* exit code */

typedef enum cli_type {
    CLI_FLAG,   /* bool: --json, --no-json, --json=no */
    CLI_SWITCH, /* int: a flag whose field is 'unset' where it is not given, else 0 or 1 */
    CLI_INT,    /* int */
    CLI_U64,    /* uint64_t */
    CLI_REAL,   /* double */
    CLI_TEXT,   /* const char *, from the command line or the environment */
    CLI_TEXTS,  /* cli_texts: a text; given again, one more behind a comma */
    CLI_CHOICE, /* int: the place of the word in 'choices', "auto|data|model" */
    CLI_REST    /* cli_list: all operands that are left; only the last operand can be one */
} cli_type;

typedef struct cli_list {
    int count;
    const char *const *items;
} cli_list;

/* "" where none is given. */
typedef struct cli_texts {
    char joined[512];
} cli_texts;

/* A name in capitals is an operand, given by its place. Else "batch-size|mini-batch-size|b" is
 * --batch-size, also called --mini-batch-size and -b; '_' is as good as '-'. 'fallback' is the
 * default, as the user would write it. Without one the field of an option that is not given is
 * 'unset', zero if the row does not say, and --help shows 'otherwise' as the default: a value that
 * means "not given" lies outside of min and max, so that nobody can type it. Numbers are checked
 * against min and max unless both are 0. Where 'env' names an environment variable, it is read when
 * the option is not given. */
typedef struct cli_option {
    const char *name;
    cli_type type;
    size_t offset;
    double min, max;
    const char *fallback;
    const char *help;
    const char *value; /* what --help calls the value: "FILE"; by default named by the type */
    const char *choices;
    const char *env;
    bool required;
    double unset;          /* of numbers, choices and CLI_SWITCH */
    const char *otherwise; /* "the net's" */
} cli_option;

/* Options that --help shows together, by their first names: "data|augment|shuffle". A table of them
 * ends with a title of NULL; what no group lists is shown behind them, as "more". */
typedef struct cli_group {
    const char *title, *names;
} cli_group;

typedef struct cli_call cli_call;

typedef struct cli_verb {
    const char *name, *summary;
    const cli_option *options;
    size_t values_size;               /* sizeof the struct the options fill */
    int (*run)(const cli_call *call); /* gives the exit code */
    const char *notes;                /* printed after the options by --help; may be NULL */
    const cli_group *groups;          /* NULL: few enough to need none */
} cli_verb;

/* One use of a verb. */
struct cli_call {
    const cli_verb *verb;
    const void *values;
    const char *program; /* what comes before the verb: "tutti " or nothing */
};

/* All verbs; ends with NULL. */
extern const cli_verb *const cli_verbs[];

/* Prints "PROGRAM VERB: sentence" of the library's failure; gives its exit code. */
int cli_failed(const cli_call *call, tutti_status status);

/* The same for a wrong use found by the verb; gives CLI_USAGE_ERROR. */
int cli_misused(const cli_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the command line with every option that has a value, as it could be typed again. */
void cli_run_with(const cli_call *call, FILE *out);

/* --- the frame's own; verbs do not need these --- */

/* Fills the struct at 'values' from the defaults, the environment and argv[0 .. argc-1] (what
 * follows the verb; reordered). Returns false with a sentence in 'why'. */
bool cli_parse(const cli_verb *verb, void *values, int argc, char **argv, char *why, size_t size);

/* The whole of a program that has one verb: its help, its mistakes, its run. */
int cli_run_alone(const cli_verb *verb, void *values, int argc, char **argv);

/* Whether --help or -h is among the words. */
bool cli_asks_for_help(int argc, char **argv);

/* The text of --help; 'program' comes before the verb: "tutti " or nothing. */
void cli_help(const cli_verb *verb, const char *program, FILE *out);

/* The name nearest to a misspelt word, NULL when none is near. "a|b" counts as two names, a and b;
 * 'best' points to the start of the nearest, which goes up to '|' or the end. */
typedef struct cli_nearest {
    const char *word;
    const char *best;
    int best_length, distance;
} cli_nearest;

cli_nearest cli_nearest_to(const char *word);
void cli_nearest_try(cli_nearest *search, const char *names);

/* What others' option is called here: "lr" for "learning-rate"; NULL for other words. */
const char *cli_synonym(const char *word);

#endif
