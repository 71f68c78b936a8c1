#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"

struct tutti_text {
    char *name, *content;
    const char *line;   /* start of the current line, NULL before the first */
    const char *cursor; /* in the current line */
    int number;         /* of the current line, from 1 */
    bool has_sum;       /* in its first line, and it is right */
};

/* --- opening --- */

tutti_status tutti_text_create(tutti_text **out, const char *name, const char *content)
{
    tutti_text *text = NULL;
    tutti_status s = tutti_alloc(&text, 1, sizeof *text);
    if (s == TUTTI_OK) s = tutti_strdup(&text->name, name);
    if (s == TUTTI_OK) s = tutti_strdup(&text->content, content);
    if (s == TUTTI_OK) *out = text;
    else tutti_text_destroy(&text);
    return s;
}

tutti_status tutti_text_create_line(tutti_text **out, const tutti_text *text, int number,
                                    const char *content)
{
    TUTTI_TRY(tutti_text_create(out, text->name, content));
    (*out)->number = number - 1;
    return TUTTI_OK;
}

void tutti_text_destroy(tutti_text **text)
{
    if (!*text) return;
    tutti_free((*text)->name);
    tutti_free((*text)->content);
    tutti_free(*text);
    *text = NULL;
}

const char *tutti_text_name(const tutti_text *text)
{
    return text->name;
}

const char *tutti_text_content(const tutti_text *text)
{
    return text->content;
}

/* Reads to the end of the file, whatever its size was said to be. */
static tutti_status slurp(FILE *file, const char *path, char **out)
{
    size_t used = 0, capacity = 1 << 14;
    char *content = NULL;
    TUTTI_TRY(tutti_alloc(&content, capacity, 1));
    for (size_t n; (n = fread(content + used, 1, capacity - used - 1, file)) > 0;) {
        used += n;
        if (used + 1 < capacity) continue;
        char *larger = NULL;
        const tutti_status s = tutti_alloc(&larger, capacity *= 2, 1);
        if (s == TUTTI_OK) memcpy(larger, content, used);
        tutti_free(content);
        if (s) return s;
        content = larger;
    }
    *out = content;
    if (ferror(file)) return tutti_fail(TUTTI_IO, "cannot read '%s': %s", path, strerror(errno));
    if (strlen(content) != used)
        return tutti_fail(TUTTI_PARSE, "'%s' is not a text: it holds a zero byte", path);
    return TUTTI_OK;
}

tutti_status tutti_text_open(tutti_text **out, const char *path)
{
    char *content = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return tutti_fail(TUTTI_IO, "cannot open '%s': %s", path, strerror(errno));
    tutti_status s = slurp(file, path, &content);
    if (s == TUTTI_OK) s = tutti_text_create(out, path, content);
    tutti_free(content);
    fclose(file);
    return s;
}

/* --- lines and words --- */

static bool ends_line(char c)
{
    return !c || c == '\n' || c == '#';
}

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r') p++;
    return p;
}

bool tutti_text_next_line(tutti_text *text)
{
    for (;;) {
        if (!text->line) {
            text->line = text->content;
        } else {
            text->line += strcspn(text->line, "\n");
            if (!*text->line) {
                text->cursor = text->line;
                return false;
            }
            text->line++;
        }
        text->number++;
        text->cursor = text->line;
        if (!ends_line(*skip_blanks(text->line))) return true;
    }
}

static const char *end_of_word(const char *p)
{
    for (bool quoted = false; *p && *p != '\n'; p++) {
        if (*p == '"') quoted = !quoted;
        else if (!quoted && (isspace((unsigned char)*p) || *p == '#')) break;
    }
    return p;
}

static tutti_word word_at(const tutti_text *text, const char *start, const char *end)
{
    return (tutti_word){start, (int)(end - start), text->number, 1 + (int)(start - text->line)};
}

/* "a b" without its quotes. */
static tutti_word unquoted(tutti_word word)
{
    if (word.length < 2 || word.start[0] != '"' || word.start[word.length - 1] != '"') return word;
    return (tutti_word){word.start + 1, word.length - 2, word.line, word.column + 1};
}

tutti_word tutti_text_line(const tutti_text *text)
{
    return word_at(text, text->line, text->line + strcspn(text->line, "\n"));
}

void tutti_text_restart_line(tutti_text *text)
{
    text->cursor = text->line;
}

tutti_word tutti_text_peek(const tutti_text *text)
{
    const char *start = skip_blanks(text->cursor);
    return ends_line(*start) ? word_at(text, start, start)
                             : unquoted(word_at(text, start, end_of_word(start)));
}

tutti_word tutti_text_next(tutti_text *text)
{
    const tutti_word word = tutti_text_peek(text);
    const char *start = skip_blanks(text->cursor);
    text->cursor = ends_line(*start) ? start : end_of_word(start);
    return word;
}

tutti_status tutti_text_need(tutti_text *text, tutti_word *out, const char *what)
{
    const tutti_word word = tutti_text_next(text);
    if (!word.length) return tutti_text_fail(text, word, "expected %s", what);
    *out = word;
    return TUTTI_OK;
}

tutti_status tutti_text_end_of_line(tutti_text *text)
{
    const tutti_word word = tutti_text_peek(text);
    if (!word.length) return TUTTI_OK;
    return tutti_text_fail(text, word, "'%.*s' is one word too many", word.length, word.start);
}

tutti_status tutti_text_fail(const tutti_text *text, tutti_word at, const char *format, ...)
{
    enum { WIDEST = 160 };
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);

    const char *line = at.start ? at.start - (at.column - 1) : "";
    int length = (int)strcspn(line, "\r\n");
    if (length > WIDEST) length = WIDEST;
    char caret[WIDEST + 2] = ""; /* under the word; tabs stay tabs so that it lines up */
    const int column = at.column <= WIDEST ? at.column : WIDEST;
    for (int i = 0; i < column - 1; i++) caret[i] = line[i] == '\t' ? '\t' : ' ';
    if (column > 0) caret[column - 1] = '^';
    return tutti_fail(TUTTI_PARSE, "%s:%d:%d: %s\n  %.*s\n  %s", text->name, at.line, at.column,
                      sentence, length, line, caret);
}

/* --- the first line --- */

enum { SUM_DIGITS = 16 };

static tutti_status sum_of(char sum[TUTTI_HASH_HEX], const char *body)
{
    TUTTI_TRY(tutti_hash_bytes(sum, body, strlen(body)));
    sum[SUM_DIGITS] = 0;
    return TUTTI_OK;
}

static tutti_status check_sum(const tutti_text *text, tutti_word sum)
{
    char wanted[TUTTI_HASH_HEX];
    const char *body = text->line + strcspn(text->line, "\n");
    TUTTI_TRY(sum_of(wanted, body + (*body == '\n')));
    if (tutti_word_is(sum, wanted)) return TUTTI_OK;
    return tutti_text_fail(text, sum,
                           "the lines below are not those that were written (their sum is %s); if "
                           "you changed them, take 'sum=...' out of this line",
                           wanted);
}

tutti_status tutti_text_head(tutti_text *text, const char *kind, int newest)
{
    tutti_word is, version, sum = {0};
    const tutti_key keys[] = {{"sum", TUTTI_KEY_WORD, 0, 0, 0, false, NULL}, {.name = NULL}};
    int number;
    TUTTI_TRY(tutti_text_need(text, &is, kind));
    if (!tutti_word_is(is, kind))
        return tutti_text_fail(text, is, "this is a %.*s, not a %s", is.length, is.start, kind);
    TUTTI_TRY(tutti_text_need(text, &version, "the version"));
    TUTTI_TRY(tutti_text_int(text, version, 1, INT_MAX, &number));
    if (number > newest)
        return tutti_text_fail(text, version,
                               "version %d of a %s is for a later tutti: this one "
                               "knows up to %d",
                               number, kind, newest);
    TUTTI_TRY(tutti_text_keys(text, keys, &sum));
    text->has_sum = sum.start != NULL;
    return text->has_sum ? check_sum(text, sum) : TUTTI_OK;
}

tutti_status tutti_text_begin(tutti_text *text, const char *kind, int newest)
{
    const bool is_empty = !tutti_text_next_line(text);
    const tutti_word first = tutti_text_peek(text);
    if (is_empty || !tutti_word_is(first, "tutti"))
        return tutti_text_fail(text, first, "a %s begins with the line 'tutti %s %d'", kind, kind,
                               newest);
    (void)tutti_text_next(text);
    return tutti_text_head(text, kind, newest);
}

bool tutti_text_has_sum(const tutti_text *text)
{
    return text->has_sum;
}

tutti_status tutti_text_with_head(char **out, const char *kind, int version, const char *body)
{
    enum { HEAD = 64 + SUM_DIGITS };
    char sum[TUTTI_HASH_HEX], *text = NULL;
    TUTTI_TRY(sum_of(sum, body));
    const size_t room = HEAD + strlen(kind) + strlen(body);
    TUTTI_TRY(tutti_alloc(&text, room, 1));
    snprintf(text, room, "tutti %s %d sum=%s\n%s", kind, version, sum, body);
    *out = text;
    return TUTTI_OK;
}

/* --- what words say --- */

bool tutti_word_is(tutti_word word, const char *text)
{
    return strlen(text) == (size_t)word.length && !strncmp(word.start, text, (size_t)word.length);
}

int tutti_word_among(tutti_word word, const char *const *list)
{
    for (int i = 0; list[i]; i++)
        if (tutti_word_is(word, list[i])) return i;
    return -1;
}

bool tutti_word_split(tutti_word word, tutti_word *key, tutti_word *value)
{
    const char *equals = memchr(word.start, '=', (size_t)word.length);
    if (!equals) return false;
    const int n = (int)(equals - word.start);
    *key = (tutti_word){word.start, n, word.line, word.column};
    *value =
        unquoted((tutti_word){equals + 1, word.length - n - 1, word.line, word.column + n + 1});
    return true;
}

tutti_status tutti_word_copy(char **out, tutti_word word)
{
    return tutti_strndup(out, word.start, (size_t)word.length);
}

/* A word as a string of its own; a longer one is cut, which no number survives. */
enum { NUMBER_BYTES = 64 };
static const char *terminated(char out[NUMBER_BYTES], tutti_word word)
{
    snprintf(out, NUMBER_BYTES, "%.*s", word.length, word.start);
    return out;
}

tutti_status tutti_text_i64(const tutti_text *text, tutti_word word, int64_t min, int64_t max,
                            int64_t *out)
{
    char digits[NUMBER_BYTES], *end;
    errno = 0;
    const long long value = strtoll(terminated(digits, word), &end, 10);
    if (end == digits || *end || word.length >= NUMBER_BYTES)
        return tutti_text_fail(text, word, "'%.*s' is not a whole number", word.length, word.start);
    if (errno || value < min || value > max)
        return tutti_text_fail(text, word, "%s is not between %lld and %lld", digits,
                               (long long)min, (long long)max);
    *out = value;
    return TUTTI_OK;
}

tutti_status tutti_text_int(const tutti_text *text, tutti_word word, int min, int max, int *out)
{
    int64_t wide = 0;
    TUTTI_TRY(tutti_text_i64(text, word, min, max, &wide));
    *out = (int)wide;
    return TUTTI_OK;
}

static const tutti_measure bare[] = {{"", 1}, {NULL, 0}};

tutti_status tutti_text_real(const tutti_text *text, tutti_word word, double min, double max,
                             double *out)
{
    return tutti_text_quantity(text, word, bare, min, max, out);
}

static tutti_status unknown_unit(const tutti_text *text, tutti_word word,
                                 const tutti_measure *units)
{
    char known[256] = "";
    for (; units->name; units++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                 *units->name ? units->name : "none");
    if (!strcmp(known, "none"))
        return tutti_text_fail(text, word, "'%.*s' is not a number", word.length, word.start);
    return tutti_text_fail(text, word, "'%.*s' is not a number with a unit (%s)", word.length,
                           word.start, known);
}

tutti_status tutti_text_quantity(const tutti_text *text, tutti_word word,
                                 const tutti_measure *units, double min, double max, double *out)
{
    char digits[NUMBER_BYTES], *end;
    double value = strtod(terminated(digits, word), &end);
    const tutti_measure *unit = units;
    while (unit->name && strcmp(unit->name, end)) unit++;
    if (end == digits || !unit->name || word.length >= NUMBER_BYTES || !isfinite(value))
        return unknown_unit(text, word, units);
    value *= unit->factor;
    if (value < min || value > max)
        return tutti_text_fail(text, word, "%.10g is not between %.10g and %.10g", value, min, max);
    *out = value;
    return TUTTI_OK;
}

/* ---- texts by name ---- */

bool tutti_text_find(char *path, size_t size, const char *variable, const char *name,
                     const char *suffix)
{
    const char *dirs = getenv(variable);
    for (; dirs && *dirs; dirs += strspn(dirs, ":")) {
        const size_t length = strcspn(dirs, ":");
        const int n = snprintf(path, size, "%.*s/%s%s", (int)length, dirs, name, suffix);
        if (n > 0 && (size_t)n < size && access(path, R_OK) == 0) return true;
        dirs += length;
    }
    return false;
}

bool tutti_text_is_path(const char *name, const char *suffix)
{
    const char *dot = strrchr(name, '.');
    return strchr(name, '/') || (dot && !strcmp(dot, suffix));
}
