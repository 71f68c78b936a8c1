/* The definition of products of bf16 (bf16_kernels.h), in plain C, one number at a time. Never
 * optimise it. */
#ifndef TUTTI_KERNEL_REF_BF16_H
#define TUTTI_KERNEL_REF_BF16_H

#include "kernel/bf16_kernels.h"

tutti_bf16 tutti_ref_bf16_round(float x);
float tutti_ref_bf16_widen(tutti_bf16 x);

/* a + b, where what is not normal counts as zero, before and after. */
float tutti_ref_bf16_add(float a, float b);

/* sum + the products of one block of 'terms' terms, a_step and b_step elements apart. */
float tutti_ref_bf16_block(int terms, const tutti_bf16 *a, ptrdiff_t a_step, const tutti_bf16 *b,
                           ptrdiff_t b_step, float sum);

/* The same of numbers that are still to be rounded. */
float tutti_ref_bf16_block_of(int terms, const float *a, ptrdiff_t a_step, const float *b,
                              ptrdiff_t b_step, float sum);

/* Where term k of a block is in its row. */
int tutti_ref_bf16_place(int k);

#endif
