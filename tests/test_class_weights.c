/* Weights of classes: by frequency, and from files, good and bad. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "scratch.h"
#include "train/class_weights.h"

enum { OUTPUTS = 5 };

static tutti_data *open_data(const char *spec)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.shape = (tutti_sample_shape){4, 1, 1};
    assert_int_equal(tutti_data_open(&data, spec, &o), TUTTI_OK);
    return data;
}

static void rare_classes_count_more(void **state)
{
    (void)state;
    tutti_class_weights w;
    tutti_data *data = open_data("synthetic,classes=3,train=8,test=1"); /* 3, 3 and 2 of 8 */
    assert_int_equal(tutti_class_weights_init(&w, "auto", data, OUTPUTS), TUTTI_OK);
    const float want[OUTPUTS] = {(float)(8.0 / 9), (float)(8.0 / 9), (float)(8.0 / 6), 0, 0};
    assert_memory_equal(w.values, want, sizeof want);
    assert_int_equal(strlen(w.hash), TUTTI_HASH_HEX - 1);
    tutti_class_weights_deinit(&w);
    tutti_data_close(&data);
    data = open_data("synthetic,classes=4,train=3,test=1"); /* the last class has none */
    assert_int_equal(tutti_class_weights_init(&w, "auto", data, OUTPUTS), TUTTI_OK);
    const float present[OUTPUTS] = {1, 1, 1, 0, 0};
    assert_memory_equal(w.values, present, sizeof present);
    tutti_class_weights_deinit(&w);
    tutti_data_close(&data);
}

static void without_any_there_is_nothing(void **state)
{
    static const char *const texts[] = {NULL, "", "none"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        tutti_class_weights w;
        assert_int_equal(tutti_class_weights_init(&w, texts[i], NULL, OUTPUTS), TUTTI_OK);
        assert_null(w.values);
        assert_string_equal(w.hash, "none");
    }
}

static tutti_status weights_of(const scratch *s, const char *text, tutti_class_weights *w)
{
    const char *path = scratch_file(s, "weights");
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    tutti_data *data = open_data("synthetic,classes=3,train=8,test=1"); /* called 0, 1 and 2 */
    const tutti_status status = tutti_class_weights_init(w, path, data, OUTPUTS);
    tutti_data_close(&data);
    return status;
}

static void files_say_them_in_order_or_by_name(void **state)
{
    static const char *const good[] = {"0.5\n2\n8\n", "# all\n\n 0.5\r\n2 # two\n\t8",
                                       "2 8\n0 0.5\n1 2e0\n", " 1   2 \n2\t8\n0 .5"};
    const float want[OUTPUTS] = {0.5f, 2, 8, 0, 0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tutti_class_weights w;
        assert_int_equal(weights_of(*state, good[i], &w), TUTTI_OK);
        assert_memory_equal(w.values, want, sizeof want);
        tutti_class_weights_deinit(&w);
    }
}

static void bad_files_are_told_why(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "has no weight for class 0, '0'"},
        {"1\n1\n", "has no weight for class 2, '2'"},
        {"1\n1\n1\n1\n", ":4: there are more weights than classes: '1'"},
        {"1\nx\n1\n", ":2: a weight is a number from 1e-6 to 1e6, not 'x'"},
        {"1\n0\n1\n", "not '0'"},
        {"1\n-1\n1\n", "not '-1'"},
        {"nan\n", "not 'nan'"},
        {"1e7\n", "not '1e7'"},
        {"0 1\n2\n", ":2: all lines have a name, or none has: '2'"},
        {"1\n1 2\n", ":2: all lines have a name, or none has: '1'"},
        {"0 1\n9 1\n", ":2: the data have no class '9'"},
        {"0 1\n0 2\n", ":2: a second weight for '0'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tutti_class_weights w;
        assert_int_equal(weights_of(*state, bad[i].text, &w), TUTTI_PARSE);
        if (!strstr(tutti_message(), bad[i].why)) fail_msg("%s", tutti_message());
        assert_null(w.values);
    }
    tutti_class_weights w;
    assert_int_equal(tutti_class_weights_init(&w, "no/such/file", NULL, OUTPUTS), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "auto, none or a file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rare_classes_count_more),
        cmocka_unit_test(without_any_there_is_nothing),
        SCRATCH_TEST(files_say_them_in_order_or_by_name),
        SCRATCH_TEST(bad_files_are_told_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
