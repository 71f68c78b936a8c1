/* Files of named tensors in the safetensors format, which PyTorch and others read.
 *
 *   8 bytes      n, the length of the header, little-endian
 *   n bytes      {"conv1.weight":{"dtype":"F32","shape":[20,1,5,5],"data_offsets":[0,2000]}, ...}
 *   the rest     the tensors' bytes without gaps, row-major, little-endian
 *
 * The layout depends on the list of tensors alone: they are stored in the order given, and the
 * header is padded with spaces so that the data start at a multiple of 64 bytes. Every rank that
 * has the list therefore knows where each element goes, and several ranks can write their own
 * pieces of one file. */
#ifndef TUTTI_FORMAT_SAFETENSORS_H
#define TUTTI_FORMAT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

enum { TUTTI_TENSOR_MAX_DIMS = 8 };

/* Types a file may hold: name, bytes, how weights are made from it (NULL: they are not). */
// clang-format off
#define TUTTI_DTYPE_MAP(X)                                                          \
    X(F32, 4, from_f32)  X(F64, 8, from_f64)  X(F16, 2, from_f16)  X(BF16, 2, from_bf16) \
    X(I64, 8, from_i64)  X(I32, 4, NULL)      X(I16, 2, NULL)      X(I8, 1, NULL)        \
    X(U64, 8, NULL)      X(U32, 4, NULL)      X(U16, 2, NULL)      X(U8, 1, NULL)        \
    X(BOOL, 1, NULL)     X(F8_E4M3, 1, NULL)  X(F8_E5M2, 1, NULL)
// clang-format on
typedef enum tutti_dtype {
#define X(name, bytes, convert) TUTTI_##name,
    TUTTI_DTYPE_MAP(X)
#undef X
        TUTTI_DTYPE_COUNT
} tutti_dtype;

/* A tensor's name, shape and type. Without dimensions it is a scalar. */
typedef struct tutti_tensor_spec {
    const char *name;
    int dims;
    int64_t shape[TUTTI_TENSOR_MAX_DIMS];
    tutti_dtype dtype; /* F32, the default, or I64 of a file to be written */
} tutti_tensor_spec;

int64_t tutti_tensor_elements(const tutti_tensor_spec *spec);

/* "20x1x5x5", "scalar": for messages. Returns 'out'. */
char *tutti_tensor_shape_text(const tutti_tensor_spec *spec, char *out, size_t size);

/* ---- Writing ------------------------------------------------------------------------------ */

/* An entry of the header's "__metadata__". */
typedef struct tutti_fact {
    const char *name, *value;
} tutti_fact;

/* Where everything goes in a file of tensors. Copies the list. Fails (TUTTI_ARGUMENT) on an
 * empty or repeated name, on a shape that is negative or too large, and on another type. The header
 * of the second form carries facts, too. */
typedef struct tutti_safetensors_layout tutti_safetensors_layout;
tutti_status tutti_safetensors_layout_create(tutti_safetensors_layout **out,
                                             const tutti_tensor_spec *tensors,
                                             int count) TUTTI_MUST_CHECK;
tutti_status tutti_safetensors_layout_create_with(tutti_safetensors_layout **out,
                                                  const tutti_tensor_spec *tensors, int count,
                                                  const tutti_fact *facts,
                                                  int fact_count) TUTTI_MUST_CHECK;
void tutti_safetensors_layout_destroy(tutti_safetensors_layout **layout);

int tutti_safetensors_layout_count(const tutti_safetensors_layout *layout);
const tutti_tensor_spec *tutti_safetensors_layout_tensor(const tutti_safetensors_layout *layout,
                                                         int tensor);
uint64_t tutti_safetensors_layout_bytes(const tutti_safetensors_layout *layout); /* the file's */
uint64_t tutti_safetensors_layout_begin(const tutti_safetensors_layout *layout,
                                        int tensor); /* its first byte in the file */

/* The file's first bytes, up to the first tensor. */
const char *tutti_safetensors_layout_header(const tutti_safetensors_layout *layout, size_t *length);

/* A file being written, by one process or several, each with its own writer. They may open it in
 * any order: whoever finds no file makes it, in its full length; the one with 'first' writes the
 * header. A file that is there must be theirs. Ranges of different writers may share a page but not
 * an element. Borrows the layout. */
typedef struct tutti_safetensors_writer tutti_safetensors_writer;
tutti_status tutti_safetensors_writer_open(tutti_safetensors_writer **out, const char *path,
                                           const tutti_safetensors_layout *layout,
                                           bool first) TUTTI_MUST_CHECK;

/* Writes elements first .. first+count-1 of tensor number 'tensor' of the layout; those of an I64
 * tensor are whole numbers. */
tutti_status tutti_safetensors_write(tutti_safetensors_writer *writer, int tensor, int64_t first,
                                     const float *values, int64_t count) TUTTI_MUST_CHECK;

/* Waits until everything this writer wrote is on the disk, and closes. */
tutti_status tutti_safetensors_writer_close(tutti_safetensors_writer **writer) TUTTI_MUST_CHECK;
void tutti_safetensors_writer_abandon(tutti_safetensors_writer **writer); /* closes only */

/* ---- Reading ------------------------------------------------------------------------------ */

typedef struct tutti_safetensors tutti_safetensors;

typedef struct tutti_tensor_info {
    tutti_tensor_spec spec; /* the name belongs to the file's handle */
    uint64_t begin, end;    /* bytes of the file */
} tutti_tensor_info;

/* Reads and checks the whole header: lengths, names, types, shapes, offsets without gaps or
 * overlaps up to the last byte of the file. A failure (TUTTI_DATA or TUTTI_IO) names the file, and
 * the tensor where it is one tensor's fault. */
tutti_status tutti_safetensors_open(tutti_safetensors **out, const char *path) TUTTI_MUST_CHECK;
void tutti_safetensors_close(tutti_safetensors **file);

/* Tensors in the order of their data. */
int tutti_safetensors_count(const tutti_safetensors *file);
const tutti_tensor_info *tutti_safetensors_tensor(const tutti_safetensors *file, int tensor);
int tutti_safetensors_find(const tutti_safetensors *file, const char *name); /* -1: none */

/* An entry of the header's "__metadata__"; NULL: none. */
const char *tutti_safetensors_metadata(const tutti_safetensors *file, const char *key);

/* Reads elements first .. first+count-1 of a tensor as floats; F16, BF16, F64 and I64 are
 * converted (F64 and I64 round to nearest). A range beyond the tensor's end and a type that weights
 * cannot have are TUTTI_DATA. */
tutti_status tutti_safetensors_read(const tutti_safetensors *file, int tensor, int64_t first,
                                    float *values, int64_t count) TUTTI_MUST_CHECK;

#endif
