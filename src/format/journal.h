/* A file of a run that grows by lines, for those who look on: RUN/events.jsonl, RUN/ranks.jsonl.
 *
 *   {"step":100,"phase":"ranks",...,"crc":"0a1b2c3d"}
 *
 * Lines are sealed as those of metrics.jsonl are. Unlike metrics they are never owed: what a full
 * disk does not take is gone, the next line is tried again, and the log hears of it once. Readers
 * see whole lines. Any thread may write. */
#ifndef TUTTI_FORMAT_JOURNAL_H
#define TUTTI_FORMAT_JOURNAL_H

#include <stdint.h>

#include <tutti/log.h>
#include "base/status.h"

typedef struct tutti_journal tutti_journal;

/* Opens RUN/'name' to go on behind what is there. Borrows the log. Fails for want of memory only:
 * a file that cannot be opened is a line that cannot be written. */
tutti_status tutti_journal_open(tutti_journal **out, const char *run, const char *name,
                                const tutti_log *log) TUTTI_MUST_CHECK;
void tutti_journal_close(tutti_journal **journal);

/* 'fields' are JSON fields as text, put after step and phase. NULL does nothing. */
void tutti_journal_write(tutti_journal *journal, int64_t step, const char *phase,
                         const char *fields);

/* Before it is opened: leaves out lines of steps after 'last' and those that are damaged; gives the
 * number that stays. A file that is not there has none; one that cannot be changed stays. */
int64_t tutti_journal_cut(const char *run, const char *name, int64_t last);

#endif
