/* The numbers that a layer multiplies. */
#ifndef TUTTI_KERNEL_PRECISION_H
#define TUTTI_KERNEL_PRECISION_H

typedef enum tutti_precision {
    TUTTI_IN_FP32,
    TUTTI_IN_BF16, /* products of operands rounded to bf16, sums in fp32: bf16_kernels.h */
} tutti_precision;

#endif
