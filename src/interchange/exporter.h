/* A net becomes a graph of ONNX: each kind of layer is a record that writes its nodes. What a layer
 * computes is called after it; constants have the names of parameters, so that what is imported
 * again finds its weights. */
#ifndef TUTTI_INTERCHANGE_EXPORTER_H
#define TUTTI_INTERCHANGE_EXPORTER_H

#include "format/safetensors.h"
#include "format/wire.h"
#include "nn/net.h"

enum { TUTTI_OUTER = 160 }; /* characters of a name in the graph */

/* A parameter as a constant, perhaps in another shape. */
typedef struct tutti_outer_param {
    const tutti_param *param;
    int dims;
    int64_t size[4];
} tutti_outer_param;

typedef struct tutti_exporter {
    const tutti_net *net;
    const tutti_layer *layer; /* the one that is written */
    tutti_string nodes;       /* of the graph, as fields of it */
    tutti_string small;       /* constants that are no parameters, likewise */
    tutti_string node;        /* the one being written */
    tutti_outer_param *params;
    int param_count, node_count, constants;
    int *dims;      /* by layer: 4 of an image, 2 of a vector */
    bool is_merged; /* what is written is the activation at its end */
} tutti_exporter;

/* ---- nodes ---- */

/* A node of the layer; 'part' is "" for the one that is called as the layer, else what it does. */
void tutti_node_begin(tutti_exporter *x, const char *op, const char *part);
void tutti_node_in(tutti_exporter *x, const char *name);
void tutti_node_int(tutti_exporter *x, const char *name, int64_t value);
void tutti_node_ints(tutti_exporter *x, const char *name, const int64_t *values, int count);
void tutti_node_real(tutti_exporter *x, const char *name, double value);
void tutti_node_text(tutti_exporter *x, const char *name, const char *value);
void tutti_node_end(tutti_exporter *x, const char *out);

/* Constants of the graph; give their names in 'name'. */
const char *tutti_outer_ints(tutti_exporter *x, const int64_t *values, int count,
                             char name[TUTTI_OUTER]);
const char *tutti_outer_reals(tutti_exporter *x, const float *values, int dims, const int64_t *size,
                              char name[TUTTI_OUTER]);

/* The layer's parameter number 'index' in its own shape, or in 'dims' sizes; its name. */
const char *tutti_outer_param_of(tutti_exporter *x, int index, int dims, const int64_t *size);

/* What the layer's input number 'input' is called, as an image or as a vector: a node makes it so
 * where it is not. */
void tutti_outer_input(tutti_exporter *x, int input, int dims, char name[TUTTI_OUTER]);

/* What the graph says of a target: that of the net's answer is called "probabilities" or "values",
 * others "values2", after the target's number. */
void tutti_outer_answer(const tutti_net *net, int target, char name[TUTTI_OUTER]);
tutti_shape tutti_outer_answer_shape(const tutti_net *net, int target);

/* What the layer's own sum is called, before its activation, and what comes out. */
void tutti_outer_output(const tutti_exporter *x, char name[TUTTI_OUTER]);

/* An option of the layer. */
int64_t tutti_outer_number(const tutti_exporter *x, const char *key, int index);

/* ---- export_kinds.c ---- */

/* Writes nodes from 'in' to 'out'; gives the dimensions of what they make. */
typedef struct tutti_outer_kind {
    const char *kind;
    int dims; /* that it reads: 4, 2, or 0 for what comes */
    void (*write)(tutti_exporter *x, const char *in, const char *out);
    int makes; /* dimensions; 0: those it reads */
} tutti_outer_kind;

const tutti_outer_kind *tutti_outer_kind_find(const char *kind); /* NULL: there is none */

#endif
