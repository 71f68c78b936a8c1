/* The kind of data set that this build does without. */
#define _GNU_SOURCE
#include "data/source.h"

static tutti_status cannot_open(tutti_data *data, tutti_spec *spec)
{
    (void)data, (void)spec;
    return tutti_fail(
        TUTTI_UNSUPPORTED,
        "--data lmdb: this build has no LMDB; install liblmdb-dev and build it again");
}

static void close_nothing(tutti_data *data)
{
    (void)data;
}

const tutti_source tutti_source_lmdb = {
    .kind = "lmdb", .open = cannot_open, .close = close_nothing};
