#define _GNU_SOURCE
#include "train/signals.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { HEARD = 5 };

/* In the order of gentleness: of several stop requests the first decides the exit code. */
static const struct {
    int signal;
    unsigned bit;
    int exit_code;
    const char *name, *answer;
} heard[HEARD] = {
    {SIGUSR1, TUTTI_ASKED_REQUEUE, 75, "SIGUSR1",
     "\ntutti: SIGUSR1: finishing the step, then a checkpoint, then the end (exit code 75)\n"},
    {SIGTERM, TUTTI_ASKED_TERM, 143, "SIGTERM",
     "\ntutti: SIGTERM: finishing the step, then a checkpoint, then the end\n"},
    {SIGINT, TUTTI_ASKED_INT, 130, "SIGINT",
     "\ntutti: finishing the step, then a checkpoint; once more Ctrl-C ends at once\n"},
    {SIGHUP, TUTTI_ASKED_CHECKPOINT, 0, "SIGHUP", NULL},
    {SIGUSR2, TUTTI_ASKED_STATE, 0, "SIGUSR2", NULL},
};

/* One flag per signal, because a handler may only store a sig_atomic_t; how to answer; what was
 * installed before. The one mutable global there is: a handler gets no other argument. */
static struct {
    volatile sig_atomic_t flag[HEARD];
    volatile sig_atomic_t speaks;
    volatile sig_atomic_t kept; /* 1 + the step; 0: no checkpoint is known of */
    int open;
    struct sigaction before[HEARD];
} signals;

static void answer(const char *text)
{
    const ssize_t written = signals.speaks && text ? write(STDERR_FILENO, text, strlen(text)) : 0;
    (void)written; /* nothing can be done about it here */
}

/* A handler may not call printf. */
static void answer_what_is_kept(void)
{
    static const char before[] = "tutti: should it be killed before that, step ",
                      after[] = " is kept\n";
    char text[sizeof before + 16 + sizeof after], digits[16];
    int count = 0;
    size_t length = sizeof before - 1;
    if (!signals.kept) return;
    for (long step = signals.kept - 1; count == 0 || step; step /= 10)
        digits[count++] = (char)('0' + step % 10);
    memcpy(text, before, length);
    while (count) text[length++] = digits[--count];
    memcpy(text + length, after, sizeof after);
    answer(text);
}

static void end_at_once(int number)
{
    answer("\ntutti: stopped at once; the last checkpoint is as it was\n");
    signal(number, SIG_DFL);
    raise(number); /* is delivered when the handler returns */
}

static void hear(int number)
{
    for (int i = 0; i < HEARD; i++) {
        if (heard[i].signal != number) continue;
        if (number == SIGINT && signals.flag[i]) end_at_once(number);
        else answer(heard[i].answer);
        if (heard[i].bit & TUTTI_ASKED_STOP && !signals.flag[i]) answer_what_is_kept();
        signals.flag[i] = 1;
    }
}

tutti_status tutti_signals_open(bool speaks)
{
    if (signals.open)
        return tutti_fail(TUTTI_ARGUMENT, "another training of this process listens to signals");
    signals.open = 1;
    signals.speaks = speaks;
    signals.kept = 0;
    struct sigaction action = {.sa_handler = hear, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    for (int i = 0; i < HEARD; i++) {
        signals.flag[i] = 0;
        sigaction(heard[i].signal, NULL, &signals.before[i]);
        if (signals.before[i].sa_handler != SIG_IGN) sigaction(heard[i].signal, &action, NULL);
    }
    return TUTTI_OK;
}

void tutti_signals_close(void)
{
    if (!signals.open) return;
    for (int i = 0; i < HEARD; i++) sigaction(heard[i].signal, &signals.before[i], NULL);
    signals.open = 0;
}

void tutti_signals_keep(int64_t step)
{
    signals.kept = step < INT_MAX ? (int)step + 1 : 0;
}

unsigned tutti_signals_asked(void)
{
    unsigned asked = 0;
    for (int i = 0; i < HEARD; i++) {
        if (!signals.flag[i]) continue;
        asked |= heard[i].bit;
        if (!(heard[i].bit & TUTTI_ASKED_STOP)) signals.flag[i] = 0;
    }
    return asked;
}

static int decisive(unsigned asked)
{
    for (int i = 0; i < HEARD; i++)
        if (asked & heard[i].bit) return i;
    return -1;
}

const char *tutti_signals_name(unsigned asked)
{
    const int i = decisive(asked);
    return i < 0 ? "" : heard[i].name;
}

int tutti_signals_exit_code(unsigned asked)
{
    const int i = decisive(asked);
    return i < 0 ? 0 : heard[i].exit_code;
}
