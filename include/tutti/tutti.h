/* Tutti: synchronous SGD on clusters of CPUs, the same bits for any number of nodes. */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <tutti/log.h>
#include <tutti/machine.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
TUTTI_API const char *tutti_version(void);

#ifdef __cplusplus
}
#endif
#endif
