/* The machine this process runs on, as a platform knows it. */
#ifndef TUTTI_TRAIN_HERE_H
#define TUTTI_TRAIN_HERE_H

#include "kernel/table.h"
#include "plan/platform.h"

/* What a measurement holds for: the processor and the kernels. */
void tutti_machine_name(char name[160], const char *cpu, const tutti_kernels *row);

#endif
