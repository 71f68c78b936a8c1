/* NumPy's files of one array: what np.save writes.
 *
 * "\x93NUMPY", two bytes of version, the length of the header (2 bytes, from version 2 on 4), the
 * header: the text of a Python dictionary, then the numbers, the last dimension fastest:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 */
#ifndef TUTTI_DATA_NPY_H
#define TUTTI_DATA_NPY_H

#include "data/file.h"

enum { TUTTI_NPY_DIMS = 5, TUTTI_NPY_HEADER = 192 };

/* A kind of numbers, one of a table. */
typedef struct tutti_npy_type {
    const char *name; /* "f4" */
    int bytes;        /* of a number */
    bool is_whole;    /* integers and booleans */
    void (*to_floats)(const void *numbers, size_t count, float *out);
    int64_t (*to_whole)(const void *number); /* NULL where they are no integers */
} tutti_npy_type;

typedef struct tutti_npy {
    const tutti_npy_type *type;
    int dims;
    int64_t size[TUTTI_NPY_DIMS]; /* each at least 1, except for an array without items */
    uint64_t header;              /* bytes before the first item */
    size_t item;                  /* numbers of one item: the product of all sizes but the first */
} tutti_npy;

/* Reads the header. Numbers in the order of the other endianness and in Fortran's order are refused
 * with the line of Python that puts them right. Whether the file is as long as it says is for the
 * caller to check: tutti_npy_items is what it holds. */
tutti_status tutti_npy_read(tutti_npy *npy, const tutti_file *file) TUTTI_MUST_CHECK;
int64_t tutti_npy_items(const tutti_npy *npy, const tutti_file *file);

/* Reads 'count' items from 'first' on into the buffer, as stored. */
tutti_status tutti_npy_items_read(const tutti_npy *npy, const tutti_file *file, int64_t first,
                                  int64_t count, tutti_buffer *out) TUTTI_MUST_CHECK;

/* Writes the first bytes of a file of floats, rows x columns, as NumPy would; returns how many. */
size_t tutti_npy_header(uint8_t out[TUTTI_NPY_HEADER], int64_t rows, int64_t columns);

/* The same of any type, "<f4", and 'dims' sizes. */
size_t tutti_npy_header_of(uint8_t out[TUTTI_NPY_HEADER], const char *type, int dims,
                           const int64_t sizes[TUTTI_NPY_DIMS]);

#endif
