/* What is printed from the tables: --help and the "run with" line. */
#include <stdarg.h>
#include <string.h>

#include "values.h"

enum { LEFT_COLUMN = 26, WIDTH = 96, TEXT_BYTES = 1024 };

/* What is said about an option, before it is broken into lines. */
typedef struct text {
    char bytes[TEXT_BYTES];
    int length;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int room = TEXT_BYTES - t->length;
    const int n = vsnprintf(t->bytes + t->length, (size_t)room, format, arguments);
    t->length += n < room ? n : room - 1;
    va_end(arguments);
}

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
static void add_facts(const cli_option *o, text *t)
{
    const char *separator = " (";
    if (o->min != 0 || o->max != 0) {
        add(t, "%s%.10g to %.10g", separator, o->min, o->max);
        separator = ", ";
    }
    if (o->fallback) {
        add(t, "%sdefault %s", separator, o->fallback);
        separator = ", ";
    }
    if (o->otherwise) {
        add(t, "%sdefault: %s", separator, o->otherwise);
        separator = ", ";
    }
    if (o->env) {
        add(t, "%s$%s", separator, o->env);
        separator = ", ";
    }
    for (const char *name = strchr(o->name, '|'); name; name = strchr(name, '|')) {
        const int n = (int)strcspn(++name, "|");
        if (n == 1) continue;
        add(t, "%salso --%.*s", separator, n, name);
        separator = ", ";
    }
    if (separator[0] == ',') add(t, ")");
}

/* Breaks at blanks; the first line begins where the cursor is, at LEFT_COLUMN. */
static void print_wrapped(const char *words, FILE *out)
{
    int column = LEFT_COLUMN;
    for (const char *word = words; *word; word += strspn(word, " ")) {
        const int n = (int)strcspn(word, " ");
        const bool is_first = column == LEFT_COLUMN;
        if (!is_first && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", LEFT_COLUMN, "");
            column = LEFT_COLUMN;
        } else if (!is_first) column += fprintf(out, " ");
        column += fprintf(out, "%.*s", n, word);
        word += n;
    }
    fputc('\n', out);
}

static void print_option(const cli_option *o, FILE *out)
{
    text t = {.length = 0};
    const int n = print_names(o, out);
    if (n < LEFT_COLUMN) fprintf(out, "%*s", LEFT_COLUMN - n, "");
    else fprintf(out, "\n%*s", LEFT_COLUMN, "");
    add(&t, "%s", o->help);
    add_facts(o, &t);
    print_wrapped(t.bytes, out);
}

bool cli_asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return true;
    return false;
}

/* The group that lists an option, NULL for none. */
static const cli_group *group_of(const cli_verb *verb, const cli_option *o)
{
    const int n = (int)strcspn(o->name, "|");
    for (const cli_group *g = verb->groups; g && g->title; g++)
        if (cli_name_place(g->names, o->name, n) >= 0) return g;
    return NULL;
}

/* The options of a group, those of none for NULL; gives how many. */
static int print_group(const cli_verb *verb, const cli_group *group, const char *title, FILE *out)
{
    int printed = 0;
    for (const cli_option *o = verb->options; o->name; o++) {
        if (cli_is_operand(o) || group_of(verb, o) != group) continue;
        if (!printed++ && title) fprintf(out, "\n%s:\n", title);
        print_option(o, out);
    }
    return printed;
}

void cli_help(const cli_verb *verb, const char *program, FILE *out)
{
    print_usage(verb, program, out);
    fprintf(out, "\n%s\n\n", verb->summary);
    for (const cli_option *o = verb->options; o->name; o++)
        if (cli_is_operand(o)) print_option(o, out);
    for (const cli_group *g = verb->groups; g && g->title; g++) print_group(verb, g, g->title, out);
    print_group(verb, NULL, verb->groups ? "more" : NULL, out);
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
