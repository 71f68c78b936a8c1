/* Writing to a tutti_log. */
#ifndef TUTTI_BASE_LOG_H
#define TUTTI_BASE_LOG_H

#include <tutti/log.h>
#include "base/status.h"

void tutti_log_line(const tutti_log *log, tutti_log_level level, const char *format, ...)
    TUTTI_PRINTF(3, 4);

#define tutti_error(log, ...) tutti_log_line(log, TUTTI_LOG_ERROR, __VA_ARGS__)
#define tutti_warn(log, ...)  tutti_log_line(log, TUTTI_LOG_WARNING, __VA_ARGS__)
#define tutti_info(log, ...)  tutti_log_line(log, TUTTI_LOG_INFO, __VA_ARGS__)
#define tutti_debug(log, ...) tutti_log_line(log, TUTTI_LOG_DEBUG, __VA_ARGS__)

#endif
