/* Checkpoints: whole or absent, whatever happens while they are written and removed. */
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

static void old_ones_go_but_not_the_best(void **state)
{
    const fixture *f = *state;
    for (int64_t step = 1; step <= 6; step++) assert_saved(f, step, step == 2, 2);
    assert_false(exists(f, "step_00000001"));
    assert_true(exists(f, "step_00000002"));
    assert_false(exists(f, "step_00000003"));
    assert_false(exists(f, "step_00000004"));
    assert_true(exists(f, "step_00000005"));
    assert_true(exists(f, "step_00000006"));
    assert_int_equal(resumed(f), 6);
    /* Back to step 3, say; what lies in the future of that run is left alone. */
    assert_saved(f, 4, false, 1);
    assert_true(exists(f, "step_00000002") && exists(f, "step_00000005"));
    assert_int_equal(resumed(f), 4);
    assert_int_equal(tutti_checkpoint_mend_best(f->run, 3), TUTTI_OK);
    assert_int_equal(shell("test $(readlink @/best) = step_00000002", f->run), 0);
    assert_int_equal(tutti_checkpoint_mend_best(f->run, 4), TUTTI_OK);
    assert_int_equal(shell("test $(readlink @/best) = step_00000004", f->run), 0);
    best_so_far = 4;
    assert_saved(f, 7, false, 1);
    assert_true(exists(f, "step_00000004") && exists(f, "step_00000007"));
    assert_false(exists(f, "step_00000002") || exists(f, "step_00000005"));
}

static void the_beginning_stays(void **state)
{
    const fixture *f = *state;
    for (int64_t step = 0; step <= 4; step++) assert_saved(f, step, false, 1);
    assert_true(exists(f, "step_00000000") && exists(f, "step_00000004"));
    assert_false(exists(f, "step_00000001") || exists(f, "step_00000003"));
}

/* What people put into a checkpoint is theirs, and ends no training. */
static void strangers_files_stay(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 1, false, 1);
    assert_int_equal(shell("mkdir @/step_00000001/mine && echo > @/step_00000001/notes", f->run),
                     0);
    for (int64_t step = 2; step <= 4; step++) assert_saved(f, step, false, 1);
    assert_false(exists(f, "step_00000001") || exists(f, "step_00000003"));
    assert_int_equal(
        shell("test \"$(ls @/step_00000001.rest | tr '\\n' ' ')\" = 'mine notes '", f->run), 0);
    assert_int_equal(warnings, 1);
    assert_int_equal(resumed(f), 4);
    assert_int_equal(shell("echo > @/step_00000004/notes", f->run), 0);
    assert_saved(f, 4, false, 1);
    assert_true(exists(f, "step_00000004.rest/notes"));
    assert_int_equal(warnings, 2);
}

static void the_same_step_is_replaced(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 8, false, 0);
    assert_int_equal(shell("rm @/latest/state.json", f->run), 0);
    assert_saved(f, 8, false, 0);
    assert_int_equal(resumed(f), 8);
    assert_false(exists(f, "step_00000008.tmp") || exists(f, "step_00000008.replaced"));
}

/* A temporary name as the process 'pid' of 'host' would make it. */
static void make_left(const fixture *f, const char *host, int pid, char name[256])
{
    char command[1024];
    snprintf(name, 256, "step_00000007.%s-%d-0a1b2c3d.tmp", host, pid);
    snprintf(command, sizeof command, "mkdir -p @/%s && touch @/%s/rank_0.1.2", name, name);
    assert_int_equal(shell(command, f->run), 0);
}

static void leftovers_of_a_crash_are_removed(void **state)
{
    const fixture *f = *state;
    char here[65] = "", name[4][256];
    const pid_t dead = fork();
    if (dead == 0) _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    gethostname(here, sizeof here - 1);
    assert_int_equal(
        shell("mkdir -p @/step_00000003.tmp && touch @/step_00000003.tmp/state.json && "
              "mkdir @/step_00000004.replaced @/mine.tmp @/step_00000004.rest && "
              "ln -s step_00000003 @/latest.tmp",
              f->run),
        0);
    make_left(f, here, (int)dead, name[0]);
    make_left(f, here, (int)getpid(), name[1]);
    make_left(f, here, (int)getppid(), name[2]);
    make_left(f, "another.host", (int)dead, name[3]);
    assert_saved(f, 5, false, 0);
    assert_false(exists(f, "step_00000003.tmp") || exists(f, "step_00000004.replaced"));
    assert_false(exists(f, "latest.tmp") || exists(f, name[0]) || exists(f, name[1]));
    assert_true(exists(f, "mine.tmp") && exists(f, "step_00000004.rest"));
    assert_true(exists(f, name[2]) && exists(f, name[3])); /* perhaps still at work */
    assert_true(tutti_temporary_is_left(name[3], true));
    assert_false(tutti_temporary_is_left("step_00000005", true));
}

/* Every system call that changes the disk fails in turn: the save says so, and what was there
 * before is whole. A failure after the rename may leave the new one. */
static void any_call_may_fail(void **state)
{
    const fixture *f = *state;
    int faults = 0;
    for (int call = 0;; call++) {
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 1, false, 0);
        assert_saved(f, 2, false, 0);
        calls_left = call;
        const tutti_status s = save(f, 3, true, 1);
        const bool finished = calls_left >= 0;
        calls_left = -1;
        if (finished) break;
        faults++;
        /* an unlink of a link that does not exist may fail */
        const int64_t step = resumed(f);
        assert_true(step == 2 || step == 3);
        if (!s) assert_int_equal(step, 3);
        assert_saved(f, 3, true, 1);
        assert_int_equal(resumed(f), 3);
    }
    assert_true(faults > 25);
}

/* The process dies in each of these calls in turn, also while it replaces a checkpoint. */
static void any_call_may_be_the_last(void **state)
{
    const fixture *f = *state;
    int deaths = 0;
    for (int call = 0;; call++) {
        int status = 0;
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 1, false, 0);
        assert_saved(f, 2, false, 0);
        const pid_t child = fork();
        if (child == 0) {
            calls_left = call;
            fault_kills = true;
            const tutti_status s = call % 2 ? save(f, 2, true, 1) : save(f, 3, true, 1);
            _exit(s ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0) break;
        assert_int_equal(WEXITSTATUS(status), 9);
        deaths++;
        const int64_t step = resumed(f);
        assert_true(step == 2 || step == 3);
        assert_saved(f, 4, false, 0);
        assert_int_equal(resumed(f), 4);
        assert_int_equal(shell("test -z \"$(ls @ | grep -e step.*tmp -e replaced)\"", f->run), 0);
    }
    assert_true(deaths > 25);
}

/* Wherever the process dies, the checkpoint that the latest state calls the best stays, and the
 * link is set right by the next one. */
static void the_best_outlives_any_crash(void **state)
{
    const fixture *f = *state;
    int latest = 0;
    for (int call = 0, status = 0;; call++) {
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 1, true, 0);
        assert_saved(f, 2, false, 0);
        const pid_t child = fork();
        if (child == 0) {
            calls_left = call;
            fault_kills = true;
            _exit(save(f, 3, true, 1) ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WEXITSTATUS(status) == 0) break;
        best_so_far = resumed(f) == 3 ? 3 : 1;
        latest += best_so_far == 3;
        for (int64_t step = 4; step <= 6; step++) assert_saved(f, step, false, 1);
        if (!exists(f, best_so_far == 3 ? "step_00000003" : "step_00000001"))
            fail_msg("killed in call %d: the best checkpoint is gone", call);
        assert_int_equal(tutti_checkpoint_link(f->run, "best"), best_so_far);
    }
    assert_true(latest > 2);
}

static void a_run_that_cannot_be_written_says_why(void **state)
{
    fixture *f = *state;
    assert_int_equal(shell("mkdir -p @ && rmdir @ && touch @", f->run), 0);
    assert_int_equal(save(f, 1, false, 0), TUTTI_IO);
    assert_non_null(strstr(tutti_message(), "cannot create the directory"));
    assert_non_null(strstr(tutti_message(), f->run));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(old_ones_go_but_not_the_best),
        TEST(the_beginning_stays),
        TEST(strangers_files_stay),
        TEST(the_same_step_is_replaced),
        TEST(leftovers_of_a_crash_are_removed),
        TEST(any_call_may_fail),
        TEST(any_call_may_be_the_last),
        TEST(the_best_outlives_any_crash),
        TEST(a_run_that_cannot_be_written_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
