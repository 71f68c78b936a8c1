#ifndef TUTTI_BASE_CLOCK_H
#define TUTTI_BASE_CLOCK_H

/* Seconds of the monotonic clock; only differences mean something. */
double tutti_now(void);

/* Seconds of processor time that all threads of this process have used. */
double tutti_cpu_time(void);

#endif
