/* The processor: what it can do, as far as kernels care, and the few instructions that C has no
 * words for. Whatever else depends on the architecture is in kernel/isa. */
#ifndef TUTTI_BASE_CPU_H
#define TUTTI_BASE_CPU_H

enum {
    TUTTI_CPU_AVX2 = 1 << 0,        /* AVX2 and FMA, and the system saves their registers */
    TUTTI_CPU_AVX512 = 1 << 1,      /* AVX-512 F, BW, DQ and VL, likewise */
    TUTTI_CPU_AVX512_BF16 = 1 << 2, /* that and its instructions for bf16 */
};

/* The TUTTI_CPU_ bits of this machine. */
unsigned tutti_cpu_features(void);

/* What this machine lacks of 'needs', TUTTI_CPU_ bits: "AVX2 with FMA"; NULL: nothing. */
const char *tutti_cpu_lacks(unsigned needs);

/* Between two looks at what another thread may change. */
static inline void tutti_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whoever sees what the caller stores later sees also what it stored around the caches. Nothing
 * else orders such stores on x86, and waiting for them costs. */
static inline void tutti_fence_streams(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

#endif
