/* A build that cannot serve. */
#include <tutti/watch.h>

#include "base/status.h"

tutti_status tutti_watch(const tutti_watch_options *options)
{
    (void)options;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "this build has no libmicrohttpd; install libmicrohttpd-dev and build it "
                      "again, or write the page as a file: tutti report");
}
