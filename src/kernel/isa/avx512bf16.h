/* AVX-512 with an instruction for products of bf16. All other kernels are those of avx512. */
#include "kernel/isa/avx512.h"

#undef ISA
#undef NEEDS
#define ISA   avx512bf16
#define LIKE  avx512
#define NEEDS (TUTTI_CPU_AVX512 | TUTTI_CPU_AVX512_BF16)
