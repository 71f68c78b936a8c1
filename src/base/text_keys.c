/* key=value, read by a table. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static tutti_status read_bool(const tutti_text *text, tutti_word value, bool *out)
{
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1", NULL};
    const int place = tutti_word_among(value, words);
    if (place < 0)
        return tutti_text_fail(text, value, "'%.*s' is neither yes nor no", value.length,
                               value.start);
    *out = place % 2;
    return TUTTI_OK;
}

static tutti_status read_pair(const tutti_text *text, const tutti_key *key, tutti_word value,
                              int out[2])
{
    const char *by = memchr(value.start, 'x', (size_t)value.length);
    const int n = by ? (int)(by - value.start) : value.length;
    const tutti_word first = {value.start, n, value.line, value.column};
    TUTTI_TRY(tutti_text_int(text, first, (int)key->min, (int)key->max, &out[0]));
    out[1] = out[0];
    if (!by) return TUTTI_OK;
    const tutti_word second = {by + 1, value.length - n - 1, value.line, value.column + n + 1};
    return tutti_text_int(text, second, (int)key->min, (int)key->max, &out[1]);
}

static tutti_status read_choice(const tutti_text *text, const tutti_key *key, tutti_word value,
                                int *out)
{
    char known[256] = "";
    const int place = tutti_word_among(value, key->choices);
    for (int i = 0; key->choices[i]; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 key->choices[i]);
    if (place < 0)
        return tutti_text_fail(text, value, "'%.*s' is none of %s", value.length, value.start,
                               known);
    *out = place;
    return TUTTI_OK;
}

tutti_status tutti_text_value(const tutti_text *text, const tutti_key *key, tutti_word value,
                              void *fields)
{
    void *field = (char *)fields + key->offset;
    switch (key->type) {
    case TUTTI_KEY_INT: return tutti_text_int(text, value, (int)key->min, (int)key->max, field);
    case TUTTI_KEY_I64:
        return tutti_text_i64(text, value, (int64_t)key->min, (int64_t)key->max, field);
    case TUTTI_KEY_REAL: return tutti_text_real(text, value, key->min, key->max, field);
    case TUTTI_KEY_BOOL: return read_bool(text, value, field);
    case TUTTI_KEY_PAIR: return read_pair(text, key, value, field);
    case TUTTI_KEY_WORD: *(tutti_word *)field = value; return TUTTI_OK;
    case TUTTI_KEY_CHOICE: return read_choice(text, key, value, field);
    case TUTTI_KEY_COUNT:
        if (!tutti_word_is(value, key->choices[0]))
            return tutti_text_int(text, value, (int)key->min, (int)key->max, field);
        *(int *)field = 0;
    }
    return TUTTI_OK;
}

static int place_of_key(const tutti_key *table, tutti_word name)
{
    for (int i = 0; table[i].name; i++)
        if (tutti_word_is(name, table[i].name)) return i;
    return -1;
}

static tutti_status unknown_key(const tutti_text *text, const tutti_key *table, tutti_word name)
{
    char known[384] = "";
    for (; table->name; table++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                 table->name);
    return tutti_text_fail(text, name, "there is no '%.*s' here; possible: %s", name.length,
                           name.start, *known ? known : "nothing");
}

/* One word of the line; 'seen' has a bit per key. */
static tutti_status read_key(const tutti_text *text, const tutti_key *table, tutti_word word,
                             uint64_t *seen, void *fields)
{
    static const char yes[] = "yes";
    tutti_word name = word, value = {NULL, 0, word.line, word.column};
    const bool has_value = tutti_word_split(word, &name, &value);
    const int place = place_of_key(table, name);
    if (place < 0) return unknown_key(text, table, name);
    const tutti_key *key = &table[place];
    if (*seen >> place & 1) return tutti_text_fail(text, name, "'%s' is given twice", key->name);
    *seen |= (uint64_t)1 << place;
    if (!has_value && key->type == TUTTI_KEY_BOOL)
        value = (tutti_word){yes, 3, word.line, word.column};
    else if (!value.length)
        return tutti_text_fail(text, name, "'%s' needs a value: %s=...", key->name, key->name);
    return tutti_text_value(text, key, value, fields);
}

tutti_status tutti_text_keys(tutti_text *text, const tutti_key *table, void *fields)
{
    uint64_t seen = 0;
    while (tutti_text_peek(text).length)
        TUTTI_TRY(read_key(text, table, tutti_text_next(text), &seen, fields));
    for (int i = 0; table[i].name; i++)
        if (table[i].required && !(seen >> i & 1))
            return tutti_text_fail(text, tutti_text_peek(text), "'%s' is missing", table[i].name);
    return TUTTI_OK;
}
