/* Small texts that people write: nets, platforms, plans. A text consists of lines, a line of words
 * between blanks; '#' starts a comment; a word in "double quotes" (or the value of key="...") may
 * hold blanks. Every complaint names the place and shows the line:
 *
 *     nets/mine.net:7:21: 0 is not between 1 and 1024
 *       conv c1 k=64 stride=0
 *                          ^
 *
 * A reader looks like this:
 *
 *     while (tutti_text_next_line(text)) {
 *         tutti_word kind, name;
 *         TUTTI_TRY(tutti_text_need(text, &kind, "the kind of layer"));
 *         TUTTI_TRY(tutti_text_need(text, &name, "the layer's name"));
 *         if (!tutti_word_is(kind, "conv")) return tutti_text_fail(text, kind, "...");
 *         TUTTI_TRY(tutti_text_keys(text, conv_keys, &conv));
 *     } */
#ifndef TUTTI_BASE_TEXT_H
#define TUTTI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

typedef struct tutti_text tutti_text;

/* A part of a line; valid as long as its text. 'length' 0 means there was none. */
typedef struct tutti_word {
    const char *start;
    int length;
    int line, column; /* from 1 */
} tutti_word;

/* Reads the file at 'path' (TUTTI_IO if it cannot), or copies 'content', which messages call
 * 'name'. The text is the caller's, to be given to tutti_text_destroy. */
tutti_status tutti_text_open(tutti_text **out, const char *path) TUTTI_MUST_CHECK;
tutti_status tutti_text_create(tutti_text **out, const char *name,
                               const char *content) TUTTI_MUST_CHECK;
void tutti_text_destroy(tutti_text **text);

/* One line that takes the place of line 'number' of 'text': messages call it that. */
tutti_status tutti_text_create_line(tutti_text **out, const tutti_text *text, int number,
                                    const char *content) TUTTI_MUST_CHECK;

/* What messages call it. */
const char *tutti_text_name(const tutti_text *text);

const char *tutti_text_content(const tutti_text *text); /* all of it */

/* The shortest text that is read as 'value' again; integers have no exponent. Returns 'out'. */
enum { TUTTI_REAL_TEXT = 32 };
char *tutti_text_of_real(char out[TUTTI_REAL_TEXT], double value);

/* Looks for the file NAME+suffix in the directories that the environment variable 'variable' lists,
 * separated by colons; stores its path and returns true if there is one. */
bool tutti_text_find(char *path, size_t size, const char *variable, const char *name,
                     const char *suffix);

/* Is 'name' itself a path: does it have a '/' or that suffix? */
bool tutti_text_is_path(const char *name, const char *suffix);

/* --- the first line: what a text is, and in which version ---
 *
 *     tutti plan 1 sum=0123456789abcdef
 *
 * The sum is there when tutti wrote the text: the first 16 digits of the SHA-256 of all bytes below
 * the line. Who edits such a text takes it out. */

/* Goes to the first line, which must say that this is a 'kind' of a version up to 'newest'; what
 * stands below must have the sum, if there is one. Else TUTTI_PARSE. */
tutti_status tutti_text_begin(tutti_text *text, const char *kind, int newest) TUTTI_MUST_CHECK;

/* Reads the rest of such a line, whose first word was "tutti". */
tutti_status tutti_text_head(tutti_text *text, const char *kind, int newest) TUTTI_MUST_CHECK;

/* Did the first line have a sum? */
bool tutti_text_has_sum(const tutti_text *text);

/* Gives 'body' with that line above it, sum included (tutti_free). */
tutti_status tutti_text_with_head(char **out, const char *kind, int version,
                                  const char *body) TUTTI_MUST_CHECK;

/* --- lines --- */

/* Goes to the next line that has a word; false at the end of the text. Starts before the first. */
bool tutti_text_next_line(tutti_text *text);

/* All of the current line, comment included; and back to its first word. */
tutti_word tutti_text_line(const tutti_text *text);
void tutti_text_restart_line(tutti_text *text);

/* The next word of the line; when there is none, it has length 0 and the place after the line.
 * The first form does not move on. */
tutti_word tutti_text_peek(const tutti_text *text);
tutti_word tutti_text_next(tutti_text *text);

/* The next word, or TUTTI_PARSE "expected 'what'". */
tutti_status tutti_text_need(tutti_text *text, tutti_word *out, const char *what) TUTTI_MUST_CHECK;

/* TUTTI_PARSE if the line has words left. */
tutti_status tutti_text_end_of_line(tutti_text *text) TUTTI_MUST_CHECK;

/* TUTTI_PARSE with the place of the word, the sentence and the line. */
tutti_status tutti_text_fail(const tutti_text *text, tutti_word at, const char *format, ...)
    TUTTI_PRINTF(3, 4);

/* --- words --- */

bool tutti_word_is(tutti_word word, const char *text);

/* The place of the word in a list that ends with NULL, -1 if it is not there. */
int tutti_word_among(tutti_word word, const char *const *list);

/* Cuts "key=value" at the first '='; false, and nothing changed, if there is none. */
bool tutti_word_split(tutti_word word, tutti_word *key, tutti_word *value);

/* A copy with a final 0, to be given to tutti_free. */
tutti_status tutti_word_copy(char **out, tutti_word word) TUTTI_MUST_CHECK;

/* The whole word as a number within min and max. */
tutti_status tutti_text_int(const tutti_text *text, tutti_word word, int min, int max,
                            int *out) TUTTI_MUST_CHECK;
tutti_status tutti_text_i64(const tutti_text *text, tutti_word word, int64_t min, int64_t max,
                            int64_t *out) TUTTI_MUST_CHECK;
tutti_status tutti_text_real(const tutti_text *text, tutti_word word, double min, double max,
                             double *out) TUTTI_MUST_CHECK;

/* A number with one of the units of a list that ends with {NULL, 0}, in the unit of factor 1:
 * with {"us", 1e-6}, {"s", 1} the word 5us is 5e-6. A unit "" allows a bare number. */
typedef struct tutti_measure {
    const char *name;
    double factor;
} tutti_measure;
tutti_status tutti_text_quantity(const tutti_text *text, tutti_word word,
                                 const tutti_measure *units, double min, double max,
                                 double *out) TUTTI_MUST_CHECK;

/* --- key=value ... from a table --- */

typedef enum tutti_key_type {
    TUTTI_KEY_INT,    /* int */
    TUTTI_KEY_I64,    /* int64_t */
    TUTTI_KEY_REAL,   /* double */
    TUTTI_KEY_BOOL,   /* bool: yes or no; the bare key means yes */
    TUTTI_KEY_PAIR,   /* int[2]: 3x5; 3 means 3x3 */
    TUTTI_KEY_WORD,   /* tutti_word */
    TUTTI_KEY_CHOICE, /* int: the word's place among 'choices' */
    TUTTI_KEY_COUNT   /* int: a number, or the one word of 'choices', which is 0 */
} tutti_key_type;

typedef struct tutti_key {
    const char *name;
    tutti_key_type type;
    size_t offset;   /* of the field in the caller's struct */
    double min, max; /* for numbers */
    bool required;
    const char *const *choices; /* ends with NULL */
} tutti_key;

/* Reads the word as the key's value into the field at key->offset of 'fields'. */
tutti_status tutti_text_value(const tutti_text *text, const tutti_key *key, tutti_word word,
                              void *fields) TUTTI_MUST_CHECK;

/* Reads all words left on the line as key=value into 'fields', by the table, which ends with a NULL
 * name. Fields whose key is not on the line stay as they are. An unknown key, a repeated key and a
 * missing required key are TUTTI_PARSE. At most 64 keys. */
tutti_status tutti_text_keys(tutti_text *text, const tutti_key *table,
                             void *fields) TUTTI_MUST_CHECK;

#endif
