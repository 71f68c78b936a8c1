/* The header of an idx file (MNIST's format): 0, 0, type, number of dimensions, then the
 * dimensions as big-endian 32-bit numbers, then the numbers, the last dimension fastest. */
#ifndef TUTTI_DATA_IDX_H
#define TUTTI_DATA_IDX_H

#include "data/file.h"

enum { TUTTI_IDX_DIMS = 4 };

typedef struct tutti_idx {
    int dims, size[TUTTI_IDX_DIMS];
    size_t header; /* bytes before the first item */
    size_t item;   /* bytes of one item: the product of all sizes but the first */
} tutti_idx;

/* Reads the header of a file of bytes. Whether the file is as long as it says is for the caller to
 * check: tutti_idx_items is what it holds. */
tutti_status tutti_idx_read(tutti_idx *idx, const tutti_file *file) TUTTI_MUST_CHECK;
int tutti_idx_items(const tutti_idx *idx, const tutti_file *file);

#endif
