/* Checkpoints: what is saved is found, what is damaged is named, and ranks write together. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/memory.h"
#include "checkpoint_run.h"

static void a_run_without_checkpoints_has_none(void **state)
{
    const fixture *f = *state;
    assert_int_equal(resumed(f), -1);
    assert_int_equal(shell("mkdir -p @", f->run), 0);
    assert_int_equal(resumed(f), -1);
}

static void what_is_saved_is_found(void **state)
{
    const fixture *f = *state;
    char path[TUTTI_PATH_BYTES], link[1024];
    bool found = false;
    assert_saved(f, 100, false, 0);
    assert_int_equal(resumed(f), 100);
    assert_saved(f, 200, true, 0);
    assert_int_equal(resumed(f), 200);
    assert_int_equal(shell("cd @/latest && sha256sum --quiet -c SHA256SUMS", f->run), 0);
    assert_int_equal(shell("test $(readlink @/best) = step_00000200", f->run), 0);

    snprintf(link, sizeof link, "%s/step_00000100/", f->run);
    assert_int_equal(tutti_checkpoint_find(path, &found, link), TUTTI_OK);
    assert_non_null(strstr(path, "/run/step_00000100"));
    snprintf(link, sizeof link, "%s/best", f->run);
    assert_int_equal(tutti_checkpoint_find(path, &found, link), TUTTI_OK);
    assert_non_null(strstr(path, "/run/step_00000200"));
}

static void a_copy_without_links_is_found(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 9, false, 0);
    assert_saved(f, 123456789, false, 0);
    assert_int_equal(shell("rm @/latest", f->run), 0);
    assert_int_equal(resumed(f), 123456789);
}

/* Begins, and writes and flushes the pieces of all ranks but 'missing'; the last rank first. */
static void write_together(const fixture *f, tutti_checkpoint **c, int ranks, int missing)
{
    for (int r = 0; r < ranks; r++) {
        const char *name = r ? tutti_checkpoint_name(c[0]) : NULL;
        assert_int_equal(begin(f, &c[r], 300, r, ranks, name), TUTTI_OK);
    }
    for (int r = ranks - 1; r >= 0; r--)
        if (r != missing) assert_int_equal(write_all(c[r], 300, r, ranks), TUTTI_OK);
}

static bool is_flushed(tutti_checkpoint *c)
{
    bool all = false;
    assert_int_equal(tutti_checkpoint_is_flushed(c, &all), TUTTI_OK);
    return all;
}

/* Rank 0 finishes what all have written; the others let go of it. */
static tutti_status finish_together(tutti_checkpoint **c, int ranks)
{
    char *text = NULL;
    const tutti_state at = state_at(300);
    const tutti_checkpoint_finish_options o = {.best_step = -1};
    for (int r = ranks - 1; r > 0; r--) tutti_checkpoint_abandon(&c[r]);
    assert_int_equal(tutti_state_text(&text, &at), TUTTI_OK);
    const tutti_status s = tutti_checkpoint_finish(&c[0], text, o);
    assert_null(c[0]);
    tutti_free(text);
    return s;
}

static void ranks_write_together(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 300, false, 0);
    assert_int_equal(shell("cp -r @/step_00000300 @/../alone", f->run), 0);
    for (int ranks = 2; ranks <= 5; ranks++) {
        tutti_checkpoint *c[5] = {NULL};
        assert_int_equal(shell("rm -rf @", f->run), 0);
        write_together(f, c, ranks, -1);
        assert_true(is_flushed(c[0]));
        assert_int_equal(finish_together(c, ranks), TUTTI_OK);
        assert_int_equal(shell("diff -r @/step_00000300 @/../alone", f->run), 0);
    }
}

static void a_rank_that_has_not_flushed_is_waited_for(void **state)
{
    const fixture *f = *state;
    for (int missing = 0; missing < 3; missing++) {
        tutti_checkpoint *c[3] = {NULL};
        write_together(f, c, 3, missing);
        assert_false(is_flushed(c[0]));
        assert_int_equal(write_all(c[missing], 300, missing, 3), TUTTI_OK);
        assert_true(is_flushed(c[0]));
        assert_int_equal(finish_together(c, 3), TUTTI_OK);
    }
}

/* The sums are of what was written: a file that changes before it is hashed makes no checkpoint. */
static void what_was_not_written_is_not_believed(void **state)
{
    const fixture *f = *state;
    static const char *const damage[] = {
        "printf x | dd of=$(ls -d @/step*tmp)/model.safetensors bs=1 seek=200 conv=notrunc",
        "printf x >> $(ls -d @/step*tmp)/model.safetensors",
        "printf x | dd of=$(ls -d @/step*tmp)/optimizer.safetensors bs=1 seek=9 conv=notrunc",
        "truncate -s -4 $(ls -d @/step*tmp)/optimizer.safetensors",
        "cd $(ls -d @/step*tmp); truncate -s -4 model.safetensors; truncate -s +4 model.safe*",
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        tutti_checkpoint *c[2] = {NULL};
        char script[512];
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 299, false, 0);
        write_together(f, c, 2, -1);
        assert_true(is_flushed(c[0]));
        snprintf(script, sizeof script, "( %s ) 2>/dev/null", damage[i]);
        assert_int_equal(shell(script, f->run), 0);
        if (finish_together(c, 2) != TUTTI_IO) fail_msg("%zu: believed", i);
        assert_non_null(strstr(tutti_message(), i == 3 ? "too early" : "what was written"));
        assert_int_equal(resumed(f), 299);
        assert_false(exists(f, "step_00000300"));
    }
}

/* Who writes alone hashes what it has in memory: what the disk did is seen by whoever reads. */
static void the_sums_of_one_rank_are_of_its_memory(void **state)
{
    const fixture *f = *state;
    char path[TUTTI_PATH_BYTES];
    tutti_checkpoint *c = NULL;
    bool found;
    assert_int_equal(begin(f, &c, 300, 0, 1, NULL), TUTTI_OK);
    assert_int_equal(write_all(c, 300, 0, 1), TUTTI_OK);
    assert_int_equal(shell("printf x | dd of=$(ls -d @/step*tmp)/model.safetensors bs=1 seek=300 "
                           "conv=notrunc 2>/dev/null",
                           f->run),
                     0);
    assert_int_equal(finish_together(&c, 1), TUTTI_OK);
    assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
}

/* Two processes at the same step never meet in a directory. */
static void temporary_names_never_meet(void **state)
{
    const fixture *f = *state;
    tutti_checkpoint *a = NULL, *b = NULL;
    assert_int_equal(begin(f, &a, 300, 0, 1, NULL), TUTTI_OK);
    assert_int_equal(begin(f, &b, 300, 0, 1, NULL), TUTTI_OK);
    assert_string_not_equal(tutti_checkpoint_name(a), tutti_checkpoint_name(b));
    assert_int_equal(write_all(a, 300, 0, 1), TUTTI_OK);
    assert_int_equal(write_all(b, 300, 0, 1), TUTTI_OK);
    assert_int_equal(finish_together(&a, 1), TUTTI_OK);
    tutti_checkpoint_abandon(&b);
    assert_int_equal(resumed(f), 300);
}

static void the_state_comes_back(void **state)
{
    const fixture *f = *state;
    char path[1024];
    tutti_state_file *file = NULL;
    assert_saved(f, 5, false, 0);
    snprintf(path, sizeof path, "%s/latest/state.json", f->run);
    assert_int_equal(tutti_state_open(&file, path), TUTTI_OK);
    const tutti_state *s = tutti_state_of(file), want = state_at(5);
    assert_memory_equal(s, &want, offsetof(tutti_state, net));
    assert_string_equal(s->net, "lenet");
    assert_string_equal(s->net_sha256, "0123");
    assert_string_equal(tutti_state_option_value(s, "data"), "a \"b\"\\c");
    assert_null(tutti_state_option_value(s, "nothing"));
    assert_true(tutti_state_metric_value(s, "loss") == 0.1);
    assert_true(signbit(tutti_state_metric_value(s, "minus_zero")));
    assert_true(isnan(tutti_state_metric_value(s, "gone")));
    tutti_state_close(&file);
}

static void bad_states_are_named(void **state)
{
    const fixture *f = *state;
    static const struct {
        const char *script, *part;
    } bad[] = {
        {"sed -i 's/\"format\": 3/\"format\": 1/' @/latest/state.json",
         "by an earlier version (format 1)"},
        {"sed -i 's/\"format\": 3/\"format\": 2/' @/latest/state.json",
         "by an earlier version (format 2)"},
        {"sed -i 's/\"format\": 3/\"format\": 4/' @/latest/state.json", "has format 4"},
        {"sed -i 's/\"step\": 5/\"step\": -5/' @/latest/state.json", "'step' is missing or"},
        {"sed -i 's/\"grains\": 8/\"grains\": 0/' @/latest/state.json", "'grains' is missing or"},
        {"sed -i 's/\"seed\"/\"sead\"/' @/latest/state.json", "'seed' is missing or"},
        {"sed -i 's/\"0.01\"/0.01/' @/latest/state.json", "'lr' is missing or"},
        {"sed -i '$d' @/latest/state.json", "state.json':"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[1024];
        tutti_state_file *file = NULL;
        assert_saved(f, 5, false, 0);
        assert_int_equal(shell(bad[i].script, f->run), 0);
        snprintf(path, sizeof path, "%s/latest/state.json", f->run);
        assert_int_equal(tutti_state_open(&file, path), TUTTI_CHECKPOINT);
        if (!strstr(tutti_message(), bad[i].part)) fail_msg("%zu: %s", i, tutti_message());
        assert_null(file);
    }
}

static void damage_is_named_and_the_one_before_offered(void **state)
{
    const fixture *f = *state;
    static const struct {
        const char *script, *part;
    } damage[] = {
        {"printf x | dd of=@/latest/model.safetensors bs=1 seek=300 conv=notrunc 2>/dev/null",
         "model.safetensors' is not the file that was written"},
        {"truncate -s -4 @/latest/optimizer.safetensors", "optimizer.safetensors' is not the file"},
        {"rm @/latest/state.json", "state.json"},
        {"rm @/latest/SHA256SUMS", "SHA256SUMS"},
        {"sed -i '/state.json/d' @/latest/SHA256SUMS", "has no line for state.json"},
        {"rm -r @/step_00000300", "SHA256SUMS"},
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char path[TUTTI_PATH_BYTES];
        bool found = false;
        assert_int_equal(shell("rm -rf @", f->run), 0);
        for (int64_t step = 100; step <= 300; step += 100) assert_saved(f, step, false, 0);
        assert_int_equal(shell(damage[i].script, f->run), 0);
        assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
        if (!strstr(tutti_message(), damage[i].part) ||
            !strstr(tutti_message(), "run/step_00000200"))
            fail_msg("%zu: %s", i, tutti_message());
        assert_int_equal(shell("rm @/step_00000200/state.json", f->run), 0);
        assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
        assert_non_null(strstr(tutti_message(), "run/step_00000100"));
        assert_int_equal(shell("rm @/step_00000100/state.json", f->run), 0);
        assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
        assert_non_null(strstr(tutti_message(), "holds no older checkpoint that is whole"));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_without_checkpoints_has_none),
        TEST(what_is_saved_is_found),
        TEST(a_copy_without_links_is_found),
        TEST(ranks_write_together),
        TEST(a_rank_that_has_not_flushed_is_waited_for),
        TEST(what_was_not_written_is_not_believed),
        TEST(the_sums_of_one_rank_are_of_its_memory),
        TEST(temporary_names_never_meet),
        TEST(the_state_comes_back),
        TEST(bad_states_are_named),
        TEST(damage_is_named_and_the_one_before_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
