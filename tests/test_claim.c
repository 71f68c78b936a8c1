/* A run has one owner. fcntl is wrapped, so that a file system may have no locks. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "checkpoint/beat.h"
#include "checkpoint/claim.h"
#include "scratch.h"

/* ---- A file system with or without locks -------------------------------------------------- */

static int lock_error,
    open_file_lock_error; /* 0: there are locks; the latter of F_OFD_SETLK only */

int __real_fcntl64(int fd, int command, void *argument);
int __wrap_fcntl64(int fd, int command, void *argument);
int __wrap_fcntl64(int fd, int command, void *argument)
{
    const bool of_open_file = command == F_OFD_SETLK;
    errno = of_open_file && open_file_lock_error ? open_file_lock_error : lock_error;
    if ((of_open_file || command == F_SETLK) && errno) return -1;
    return __real_fcntl64(fd, command, argument);
}

typedef struct heard {
    int warnings;
    char last[1024];
} heard;

static void hear(void *user, tutti_log_level level, const char *line)
{
    heard *h = user;
    h->warnings += level <= TUTTI_LOG_WARNING;
    snprintf(h->last, sizeof h->last, "%s", line);
}

static int setup(void **state)
{
    lock_error = open_file_lock_error = 0;
    return scratch_set_up(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, scratch_tear_down)

static tutti_claim *claim(const char *run)
{
    tutti_claim *c = NULL;
    if (tutti_claim_open(&c, run, NULL)) fail_msg("%s", tutti_message());
    return c;
}

static void assert_held_by(const char *run, int pid)
{
    char who[32], host[256] = "";
    tutti_claim *c = NULL;
    gethostname(host, sizeof host - 1);
    snprintf(who, sizeof who, "process %d", pid);
    assert_int_equal(tutti_claim_open(&c, run, NULL), TUTTI_IN_USE);
    assert_null(c);
    if (!strstr(tutti_message(), who) || !strstr(tutti_message(), host))
        fail_msg("%s", tutti_message());
}

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static void make(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("x", f);
    fclose(f);
}

/* A child that claims the run and lives until it is killed. */
static pid_t owner(const char *run)
{
    int ends[2];
    char ready = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        tutti_claim *c = NULL;
        if (tutti_claim_open(&c, run, NULL) || write(ends[1], "r", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- Tests -------------------------------------------------------------------------------- */

static void there_is_one_owner(void **state)
{
    const char *run = scratch_file(*state, "a/run"), *lock = scratch_file(*state, "a/run/lock");
    tutti_claim *c = claim(run);
    assert_held_by(run, getpid());
    assert_held_by(run, getpid()); /* having asked changes nothing */
    assert_true(exists(lock));
    tutti_claim_close(&c);
    assert_null(c);
    assert_false(exists(run)); /* the claim made it, and nothing was put there */
    c = claim(run);
    make(scratch_file(*state, "a/run/mine"));
    tutti_claim_close(&c);
    assert_true(exists(run) && !exists(lock));
}

static void a_lock_ends_with_its_owner(void **state)
{
    const char *run = scratch_file(*state, "run");
    const pid_t child = owner(run);
    assert_held_by(run, child);
    end(child);
    assert_true(exists(scratch_file(*state, "run/lock")));
    tutti_claim *c = claim(run);
    assert_held_by(run, getpid());
    tutti_claim_close(&c);
}

static void locks_of_processes_will_do(void **state)
{
    const char *run = scratch_file(*state, "run");
    open_file_lock_error = EINVAL;
    const pid_t child = owner(run);
    assert_held_by(run, child);
    end(child);
    tutti_claim *c = claim(run);
    tutti_claim_close(&c);
}

static void other_failures_are_failures(void **state)
{
    tutti_claim *c = NULL;
    lock_error = EIO;
    assert_int_equal(tutti_claim_open(&c, scratch_file(*state, "run"), NULL), TUTTI_IO);
    assert_non_null(strstr(tutti_message(), "cannot lock"));
}

static void make_old(const char *path)
{
    struct timespec times[2];
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    times[0] = times[1] = info.st_mtim;
    times[0].tv_sec = times[1].tv_sec -= TUTTI_BEAT_YOUNG + 1;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void without_locks_the_age_of_a_file_decides(void **state)
{
    static const int errors[] = {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL};
    const char *run = scratch_file(*state, "run"), *lock = scratch_file(*state, "run/lock");
    heard h = {0};
    const tutti_log log = {.sink = hear, .user = &h, .level = TUTTI_LOG_INFO, .rank = -1};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        tutti_claim *c = NULL;
        lock_error = errors[i];
        h.warnings = 0;
        assert_int_equal(tutti_claim_open(&c, run, &log), TUTTI_OK);
        assert_int_equal(h.warnings, 1);
        assert_non_null(strstr(h.last, "has no locks"));
        assert_held_by(run, getpid());
        tutti_claim_close(&c);
        assert_false(exists(lock));
    }
}

static void a_beat_that_stops_is_no_owner(void **state)
{
    const char *run = scratch_file(*state, "run"), *lock = scratch_file(*state, "run/lock");
    lock_error = ENOLCK;
    const pid_t child = owner(run);
    assert_held_by(run, child);
    end(child);
    assert_held_by(run, child); /* nobody can know yet */
    assert_non_null(strstr(tutti_message(), "if it was killed"));
    make_old(lock);
    tutti_claim *c = claim(run);
    assert_held_by(run, getpid());
    assert_int_equal(tutti_claim_check(c), TUTTI_OK);

    struct stat before, after; /* it is kept young */
    make_old(lock);
    assert_int_equal(stat(lock, &before), 0);
    do {
        usleep(100000);
        assert_int_equal(stat(lock, &after), 0);
    } while (after.st_mtim.tv_sec - before.st_mtim.tv_sec < TUTTI_BEAT_YOUNG);

    make_old(lock); /* as if this process had slept for a while */
    tutti_claim *other = claim(run);
    while (tutti_claim_check(c) == TUTTI_OK) usleep(100000);
    assert_int_equal(tutti_claim_check(c), TUTTI_IN_USE);
    assert_non_null(strstr(tutti_message(), "it took the run over"));
    tutti_claim_close(&c);
    assert_true(exists(lock)); /* not ours to remove */
    tutti_claim_close(&other);
}

static void a_run_is_told_from_other_things(void **state)
{
    const char *run = scratch_file(*state, "run");
    tutti_claim *c = claim(run);
    make(scratch_file(*state, "run/notes.txt"));
    mkdir(scratch_file(*state, "run/step_00000003.tmp"), 0777);
    close(creat(scratch_file(*state, "run/metrics.jsonl"), 0666));
    assert_false(tutti_claim_holds_run(c));
    static const char *const signs[] = {"metrics.jsonl", "state.json"};
    for (int i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", run, signs[i]);
        make(path);
        assert_true(tutti_claim_holds_run(c));
        unlink(path);
        assert_false(tutti_claim_holds_run(c));
    }
    mkdir(scratch_file(*state, "run/step_00000003"), 0777);
    assert_true(tutti_claim_holds_run(c));
    assert_int_equal(symlink("step_00000003", scratch_file(*state, "run/best")), 0);
    mkdir(scratch_file(*state, "running"), 0777);
    assert_true(tutti_claim_has(c, run));
    assert_true(tutti_claim_has(c, scratch_file(*state, "run/best")));
    assert_false(tutti_claim_has(c, scratch_file(*state, "running")));
    assert_false(tutti_claim_has(c, scratch_file(*state, "nowhere")));
    tutti_claim_close(&c);
}

/* With locks and without. */
static void what_is_there_is_moved_away_whole(void **state)
{
    const char *run = scratch_file(*state, "run"), *link = scratch_file(*state, "link");
    assert_int_equal(symlink("run", link), 0);
    for (int i = 0; i < 2; i++) {
        char old[TUTTI_PATH_BYTES];
        lock_error = i ? ENOLCK : 0;
        mkdir(run, 0777);
        tutti_claim *c = claim(i ? link : run);
        make(scratch_file(*state, "run/state.json"));
        assert_int_equal(tutti_claim_old_name(old, c), TUTTI_OK);
        assert_string_equal(strrchr(old, '/'), i ? "/run.old.2" : "/run.old");
        assert_int_equal(tutti_claim_clear(c), TUTTI_OK);
        assert_false(tutti_claim_holds_run(c));
        assert_held_by(run, getpid());
        assert_true(
            exists(scratch_file(*state, i ? "run.old.2/state.json" : "run.old/state.json")));
        assert_false(exists(scratch_file(*state, i ? "run.old.2/lock" : "run.old/lock")));
        tutti_claim_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_is_one_owner),
        TEST(a_lock_ends_with_its_owner),
        TEST(locks_of_processes_will_do),
        TEST(other_failures_are_failures),
        TEST(without_locks_the_age_of_a_file_decides),
        TEST(a_beat_that_stops_is_no_owner),
        TEST(a_run_is_told_from_other_things),
        TEST(what_is_there_is_moved_away_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
