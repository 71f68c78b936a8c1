/* Nets and weights from other programs, and for them: files of ONNX. */
#ifndef TUTTI_INTERCHANGE_H
#define TUTTI_INTERCHANGE_H

#include <stdbool.h>

#include <tutti/log.h>
#include <tutti/net.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_import_options {
    const char *model;   /* the file */
    const char *output;  /* PATH: PATH.net and PATH.safetensors are written */
    tutti_shape input;   /* of a sample, where the file leaves it open; else 0 */
    const char *classes; /* a file with a name a line; NULL: the model's own, or none */
    const char *mean,
        *std;      /* "0.485,0.456,0.406" of each channel, or one for all; NULL: not known */
    tutti_log log; /* hears what there is to know about the file */
} tutti_import_options;

typedef struct tutti_import_result {
    int layers, tensors; /* of PATH.net and PATH.safetensors */
} tutti_import_result;

/* Makes a net of the model that Tutti can train, and a file of its weights. Operators that Tutti
 * does not have are TUTTI_UNSUPPORTED, with the node; then nothing is written. */
TUTTI_API tutti_status tutti_import(const tutti_import_options *options,
                                    tutti_import_result *result) TUTTI_MUST_CHECK;

/* An operator that is understood, from 0; false after the last. Texts are constant. */
typedef struct tutti_operator_info {
    const char *name, *becomes, *limits;
} tutti_operator_info;

TUTTI_API bool tutti_import_operator(int index, tutti_operator_info *out);

typedef struct tutti_export_options {
    const char *net;     /* may be NULL where the weights tell theirs */
    const char *weights; /* a run (its best), a checkpoint, or a safetensors file */
    const char *onnx;    /* the file to write */
} tutti_export_options;

typedef struct tutti_export_result {
    int nodes, tensors;
} tutti_export_result;

/* Writes the net with these weights as a model of ONNX that computes what evaluation does: its
 * output are the probabilities. */
TUTTI_API tutti_status tutti_export(const tutti_export_options *options,
                                    tutti_export_result *result) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
