/* Who started this process, told by the environment alone; and which binary it is. */
#ifndef TUTTI_COMM_LAUNCH_H
#define TUTTI_COMM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct tutti_launch {
    const char *launcher; /* NULL: nobody did, one rank */
    int size;             /* ranks it said it started; 0 where it does not say */
    int rank;             /* that it gave to this one; -1 where it does not say */
} tutti_launch;

/* TUTTI_UNSUPPORTED when a launcher started several tasks that cannot find each other. 'get' is
 * getenv, or a test's stand-in. */
tutti_status tutti_launch_detect(tutti_launch *out, char *(*get)(const char *)) TUTTI_MUST_CHECK;

/* Seconds between the SIGTERM and the SIGKILL of a launcher that was itself asked to end; 0: there
 * is no launcher, or it does not say. Open MPI's mpirun leaves one second unless it is told
 * otherwise (--mca odls_base_sigkill_timeout). */
double tutti_launch_grace(char *(*get)(const char *));

/* A hash of the linker's build id of the binary this code is in; 0 where it has none. */
uint64_t tutti_launch_build_id(void);

#endif
