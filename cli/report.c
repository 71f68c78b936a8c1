/* How a verb says that it could not. */
#include <stdarg.h>

#include "cli.h"

int cli_failed(const cli_call *call, tutti_status status)
{
    fprintf(stderr, "%s%s: %s\n", call->program, call->verb->name, tutti_message());
    return tutti_status_exit_code(status);
}

int cli_misused(const cli_call *call, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s%s: ", call->program, call->verb->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\ntry '%s%s --help'\n", call->program, call->verb->name);
    return CLI_USAGE_ERROR;
}
