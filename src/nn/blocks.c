#include "nn/blocks.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    LONGEST = 2000,          /* of a line with values, so that values in values stay short */
    LARGEST_FACTOR = 1 << 24 /* of a formula */
};

static bool is_letter(char c, bool first)
{
    return isalpha((unsigned char)c) || (!first && (isdigit((unsigned char)c) || c == '_'));
}

static int parameter_of(const tutti_block *block, tutti_word name)
{
    for (int i = 0; i < block->parameter_count; i++) {
        const tutti_word known = block->parameters[i].name;
        if (known.length == name.length && !memcmp(known.start, name.start, (size_t)name.length))
            return i;
    }
    return -1;
}

/* ---- a block ---- */

static tutti_status check_parameter(const tutti_block *block, const tutti_text *text,
                                    tutti_word name)
{
    bool good = name.length > 0;
    for (int i = 0; i < name.length; i++) good &= is_letter(name.start[i], !i);
    if (!good)
        return tutti_text_fail(text, name,
                               "'%.*s' is no parameter: a letter, then letters, digits and '_'",
                               name.length, name.start);
    if (tutti_word_is(name, "from"))
        return tutti_text_fail(text, name,
                               "'from' says where a block's input comes from: every "
                               "block has it");
    if (parameter_of(block, name) >= 0)
        return tutti_text_fail(text, name, "there is a parameter '%.*s' already", name.length,
                               name.start);
    if (block->parameter_count == TUTTI_BLOCK_PARAMETERS)
        return tutti_text_fail(text, name, "a block has at most %d parameters",
                               TUTTI_BLOCK_PARAMETERS);
    return TUTTI_OK;
}

static tutti_status read_parameters(tutti_block *block, tutti_text *text)
{
    while (tutti_text_peek(text).length) {
        tutti_word name = tutti_text_next(text), value = {0};
        const bool has_value = tutti_word_split(name, &name, &value);
        TUTTI_TRY(check_parameter(block, text, name));
        block->parameters[block->parameter_count].name = name;
        block->parameters[block->parameter_count].value = value;
        block->parameters[block->parameter_count++].has_value = has_value;
    }
    return TUTTI_OK;
}

static tutti_status read_lines(tutti_block *block, tutti_text *text)
{
    while (tutti_text_next_line(text)) {
        const tutti_word first = tutti_text_next(text);
        if (tutti_word_is(first, "end") && !tutti_text_peek(text).length)
            return block->line_count ? TUTTI_OK
                                     : tutti_text_fail(text, first, "block %.*s has no layers",
                                                       block->name.length, block->name.start);
        if (tutti_word_is(first, "block"))
            return tutti_text_fail(text, first,
                                   "a block cannot be made in block %.*s: end that "
                                   "one before, and use it",
                                   block->name.length, block->name.start);
        TUTTI_TRY(
            tutti_grow(&block->lines, &block->line_room, block->line_count, sizeof *block->lines));
        block->lines[block->line_count++] = tutti_text_line(text);
    }
    return tutti_text_fail(text, block->name, "block %.*s has no 'end'", block->name.length,
                           block->name.start);
}

tutti_status tutti_blocks_read(tutti_blocks *blocks, tutti_text *text)
{
    tutti_word name;
    TUTTI_TRY(tutti_text_need(text, &name, "a name, as in 'block bottleneck width stride=1'"));
    const tutti_block *same = tutti_blocks_find(blocks, name);
    if (same)
        return tutti_text_fail(text, name, "there is a block %.*s in line %d already", name.length,
                               name.start, same->name.line);
    TUTTI_TRY(tutti_grow(&blocks->list, &blocks->room, blocks->count, sizeof *blocks->list));
    tutti_block *block = &blocks->list[blocks->count++];
    block->name = name;
    block->head = tutti_text_line(text);
    TUTTI_TRY(read_parameters(block, text));
    return read_lines(block, text);
}

void tutti_blocks_deinit(tutti_blocks *blocks)
{
    for (int i = 0; i < blocks->count; i++) tutti_free(blocks->list[i].lines);
    tutti_free(blocks->list);
    *blocks = (tutti_blocks){0};
}

const tutti_block *tutti_blocks_find(const tutti_blocks *blocks, tutti_word name)
{
    for (int i = 0; i < blocks->count; i++) {
        const tutti_word known = blocks->list[i].name;
        if (known.length == name.length && !memcmp(known.start, name.start, (size_t)name.length))
            return &blocks->list[i];
    }
    return NULL;
}

/* ---- a use ---- */

/* The block's head from its name on, without a comment: how it is used. */
static tutti_word usage(const tutti_block *block)
{
    tutti_word all = block->name;
    const int rest = block->head.length - (all.column - block->head.column);
    const char *comment = memchr(all.start, '#', (size_t)rest);
    all.length = comment ? (int)(comment - all.start) : rest;
    while (all.length && isspace((unsigned char)all.start[all.length - 1])) all.length--;
    return all;
}

/* The place of a bare value: the first parameter that needs one and has none. */
static int next_needed(const tutti_block_use *use, const bool *given)
{
    for (int i = 0; i < use->block->parameter_count; i++)
        if (!use->block->parameters[i].has_value && !given[i]) return i;
    return -1;
}

static tutti_status read_value(tutti_block_use *use, const tutti_text *text, tutti_word word,
                               bool *given)
{
    const tutti_block *block = use->block;
    const tutti_word how = usage(block);
    tutti_word name = word, value = word;
    const bool is_named = tutti_word_split(word, &name, &value);
    if (is_named && tutti_word_is(name, "from") && value.length && !use->from.length) {
        use->from = value;
        return TUTTI_OK;
    }
    const int place = is_named ? parameter_of(block, name) : next_needed(use, given);
    if (place < 0)
        return tutti_text_fail(text, word, "there is no place for '%.*s'; the block is '%.*s'",
                               word.length, word.start, how.length, how.start);
    if (given[place])
        return tutti_text_fail(text, word, "'%.*s' is given twice", name.length, name.start);
    given[place] = true;
    use->values[place] = value;
    return TUTTI_OK;
}

tutti_status tutti_block_use_read(tutti_block_use *out, const tutti_block *block, tutti_text *text)
{
    bool given[TUTTI_BLOCK_PARAMETERS] = {false};
    *out = (tutti_block_use){.block = block};
    for (int i = 0; i < block->parameter_count; i++) out->values[i] = block->parameters[i].value;
    while (tutti_text_peek(text).length)
        TUTTI_TRY(read_value(out, text, tutti_text_next(text), given));
    const int missing = next_needed(out, given);
    if (missing < 0) return TUTTI_OK;
    const tutti_word name = block->parameters[missing].name, how = usage(block);
    return tutti_text_fail(text, tutti_text_peek(text), "'%.*s' is missing; the block is '%.*s'",
                           name.length, name.start, how.length, how.start);
}

/* ---- a line with the values put in ---- */

typedef struct scan {
    const tutti_block_use *use;
    const tutti_text *text;
    tutti_word line;
    int at; /* in the line */
    char out[LONGEST + 1];
    int used;
} scan;

static char peek(const scan *s)
{
    return s->at < s->line.length ? s->line.start[s->at] : 0;
}

static tutti_word word_from(const scan *s, int start)
{
    return (tutti_word){s->line.start + start, s->at - start, s->line.line, start + 1};
}

static tutti_status put(scan *s, const char *text, int length)
{
    if (s->used + length > LONGEST)
        return tutti_text_fail(s->text, s->line,
                               "with its values the line has more than %d "
                               "characters",
                               LONGEST);
    memcpy(s->out + s->used, text, (size_t)length);
    s->used += length;
    return TUTTI_OK;
}

/* "$width" or "4". */
static tutti_status operand(scan *s, tutti_word *out)
{
    const bool is_parameter = peek(s) == '$';
    const int start = s->at += is_parameter;
    while (is_parameter ? is_letter(peek(s), s->at == start) : isdigit((unsigned char)peek(s)))
        s->at++;
    const tutti_word name = word_from(s, start), how = usage(s->use->block);
    const int place = is_parameter ? parameter_of(s->use->block, name) : -1;
    if (is_parameter && place < 0)
        return tutti_text_fail(s->text, name, "there is no parameter '%.*s'; the block is '%.*s'",
                               name.length, name.start, how.length, how.start);
    *out = is_parameter ? s->use->values[place] : name;
    return TUTTI_OK;
}

/* "$width", or "$width*4/$groups": whole numbers, from left to right. */
static tutti_status formula(scan *s)
{
    tutti_word word;
    char digits[24];
    int64_t value;
    TUTTI_TRY(operand(s, &word));
    if (peek(s) != '*' && peek(s) != '/') return put(s, word.start, word.length);
    TUTTI_TRY(tutti_text_i64(s->text, word, 0, LARGEST_FACTOR, &value));
    while (peek(s) == '*' || peek(s) == '/') {
        const bool divides = s->line.start[s->at++] == '/';
        int64_t factor;
        TUTTI_TRY(operand(s, &word));
        TUTTI_TRY(tutti_text_i64(s->text, word, divides, LARGEST_FACTOR, &factor));
        value = divides ? value / factor : value * factor;
        if (value > LARGEST_FACTOR)
            return tutti_text_fail(s->text, word, "that makes more than %d", LARGEST_FACTOR);
    }
    return put(s, digits, snprintf(digits, sizeof digits, "%lld", (long long)value));
}

tutti_status tutti_block_use_line(tutti_text **out, const tutti_block_use *use,
                                  const tutti_text *text, int index)
{
    scan s = {.use = use, .text = text, .line = use->block->lines[index]};
    while (s.at < s.line.length && peek(&s) != '#') {
        if (peek(&s) == '$') TUTTI_TRY(formula(&s));
        else {
            TUTTI_TRY(put(&s, &s.line.start[s.at], 1));
            s.at++;
        }
    }
    return tutti_text_create_line(out, text, s.line.line, s.out);
}
