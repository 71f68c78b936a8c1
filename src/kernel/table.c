#include "kernel/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kernel/conv_kernels.h"
#include "kernel/ops_kernels.h"

#define DECLARE(isa)                                                         \
    double tutti_fma_rounds_##isa(long rounds, float *sink);                 \
    void tutti_stream_read_##isa(const float *x, size_t count, float *sink); \
    void tutti_stream_write_##isa(float *y, size_t count, float value);      \
    void tutti_stream_copy_##isa(float *y, const float *x, size_t count);    \
    extern const tutti_ops_kernels tutti_ops_##isa;                          \
    extern const struct tutti_fc_kernels tutti_fc_##isa;                     \
    extern const tutti_conv_tiles tutti_conv_tiles_##isa;                    \
    extern const tutti_conv_gradient_tiles tutti_conv_gradient_tiles_##isa;  \
    extern const tutti_winograd_kernels tutti_winograd_##isa;                \
    static const tutti_conv_kernels conv_##isa = {                           \
        &tutti_conv_tiles_##isa, &tutti_conv_gradient_tiles_##isa, &tutti_winograd_##isa};
DECLARE(scalar)
DECLARE(avx2)
DECLARE(avx512)

#define ROW(isa, bits, lanes)                                                                 \
    {                                                                                         \
        .name = #isa, .needs = (bits), .vlen = (lanes), .fma_rounds = tutti_fma_rounds_##isa, \
        .stream_read = tutti_stream_read_##isa, .stream_write = tutti_stream_write_##isa,     \
        .stream_copy = tutti_stream_copy_##isa, .conv = &conv_##isa, .fc = &tutti_fc_##isa,   \
        .ops = &tutti_ops_##isa,                                                              \
    }

const tutti_kernels tutti_kernel_table[] = {
    ROW(scalar, 0, 1),
    ROW(avx2, TUTTI_CPU_AVX2, 8),
    ROW(avx512, TUTTI_CPU_AVX512, 16),
    {.name = NULL},
};

const tutti_kernels *tutti_kernels_named(const char *name)
{
    for (const tutti_kernels *row = tutti_kernel_table; row->name; row++)
        if (!strcmp(row->name, name)) return row;
    return NULL;
}

static tutti_status refuse(const char *wanted, unsigned have)
{
    char names[64] = "";
    for (const tutti_kernels *row = tutti_kernel_table; row->name; row++)
        if (!(row->needs & ~have))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     *names ? ", " : "", row->name);
    return tutti_fail(TUTTI_ARGUMENT, "TUTTI_ISA: '%s' is not one of %s", wanted, names);
}

tutti_status tutti_kernels_choose(const tutti_kernels **out)
{
    const unsigned have = tutti_cpu_features();
    const char *wanted = getenv("TUTTI_ISA");
    if (wanted && *wanted) {
        const tutti_kernels *row = tutti_kernels_named(wanted);
        if (!row || (row->needs & ~have)) return refuse(wanted, have);
        *out = row;
        return TUTTI_OK;
    }
    for (const tutti_kernels *row = tutti_kernel_table; row->name; row++)
        if (!(row->needs & ~have)) *out = row;
    return TUTTI_OK;
}
