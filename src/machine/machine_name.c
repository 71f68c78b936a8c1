#include "machine/machine_name.h"

#include <stdio.h>

void tutti_machine_name(char name[TUTTI_MACHINE_NAME], const char *cpu, const tutti_kernels *row)
{
    snprintf(name, TUTTI_MACHINE_NAME, "%.120s, %s kernels", cpu, row->name);
    for (char *c = name; *c; c++)
        if (*c == '"') *c = '\'';
}
