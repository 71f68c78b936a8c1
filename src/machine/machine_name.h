/* The machine this process runs on, as a platform knows it. */
#ifndef TUTTI_MACHINE_MACHINE_NAME_H
#define TUTTI_MACHINE_MACHINE_NAME_H

#include "kernel/table.h"
#include "plan/platform.h"

enum { TUTTI_MACHINE_NAME = sizeof((tutti_platform *)0)->machine };

/* What a measurement holds for: the processor and the kernels. */
void tutti_machine_name(char name[TUTTI_MACHINE_NAME], const char *cpu, const tutti_kernels *row);

#endif
