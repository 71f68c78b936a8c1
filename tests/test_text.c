/* The text parser: words, numbers, tables of keys, and where it says a mistake is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"

static tutti_text *text_of(const char *content)
{
    tutti_text *text = NULL;
    assert_int_equal(tutti_text_create(&text, "mine.net", content), TUTTI_OK);
    return text;
}

#define assert_word(word, want) assert_true(tutti_word_is(word, want))

static void lines_and_words_are_found(void **state)
{
    (void)state;
    tutti_text *t = text_of("# a comment\n\n  one two\tthree # rest\r\n\t\n\"a b\" k=\"c d\"x#y");
    assert_true(tutti_text_next_line(t));
    assert_word(tutti_text_peek(t), "one");
    assert_word(tutti_text_next(t), "one");
    const tutti_word two = tutti_text_next(t);
    assert_word(two, "two");
    assert_int_equal(two.line, 3);
    assert_int_equal(two.column, 7);
    assert_word(tutti_text_next(t), "three");
    assert_int_equal(tutti_text_next(t).length, 0);
    assert_int_equal(tutti_text_end_of_line(t), TUTTI_OK);
    assert_true(tutti_text_next_line(t));
    assert_word(tutti_text_next(t), "a b");
    assert_word(tutti_text_next(t), "k=\"c d\"x");
    assert_false(tutti_text_next_line(t));
    assert_false(tutti_text_next_line(t));
    tutti_text_destroy(&t);
    assert_null(t);
}

static void an_empty_text_has_no_line(void **state)
{
    (void)state;
    const char *const empty[] = {"", "\n", "# only\n  # comments", " \t\r\n"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        tutti_text *t = text_of(empty[i]);
        assert_false(tutti_text_next_line(t));
        tutti_text_destroy(&t);
    }
}

typedef struct layer {
    int k, kernel[2];
    int64_t bytes;
    double ratio;
    bool relu, bias;
    tutti_word pool;
} layer;

static const tutti_key keys[] = {
    {"k", TUTTI_KEY_INT, offsetof(layer, k), 1, 4096, true, NULL},
    {"kernel", TUTTI_KEY_PAIR, offsetof(layer, kernel), 1, 99, false, NULL},
    {"bytes", TUTTI_KEY_I64, offsetof(layer, bytes), 0, 1e15, false, NULL},
    {"ratio", TUTTI_KEY_REAL, offsetof(layer, ratio), 0, 1, false, NULL},
    {"relu", TUTTI_KEY_BOOL, offsetof(layer, relu), 0, 0, false, NULL},
    {"bias", TUTTI_KEY_BOOL, offsetof(layer, bias), 0, 0, false, NULL},
    {"pool", TUTTI_KEY_WORD, offsetof(layer, pool), 0, 0, false, NULL},
    {NULL, TUTTI_KEY_INT, 0, 0, 0, false, NULL},
};

static tutti_status read_layer(layer *out, const char *line)
{
    tutti_text *t = text_of(line);
    assert_true(tutti_text_next_line(t));
    tutti_text_next(t);
    const tutti_status s = tutti_text_keys(t, keys, out);
    tutti_text_destroy(&t);
    return s;
}

static void keys_are_read_by_their_table(void **state)
{
    (void)state;
    layer l = {.bias = true, .ratio = 0.5};
    assert_int_equal(read_layer(&l, "conv k=64 kernel=3x5 bytes=123456789012 relu bias=no"), 0);
    assert_int_equal(l.k, 64);
    assert_int_equal(l.kernel[0], 3);
    assert_int_equal(l.kernel[1], 5);
    assert_int_equal(l.bytes, 123456789012);
    assert_true(l.relu && !l.bias && l.ratio == 0.5);
    assert_int_equal(read_layer(&l, "conv k=1 kernel=7 ratio=0.25"), 0);
    assert_int_equal(l.kernel[1], 7);
    assert_true(l.ratio == 0.25);
}

static void mistakes_name_their_place_and_show_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"\n conv k=0", "mine.net:2:9: 0 is not between 1 and 4096\n   conv k=0\n          ^"},
        {"conv k=6.5", "mine.net:1:8: '6.5' is not a whole number\n  conv k=6.5\n         ^"},
        {"\tconv k=x # c",
         "mine.net:1:9: 'x' is not a whole number\n  \tconv k=x # c\n  \t       ^"},
        {"conv", "mine.net:1:5: 'k' is missing\n  conv\n      ^"},
        {"conv k", "mine.net:1:6: 'k' needs a value: k=...\n  conv k\n       ^"},
        {"conv k=", "mine.net:1:6: 'k' needs a value: k=...\n  conv k=\n       ^"},
        {"conv k=1 k=2", "mine.net:1:10: 'k' is given twice\n  conv k=1 k=2\n           ^"},
        {"conv k=1 kernel=3x", "mine.net:1:19: '' is not a whole number\n"
                               "  conv k=1 kernel=3x\n                    ^"},
        {"conv k=1 ratio=1e999", "mine.net:1:16: '1e999' is not a number\n"
                                 "  conv k=1 ratio=1e999\n                 ^"},
        {"conv k=1 relu=perhaps", "mine.net:1:15: 'perhaps' is neither yes nor no\n"
                                  "  conv k=1 relu=perhaps\n                ^"},
        {"conv kk=1", "mine.net:1:6: there is no 'kk' here; possible: k, kernel, bytes, ratio, "
                      "relu, bias, pool\n  conv kk=1\n       ^"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layer l = {0};
        assert_int_equal(read_layer(&l, cases[i].line), TUTTI_PARSE);
        assert_string_equal(tutti_message(), cases[i].message);
    }
}

static void quantities_have_units(void **state)
{
    (void)state;
    static const tutti_measure seconds[] = {
        {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1}, {NULL, 0}};
    double x = 0;
    tutti_text *t = text_of("5us 2s 3 4min -1s");
    assert_true(tutti_text_next_line(t));
    assert_int_equal(tutti_text_quantity(t, tutti_text_next(t), seconds, 0, 10, &x), TUTTI_OK);
    assert_true(x > 4.99e-6 && x < 5.01e-6);
    assert_int_equal(tutti_text_quantity(t, tutti_text_next(t), seconds, 0, 10, &x), TUTTI_OK);
    assert_true(x == 2);
    assert_int_equal(tutti_text_quantity(t, tutti_text_next(t), seconds, 0, 10, &x), TUTTI_OK);
    assert_int_equal(tutti_text_quantity(t, tutti_text_next(t), seconds, 0, 10, &x), TUTTI_PARSE);
    assert_non_null(
        strstr(tutti_message(), "'4min' is not a number with a unit (us, ms, s, none)"));
    assert_int_equal(tutti_text_quantity(t, tutti_text_next(t), seconds, 0, 10, &x), TUTTI_PARSE);
    assert_non_null(strstr(tutti_message(), "-1 is not between 0 and 10"));
    tutti_text_destroy(&t);
}

static void files_are_read_whole_or_refused(void **state)
{
    (void)state;
    tutti_text *t = NULL;
    assert_int_equal(tutti_text_open(&t, "/nowhere/at.all"), TUTTI_IO);
    assert_string_equal(tutti_message(),
                        "cannot open '/nowhere/at.all': No such file or directory");
    assert_int_equal(tutti_text_open(&t, "/"), TUTTI_IO);
    assert_null(t);

    char path[] = "/tmp/tutti-text-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "wb");
    for (int i = 0; i < 20000; i++) fprintf(file, "line %d\n", i);
    fclose(file);
    assert_int_equal(tutti_text_open(&t, path), TUTTI_OK);
    int lines = 0;
    while (tutti_text_next_line(t)) lines++;
    assert_int_equal(lines, 20000);
    tutti_text_destroy(&t);

    file = fopen(path, "wb");
    fwrite("a\0b", 1, 3, file);
    fclose(file);
    assert_int_equal(tutti_text_open(&t, path), TUTTI_PARSE);
    unlink(path);
}

static void reals_are_short_and_come_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},       {0, "0"},       {1000000, "1000000"}, {1e15, "1e+15"},
        {0.0005, "0.0005"}, {-2.5, "-2.5"}, {1e-9, "1e-09"},      {1.0 / 3, "0.3333333333333333"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TUTTI_REAL_TEXT];
        assert_string_equal(tutti_text_of_real(text, cases[i].value), cases[i].text);
        assert_true(strtod(text, NULL) == cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_are_short_and_come_back),
        cmocka_unit_test(lines_and_words_are_found),
        cmocka_unit_test(an_empty_text_has_no_line),
        cmocka_unit_test(keys_are_read_by_their_table),
        cmocka_unit_test(mistakes_name_their_place_and_show_the_line),
        cmocka_unit_test(quantities_have_units),
        cmocka_unit_test(files_are_read_whole_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
