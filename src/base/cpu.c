#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>

/* The builtins look at CPUID and at what XCR0 says the system saves. */
#if defined(__x86_64__)
#define SUPPORTS(name) (__builtin_cpu_init(), __builtin_cpu_supports(name) != 0)
#else
#define SUPPORTS(name) false
#endif

static bool has_avx2(void)
{
    return SUPPORTS("avx2") && SUPPORTS("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && SUPPORTS("avx512f") && SUPPORTS("avx512bw") && SUPPORTS("avx512dq") &&
           SUPPORTS("avx512vl");
}

static bool has_avx512_bf16(void)
{
    return has_avx512() && SUPPORTS("avx512bf16");
}

static const struct {
    unsigned bit;
    const char *name;
    bool (*test)(void);
} features[] = {
    {TUTTI_CPU_AVX2, "AVX2 with FMA", has_avx2},
    {TUTTI_CPU_AVX512, "AVX-512 (F, BW, DQ, VL)", has_avx512},
    {TUTTI_CPU_AVX512_BF16, "AVX512_BF16", has_avx512_bf16},
};
enum { FEATURES = sizeof features / sizeof *features };

unsigned tutti_cpu_features(void)
{
    unsigned have = 0;
    for (int i = 0; i < FEATURES; i++)
        if (features[i].test()) have |= features[i].bit;
    return have;
}

const char *tutti_cpu_lacks(unsigned needs)
{
    for (int i = 0; i < FEATURES; i++)
        if (needs & features[i].bit && !features[i].test()) return features[i].name;
    return NULL;
}
