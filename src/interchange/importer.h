/* A graph of ONNX becomes a net. The graph is walked once, node by node, in the file's order. A
 * name in it stands for a *value*: a constant, or what a layer computes, seen in some order
 * (aspect.h) and perhaps put through a function element by element that is not a layer yet
 * (curve.h). Each operator is a record, in a table with those of its group; it looks at its inputs'
 * values and adds layers, changes a view, continues a function, or computes a constant.
 *
 *   import.c         the walk, its beginning and its end
 *   operators.c      the tables of operators together
 *   on_windows.c     convolutions and pooling        on_products.c   Gemm, MatMul
 *   on_norms.c       normalisation                   on_elements.c   functions, sums, products
 *   on_views.c       what only rearranges            on_ends.c       Softmax and what does nothing
 *   on_shapes.c      arithmetic with shapes          fold.c          ... and with other constants
 *   value.c          constants and views, as operators ask for them
 *   curve.c          which layer a function is       draft.c         layers as they come to be
 *   recognise.c      ... by its values              whole.c          channels brought into order
 *   affine.c         factors and terms per channel
 *   names.c          what layers are called          written.c       the net's text and its weights
 *
 * Every failure is a sentence that names the node and its operator; nothing is written then. */
#ifndef TUTTI_INTERCHANGE_IMPORTER_H
#define TUTTI_INTERCHANGE_IMPORTER_H

#include <tutti/interchange.h>
#include "format/onnx.h"
#include "interchange/aspect.h"

enum { TUTTI_INPUT = -1, TUTTI_DRAFT_PARAMS = 5, TUTTI_DRAFT_WORDS = 224, TUTTI_CALLED = 64 };

/* ---- values ---- */

/* One of the two lists; it may be empty. */
typedef struct tutti_constant {
    int dims;
    int64_t size[TUTTI_ONNX_MAX_DIMS], count;
    float *reals;
    int64_t *integers;
    bool is_real;
    int name; /* in the file; TUTTI_ONNX_NONE: it was computed */
} tutti_constant;

typedef struct tutti_sampled tutti_sampled;

typedef struct tutti_value {
    tutti_constant *constant; /* NULL: it is what a layer computes */
    int layer;                /* a draft, or TUTTI_INPUT */
    tutti_aspect view;
    tutti_sampled *curve; /* of the layer's output, or of that of a layer before it; may be NULL */
    bool is_pending;      /* the curve is no layer yet */
    const tutti_onnx_node *turned,
        *taken;     /* that exchanged dimensions, that took a part; or NULL */
    int64_t pad[4]; /* top, left, bottom, right: zeros around it that no layer makes yet */
} tutti_value;

/* ---- layers ---- */

typedef struct tutti_draft_param {
    const char *suffix;
    float *values;
    int dims;
    int64_t size[4], count;
    bool counts; /* a whole number */
} tutti_draft_param;

/* How good a name is. */
typedef enum tutti_name_rank { TUTTI_NAME_KIND, TUTTI_NAME_NODE, TUTTI_NAME_PARAM } tutti_name_rank;

typedef struct tutti_draft {
    char name[TUTTI_CALLED];
    tutti_name_rank rank;
    const char *kind;
    int *inputs;
    int input_count;
    char words[TUTTI_DRAFT_WORDS]; /* " 64 kernel=3" */
    const char *activation;        /* or NULL */
    tutti_shape shape;
    tutti_draft_param params[TUTTI_DRAFT_PARAMS];
    int param_count;
    bool takes_factor; /* weights are ones so far: they can be multiplied */
    bool takes_term;   /* there is no bias so far, or zeros */
    bool is_frozen;
    int readers;
    int merged; /* this activation is now at the end of that layer; -1: it is not */
} tutti_draft;

typedef struct tutti_importer {
    char net_path[4096], weights_path[4096]; /* to be written */
    const tutti_onnx *model;
    const tutti_import_options *options;
    int *places;     /* by name: 1 + the number of the constant in the file; 0: it is none */
    int64_t samples; /* in a minibatch, as the file says; else a prime that no other size has */
    tutti_shape input;
    tutti_value **values; /* by name */
    int *uses;            /* by name: nodes that read it, and the graph's output */
    const tutti_onnx_node *node;
    tutti_draft *drafts;
    int draft_count, draft_room;
    tutti_constant **constants;
    int constant_count, constant_room;
    int64_t bytes_left;    /* of memory that the file's constants may still take */
    int64_t computed_left; /* elements that may still be computed: some, and more as were read */
    tutti_sampled **curves;
    int curve_count, curve_room;
    const char *ending; /* the operator that judges at the end: "Softmax"; NULL: none */
    int folded;         /* convolutions that batch normalisation was folded into */
} tutti_importer;

/* ---- operators ---- */

/* Converts a node, or with all inputs constant computes it; where the latter is a function of its
 * own there is a first input. */
typedef tutti_status tutti_convert(tutti_importer *im, const tutti_onnx_node *node);

typedef struct tutti_operator {
    const char *name;
    const char *becomes; /* for the table that people read: "conv" */
    const char *limits;  /* likewise: "two-dimensional; constant weights" */
    tutti_convert *convert, *fold;
} tutti_operator;

extern const tutti_operator tutti_on_windows[], tutti_on_products[], tutti_on_norms[],
    tutti_on_elements[], tutti_on_views[], tutti_on_ends[], tutti_on_shapes[];

const tutti_operator *tutti_operator_find(const char *name); /* NULL: there is none */

/* ---- value.c: asking for inputs, giving outputs ---- */

/* TUTTI_UNSUPPORTED with the node and what is the matter with it. */
tutti_status tutti_import_unknown(const tutti_importer *im, const char *format, ...)
    TUTTI_PRINTF(2, 3);

bool tutti_import_has(const tutti_onnx_node *node, int input);
tutti_value *tutti_import_input(const tutti_importer *im, const tutti_onnx_node *node, int input);

/* A constant of reals, of whole numbers; a list of whole numbers that was an attribute in old
 * opsets and is an input in new ones: 'count' is -1 where it is neither. Any other input is
 * unknown. */
tutti_status tutti_import_reals(tutti_importer *im, const tutti_onnx_node *node, int input,
                                const tutti_constant **out) TUTTI_MUST_CHECK;
tutti_status tutti_import_integers(tutti_importer *im, const tutti_onnx_node *node, int input,
                                   const tutti_constant **out) TUTTI_MUST_CHECK;
tutti_status tutti_import_list(tutti_importer *im, const tutti_onnx_node *node,
                               const char *attribute, int input, int64_t out[TUTTI_ONNX_MAX_DIMS],
                               int *count) TUTTI_MUST_CHECK;

/* An axis that may count from the end; unknown where there is none of that number. */
tutti_status tutti_import_axis(const tutti_importer *im, int64_t *axis, int dims) TUTTI_MUST_CHECK;

/* What a layer computes: with its function and padding made layers; all of it, in its order (some
 * layers may be added); as an image; as channels last, whatever its other dimensions. */
tutti_status tutti_import_feature(tutti_importer *im, const tutti_onnx_node *node, int input,
                                  tutti_value *out) TUTTI_MUST_CHECK;
tutti_status tutti_import_image(tutti_importer *im, const tutti_onnx_node *node, int input,
                                tutti_value *out) TUTTI_MUST_CHECK;

tutti_shape tutti_import_shape(const tutti_importer *im, int layer);

/* Makes the node's output number 'output' that value, which is copied. */
tutti_status tutti_import_give(tutti_importer *im, const tutti_onnx_node *node, int output,
                               const tutti_value *value) TUTTI_MUST_CHECK;

/* A constant of the importer's, zero; its shape is 'like', but for name and values. */
tutti_status tutti_import_constant(tutti_importer *im, const tutti_constant *like,
                                   tutti_constant **out) TUTTI_MUST_CHECK;
tutti_status tutti_import_give_constant(tutti_importer *im, const tutti_onnx_node *node,
                                        tutti_constant *c) TUTTI_MUST_CHECK;
tutti_status tutti_import_tensor(tutti_importer *im, const tutti_onnx_tensor *tensor,
                                 tutti_constant **out) TUTTI_MUST_CHECK;

/* A number of a constant, whatever it is. */
double tutti_constant_at(const tutti_constant *c, int64_t at);

/* ---- curve.c ---- */

/* Makes layers of the value's function and padding: then it is not pending. */
tutti_status tutti_import_settle(tutti_importer *im, tutti_value *value) TUTTI_MUST_CHECK;
void tutti_curves_destroy(tutti_importer *im);

/* ---- whole.c ---- */

/* Adds layers until the value is all of its layer, in its order; its dimensions stay. */
tutti_status tutti_import_whole(tutti_importer *im, tutti_value *value) TUTTI_MUST_CHECK;

/* The same unless all of it is there in some order: enough for what works element by element. */
tutti_status tutti_import_complete(tutti_importer *im, tutti_value *value) TUTTI_MUST_CHECK;

/* A layer of two inputs, "add" or "mul", whose shapes are equal, or as mul wants them. */
tutti_status tutti_import_join(tutti_importer *im, const char *kind, tutti_value *a, tutti_value *b,
                               tutti_value *out) TUTTI_MUST_CHECK;

/* ---- affine.c ---- */

/* value * constant or value + constant, where the constant has a number for each channel; 'what' is
 * the operator's name for complaints. */
tutti_status tutti_import_scale(tutti_importer *im, tutti_value *value, const tutti_constant *c,
                                bool divide) TUTTI_MUST_CHECK;
tutti_status tutti_import_shift(tutti_importer *im, tutti_value *value, const tutti_constant *c,
                                double sign) TUTTI_MUST_CHECK;

/* factor * value + term, for all channels alike: a frozen layer. */
tutti_status tutti_import_affine(tutti_importer *im, tutti_value *value, double factor,
                                 double term) TUTTI_MUST_CHECK;

/* Zeros around an image, as a layer. */
tutti_status tutti_import_pad(tutti_importer *im, tutti_value *value) TUTTI_MUST_CHECK;

/* ---- draft.c ---- */

/* A layer of that kind that reads 'inputs' and computes 'shape'; *out is its number. Names it after
 * the node. */
tutti_status tutti_draft_add(tutti_importer *im, const char *kind, const int *inputs, int count,
                             tutti_shape shape, int *out) TUTTI_MUST_CHECK;

/* Adds to its words. */
void tutti_draft_say(tutti_importer *im, int draft, const char *format, ...) TUTTI_PRINTF(3, 4);

/* " kernel=3", " kernel=1x3"; nothing where it is 'otherwise' twice. */
void tutti_draft_say_pair(tutti_importer *im, int draft, const char *word, int64_t height,
                          int64_t width, int64_t otherwise);

/* " eps=1e-06"; nothing where it is what the text means anyway. */
void tutti_draft_say_real(tutti_importer *im, int draft, const char *word, double value,
                          double otherwise);

/* A parameter of these sizes with these values, which are copied; NULL: all 'fill'. Gives its
 * values, to be changed. */
tutti_status tutti_draft_param_add(tutti_importer *im, int draft, const char *suffix, int dims,
                                   const int64_t *size, const float *values, float fill,
                                   float **out) TUTTI_MUST_CHECK;

/* A parameter whose values are a constant, reshaped; the layer is called as the constant is, if
 * that is called like a parameter. 'input' is where the node reads it. */
tutti_status tutti_draft_weight(tutti_importer *im, int draft, const char *suffix, int dims,
                                const int64_t *size, int input) TUTTI_MUST_CHECK;

/* An image or vector that a layer has made, seen in its order; with 'like' in the dimensions of
 * that. */
tutti_value tutti_import_made(const tutti_importer *im, int draft);
tutti_value tutti_import_made_like(const tutti_importer *im, int draft, const tutti_value *like);

/* ---- names.c ---- */

/* Calls the layer so if that is better than what it is called. */
void tutti_draft_call(tutti_draft *draft, tutti_name_rank rank, const char *name, size_t length);

/* After the node, with the kind behind it where the node's place does not say it. */
void tutti_draft_call_after_node(const tutti_importer *im, tutti_draft *draft);

/* After a parameter, "layer1.0.conv1.weight", where that is a name that people gave. */
void tutti_draft_call_after_param(const tutti_importer *im, tutti_draft *draft, int name);
bool tutti_name_is_given(const char *name); /* not made up by an exporter */

/* Makes names of the net's language, each once, of those of all layers. */
void tutti_drafts_name(tutti_importer *im);

/* ---- written.c ---- */

/* The net that ends with that layer: activations at the end of the layers they belong to, its text,
 * and both files, if the text is a net whose parameters are those that there are. */
tutti_status tutti_drafts_finish(tutti_importer *im, int last,
                                 tutti_import_result *result) TUTTI_MUST_CHECK;

#endif
