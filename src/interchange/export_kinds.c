#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "interchange/exporter.h"
#include "nn/kinds/kind.h"

enum { CONST = TUTTI_OUTER };

static void simple(tutti_exporter *x, const char *op, const char *in, const char *out)
{
    tutti_node_begin(x, op, "");
    tutti_node_in(x, in);
    tutti_node_end(x, out);
}

/* ---- windows ---- */

static void put_window(tutti_exporter *x, bool dilates)
{
    int64_t kernel[2], stride[2], dilation[2], pads[4];
    for (int i = 0; i < 2; i++) {
        const int64_t end = tutti_outer_number(x, "pad-end", i);
        kernel[i] = tutti_outer_number(x, "kernel", i);
        stride[i] = tutti_outer_number(x, "stride", i);
        pads[i] = tutti_outer_number(x, "pad", i);
        pads[2 + i] = end < 0 ? pads[i] : end;
        if (dilates) dilation[i] = tutti_outer_number(x, "dilation", i);
    }
    tutti_node_ints(x, "kernel_shape", kernel, 2);
    tutti_node_ints(x, "strides", stride, 2);
    tutti_node_ints(x, "pads", pads, 4);
    if (dilates) tutti_node_ints(x, "dilations", dilation, 2);
}

static void weighted(tutti_exporter *x, const char *op, const char *in)
{
    tutti_node_begin(x, op, "");
    tutti_node_in(x, in);
    for (int i = 0; i < x->layer->param_count; i++)
        tutti_node_in(x, tutti_outer_param_of(x, i, 0, NULL));
}

/* Weights as an image's, also those of a linear layer on each pixel. */
static void conv(tutti_exporter *x, const char *in, const char *out)
{
    const tutti_param *w = &x->net->params[x->layer->first_param];
    const int64_t size[4] = {w->dims[0], w->dims[1], w->dims[2], w->dims[3]};
    tutti_node_begin(x, "Conv", "");
    tutti_node_in(x, in);
    tutti_node_in(x, tutti_outer_param_of(x, 0, 4, size));
    if (x->layer->param_count > 1) tutti_node_in(x, tutti_outer_param_of(x, 1, 0, NULL));
    put_window(x, true);
    tutti_node_int(x, "group", tutti_outer_number(x, "groups", 0));
    tutti_node_end(x, out);
}

static void deconv(tutti_exporter *x, const char *in, const char *out)
{
    const int64_t more[2] = {tutti_outer_number(x, "output-pad", 0),
                             tutti_outer_number(x, "output-pad", 1)};
    weighted(x, "ConvTranspose", in);
    put_window(x, true);
    tutti_node_ints(x, "output_padding", more, 2);
    tutti_node_int(x, "group", tutti_outer_number(x, "groups", 0));
    tutti_node_end(x, out);
}

static void fc(tutti_exporter *x, const char *in, const char *out)
{
    weighted(x, "Gemm", in);
    tutti_node_int(x, "transB", 1);
    tutti_node_end(x, out);
}

static void maxpool(tutti_exporter *x, const char *in, const char *out)
{
    tutti_node_begin(x, "MaxPool", "");
    tutti_node_in(x, in);
    put_window(x, false);
    tutti_node_int(x, "ceil_mode", tutti_outer_number(x, "ceil", 0));
    tutti_node_end(x, out);
}

/* Means of windows that differ in size are a matrix: row o has 1/size at its window's places. */
static const char *means(tutti_exporter *x, int from, int to, bool turned, char name[CONST])
{
    const int64_t size[2] = {turned ? from : to, turned ? to : from};
    float *matrix = NULL;
    const tutti_status s = tutti_alloc(&matrix, (size_t)from * (size_t)to, sizeof *matrix);
    if (s != TUTTI_OK) x->small.status = s;
    for (int o = 0; o < to && matrix; o++) {
        const int first = (int)((int64_t)o * from / to);
        const int end = (int)(((int64_t)(o + 1) * from + to - 1) / to);
        for (int i = first; i < end; i++)
            matrix[turned ? i * to + o : o * from + i] = 1 / (float)(end - first);
    }
    if (matrix) tutti_outer_reals(x, matrix, 2, size, name);
    tutti_free(matrix);
    return name;
}

static void adaptive(tutti_exporter *x, const char *in, const char *out)
{
    const tutti_shape from = x->layer->in, to = x->layer->out;
    char rows[CONST] = "", columns[CONST] = "", between[TUTTI_OUTER];
    snprintf(between, sizeof between, "%.80s:rows", x->layer->name);
    tutti_node_begin(x, "MatMul", "rows");
    tutti_node_in(x, means(x, from.h, to.h, false, rows));
    tutti_node_in(x, in);
    tutti_node_end(x, between);
    tutti_node_begin(x, "MatMul", "");
    tutti_node_in(x, between);
    tutti_node_in(x, means(x, from.w, to.w, true, columns));
    tutti_node_end(x, out);
}

static void avgpool(tutti_exporter *x, const char *in, const char *out)
{
    const int64_t h = tutti_outer_number(x, "size", 0), w = tutti_outer_number(x, "size", 1);
    if (h > 0 && (x->layer->in.h % h || x->layer->in.w % w)) {
        adaptive(x, in, out);
        return;
    }
    tutti_node_begin(x, "AveragePool", "");
    tutti_node_in(x, in);
    put_window(x, false);
    tutti_node_int(x, "ceil_mode", tutti_outer_number(x, "ceil", 0));
    tutti_node_int(x, "count_include_pad", !tutti_outer_number(x, "exclude-pad", 0));
    tutti_node_end(x, out);
}

static void upsample(tutti_exporter *x, const char *in, const char *out)
{
    static const int64_t axes[2] = {2, 3};
    const int64_t size[2] = {x->layer->out.h, x->layer->out.w};
    const bool bilinear = tutti_outer_number(x, "mode", 0) == 1;
    const bool aligned = tutti_outer_number(x, "align-corners", 0) != 0;
    char constant[CONST];
    tutti_node_begin(x, "Resize", "");
    tutti_node_in(x, in);
    tutti_node_in(x, "");
    tutti_node_in(x, "");
    tutti_node_in(x, tutti_outer_ints(x, size, 2, constant));
    tutti_node_ints(x, "axes", axes, 2);
    tutti_node_text(x, "mode", bilinear ? "linear" : "nearest");
    tutti_node_text(x, "coordinate_transformation_mode",
                    aligned    ? "align_corners"
                    : bilinear ? "half_pixel"
                               : "asymmetric");
    tutti_node_text(x, "nearest_mode", "floor");
    tutti_node_end(x, out);
}

/* ---- activations ---- */

static void relu(tutti_exporter *x, const char *in, const char *out)
{
    simple(x, "Relu", in, out);
}

static void relu6(tutti_exporter *x, const char *in, const char *out)
{
    static const float limits[2] = {0, 6};
    char low[CONST], high[CONST];
    tutti_node_begin(x, "Clip", "relu6");
    tutti_node_in(x, in);
    tutti_node_in(x, tutti_outer_reals(x, &limits[0], 0, NULL, low));
    tutti_node_in(x, tutti_outer_reals(x, &limits[1], 0, NULL, high));
    tutti_node_end(x, out);
}

static void silu(tutti_exporter *x, const char *in, const char *out)
{
    char between[TUTTI_OUTER];
    snprintf(between, sizeof between, "%.80s:sigmoid", x->layer->name);
    tutti_node_begin(x, "Sigmoid", "sigmoid");
    tutti_node_in(x, in);
    tutti_node_end(x, between);
    tutti_node_begin(x, "Mul", "silu");
    tutti_node_in(x, in);
    tutti_node_in(x, between);
    tutti_node_end(x, out);
}

static void gelu(tutti_exporter *x, const char *in, const char *out)
{
    simple(x, "Gelu", in, out);
}

static void hardswish(tutti_exporter *x, const char *in, const char *out)
{
    simple(x, "HardSwish", in, out);
}

static void hardsigmoid(tutti_exporter *x, const char *in, const char *out)
{
    tutti_node_begin(x, "HardSigmoid", "hardsigmoid");
    tutti_node_in(x, in);
    tutti_node_real(x, "alpha", 1.0 / 6);
    tutti_node_real(x, "beta", 0.5);
    tutti_node_end(x, out);
}

static void leakyrelu(tutti_exporter *x, const char *in, const char *out)
{
    const double slope = tutti_layer_number(x->layer, "slope", 0);
    tutti_node_begin(x, "LeakyRelu", "leakyrelu");
    tutti_node_in(x, in);
    tutti_node_real(x, "alpha", slope > 0 ? slope : 0.01); /* of a fused one: the default */
    tutti_node_end(x, out);
}

static void sigmoid(tutti_exporter *x, const char *in, const char *out)
{
    simple(x, "Sigmoid", in, out);
}

static void hyperbolic(tutti_exporter *x, const char *in, const char *out)
{
    simple(x, "Tanh", in, out);
}

static void nothing(tutti_exporter *x, const char *in, const char *out)
{
    simple(x, "Identity", in, out);
}

/* ---- normalisation ---- */

static void layerscale(tutti_exporter *x, const char *in, const char *out)
{
    tutti_node_begin(x, "Mul", "");
    tutti_node_in(x, in);
    tutti_node_in(x, tutti_outer_param_of(x, 0, 0, NULL));
    tutti_node_end(x, out);
}

static void batchnorm(tutti_exporter *x, const char *in, const char *out)
{
    tutti_node_begin(x, "BatchNormalization", "");
    tutti_node_in(x, in);
    for (int i = 0; i < 4; i++) tutti_node_in(x, tutti_outer_param_of(x, i, 0, NULL));
    tutti_node_real(x, "epsilon", tutti_layer_number(x->layer, "eps", 0));
    tutti_node_real(x, "momentum", 1 - tutti_layer_number(x->layer, "momentum", 0));
    tutti_node_end(x, out);
}

static void transpose(tutti_exporter *x, const char *part, const int64_t *order, int dims,
                      const char *in, const char *out)
{
    tutti_node_begin(x, "Transpose", part);
    tutti_node_in(x, in);
    tutti_node_ints(x, "perm", order, dims);
    tutti_node_end(x, out);
}

static void layernorm(tutti_exporter *x, const char *in, const char *out)
{
    static const int64_t last[4] = {0, 2, 3, 1}, back[4] = {0, 3, 1, 2};
    const bool whole = tutti_outer_number(x, "whole", 0) > 0;
    char before[TUTTI_OUTER], after[TUTTI_OUTER];
    snprintf(before, sizeof before, "%.80s:last", x->layer->name);
    snprintf(after, sizeof after, "%.80s:normal", x->layer->name);
    if (!whole) transpose(x, "last", last, 4, in, before);
    tutti_node_begin(x, "LayerNormalization", "");
    tutti_node_in(x, whole ? in : before);
    for (int i = 0; i < 2; i++) tutti_node_in(x, tutti_outer_param_of(x, i, 0, NULL));
    if (whole) tutti_node_int(x, "axis", 1);
    tutti_node_real(x, "epsilon", tutti_layer_number(x->layer, "eps", 0));
    tutti_node_end(x, whole ? out : after);
    if (!whole) transpose(x, "back", back, 4, after, out);
}

static void reshape(tutti_exporter *x, const char *part, const int64_t *size, int dims,
                    const char *in, const char *out)
{
    char constant[CONST];
    tutti_node_begin(x, "Reshape", part);
    tutti_node_in(x, in);
    tutti_node_in(x, tutti_outer_ints(x, size, dims, constant));
    tutti_node_end(x, out);
}

/* As PyTorch's exporters write it: instances of groups, then factors and terms of channels. */
static void groupnorm(tutti_exporter *x, const char *in, const char *out)
{
    const tutti_shape s = x->layer->out;
    const int64_t groups = tutti_outer_number(x, "groups", 0), channels[3] = {s.c, 1, 1};
    const int64_t apart[3] = {0, groups, -1}, whole[4] = {0, s.c, s.h, s.w};
    char name[4][TUTTI_OUTER], constant[CONST];
    float *ones = NULL;
    const tutti_status status = tutti_alloc(&ones, 2 * (size_t)groups, sizeof *ones);
    if (status != TUTTI_OK) x->small.status = status;
    for (int64_t i = 0; ones && i < groups; i++) ones[i] = 1;
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%.80s:step%d", x->layer->name, i);
    reshape(x, "apart", apart, 3, in, name[0]);
    tutti_node_begin(x, "InstanceNormalization", "");
    tutti_node_in(x, name[0]);
    for (int i = 0; ones && i < 2; i++)
        tutti_node_in(x, tutti_outer_reals(x, ones + i * groups, 1, &groups, constant));
    tutti_node_real(x, "epsilon", tutti_layer_number(x->layer, "eps", 0));
    tutti_node_end(x, name[1]);
    reshape(x, "whole", whole, 4, name[1], name[2]);
    for (int i = 0; i < 2; i++) {
        tutti_node_begin(x, i ? "Add" : "Mul", i ? "term" : "factor");
        tutti_node_in(x, name[2 + i]);
        tutti_node_in(x, tutti_outer_param_of(x, i, 3, channels));
        tutti_node_end(x, i ? out : name[3]);
    }
    tutti_free(ones);
}

static void lrn(tutti_exporter *x, const char *in, const char *out)
{
    tutti_node_begin(x, "LRN", "");
    tutti_node_in(x, in);
    tutti_node_int(x, "size", tutti_outer_number(x, "size", 0));
    tutti_node_real(x, "alpha", tutti_layer_number(x->layer, "alpha", 0));
    tutti_node_real(x, "beta", tutti_layer_number(x->layer, "beta", 0));
    tutti_node_real(x, "bias", tutti_layer_number(x->layer, "k", 0));
    tutti_node_end(x, out);
}

/* ---- several inputs ---- */

static void joined(tutti_exporter *x, const char *op, int dims, const char *out)
{
    char(*names)[TUTTI_OUTER] = NULL;
    const tutti_status s = tutti_alloc(&names, (size_t)x->layer->input_count, sizeof *names);
    if (s != TUTTI_OK) x->nodes.status = s;
    for (int i = 0; names && i < x->layer->input_count; i++)
        tutti_outer_input(x, i, dims, names[i]);
    tutti_node_begin(x, op, "");
    for (int i = 0; names && i < x->layer->input_count; i++) tutti_node_in(x, names[i]);
    if (!strcmp(op, "Concat")) tutti_node_int(x, "axis", 1);
    tutti_node_end(x, out);
    tutti_free(names);
}

static void add(tutti_exporter *x, const char *in, const char *out)
{
    (void)in;
    joined(x, x->layer->input_count == 2 ? "Add" : "Sum", 4, out);
}

static void mul(tutti_exporter *x, const char *in, const char *out)
{
    (void)in;
    joined(x, "Mul", 4, out);
}

static void concat(tutti_exporter *x, const char *in, const char *out)
{
    (void)in;
    joined(x, "Concat", 4, out);
}

/* ---- channels ---- */

static void slice(tutti_exporter *x, const char *in, const char *out)
{
    static const int64_t axis[1] = {1};
    const int64_t first[1] = {tutti_outer_number(x, "first", 0)};
    const int64_t end[1] = {first[0] + x->layer->out.c};
    char constants[3][CONST];
    tutti_node_begin(x, "Slice", "");
    tutti_node_in(x, in);
    tutti_node_in(x, tutti_outer_ints(x, first, 1, constants[0]));
    tutti_node_in(x, tutti_outer_ints(x, end, 1, constants[1]));
    tutti_node_in(x, tutti_outer_ints(x, axis, 1, constants[2]));
    tutti_node_end(x, out);
}

static void shuffle(tutti_exporter *x, const char *in, const char *out)
{
    static const int64_t order[5] = {0, 2, 1, 3, 4};
    const tutti_shape s = x->layer->out;
    const int64_t groups = tutti_outer_number(x, x->layer->kind->argument.name, 0);
    const int64_t apart[5] = {0, groups, s.c / groups, s.h, s.w}, whole[4] = {0, s.c, s.h, s.w};
    char name[2][TUTTI_OUTER];
    for (int i = 0; i < 2; i++)
        snprintf(name[i], sizeof name[i], "%.80s:step%d", x->layer->name, i);
    reshape(x, "apart", apart, 5, in, name[0]);
    transpose(x, "", order, 5, name[0], name[1]);
    reshape(x, "whole", whole, 4, name[1], out);
}

static void softmax(tutti_exporter *x, const char *in, const char *out)
{
    tutti_node_begin(x, "Softmax", "");
    tutti_node_in(x, in);
    tutti_node_int(x, "axis", 1);
    tutti_node_end(x, out);
}

// clang-format off
static const tutti_outer_kind kinds[] = {
    {"add", 4, add, 0},             {"avgpool", 4, avgpool, 0},     {"batchnorm", 0, batchnorm, 0},
    {"bce", 0, sigmoid, 0},         {"concat", 4, concat, 0},       {"conv", 4, conv, 0},
    {"deconv", 4, deconv, 0},       {"dropout", 0, nothing, 0},     {"fc", 2, fc, 2},
    {"gelu", 0, gelu, 0},           {"groupnorm", 4, groupnorm, 0}, {"hardsigmoid", 0, hardsigmoid, 0},
    {"hardswish", 0, hardswish, 0}, {"huber", 0, nothing, 0},       {"l1", 0, nothing, 0},
    {"layernorm", 4, layernorm, 0}, {"layerscale", 4, layerscale, 0}, {"leakyrelu", 0, leakyrelu, 0},
    {"lrn", 4, lrn, 0},             {"maxpool", 4, maxpool, 0},     {"mse", 0, nothing, 0},
    {"mul", 4, mul, 0},             {"pixelsoftmax", 4, softmax, 4}, {"relu", 0, relu, 0},
    {"relu6", 0, relu6, 0},         {"shuffle", 4, shuffle, 0},     {"sigmoid", 0, sigmoid, 0},
    {"silu", 0, silu, 0},           {"slice", 4, slice, 0},         {"softmax", 2, softmax, 2},
    {"stochasticdepth", 0, nothing, 0}, {"tanh", 0, hyperbolic, 0}, {"upsample", 4, upsample, 0},
    {NULL, 0, NULL, 0},
};
// clang-format on

const tutti_outer_kind *tutti_outer_kind_find(const char *kind)
{
    for (const tutti_outer_kind *k = kinds; k->kind; k++)
        if (!strcmp(k->kind, kind)) return k;
    return NULL;
}
