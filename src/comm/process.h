/* What the system knows about processes of this host; and an end that nothing holds up. Inside the
 * room. */
#ifndef TUTTI_COMM_PROCESS_H
#define TUTTI_COMM_PROCESS_H

#include <stdint.h>

typedef enum tutti_process {
    TUTTI_PROCESS_UNKNOWN,
    TUTTI_PROCESS_RUNS, /* or could: it may sleep, or wait for a processor */
    TUTTI_PROCESS_STOPPED,
    TUTTI_PROCESS_ENDED
} tutti_process;

tutti_process tutti_process_look(int pid);

/* Within one space a number means one process, on one host; 0: nothing is known. */
uint64_t tutti_process_space(void);

/* The processes of this one's parent. */
typedef struct tutti_siblings {
    int stopped; /* one that is; 0: none */
    int lowest;  /* the lowest number that is not stopped */
} tutti_siblings;

tutti_siblings tutti_process_siblings(void);

/* Ends this process with that code in a few seconds, whatever its threads hang in. */
void tutti_process_end_soon(int exit_code);

/* Leaves a process behind that ends the mpirun that started this one, if it is still there when it
 * has had time to end the job: it may wait without end for a host that it cannot reach. */
void tutti_process_end_launcher_soon(void);

#endif
