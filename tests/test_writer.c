/* Checkpoints that a thread writes: the same bytes, whole or absent, and its failures come up.
 * fsync is wrapped here, so that it can fail or be kept waiting. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/memory.h"
#include "checkpoint/writer.h"
#include "scratch.h"

enum { MOST_RANKS = 4, STEP = 7, TENSORS = 2, WRITTEN = TUTTI_PART_OPTIMIZER + 1 };

/* ---- fsync ---- */

static atomic_int fsyncs_left = -1; /* until one fails; negative: none does */
static atomic_bool waits;
static sem_t entered, may_go;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    if (atomic_load(&waits)) {
        sem_post(&entered);
        sem_wait(&may_go);
    }
    if (atomic_load(&fsyncs_left) >= 0 && atomic_fetch_sub(&fsyncs_left, 1) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return __real_fsync(fd);
}

/* ---- ranks that write together ---- */

static const tutti_tensor_spec specs[TENSORS] = {
    {.name = "fc1.weight", .dims = 2, .shape = {8, 3}},
    {.name = "fc1.bias", .dims = 1, .shape = {8}},
};

typedef struct team {
    scratch dir;
    char run[512];
    tutti_safetensors_layout *layout;
    int ranks;
    tutti_writer *writer[MOST_RANKS];
    tutti_snapshot *snapshot[MOST_RANKS];
} team;

static void close_ranks(team *t)
{
    for (int r = 0; r < t->ranks; r++) {
        tutti_writer_destroy(&t->writer[r]);
        tutti_snapshot_destroy(&t->snapshot[r]);
    }
    t->ranks = 0;
}

static void open_ranks(team *t, int ranks)
{
    const int counts[TUTTI_PARTS] = {TENSORS, TENSORS, 0};
    close_ranks(t);
    t->ranks = ranks;
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(tutti_writer_create(&t->writer[r], NULL), TUTTI_OK);
        assert_int_equal(tutti_snapshot_create(&t->snapshot[r], counts), TUTTI_OK);
        for (int p = 0; p < WRITTEN; p++)
            for (int i = 0; i < TENSORS; i++) {
                const int64_t n = tutti_tensor_elements(&specs[i]), first = n * r / ranks;
                tutti_snapshot_add(t->snapshot[r], (tutti_checkpoint_part)p, i, first,
                                   n * (r + 1) / ranks - first);
            }
        assert_int_equal(tutti_snapshot_take_memory(t->snapshot[r]), TUTTI_OK);
    }
}

static int setup(void **state)
{
    static team t;
    t = (team){0};
    scratch_open(&t.dir);
    snprintf(t.run, sizeof t.run, "%s/run", t.dir.path);
    sem_init(&entered, 0, 0);
    sem_init(&may_go, 0, 0);
    atomic_store(&fsyncs_left, -1);
    atomic_store(&waits, false);
    *state = &t;
    return tutti_safetensors_layout_create(&t.layout, specs, TENSORS);
}

static int teardown(void **state)
{
    team *t = *state;
    close_ranks(t);
    tutti_safetensors_layout_destroy(&t->layout);
    scratch_close(&t->dir);
    return 0;
}

static void fill(team *t, int r, float value)
{
    for (int p = 0; p < WRITTEN; p++)
        for (int i = 0; i < TENSORS; i++) {
            const int64_t n = tutti_tensor_elements(&specs[i]);
            for (int64_t e = n * r / t->ranks; e < n * (r + 1) / t->ranks; e++)
                *tutti_snapshot_place(t->snapshot[r], (tutti_checkpoint_part)p, i, e) =
                    value + (float)(100 * p + 50 * i + (int)e);
        }
}

/* Starts the checkpoint on the first 'count' ranks. */
static void start(team *t, int64_t step, int count, tutti_checkpoint_finish_options options)
{
    char name[256] = "";
    options.best_step = -1;
    for (int r = 0; r < count; r++) {
        const tutti_checkpoint_spec spec = {t->run, step,     {t->layout, t->layout, NULL},
                                            r,      t->ranks, name};
        tutti_writer_job job = {.snapshot = t->snapshot[r], .options = options, .finishes = !r};
        fill(t, r, (float)step);
        assert_int_equal(tutti_checkpoint_begin(&job.checkpoint, &spec), TUTTI_OK);
        snprintf(name, sizeof name, "%s", tutti_checkpoint_name(job.checkpoint));
        assert_int_equal(tutti_strdup(&job.state, "{}\n"), TUTTI_OK);
        tutti_writer_start(t->writer[r], &job);
    }
}

/* What the ranks agree on: 0 when all of them succeeded. */
static tutti_status wait_all(team *t, int count)
{
    tutti_status flushed = TUTTI_OK, finished = TUTTI_OK;
    char sentence[1024] = "";
    for (int r = 0; r < count; r++) {
        const tutti_status s = tutti_writer_wait_flushed(t->writer[r]);
        if (s == TUTTI_OK || flushed != TUTTI_OK) continue;
        flushed = s;
        snprintf(sentence, sizeof sentence, "%s", tutti_message());
    }
    for (int r = 0; r < count; r++) {
        const tutti_status s = tutti_writer_wait(t->writer[r], flushed == TUTTI_OK);
        if (s != TUTTI_OK && finished == TUTTI_OK) finished = s;
    }
    return flushed != TUTTI_OK ? tutti_fail(flushed, "%s", sentence) : finished;
}

static int shell(const char *format, const char *run)
{
    char command[2048];
    snprintf(command, sizeof command, format, run, run);
    return system(command);
}

static bool exists(const team *t, const char *name)
{
    char path[1024];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", t->run, name);
    return stat(path, &info) == 0;
}

static bool leaves_nothing(const team *t)
{
    return shell("test -z \"$(ls %s | grep tmp)\"", t->run) == 0;
}

/* ---- tests ---- */

static void any_number_of_ranks_writes_the_same_bytes(void **state)
{
    team *t = *state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        open_ranks(t, ranks);
        for (int again = 0; again < 5; again++) {
            start(t, STEP, ranks, (tutti_checkpoint_finish_options){0});
            assert_int_equal(wait_all(t, ranks), TUTTI_OK);
            assert_true(leaves_nothing(t));
        }
        if (ranks == 1) assert_int_equal(shell("cp -r %s/step_00000007 %s/../one", t->run), 0);
        else assert_int_equal(shell("diff -r %s/step_00000007 %s/../one", t->run), 0);
    }
    assert_int_equal(shell("cd %s/latest && sha256sum --quiet -c SHA256SUMS", t->run), 0);
}

/* The writer is in the middle of its work while its owner goes on. */
static void the_owner_goes_on_meanwhile(void **state)
{
    team *t = *state;
    open_ranks(t, 1);
    atomic_store(&waits, true);
    start(t, STEP, 1, (tutti_checkpoint_finish_options){0});
    sem_wait(&entered);
    assert_false(tutti_writer_is_done(t->writer[0]) || exists(t, "latest"));
    atomic_store(&waits, false);
    sem_post(&may_go);
    assert_int_equal(wait_all(t, 1), TUTTI_OK);
    assert_true(tutti_writer_is_done(t->writer[0]) && exists(t, "latest/SHA256SUMS"));
}

/* Each fsync of each number of ranks fails in turn. */
static void a_failure_comes_up_with_its_sentence(void **state)
{
    team *t = *state;
    int failures = 0;
    for (int ranks = 1; ranks <= 3; ranks++) {
        open_ranks(t, ranks);
        for (int call = 0;; call++) {
            shell("rm -rf %s", t->run);
            start(t, 1, ranks, (tutti_checkpoint_finish_options){0});
            assert_int_equal(wait_all(t, ranks), TUTTI_OK);
            atomic_store(&fsyncs_left, call);
            start(t, STEP, ranks, (tutti_checkpoint_finish_options){0});
            const tutti_status s = wait_all(t, ranks);
            const bool failed = atomic_exchange(&fsyncs_left, -1) < 0;
            if (!failed) break;
            failures++;
            assert_int_equal(s, TUTTI_DISK_FULL);
            if (!strstr(tutti_message(), "No space left on device"))
                fail_msg("%s", tutti_message());
            assert_true(exists(t, "latest/SHA256SUMS") && leaves_nothing(t));
            start(t, STEP, ranks, (tutti_checkpoint_finish_options){0});
            assert_int_equal(wait_all(t, ranks), TUTTI_OK);
        }
    }
    assert_true(failures > 15);
}

static void what_can_be_finished_is_finished_at_the_end(void **state)
{
    team *t = *state;
    open_ranks(t, 1);
    start(t, STEP, 1, (tutti_checkpoint_finish_options){0});
    close_ranks(t);
    assert_true(exists(t, "latest/SHA256SUMS") && leaves_nothing(t));
    open_ranks(t, 2);
    start(t, STEP + 1, 1, (tutti_checkpoint_finish_options){0}); /* rank 1 never writes */
    close_ranks(t);
    assert_true(leaves_nothing(t));
    assert_false(exists(t, "step_00000008"));
}

static tutti_status see_nothing_yet(void *user)
{
    const team *t = user;
    if (exists(t, "latest") || exists(t, "step_00000007"))
        return tutti_fail(TUTTI_MISMATCH, "the checkpoint can be seen already");
    return TUTTI_OK;
}

static tutti_status refuse(void *user)
{
    (void)user;
    return tutti_fail(TUTTI_IO, "no metrics");
}

static void what_must_come_before_comes_before(void **state)
{
    team *t = *state;
    open_ranks(t, 2);
    start(t, STEP, 2, (tutti_checkpoint_finish_options){.before = refuse});
    assert_int_equal(wait_all(t, 2), TUTTI_IO);
    assert_string_equal(tutti_message(), "no metrics");
    assert_false(exists(t, "step_00000007") || exists(t, "latest"));
    start(t, STEP, 2, (tutti_checkpoint_finish_options){.before = see_nothing_yet, .user = t});
    assert_int_equal(wait_all(t, 2), TUTTI_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_number_of_ranks_writes_the_same_bytes),
        TEST(the_owner_goes_on_meanwhile),
        TEST(a_failure_comes_up_with_its_sentence),
        TEST(what_can_be_finished_is_finished_at_the_end),
        TEST(what_must_come_before_comes_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
