/* One reader and one writer per type of option. */
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool cli_complain(const cli_complaint *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->text, c->size, format, args);
    va_end(args);
    return false;
}

bool cli_is_operand(const cli_option *option)
{
    return isupper((unsigned char)option->name[0]);
}

bool cli_is_flag(const cli_option *option)
{
    return option->type == CLI_FLAG || option->type == CLI_SWITCH;
}

static bool same_name(const char *name, int n, const char *word, int length)
{
    if (n != length) return false;
    for (int i = 0; i < n; i++)
        if (name[i] != (word[i] == '_' ? '-' : word[i])) return false;
    return true;
}

static int first_name(const char *names)
{
    return (int)strcspn(names, "|");
}

int cli_name_place(const char *names, const char *word, int length)
{
    for (int place = 0;; place++) {
        const int n = first_name(names);
        if (same_name(names, n, word, length)) return place;
        if (!names[n]) return -1;
        names += n + 1;
    }
}

const char *cli_called(const cli_option *option, char out[CLI_NAME_BYTES])
{
    const int n = first_name(option->name);
    const char *dashes = cli_is_operand(option) ? "" : n == 1 ? "-" : "--";
    snprintf(out, CLI_NAME_BYTES, "%s%.*s", dashes, n, option->name);
    return out;
}

static bool in_range(const cli_option *o, double x, const char *word, const cli_complaint *c)
{
    if ((o->min == 0 && o->max == 0) || (x >= o->min && x <= o->max)) return true;
    return cli_complain(c, "%s is not between %.10g and %.10g", word, o->min, o->max);
}

static bool read_flag(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    static const char words[] = "no|yes|false|true|0|1|off|on";
    (void)o;
    const int place = cli_name_place(words, word, (int)strlen(word));
    if (place < 0) return cli_complain(c, "'%s' is neither yes nor no", word);
    *(bool *)field = place % 2;
    return true;
}

static bool read_switch(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    bool on = false;
    if (!read_flag(o, word, &on, c)) return false;
    *(int *)field = on;
    return true;
}

static bool read_int(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    char *end;
    errno = 0;
    const long x = strtol(word, &end, 10);
    if (end == word || *end || isspace((unsigned char)*word))
        return cli_complain(c, "'%s' is not a whole number", word);
    if (errno || x > INT_MAX || x < INT_MIN) return cli_complain(c, "%s is too large", word);
    *(int *)field = (int)x;
    return in_range(o, (double)x, word, c);
}

static bool read_u64(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    char *end;
    errno = 0;
    const unsigned long long x = strtoull(word, &end, 0);
    if (!isdigit((unsigned char)*word) || *end)
        return cli_complain(c, "'%s' is not a whole number from 0", word);
    if (errno) return cli_complain(c, "%s is too large", word);
    *(uint64_t *)field = x;
    return in_range(o, (double)x, word, c);
}

static bool read_real(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    char *end;
    const double x = strtod(word, &end);
    if (end == word || *end || isspace((unsigned char)*word) || !isfinite(x))
        return cli_complain(c, "'%s' is not a number", word);
    *(double *)field = x;
    return in_range(o, x, word, c);
}

static bool read_text(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    (void)o;
    if (!*word) return cli_complain(c, "the value is empty");
    *(const char **)field = word;
    return true;
}

static bool read_texts(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    cli_texts *texts = field;
    const size_t used = strlen(texts->joined), room = sizeof texts->joined - used;
    (void)o;
    if (!*word) return cli_complain(c, "the value is empty");
    const int needs = snprintf(texts->joined + used, room, "%s%s", used ? "," : "", word);
    return needs < (int)room || cli_complain(c, "'%.20s...' is longer than %zu characters in all",
                                             texts->joined, sizeof texts->joined - 1);
}

static bool read_choice(const cli_option *o, const char *word, void *field, const cli_complaint *c)
{
    const int place = cli_name_place(o->choices, word, (int)strlen(word));
    if (place < 0) return cli_complain(c, "'%s' is not one of %s", word, o->choices);
    *(int *)field = place;
    return true;
}

static void write_flag(const cli_option *o, const void *field, FILE *out)
{
    (void)o;
    fputs(*(const bool *)field ? "yes" : "no", out);
}

static void write_switch(const cli_option *o, const void *field, FILE *out)
{
    (void)o;
    fputs(*(const int *)field ? "yes" : "no", out);
}

static void write_int(const cli_option *o, const void *field, FILE *out)
{
    (void)o;
    fprintf(out, "%d", *(const int *)field);
}

static void write_u64(const cli_option *o, const void *field, FILE *out)
{
    (void)o;
    fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)field);
}

static void write_real(const cli_option *o, const void *field, FILE *out)
{
    (void)o;
    fprintf(out, "%.10g", *(const double *)field);
}

/* In quotes where the shell would take it apart. */
static void write_word(const char *word, FILE *out)
{
    if (!word[strcspn(word, " \t\n\"'\\$`*?[](){}<>|&;~#!")]) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'') fputs("'\\''", out);
        else fputc(*word, out);
    fputc('\'', out);
}

static void write_text(const cli_option *o, const void *field, FILE *out)
{
    (void)o;
    write_word(*(const char *const *)field, out);
}

static void write_texts(const cli_option *o, const void *field, FILE *out)
{
    (void)o;
    write_word(((const cli_texts *)field)->joined, out);
}

static void write_choice(const cli_option *o, const void *field, FILE *out)
{
    const char *choice = o->choices;
    for (int place = *(const int *)field; place; place--) choice = strchr(choice, '|') + 1;
    fprintf(out, "%.*s", first_name(choice), choice);
}

static void write_rest(const cli_option *o, const void *field, FILE *out)
{
    const cli_list *list = field;
    (void)o;
    for (int i = 0; i < list->count; i++) {
        if (i) fputc(' ', out);
        write_word(list->items[i], out);
    }
}

static const struct {
    const char *value;
    bool (*read)(const cli_option *, const char *, void *, const cli_complaint *);
    void (*write)(const cli_option *, const void *, FILE *);
    size_t size;
} types[] = {
    [CLI_FLAG] = {NULL, read_flag, write_flag, sizeof(bool)},
    [CLI_SWITCH] = {NULL, read_switch, write_switch, sizeof(int)},
    [CLI_INT] = {"N", read_int, write_int, sizeof(int)},
    [CLI_U64] = {"N", read_u64, write_u64, sizeof(uint64_t)},
    [CLI_REAL] = {"X", read_real, write_real, sizeof(double)},
    [CLI_TEXT] = {"TEXT", read_text, write_text, sizeof(char *)},
    [CLI_TEXTS] = {"TEXT", read_texts, write_texts, sizeof(cli_texts)},
    [CLI_CHOICE] = {NULL, read_choice, write_choice, sizeof(int)},
    [CLI_REST] = {NULL, NULL, write_rest, sizeof(cli_list)},
};

const char *cli_value_name(const cli_option *option)
{
    if (option->value) return option->value;
    return option->type == CLI_CHOICE ? option->choices : types[option->type].value;
}

size_t cli_field_size(const cli_option *option)
{
    return types[option->type].size;
}

bool cli_set(const cli_option *option, const char *word, void *values, const cli_complaint *c)
{
    char why[256], name[CLI_NAME_BYTES];
    const cli_complaint inner = {why, sizeof why};
    if (types[option->type].read(option, word, (char *)values + option->offset, &inner))
        return true;
    return cli_complain(c, "%s: %s", cli_called(option, name), why);
}

void cli_unset(const cli_option *option, void *values)
{
    void *field = (char *)values + option->offset;
    switch (option->type) {
    case CLI_SWITCH:
    case CLI_INT:
    case CLI_CHOICE: *(int *)field = (int)option->unset; break;
    case CLI_U64: *(uint64_t *)field = (uint64_t)(int64_t)option->unset; break;
    case CLI_REAL: *(double *)field = option->unset; break;
    case CLI_FLAG:
    case CLI_TEXT:
    case CLI_TEXTS:
    case CLI_REST: memset(field, 0, types[option->type].size); break;
    }
}

bool cli_is_set(const cli_option *option, const void *values)
{
    const void *field = (const char *)values + option->offset;
    switch (option->type) {
    case CLI_TEXT: return *(const char *const *)field != NULL;
    case CLI_TEXTS: return *((const cli_texts *)field)->joined;
    case CLI_REST: return ((const cli_list *)field)->count > 0;
    case CLI_SWITCH:
    case CLI_INT:
    case CLI_CHOICE: return option->fallback || *(const int *)field != (int)option->unset;
    case CLI_U64:
        return option->fallback || *(const uint64_t *)field != (uint64_t)(int64_t)option->unset;
    case CLI_REAL: return option->fallback || *(const double *)field != option->unset;
    case CLI_FLAG: break;
    }
    return true;
}

void cli_write(const cli_option *option, const void *values, FILE *out)
{
    types[option->type].write(option, (const char *)values + option->offset, out);
}
