/* Functions element by element, sums and products. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "interchange/fold.h"

/* ---- functions of one input ---- */

/* Attributes of a function, in the order of its row. */
enum { MOST_SETTINGS = 2 };

static double relu(double x, const void *context)
{
    (void)context;
    return x > 0 ? x : 0;
}

static double leaky(double x, const void *context)
{
    const double *s = context;
    return x > 0 ? x : s[0] * x;
}

static double sigmoid(double x, const void *context)
{
    (void)context;
    return 1 / (1 + exp(-x));
}

static double hyperbolic(double x, const void *context)
{
    (void)context;
    return tanh(x);
}

static double hardsigmoid(double x, const void *context)
{
    const double *s = context;
    return fmax(0, fmin(1, s[0] * x + s[1]));
}

static double hardswish(double x, const void *context)
{
    (void)context;
    return x < -3 ? 0 : x * fmin(1, x / 6 + 0.5);
}

static double error_function(double x, const void *context)
{
    (void)context;
    return erf(x);
}

static double gelu(double x, const void *context)
{
    (void)context;
    return x < -100 ? 0 : x / 2 * (1 + erf(x / sqrt(2)));
}

static double gelu_by_tanh(double x, const void *context)
{
    (void)context;
    return x < -100 ? 0 : x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double swish(double x, const void *context)
{
    const double *s = context, z = s[0] * x;
    return z < -700 ? 0 : x / (1 + exp(-z));
}

static double exponential(double x, const void *context)
{
    (void)context;
    return exp(x);
}

static double softplus(double x, const void *context)
{
    (void)context;
    return x > 30 ? x : log1p(exp(x));
}

static double negative(double x, const void *context)
{
    (void)context;
    return -x;
}

static double absolute(double x, const void *context)
{
    (void)context;
    return fabs(x);
}

static double reciprocal(double x, const void *context)
{
    (void)context;
    return 1 / x;
}

static double root(double x, const void *context)
{
    (void)context;
    return sqrt(x);
}

static double rounded_down(double x, const void *context)
{
    (void)context;
    return floor(x);
}

static double rounded_up(double x, const void *context)
{
    (void)context;
    return ceil(x);
}

static const struct {
    const char *name;
    tutti_curve_function *f;
    const char *settings[MOST_SETTINGS];
    double defaults[MOST_SETTINGS];
} functions[] = {
    {"Relu", relu, {0}, {0}},
    {"LeakyRelu", leaky, {"alpha", NULL}, {0.01, 0}},
    {"Sigmoid", sigmoid, {0}, {0}},
    {"Tanh", hyperbolic, {0}, {0}},
    {"HardSigmoid", hardsigmoid, {"alpha", "beta"}, {0.2, 0.5}},
    {"HardSwish", hardswish, {0}, {0}},
    {"Gelu", gelu, {0}, {0}},
    {"Swish", swish, {"alpha", NULL}, {1, 0}},
    {"Erf", error_function, {0}, {0}},
    {"Exp", exponential, {0}, {0}},
    {"Softplus", softplus, {0}, {0}},
    {"Neg", negative, {0}, {0}},
    {"Abs", absolute, {0}, {0}},
    {"Reciprocal", reciprocal, {0}, {0}},
    {"Sqrt", root, {0}, {0}},
    {"Floor", rounded_down, {0}, {0}},
    {"Ceil", rounded_up, {0}, {0}},
    {NULL, NULL, {0}, {0}},
};

static tutti_curve_function *function_of(const tutti_onnx_node *node,
                                         double settings[MOST_SETTINGS])
{
    int i = 0;
    while (strcmp(functions[i].name, node->op)) i++;
    for (int k = 0; k < MOST_SETTINGS; k++)
        if (functions[i].settings[k])
            settings[k] =
                tutti_onnx_float(node, functions[i].settings[k], functions[i].defaults[k]);
    return tutti_onnx_text_is(node, "approximate", "tanh") ? gelu_by_tanh : functions[i].f;
}

static tutti_status on_function(tutti_importer *im, const tutti_onnx_node *node)
{
    double settings[MOST_SETTINGS] = {0};
    tutti_curve_function *f = function_of(node, settings);
    return tutti_curve_apply(im, node, 0, f, settings);
}

static tutti_status fold_function(tutti_importer *im, const tutti_onnx_node *node)
{
    double settings[MOST_SETTINGS] = {0};
    tutti_curve_function *f = function_of(node, settings);
    return tutti_fold_function(im, node, f, settings);
}

/* ---- limits ---- */

static double within(double x, const void *context)
{
    const double *limits = context;
    return fmax(limits[0], fmin(limits[1], x));
}

static tutti_status read_limit(tutti_importer *im, const tutti_onnx_node *node, int input,
                               const char *attribute, double *out)
{
    const tutti_value *v = tutti_import_input(im, node, input);
    *out = tutti_onnx_float(node, attribute, *out);
    if (!v) return TUTTI_OK;
    if (!v->constant || v->constant->count != 1)
        return tutti_import_unknown(im, "a limit that is no constant number");
    *out = tutti_constant_at(v->constant, 0);
    return TUTTI_OK;
}

static tutti_status on_clip(tutti_importer *im, const tutti_onnx_node *node)
{
    double limits[2] = {-INFINITY, INFINITY};
    TUTTI_TRY(read_limit(im, node, 1, "min", &limits[0]));
    TUTTI_TRY(read_limit(im, node, 2, "max", &limits[1]));
    return tutti_curve_apply(im, node, 0, within, limits);
}

static tutti_status on_prelu(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *slopes;
    TUTTI_TRY(tutti_import_reals(im, node, 1, &slopes));
    for (int64_t i = 1; i < slopes->count; i++)
        if (slopes->reals[i] != slopes->reals[0])
            return tutti_import_unknown(im, "a slope for each channel: Tutti has one for all");
    const double slope = slopes->count ? (double)slopes->reals[0] : 0;
    return tutti_curve_apply(im, node, 0, leaky, &slope);
}

/* ---- two inputs ---- */

static double sum(double a, double b)
{
    return a + b;
}

static double difference(double a, double b)
{
    return a - b;
}

static double product(double a, double b)
{
    return a * b;
}

static double quotient(double a, double b)
{
    return a / b;
}

static double power(double a, double b)
{
    return pow(a, b);
}

static double lesser(double a, double b)
{
    return fmin(a, b);
}

static double greater(double a, double b)
{
    return fmax(a, b);
}

static const struct pair_row {
    const char *name;
    tutti_curve_pair *f;
    tutti_curve_join join;
    const char *layer; /* of two inputs that are computed */
} pairs[] = {
    {"Add", sum, TUTTI_CURVE_SUM, "add"},         {"Sub", difference, TUTTI_CURVE_ALONE, NULL},
    {"Mul", product, TUTTI_CURVE_PRODUCT, "mul"}, {"Div", quotient, TUTTI_CURVE_ALONE, NULL},
    {"Pow", power, TUTTI_CURVE_ALONE, NULL},      {"Min", lesser, TUTTI_CURVE_ALONE, NULL},
    {"Max", greater, TUTTI_CURVE_ALONE, NULL},    {NULL, NULL, TUTTI_CURVE_ALONE, NULL},
};

static const struct pair_row *pair_of(const tutti_onnx_node *node)
{
    const struct pair_row *row = pairs;
    while (strcmp(row->name, node->op)) row++;
    return row;
}

/* A function of one input, the other being a number. */
typedef struct with_number {
    tutti_curve_pair *f;
    double number;
    bool is_first;
} with_number;

static double apply_number(double x, const void *context)
{
    const with_number *w = context;
    return w->is_first ? w->f(w->number, x) : w->f(x, w->number);
}

/* A number for each channel. */
static tutti_status with_channels(tutti_importer *im, const tutti_onnx_node *node, int at,
                                  const tutti_constant *c)
{
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 1 - at, &x));
    if (!c->is_real) return tutti_import_unknown(im, "its constant are whole numbers");
    if (c->dims > x.view.dims)
        return tutti_import_unknown(im, "its constant has more dimensions than its input");
    if (!strcmp(node->op, "Mul")) TUTTI_TRY(tutti_import_scale(im, &x, c, false));
    else if (!strcmp(node->op, "Div") && at) TUTTI_TRY(tutti_import_scale(im, &x, c, true));
    else if (!strcmp(node->op, "Add")) TUTTI_TRY(tutti_import_shift(im, &x, c, 1));
    else if (!strcmp(node->op, "Sub") && at) TUTTI_TRY(tutti_import_shift(im, &x, c, -1));
    else return tutti_import_unknown(im, "with a constant that differs from channel to channel");
    return tutti_import_give(im, node, 0, &x);
}

static tutti_status with_constant(tutti_importer *im, const tutti_onnx_node *node, int at)
{
    const tutti_constant *c = tutti_import_input(im, node, at)->constant;
    const tutti_value *x = tutti_import_input(im, node, 1 - at);
    if (c->count != 1 || c->dims > x->view.dims) return with_channels(im, node, at, c);
    const with_number w = {pair_of(node)->f, tutti_constant_at(c, 0), at == 0};
    return tutti_curve_apply(im, node, 1 - at, apply_number, &w);
}

static tutti_status on_pair(tutti_importer *im, const tutti_onnx_node *node)
{
    const struct pair_row *row = pair_of(node);
    const tutti_value *first = tutti_import_input(im, node, 0);
    const tutti_value *second = tutti_import_input(im, node, 1);
    tutti_value a, b, y;
    bool done;
    if (!first || !second || node->input_count > 2)
        return tutti_import_unknown(im, "it has not two inputs");
    if (first->constant) return with_constant(im, node, 0);
    if (second->constant) return with_constant(im, node, 1);
    TUTTI_TRY(tutti_curve_combine(im, node, row->f, row->join, &done));
    if (done) return TUTTI_OK;
    if (!row->layer)
        return tutti_import_unknown(im, "of two inputs that are computed: Tutti has sums and "
                                        "products");
    TUTTI_TRY(tutti_import_feature(im, node, 0, &a));
    TUTTI_TRY(tutti_import_feature(im, node, 1, &b));
    TUTTI_TRY(tutti_import_join(im, row->layer, &a, &b, &y));
    return tutti_import_give(im, node, 0, &y);
}

static double towards_zero(double a, double b)
{
    return b == 0 ? 0 : trunc(a / b);
}

static tutti_status fold_pair(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *a = tutti_fold_input(im, node, 0), *b = tutti_fold_input(im, node, 1);
    const struct pair_row *row = pair_of(node);
    const bool is_whole = a && b && !a->is_real && !b->is_real;
    return tutti_fold_pair(im, node, is_whole && row->f == quotient ? towards_zero : row->f);
}

/* ---- any number of inputs ---- */

static tutti_status on_sum(tutti_importer *im, const tutti_onnx_node *node)
{
    int *layers = NULL, draft = 0;
    tutti_value first, next;
    TUTTI_TRY(tutti_import_image(im, node, 0, &first));
    if (node->input_count == 1) return tutti_import_give(im, node, 0, &first);
    const tutti_shape shape = tutti_import_shape(im, first.layer);
    TUTTI_TRY(tutti_alloc(&layers, (size_t)node->input_count, sizeof *layers));
    tutti_status s = TUTTI_OK;
    for (int i = 0; s == TUTTI_OK && i < node->input_count; i++) {
        s = tutti_import_image(im, node, i, &next);
        layers[i] = next.layer;
        const tutti_shape other = s == TUTTI_OK ? tutti_import_shape(im, next.layer) : shape;
        if (memcmp(&other, &shape, sizeof other))
            s = tutti_import_unknown(im, "its inputs have different shapes");
    }
    if (s == TUTTI_OK) s = tutti_draft_add(im, "add", layers, node->input_count, shape, &draft);
    tutti_free(layers);
    if (s != TUTTI_OK) return s;
    const tutti_value y = {.layer = draft, .view = first.view};
    return tutti_import_give(im, node, 0, &y);
}

// clang-format off
const tutti_operator tutti_on_elements[] = {
    {"Relu", "relu", "", on_function, fold_function},
    {"LeakyRelu", "leakyrelu", "a slope between 0 and 1", on_function, NULL},
    {"PRelu", "leakyrelu", "one slope for all channels; it is not trained", on_prelu, NULL},
    {"Clip", "relu6; other limits with frozen factors", "limits in the file", on_clip, NULL},
    {"Sigmoid", "sigmoid, silu with Mul", "", on_function, NULL},
    {"Tanh", "tanh", "", on_function, NULL},
    {"HardSwish", "hardswish", "", on_function, NULL},
    {"HardSigmoid", "hardsigmoid; other slopes with frozen factors", "", on_function, NULL},
    {"Gelu", "gelu", "not its approximation by tanh", on_function, NULL},
    {"Swish", "silu", "alpha 1", on_function, NULL},
    {"Erf", "part of a gelu", "", on_function, NULL},
    {"Exp", "part of an activation", "", on_function, NULL},
    {"Softplus", "part of an activation", "", on_function, NULL},
    {"Neg", "a frozen factor", "", on_function, fold_function},
    {"Abs", "part of an activation", "", on_function, fold_function},
    {"Reciprocal", "part of an activation", "", on_function, fold_function},
    {"Sqrt", "arithmetic with constants", "", on_function, fold_function},
    {"Floor", "arithmetic with constants", "", on_function, fold_function},
    {"Ceil", "arithmetic with constants", "", on_function, fold_function},
    {"Add", "add, a bias, or a frozen term", "equal shapes; constants for channels", on_pair, fold_pair},
    {"Sub", "a bias, or a frozen term", "the second input in the file", on_pair, fold_pair},
    {"Mul", "mul, layerscale, or part of an activation", "as Add; or a factor for each channel", on_pair, fold_pair},
    {"Div", "a frozen factor, or part of an activation", "the second input in the file", on_pair, fold_pair},
    {"Pow", "part of an activation", "an exponent in the file", on_pair, fold_pair},
    {"Min", "part of an activation", "two inputs, one in the file", on_pair, fold_pair},
    {"Max", "part of an activation", "two inputs, one in the file", on_pair, fold_pair},
    {"Sum", "add", "images of equal shapes", on_sum, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
// clang-format on
