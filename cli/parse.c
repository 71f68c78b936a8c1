/* From a command line and an option table to the verb's struct. */
#include <stdlib.h>
#include <string.h>

#include "values.h"

static const cli_option *find(const cli_verb *verb, const char *word, int length)
{
    for (const cli_option *o = verb->options; o->name; o++)
        if (!cli_is_operand(o) && cli_name_place(o->name, word, length) >= 0) return o;
    return NULL;
}

static bool unknown(const cli_verb *verb, const char *flag, const cli_complaint *c)
{
    char word[CLI_NAME_BYTES];
    const char *bare = flag + strspn(flag, "-");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(bare, "="), bare);
    const char *meant = cli_synonym(word);
    if (meant && find(verb, meant, (int)strlen(meant)))
        return cli_complain(c, "there is no option '%s'; did you mean '--%s'?", flag, meant);
    cli_nearest near = cli_nearest_to(word);
    for (const cli_option *o = verb->options; o->name; o++)
        if (!cli_is_operand(o)) cli_nearest_try(&near, o->name);
    if (!near.best) return cli_complain(c, "there is no option '%s'", flag);
    return cli_complain(c, "there is no option '%s'; did you mean '%s%.*s'?", flag,
                        near.best_length == 1 ? "-" : "--", near.best_length, near.best);
}

static bool set_defaults(const cli_verb *verb, void *values, const cli_complaint *c)
{
    for (const cli_option *o = verb->options; o->name; o++) {
        const char *from_env = o->env ? getenv(o->env) : NULL;
        if (from_env && *from_env) {
            char why[256];
            if (!cli_set(o, from_env, values, &(cli_complaint){why, sizeof why}))
                return cli_complain(c, "environment variable %s: %s", o->env, why);
        } else if (!o->fallback) cli_unset(o, values);
        else if (!cli_set(o, o->fallback, values, c)) return false;
    }
    return true;
}

/* Reads the option at argv[*at], its value there or in the next place. */
static bool parse_flag(const cli_verb *verb, void *values, int argc, char **argv, int *at,
                       const cli_complaint *c)
{
    const char *flag = argv[*at], *word = flag + 1 + (flag[1] == '-');
    const int length = (int)strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;
    const cli_option *o = find(verb, word, length);
    if (o && (length == 1) != (word == flag + 1)) o = NULL; /* -json, --b */

    if (!o && length > 3 && !strncmp(word, "no", 2) && strchr("-_", word[2]) && !value) {
        o = find(verb, word + 3, length - 3);
        if (o && cli_is_flag(o)) return cli_set(o, "no", values, c);
        o = NULL;
    }
    if (!o) return unknown(verb, flag, c);
    if (cli_is_flag(o)) return cli_set(o, value ? value : "yes", values, c);
    if (!value) {
        const bool none = *at + 1 >= argc || !strncmp(argv[*at + 1], "--", 2);
        if (none) return cli_complain(c, "%s needs a value: %s", flag, o->help);
        value = argv[++*at];
    }
    return cli_set(o, value, values, c);
}

static bool place_operands(const cli_verb *verb, void *values, int count, char **words,
                           const cli_complaint *c)
{
    int used = 0;
    for (const cli_option *o = verb->options; o->name && used < count; o++) {
        if (!cli_is_operand(o)) continue;
        if (o->type == CLI_REST) {
            cli_list *list = (cli_list *)((char *)values + o->offset);
            *list = (cli_list){count - used, (const char *const *)words + used};
            used = count;
        } else if (!cli_set(o, words[used++], values, c)) return false;
    }
    return used == count || cli_complain(c, "do not know what to do with '%s'", words[used]);
}

static bool required_are_set(const cli_verb *verb, const void *values, const cli_complaint *c)
{
    char name[CLI_NAME_BYTES];
    for (const cli_option *o = verb->options; o->name; o++)
        if (o->required && !cli_is_set(o, values))
            return cli_complain(c, "%s is missing: %s", cli_called(o, name), o->help);
    return true;
}

bool cli_parse(const cli_verb *verb, void *values, int argc, char **argv, char *why, size_t size)
{
    const cli_complaint c = {why, size};
    int operands = 0;
    bool flags = true;
    memset(values, 0, verb->values_size);
    if (!set_defaults(verb, values, &c)) return false;
    for (int i = 0; i < argc; i++) {
        if (flags && !strcmp(argv[i], "--")) flags = false;
        else if (!flags || argv[i][0] != '-' || !argv[i][1]) argv[operands++] = argv[i];
        else if (!parse_flag(verb, values, argc, argv, &i, &c)) return false;
    }
    return place_operands(verb, values, operands, argv, &c) && required_are_set(verb, values, &c);
}
