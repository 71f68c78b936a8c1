/* What is printed from the tables: --help and the "run with" line. */
#include <string.h>

#include "values.h"

enum { LEFT_COLUMN = 26 };

static void print_usage(const cli_verb *verb, const char *program, FILE *out)
{
    bool has_options = false;
    fprintf(out, "usage: %s%s", program, verb->name);
    for (const cli_option *o = verb->options; o->name; o++) {
        const char *more = o->type == CLI_REST ? "..." : "";
        if (!cli_is_operand(o)) has_options = true;
        else fprintf(out, o->required ? " %s%s" : " [%s%s]", o->name, more);
    }
    fprintf(out, "%s\n", has_options ? " [options]" : "");
}

/* "-b, --batch-size N" */
static int print_names(const cli_option *o, FILE *out)
{
    char name[CLI_NAME_BYTES];
    const char *last = strrchr(o->name, '|'), *value = cli_value_name(o);
    const bool letter = last && strlen(last) == 2;
    int n = fprintf(out, letter ? "  -%s, " : "  ", letter ? last + 1 : "");
    n += fprintf(out, "%s", cli_called(o, name));
    if (value && !cli_is_operand(o)) n += fprintf(out, " %s", value);
    return n;
}

/* "(1 to 64, default 8, TUTTI_LEGS, also --feet)" */
static void print_facts(const cli_option *o, FILE *out)
{
    const char *separator = " (";
    if (o->min != 0 || o->max != 0) {
        fprintf(out, "%s%.10g to %.10g", separator, o->min, o->max);
        separator = ", ";
    }
    if (o->fallback) {
        fprintf(out, "%sdefault %s", separator, o->fallback);
        separator = ", ";
    }
    if (o->otherwise) {
        fprintf(out, "%sdefault: %s", separator, o->otherwise);
        separator = ", ";
    }
    if (o->env) {
        fprintf(out, "%s$%s", separator, o->env);
        separator = ", ";
    }
    for (const char *name = strchr(o->name, '|'); name; name = strchr(name, '|')) {
        const int n = (int)strcspn(++name, "|");
        if (n == 1) continue;
        fprintf(out, "%salso --%.*s", separator, n, name);
        separator = ", ";
    }
    fputs(separator[0] == ',' ? ")\n" : "\n", out);
}

static void print_option(const cli_option *o, FILE *out)
{
    const int n = print_names(o, out);
    if (n < LEFT_COLUMN) fprintf(out, "%*s", LEFT_COLUMN - n, "");
    else fprintf(out, "\n%*s", LEFT_COLUMN, "");
    fputs(o->help, out);
    print_facts(o, out);
}

bool cli_asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return true;
    return false;
}

void cli_help(const cli_verb *verb, const char *program, FILE *out)
{
    print_usage(verb, program, out);
    fprintf(out, "\n%s\n\n", verb->summary);
    for (const cli_option *o = verb->options; o->name; o++)
        if (cli_is_operand(o)) print_option(o, out);
    for (const cli_option *o = verb->options; o->name; o++)
        if (!cli_is_operand(o)) print_option(o, out);
    fprintf(out, "  -h, --help%*sthis text\n", LEFT_COLUMN - 12, "");
    if (verb->notes) fprintf(out, "\n%s", verb->notes);
}

void cli_run_with(const cli_call *call, FILE *out)
{
    fprintf(out, "run with: tutti %s", call->verb->name);
    for (const cli_option *o = call->verb->options; o->name; o++) {
        char name[CLI_NAME_BYTES];
        if (!cli_is_set(o, call->values)) continue;
        if (!cli_is_operand(o)) fprintf(out, " %s", cli_called(o, name));
        fputc(!cli_is_operand(o) && cli_is_flag(o) ? '=' : ' ', out);
        cli_write(o, call->values, out);
    }
    fputc('\n', out);
}
