/* The process that started this rank. A rank that outlives it (kill -9 of mpirun leaves its only
 * rank behind) would train on unseen and hold the run: it ends as after SIGTERM.
 *
 * Only mpirun and its like count, found among the ancestors of a process whose environment says
 * that it is a rank. A shell, nohup or setsid may come and go. */
#ifndef TUTTI_TRAIN_LAUNCHER_H
#define TUTTI_TRAIN_LAUNCHER_H

#include <stdbool.h>

typedef struct tutti_launcher {
    int pid;                    /* 0: nobody to look after */
    unsigned long long started; /* tells it from a later process of the same pid */
    char name[32];
    double looked; /* when, by tutti_now */
    bool gone;
} tutti_launcher;

/* Of this process, by its environment and its ancestors. */
tutti_launcher tutti_launcher_find(void);

/* Of a process whose parent is 'parent', whatever the environment says. */
tutti_launcher tutti_launcher_above(int parent);

/* Has it ended? Looks at most once a second. */
bool tutti_launcher_is_gone(tutti_launcher *launcher);

#endif
