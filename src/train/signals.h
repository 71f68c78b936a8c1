/* Signals ask; the trainer answers between two steps.
 *
 *   SIGINT    finish the step, checkpoint, exit with 130; a second one ends at once
 *   SIGTERM   finish the step, checkpoint, exit with 143
 *   SIGUSR1   finish the step, checkpoint, exit with 75: "please requeue" (sbatch --signal=USR1)
 *   SIGHUP    checkpoint and go on
 *   SIGUSR2   say where this rank is, and go on
 *
 * A request is a bit, so that ranks can join what each of them heard by a bitwise or: a signal to
 * any one of them stops them all at the same step.
 *
 * A signal handler has no argument but the signal's number: the requests of the process are the
 * one mutable global of the project. */
#ifndef TUTTI_TRAIN_SIGNALS_H
#define TUTTI_TRAIN_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"

enum {
    TUTTI_ASKED_INT = 1 << 0,
    TUTTI_ASKED_TERM = 1 << 1,
    TUTTI_ASKED_REQUEUE = 1 << 2,
    TUTTI_ASKED_CHECKPOINT = 1 << 3,
    TUTTI_ASKED_STATE = 1 << 4,
    TUTTI_ASKED_WATCH = 1 << 5, /* no signal: the caller's watch function has seen enough */
    TUTTI_ASKED_ANY = (1 << 6) - 1,
    TUTTI_ASKED_SIGNAL = TUTTI_ASKED_INT | TUTTI_ASKED_TERM | TUTTI_ASKED_REQUEUE,
    TUTTI_ASKED_STOP = TUTTI_ASKED_SIGNAL | TUTTI_ASKED_WATCH
};

/* Listens from now on. With 'speaks' the handlers answer at once with a line on standard error
 * (one rank of a job should). Signals that are ignored when the program starts (nohup) stay
 * ignored. Only one at a time in a process: a second open before close fails. */
tutti_status tutti_signals_open(bool speaks) TUTTI_MUST_CHECK;
void tutti_signals_close(void); /* puts back what was there before */

/* The checkpoint of this step is on the disk: the answer to a stop request says that it stays if
 * the process is killed before the next one is. Any thread, one at a time. */
void tutti_signals_keep(int64_t step);

/* What was asked for since the last call; the stop requests are answered again and again. */
unsigned tutti_signals_asked(void);

/* "SIGTERM", for the line in the log; the code the program ends with. Of several requests
 * the gentlest decides: requeue, then TERM, then INT. 0 and "" without one. */
const char *tutti_signals_name(unsigned asked);
int tutti_signals_exit_code(unsigned asked);

#endif
