/* How much memory there is room for. */
#ifndef TUTTI_MACHINE_ROOM_H
#define TUTTI_MACHINE_ROOM_H

#include <stdint.h>

/* Bytes that may still be taken; UINT64_MAX: nothing says. */
typedef struct tutti_room {
    uint64_t host; /* by all processes here together: what the machine and control groups leave */
    uint64_t own;  /* by this process: what its limits leave (ulimit -v, -d) */
} tutti_room;

/* Of this process. 'root' is put before /proc and /sys: "" but for tests. */
tutti_room tutti_room_find(const char *root);

/* What one of 'ranks' processes alike may take. */
uint64_t tutti_room_of(const tutti_room *room, int ranks);

#endif
