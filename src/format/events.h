/* RUN/events.out.tfevents.TIME.HOST.PID.STEP: the curves of a run for TensorBoard.
 *
 * A file is a sequence of records, each a length, the masked CRC-32C of the length, that many
 * bytes, and their masked CRC-32C; the bytes are a protobuf message tensorflow.Event, of whose
 * fields these are written:
 *
 *   Event    1 double wall_time   2 int64 step   3 string file_version, the first record's alone
 *            5 Summary            7 SessionLog
 *   Summary  1 Value: 1 string tag, 2 float simple_value
 *
 * A run that goes on writes another file, which begins with SessionLog START at the first step that
 * is new: readers then forget what an earlier file has of that step and later ones, as steps that
 * were done and lost. Nothing is ever changed in an earlier file.
 *
 * As with metrics, what cannot be written waits in memory; it is never a reason to end a run. */
#ifndef TUTTI_FORMAT_EVENTS_H
#define TUTTI_FORMAT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include <tutti/log.h>
#include "base/status.h"

typedef struct tutti_events tutti_events;

/* Creates a file in the directory 'run', which has done 'done' steps. 'log' (borrowed) hears, once,
 * of events that cannot be written. */
tutti_status tutti_events_open(tutti_events **out, const char *run, int64_t done,
                               const tutti_log *log) TUTTI_MUST_CHECK;
void tutti_events_close(tutti_events **events); /* tries once more to write what waits */

/* A value of one curve, "train/loss"; nothing if it is NaN. */
void tutti_events_scalar(tutti_events *events, int64_t step, const char *tag, double value);

/* Writes what was added. */
void tutti_events_flush(tutti_events *events);

/* CRC-32C (Castagnoli), masked as TFRecord wants it. */
uint32_t tutti_masked_crc32c(const void *bytes, size_t count);

#endif
