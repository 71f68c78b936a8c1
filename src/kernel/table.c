#include "kernel/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kernel/rows.h" /* made by meson.build: TUTTI_KERNEL_ROWS(X) */

#define X(isa) extern const tutti_kernels tutti_row_##isa;
TUTTI_KERNEL_ROWS(X)
#undef X

const tutti_kernels *const tutti_kernel_table[] = {
#define X(isa) &tutti_row_##isa,
    TUTTI_KERNEL_ROWS(X)
#undef X
        NULL,
};

bool tutti_kernels_run_here(const tutti_kernels *row)
{
    return !tutti_cpu_lacks(row->needs);
}

const tutti_kernels *tutti_kernels_named(const char *name)
{
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        if (!strcmp((*row)->name, name)) return *row;
    return NULL;
}

static tutti_status refuse(const char *wanted, const tutti_kernels *lacking)
{
    char names[64] = "";
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        if (tutti_kernels_run_here(*row))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     *names ? ", " : "", (*row)->name);
    if (lacking)
        return tutti_fail(TUTTI_ARGUMENT,
                          "TUTTI_ISA: '%s' needs %s, which this machine lacks; it "
                          "has %s",
                          wanted, tutti_cpu_lacks(lacking->needs), names);
    return tutti_fail(TUTTI_ARGUMENT, "TUTTI_ISA: '%s' is not one of %s", wanted, names);
}

static const tutti_kernels *best_row(void)
{
    const tutti_kernels *best = NULL;
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        if (tutti_kernels_run_here(*row)) best = *row;
    return best;
}

tutti_status tutti_kernels_choose(const tutti_kernels **out)
{
    const char *wanted = getenv("TUTTI_ISA");
    const tutti_kernels *row = wanted && *wanted ? tutti_kernels_named(wanted) : best_row();
    if (!row || !tutti_kernels_run_here(row)) return refuse(wanted, row);
    *out = row;
    return TUTTI_OK;
}
