/* Signals become requests; a second Ctrl-C ends the process. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "train/launcher.h"
#include "train/signals.h"

static void every_signal_is_a_request(void **state)
{
    (void)state;
    static const struct {
        int signal;
        unsigned asked;
        int exit_code;
        const char *name;
    } table[] = {
        {SIGINT, TUTTI_ASKED_INT, 130, "SIGINT"},
        {SIGTERM, TUTTI_ASKED_TERM, 143, "SIGTERM"},
        {SIGUSR1, TUTTI_ASKED_REQUEUE, 75, "SIGUSR1"},
        {SIGHUP, TUTTI_ASKED_CHECKPOINT, 0, "SIGHUP"},
        {SIGUSR2, TUTTI_ASKED_STATE, 0, "SIGUSR2"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(tutti_signals_open(false), TUTTI_OK);
        assert_int_equal(tutti_signals_asked(), 0);
        raise(table[i].signal);
        assert_int_equal(tutti_signals_asked(), table[i].asked);
        const int stops = (table[i].asked & TUTTI_ASKED_STOP) != 0;
        assert_int_equal(tutti_signals_asked(), stops ? table[i].asked : 0);
        assert_int_equal(tutti_signals_exit_code(table[i].asked), table[i].exit_code);
        assert_string_equal(tutti_signals_name(table[i].asked), table[i].name);
        tutti_signals_close();
    }
}

static void of_several_the_gentlest_decides(void **state)
{
    (void)state;
    assert_int_equal(tutti_signals_exit_code(0), 0);
    assert_string_equal(tutti_signals_name(0), "");
    assert_int_equal(tutti_signals_exit_code(TUTTI_ASKED_INT | TUTTI_ASKED_TERM), 143);
    assert_int_equal(tutti_signals_exit_code(TUTTI_ASKED_STOP | TUTTI_ASKED_STATE), 75);
    assert_int_equal(tutti_signals_exit_code(TUTTI_ASKED_INT | TUTTI_ASKED_CHECKPOINT), 130);
}

static void only_one_listens_and_puts_back(void **state)
{
    (void)state;
    struct sigaction before, after;
    sigaction(SIGTERM, NULL, &before);
    assert_int_equal(tutti_signals_open(false), TUTTI_OK);
    assert_int_equal(tutti_signals_open(false), TUTTI_ARGUMENT);
    sigaction(SIGTERM, NULL, &after);
    assert_true(before.sa_handler != after.sa_handler);
    tutti_signals_close();
    tutti_signals_close();
    sigaction(SIGTERM, NULL, &after);
    assert_true(before.sa_handler == after.sa_handler);
}

static void what_nohup_ignores_stays_ignored(void **state)
{
    (void)state;
    signal(SIGHUP, SIG_IGN);
    assert_int_equal(tutti_signals_open(false), TUTTI_OK);
    raise(SIGHUP);
    assert_int_equal(tutti_signals_asked(), 0);
    tutti_signals_close();
    signal(SIGHUP, SIG_DFL);
}

/* What becomes of a child that gets SIGINT 'times' times and then exits with 7; what it says. */
static int child_after(int times, int64_t kept, char *said, size_t size)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (tutti_signals_open(true)) _exit(1);
        if (kept >= 0) tutti_signals_keep(kept);
        for (int i = 0; i < times; i++) raise(SIGINT);
        _exit(7);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], said + length, size - 1 - length)) > 0;) length += (size_t)n;
    said[length] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_second_interrupt_ends_at_once(void **state)
{
    (void)state;
    char said[512];
    int status = child_after(1, -1, said, sizeof said);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_string_equal(
        said, "\ntutti: finishing the step, then a checkpoint; once more Ctrl-C ends at once\n");
    status = child_after(2, -1, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

/* A child whose name is 'name', until it is killed. */
static pid_t named(const char *name)
{
    int ends[2];
    char ready = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, name);
        if (write(ends[1], "r", 1) == 1)
            for (;;) pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static bool is_gone(tutti_launcher *launcher)
{
    launcher->looked = -1e9;
    return tutti_launcher_is_gone(launcher);
}

static void a_launcher_is_missed_when_it_is_gone(void **state)
{
    (void)state;
    static const char *const names[] = {"mpirun", "hydra_pmi_proxy", "mpiexec) x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const pid_t child = named(names[i]);
        tutti_launcher found = tutti_launcher_above(child), other = found;
        assert_int_equal(found.pid, child);
        assert_false(is_gone(&found));
        other.started++; /* a later process of that pid */
        assert_true(is_gone(&other));
        other = found;
        kill(child, SIGKILL);
        siginfo_t ended;
        assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
        assert_true(is_gone(&found)); /* dead, though nobody has noticed */
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_true(is_gone(&other));
        assert_true(tutti_launcher_is_gone(&other));
    }
}

static void a_shell_is_not_a_launcher(void **state)
{
    (void)state;
    tutti_launcher none = {0};
    const pid_t child = named("bash");
    assert_int_not_equal(tutti_launcher_above(child).pid, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(is_gone(&none));
    assert_int_equal(tutti_launcher_above(1).pid, 0);
}

/* Who is killed while finishing a long step has been told what is left. */
static void the_answer_says_what_is_kept(void **state)
{
    (void)state;
    static const struct {
        int64_t step;
        const char *sentence;
    } table[] = {
        {0, "\ntutti: should it be killed before that, step 0 is kept\n"},
        {1230, "\ntutti: should it be killed before that, step 1230 is kept\n"},
        {2147483646, "\ntutti: should it be killed before that, step 2147483646 is kept\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char said[512];
        child_after(1, table[i].step, said, sizeof said);
        if (!strstr(said, table[i].sentence)) fail_msg("%s", said);
    }
}

int main(void)
{
    signal(SIGHUP, SIG_DFL); /* whoever runs the tests may use nohup */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_signal_is_a_request),
        cmocka_unit_test(of_several_the_gentlest_decides),
        cmocka_unit_test(only_one_listens_and_puts_back),
        cmocka_unit_test(what_nohup_ignores_stays_ignored),
        cmocka_unit_test(a_second_interrupt_ends_at_once),
        cmocka_unit_test(a_launcher_is_missed_when_it_is_gone),
        cmocka_unit_test(a_shell_is_not_a_launcher),
        cmocka_unit_test(the_answer_says_what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
