#include "base/cpu.h"

unsigned tutti_cpu_features(void)
{
    unsigned have = 0;
#if defined(__x86_64__)
    __builtin_cpu_init(); /* looks at CPUID and at what XCR0 says the system saves */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) have |= TUTTI_CPU_AVX2;
    if (have && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        have |= TUTTI_CPU_AVX512;
#endif
    return have;
}
