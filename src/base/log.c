#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 2048 };

void tutti_log_line(const tutti_log *log, tutti_log_level level, const char *format, ...)
{
    if (!log || !log->sink || level > log->level) return;

    char line[LINE_BYTES];
    int used = log->rank >= 0 ? snprintf(line, sizeof line, "[%d] ", log->rank) : 0;
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, args);
    va_end(args);
    log->sink(log->user, level, line);
}

static void print_to_stderr(void *user, tutti_log_level level, const char *line)
{
    static const char *const mark[] = {"error: ", "warning: ", "", ""};
    (void)user;
    fprintf(stderr, "tutti: %s%s\n", mark[level], line);
}

tutti_log tutti_log_stderr(tutti_log_level level)
{
    return (tutti_log){.sink = print_to_stderr, .level = level, .rank = -1};
}
