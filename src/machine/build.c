#include <string.h>

#include <tutti/machine.h>
#include <tutti/tutti.h>

#include "base/cpu.h"
#include "comm/comm.h"
#include "kernel/table.h"
#include "tutti_build.h" /* made by src/meson.build: TUTTI_BUILD_PARTS(X) */

static const struct {
    const char *name, *version;
    bool is_there;
} parts[] = {
#define X(name, version, is_there) {name, version, is_there},
    TUTTI_BUILD_PARTS(X)
#undef X
};

void tutti_build_print(FILE *out)
{
    fprintf(out, "tutti %s, compiled by %s %s\n\n", tutti_version(),
#if defined(__clang__)
            "clang", __clang_version__);
#else
            "gcc", __VERSION__);
#endif
    const bool mpi = strcmp(tutti_comm_library(), "none") != 0;
    fprintf(out, "  [%c] MPI%s%s\n", mpi ? 'X' : ' ', mpi ? ": " : "",
            mpi ? tutti_comm_library() : "");
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++) {
        const char *lacks = tutti_cpu_lacks((*row)->needs);
        fprintf(out, "  [X] kernels for %s%s%s\n", (*row)->name,
                lacks ? "; this machine lacks " : "", lacks ? lacks : "");
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fprintf(out, "  [%c] %s%s%s\n", parts[i].is_there ? 'X' : ' ', parts[i].name,
                *parts[i].version ? " " : "", parts[i].version);
}
