/* What the processor can do, as far as kernels care. */
#ifndef TUTTI_BASE_CPU_H
#define TUTTI_BASE_CPU_H

enum {
    TUTTI_CPU_AVX2 = 1 << 0,   /* AVX2 and FMA, and the system saves their registers */
    TUTTI_CPU_AVX512 = 1 << 1, /* AVX-512 F, BW, DQ and VL, likewise */
};

/* The TUTTI_CPU_ bits of this machine. */
unsigned tutti_cpu_features(void);

#endif
