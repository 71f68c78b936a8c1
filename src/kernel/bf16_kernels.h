/* Products of numbers rounded to bf16: the contract that all rows of the table share, and what the
 * kernels of a layer are made of.
 *
 * The contract of bits. A bf16 is the upper half of an fp32. A number is rounded to the nearest,
 * ties to even; one too small to be normal becomes a zero of its sign, a NaN stays a (quiet) NaN,
 * what is too large becomes infinity. A sum of products takes its terms in blocks of up to 32. In a
 * block the even terms (0, 2, ..) are one chain of fused multiply-adds that starts at +0, the odd
 * ones another; the sum of the two chains is added to the sum so far, which starts at +0:
 *
 *   even = a0 b0 + 0, a2 b2 + even, ..    odd = a1 b1 + 0, a3 b3 + odd, ..
 *   sum = sum + (even + odd)
 *
 * All of it is in fp32, rounded to the nearest, ties to even; operands that are not normal count as
 * zeros of their sign, and so does each result that would not be normal: one whose magnitude, were
 * exponents unbounded, would be rounded to less than 2^-126. Which terms a block has is the layer's
 * business, by its shape alone. A block of other than 4, 8, .. terms is filled up to that with
 * terms +0 * +0, and they count: -0 + 0 * 0 = +0. What an instruction does with a NaN's payload is
 * not part of this.
 *
 * Why so. It is what AMX's TDPBF16PS does to a tile of 16 pairs. AVX512_BF16's VDPBF16PS adds first
 * the product of the high halves of two 32-bit slots, then that of the low halves, so a slot holds
 * two terms of the same chain, the earlier one in its high half; that takes no longer than any
 * other order. Fused multiply-adds do it where MXCSR says that denormals are zero, and plain C
 * (ref_bf16.c) defines it.
 *
 * Two forms of a block of terms, each with the even chain's slots first:
 *
 *   a row    [slots][2] even, [slots][2] odd: up to 64 bytes; the terms of one row of the result
 *   a panel  [slots][16 columns][2] even, then odd: up to 1 KiB; those of 16 columns
 *
 * There are as many slots as terms need, at most 8. Slot s of the even chain is terms 4s (high) and
 * 4s + 2, of the odd one 4s + 1 and 4s + 3. */
#ifndef TUTTI_KERNEL_BF16_KERNELS_H
#define TUTTI_KERNEL_BF16_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/table.h"

typedef uint16_t tutti_bf16;

enum {
    TUTTI_BF16_TERMS = 32,             /* of a block at most; the elements of its row */
    TUTTI_BF16_SLOTS = 8,              /* of a chain at most */
    TUTTI_BF16_ODD = 16,               /* elements of a row before its odd chain's */
    TUTTI_BF16_LINE = 2 * TUTTI_BLOCK, /* elements of a panel's slot */
    TUTTI_BF16_PANEL = 16 * TUTTI_BF16_LINE,
};

/* Slots of each chain of a block of so many terms. */
static inline int tutti_bf16_slots(int terms)
{
    return (terms + 3) / 4;
}

/* One block of terms: where in 'a' the chains of row 0 begin, in elements, and their slots. */
typedef struct tutti_bf16_block {
    int even, odd, slots;
} tutti_bf16_block;

/* to[row][column] = from[row][column] + products, block after block. Rows and columns lie anywhere;
 * distances are in elements. */
typedef struct tutti_bf16_product {
    int rows;
    int panels; /* of 16 columns: 1 .. the row's limit */
    int count;  /* of blocks of terms, at least 1 */
    const tutti_bf16_block *block;
    const tutti_bf16 *a; /* rows, a_row apart; aligned to 2 bytes, no more */
    ptrdiff_t a_row;
    bool backward; /* a chain's slots lie backwards in 'a', each 4 bytes before the last */
    const tutti_bf16
        *b; /* panels, b_panel apart for the next columns, b_block for the next terms */
    size_t b_panel, b_block;
    const float *from; /* [rows][16], from_row apart, from_panel for the next columns; NULL: +0 */
    size_t from_row, from_panel;
    float *to; /* likewise; may be 'from' */
    size_t to_row, to_panel;
    const float *bias;     /* of the columns, added last, in the same arithmetic; NULL: none */
    bool relu;             /* then max(., 0) */
    const float *mask;     /* then 0 where this is not positive; as 'to' lies; NULL: none */
    bool stream;           /* store past the caches; 'to' is aligned to a cache line */
    const char *fetch;     /* bytes needed soon, which are fetched meanwhile; NULL: none */
    const char *fetch_too; /* as many others; NULL: none */
    size_t fetch_bytes;
} tutti_bf16_product;

/* One block of terms of a tree: row 0's even chain at 'a', its odd one 'odd' elements later, rows
 * 'row' apart; its panels at 'b'. */
typedef struct tutti_bf16_place {
    size_t a, b;
    int odd, row, slots;
} tutti_bf16_place;

/* to[row][column] = the tree sum (base/tree.h), in fp32, over leaves, each the sum of products of
 * its blocks. */
typedef struct tutti_bf16_tree {
    int rows, panels;
    int leaves;
    const int *begin; /* leaf l is blocks begin[l] .. begin[l+1]-1, at least one */
    const tutti_bf16_place *place;
    const tutti_bf16 *a, *b;
    size_t b_panel;
    float *to;
    size_t to_row, to_panel;
    bool stream; /* store past the caches; 'to' is aligned to a cache line */
} tutti_bf16_tree;

enum { TUTTI_BF16_LEAVES = 32 }; /* of a tree at most */

typedef struct tutti_bf16_kernels {
    int panels; /* of a product, at most */
    void (*product)(const tutti_bf16_product *job);
    /* NULL where products need a mode of the processor in which trees would lose numbers. */
    void (*tree)(const tutti_bf16_tree *job);

    /* Rows [rows] of one block: term k of a row is at (k / 16) * from_half + k % 16; 'terms' is 16
     * or 32. The odd chain's slots begin at TUTTI_BF16_ODD; what is beyond slots is zero. */
    void (*rows)(int rows, int terms, const float *from, size_t from_row, size_t from_half,
                 tutti_bf16 *to, size_t to_row);
    /* A panel: the 16 columns of term k, 0 .. terms-1, are at (k / 16) * from_half + (k % 16) *
     * from_term. */
    void (*panel)(int terms, const float *from, size_t from_term, size_t from_half, tutti_bf16 *to);
    /* 16 rows of one block from terms that lie as for a panel: a transposition. 64 bytes are
     * written for each, one row after the other, so that a row of few slots may begin where those
     * of the one before it end. */
    void (*turned_rows)(int terms, const float *from, size_t from_term, size_t from_half,
                        tutti_bf16 *to, size_t to_row);
    /* Such rows where the 16 columns of term k are at at[k], zeros where that is negative. The odd
     * chain's slots begin at TUTTI_BF16_ODD. */
    void (*picked_rows)(int terms, const float *from, const int *at, tutti_bf16 *to, size_t to_row);
    /* A panel whose 16 columns are rows as above, of which those from 'columns' on are zero. */
    void (*turned_panel)(int columns, int terms, const float *from, size_t from_row,
                         size_t from_half, tutti_bf16 *to);

    /* to = left + right, of floats, as in fp32: what is not normal stays. 'count' is a multiple of
     * 16; 'to' may be either. 'stream': stored past the caches, 'to' is aligned to a cache line. */
    void (*join)(size_t count, const float *left, const float *right, float *to, bool stream);

    /* The machine's limit, as fma_rounds of table.h. */
    double (*rounds)(long rounds, float *sink);
} tutti_bf16_kernels;

#endif
