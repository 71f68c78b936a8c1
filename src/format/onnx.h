/* Files of the Open Neural Network Exchange, https://onnx.ai: a graph of operators and its
 * constants. The numbers of the fields are those of onnx.proto. This room knows what a file says,
 * not what an operator means.
 *
 * Why no library reads them: protobuf-c builds the whole file a second time in memory, follows
 * messages in messages as deep as a file has them, and would be one package more; what is needed of
 * the format is wire.h. A graph inside a node, the one way in which a file can be deep, is noticed
 * and not entered. */
#ifndef TUTTI_FORMAT_ONNX_H
#define TUTTI_FORMAT_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "format/wire.h"

enum {
    TUTTI_ONNX_MAX_DIMS = 8,
    TUTTI_ONNX_MAX_NODES = 1 << 17,
    TUTTI_ONNX_NONE = 0,     /* the name "", of what is left out */
    TUTTI_ONNX_UNKNOWN = -1, /* a size that the file leaves open */
};

typedef enum tutti_onnx_type {
    TUTTI_ONNX_FLOAT = 1,
    TUTTI_ONNX_UINT8 = 2,
    TUTTI_ONNX_INT8 = 3,
    TUTTI_ONNX_INT32 = 6,
    TUTTI_ONNX_INT64 = 7,
    TUTTI_ONNX_BOOL = 9,
    TUTTI_ONNX_FLOAT16 = 10,
    TUTTI_ONNX_DOUBLE = 11,
    TUTTI_ONNX_BFLOAT16 = 16
} tutti_onnx_type;

/* Names are numbers, from 1; equal names, equal numbers. */
typedef struct tutti_onnx_tensor {
    int name, dims;
    int64_t shape[TUTTI_ONNX_MAX_DIMS];
    int type; /* tutti_onnx_type, or one that is none of these */
    tutti_bytes message;
} tutti_onnx_tensor;

typedef struct tutti_onnx_node {
    const char *name, *op, *domain; /* "" for none */
    const char *scopes;             /* PyTorch's "['', 'layer1', 'layer1.0', 'add']"; "" for none */
    const int *inputs, *outputs;
    int input_count, output_count;
    tutti_bytes message;
} tutti_onnx_node;

/* An input or output of the graph. */
typedef struct tutti_onnx_port {
    int name, dims;
    int64_t shape[TUTTI_ONNX_MAX_DIMS];
} tutti_onnx_port;

typedef struct tutti_onnx {
    const char *path;     /* of the file */
    const char *producer; /* "pytorch" */
    int64_t opset;        /* of the operators without a domain */
    tutti_onnx_node *nodes;
    tutti_onnx_tensor *constants;
    tutti_onnx_port *inputs, *outputs;
    int node_count, constant_count, input_count, output_count, name_count;
    struct tutti_onnx_store *store; /* owns all of it */
} tutti_onnx;

/* Reads a file, but not its constants' values. What is damaged or makes no sense is
 * TUTTI_CHECKPOINT, with the file's name and where. */
tutti_status tutti_onnx_open(tutti_onnx **out, const char *path) TUTTI_MUST_CHECK;
void tutti_onnx_close(tutti_onnx **model); /* NULL inside is fine; leaves NULL */

const char *tutti_onnx_name(const tutti_onnx *model, int name);

/* What the model says of itself under that key; NULL: nothing. */
const char *tutti_onnx_metadata(const tutti_onnx *model, const char *key);

/* ---- a node's attributes; "TUTTI_CHECKPOINT" for one of another type ---- */

typedef struct tutti_onnx_attribute {
    tutti_bytes message; /* no start: there is none */
    int type;
} tutti_onnx_attribute;

enum {
    TUTTI_ONNX_A_FLOAT = 1,
    TUTTI_ONNX_A_INT = 2,
    TUTTI_ONNX_A_STRING = 3,
    TUTTI_ONNX_A_TENSOR = 4,
    TUTTI_ONNX_A_FLOATS = 6,
    TUTTI_ONNX_A_INTS = 7
};

bool tutti_onnx_has(const tutti_onnx_node *node, const char *attribute);

/* The attribute's value; 'fallback' where it is not there or of another type. */
int64_t tutti_onnx_int(const tutti_onnx_node *node, const char *attribute, int64_t fallback);
double tutti_onnx_float(const tutti_onnx_node *node, const char *attribute, double fallback);
bool tutti_onnx_text_is(const tutti_onnx_node *node, const char *attribute, const char *text);

/* Its list of at most 'room' numbers; gives how many there are in the file, 0 for none. */
int tutti_onnx_ints(const tutti_onnx_node *node, const char *attribute, int64_t *out, int room);
int tutti_onnx_floats(const tutti_onnx_node *node, const char *attribute, float *out, int room);

/* Its tensor; TUTTI_CHECKPOINT if it is none. */
tutti_status tutti_onnx_attribute_tensor(const tutti_onnx *model, const tutti_onnx_node *node,
                                         const char *attribute,
                                         tutti_onnx_tensor *out) TUTTI_MUST_CHECK;

/* ---- a tensor's values ---- */

bool tutti_onnx_is_real(const tutti_onnx_tensor *tensor);

/* How many it has; -1 for a shape that no file could fill. */
int64_t tutti_onnx_elements(const tutti_onnx_tensor *tensor);

/* Reads all values of a tensor of reals or of whole numbers; 'out' has room for all elements. Those
 * in a file beside the model are found there, and nowhere else. */
tutti_status tutti_onnx_reals(const tutti_onnx *model, const tutti_onnx_tensor *tensor,
                              float *out) TUTTI_MUST_CHECK;
tutti_status tutti_onnx_integers(const tutti_onnx *model, const tutti_onnx_tensor *tensor,
                                 int64_t *out) TUTTI_MUST_CHECK;

/* Could the file, or those beside it, hold them? Ask before making room. */
tutti_status tutti_onnx_check_size(const tutti_onnx *model,
                                   const tutti_onnx_tensor *tensor) TUTTI_MUST_CHECK;

/* ---- for onnx_*.c ---- */

tutti_status tutti_onnx_read_tensor(const tutti_onnx *model, tutti_bytes message,
                                    tutti_onnx_tensor *out) TUTTI_MUST_CHECK;
tutti_status tutti_onnx_damaged(const char *path, const char *what);

#endif
