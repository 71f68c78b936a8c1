/* One row per instruction set: its kernels and the sizes they like, together. */
#ifndef TUTTI_KERNEL_TABLE_H
#define TUTTI_KERNEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* The width of a channel block in every layout, on every instruction set, so that files, plans
 * and bits agree. */
enum { TUTTI_BLOCK = 16 };

typedef struct tutti_kernels {
    const char *name; /* of its vocabulary, isa/NAME.h */
    unsigned needs;   /* TUTTI_CPU_ bits */
    int vlen;         /* floats in a register */
    /* Fused multiply-adds in 'rounds' rounds of independent chains: the machine's limit. Returns
     * the number of floating-point operations done. */
    double (*fma_rounds)(long rounds, float *sink);
    /* The memory's limit: 'count' floats (a multiple of 64, aligned to a cache line) summed into
     * *sink, filled, copied. */
    void (*stream_read)(const float *x, size_t count, float *sink);
    void (*stream_write)(float *y, size_t count, float value);
    void (*stream_copy)(float *y, const float *x, size_t count);
    const struct tutti_conv_kernels *conv; /* conv_kernels.h */
    const struct tutti_fc_kernels *fc;     /* fc_kernels.h */
    const struct tutti_ops_kernels *ops;   /* ops_kernels.h */
    const struct tutti_bf16_kernels *bf16; /* bf16_kernels.h */
} tutti_kernels;

/* All rows of this build, from plain C upwards, then NULL. */
extern const tutti_kernels *const tutti_kernel_table[];

/* Whether this machine can run the row. */
bool tutti_kernels_run_here(const tutti_kernels *row);

/* Stores the best row this machine can run in *out. The environment variable TUTTI_ISA names a
 * lower one; a name that does not exist or that this machine cannot run is TUTTI_ARGUMENT. */
tutti_status tutti_kernels_choose(const tutti_kernels **out) TUTTI_MUST_CHECK;

/* The row of that name, NULL if there is none. */
const tutti_kernels *tutti_kernels_named(const char *name);

#endif
