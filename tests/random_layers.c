#include <stdio.h>
#include <string.h>

#include "random_maker.h"

/* ---- words that several kinds have ---- */

static void say_pair(maker *m, const char *key, const int pair[2])
{
    if (pair[0] == pair[1]) say(m, " %s=%d", key, pair[0]);
    else say(m, " %s=%dx%d", key, pair[0], pair[1]);
}

static const char *const activations[] = {
    "relu", "relu6", "silu", "gelu", "hardswish", "hardsigmoid", "leakyrelu", "sigmoid", "tanh"};

static void say_activation(maker *m)
{
    if (one_in(m, 2)) return;
    say(m, " %s", one_in(m, 3) ? "relu" : ONE_OF(m, activations));
}

/* How a layer with parameters is trained. */
static void say_tuning(maker *m)
{
    static const char *const rates[] = {"", "", "", "", " lr=0.25", " lr=3"};
    const bool frozen = m->frost && one_in(m, m->frost);
    say(m, "%s", frozen ? " frozen" : ONE_OF(m, rates));
    m->trains |= !frozen;
}

static void say_weights(maker *m)
{
    static const char *const biases[] = {"", "", "", " bias=0.125", " nobias"};
    static const char *const inits[] = {
        "", "", "", " init=xavier", " init=he", " init=gaussian std=0.25"};
    static const char *const precisions[] = {"", "", "", "", "", "", " precision=fp32"};
    say(m, "%s%s%s", ONE_OF(m, biases), ONE_OF(m, inits), ONE_OF(m, precisions));
    say_tuning(m);
}

/* ---- kinds ---- */

/* Channels of convolutions: one, several, blocks of 16 and around them. */
static int some_channels(maker *m)
{
    static const int channels[] = {1, 2, 3, 5, 8, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 48};
    return ONE_OF(m, channels);
}

/* Features of fc: blocks of 64 are what may be split. */
static int some_features(maker *m)
{
    static const int features[] = {1,  2,   7,   10,  16,  17,  33,  48,  63,  64, 65,
                                   70, 100, 127, 128, 129, 130, 192, 200, 257, 320};
    return ONE_OF(m, features);
}

static bool spend(maker *m, double macs)
{
    if (macs > m->budget) return false;
    m->budget -= macs;
    return true;
}

/* Slides a window over the value; false if it does not fit. */
typedef struct random_window {
    int kernel[2], stride[2], pad[2], pad_end[2], dilation[2];
    bool ceil;
} random_window;

static bool slide(const random_layer *in, const random_window *w, int out[2])
{
    const int size[2] = {in->h, in->w};
    for (int i = 0; i < 2; i++) {
        const int room =
            size[i] + w->pad[i] + w->pad_end[i] - (w->kernel[i] - 1) * w->dilation[i] - 1;
        if (room < 0) return false;
        out[i] = (room + (w->ceil ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
        if (w->ceil && (out[i] - 1) * w->stride[i] >= size[i] + w->pad[i]) out[i]--;
    }
    return true;
}

/* The same padding on both sides, or now and then other padding at the end. */
static void some_pad_end(maker *m, random_window *w)
{
    const bool other = one_in(m, 5);
    for (int i = 0; i < 2; i++) w->pad_end[i] = other ? below(m, w->kernel[i]) : w->pad[i];
}

static void say_pads(maker *m, const random_window *w)
{
    if (w->pad[0] + w->pad[1] > 0) say_pair(m, "pad", w->pad);
    if (memcmp(w->pad, w->pad_end, sizeof w->pad) != 0) say_pair(m, "pad-end", w->pad_end);
}

/* Two of 1 .. most, mostly equal. */
static void some_pair(maker *m, int least, int most, int pair[2])
{
    pair[0] = pair[1] = least + below(m, most - least + 1);
    if (one_in(m, 5)) pair[1] = least + below(m, most - least + 1);
}

static int common_divisor(maker *m, int a, int b)
{
    int divisors[64], count = 0;
    for (int d = 1; d <= a && d <= b && count < 64; d++)
        if (a % d == 0 && b % d == 0) divisors[count++] = d;
    return divisors[below(m, count)];
}

static bool is_pointwise(const random_window *w)
{
    const int pads = w->pad[0] + w->pad[1] + w->pad_end[0] + w->pad_end[1];
    return w->kernel[0] * w->kernel[1] * w->stride[0] * w->stride[1] == 1 && pads == 0;
}

/* Winograd's are for 3x3 kernels at stride 1. */
static void say_algorithm(maker *m, const random_window *w, int groups, bool may_transform)
{
    static const char *const words[] = {"direct", "auto", "winograd-2x2", "winograd-4x4"};
    const bool three = w->kernel[0] == 3 && w->kernel[1] == 3;
    const int steps = w->stride[0] * w->stride[1] * w->dilation[0] * w->dilation[1];
    const bool any = may_transform && three && steps == 1 && groups == 1;
    if (any || one_in(m, 6)) say(m, " algorithm=%s", words[below(m, any ? 4 : 2)]);
}

static bool make_conv(maker *m, int from)
{
    const random_layer in = *value_at(m, from);
    const int k = one_in(m, 4) ? in.c : some_channels(m);
    const int groups = one_in(m, 3) ? common_divisor(m, in.c, k) : 1;
    random_window w = {.kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}};
    int out[2];
    if (one_in(m, 3)) w.kernel[0] = w.kernel[1] = 1;
    else if (one_in(m, 2)) some_pair(m, 1, 5, w.kernel);
    if (one_in(m, 3)) some_pair(m, 1, 3, w.stride);
    if (one_in(m, 4)) some_pair(m, 1, 3, w.dilation);
    some_pair(m, 0, one_in(m, 8) ? 4 : w.kernel[0] / 2, w.pad);
    some_pad_end(m, &w);
    if (!slide(&in, &w, out)) return false;
    const double taps = (double)w.kernel[0] * w.kernel[1];
    if (!spend(m, taps * in.c / groups * k * out[0] * out[1])) return false;
    random_layer *layer = begin(m, "conv", from);
    layer->c = k, layer->h = out[0], layer->w = out[1];
    say(m, " %d", k);
    say_pair(m, "kernel", w.kernel);
    if (w.stride[0] * w.stride[1] > 1) say_pair(m, "stride", w.stride);
    say_pads(m, &w);
    if (w.dilation[0] * w.dilation[1] > 1) say_pair(m, "dilation", w.dilation);
    if (groups > 1) say(m, " groups=%d", groups);
    else if (is_pointwise(&w) && one_in(m, 2)) say(m, " linear");
    say_algorithm(m, &w, groups, from > 0 || in.c >= 16); /* not of images of few channels */
    say_activation(m);
    say_weights(m);
    end(m, from);
    return true;
}

static bool make_deconv(maker *m, int from)
{
    const random_layer in = *value_at(m, from);
    const int k = one_in(m, 4) ? in.c : some_channels(m);
    const int groups = one_in(m, 3) ? common_divisor(m, in.c, k) : 1;
    random_window w = {.stride = {1, 1}, .dilation = {1, 1}};
    int more[2], out[2];
    some_pair(m, 1, 4, w.kernel);
    some_pair(m, 1, 3, w.stride);
    if (one_in(m, 4)) some_pair(m, 1, 2, w.dilation);
    some_pair(m, 0, w.kernel[0] / 2, w.pad);
    some_pad_end(m, &w);
    for (int i = 0; i < 2; i++) {
        more[i] = below(m, w.stride[i]);
        out[i] = ((i ? in.w : in.h) - 1) * w.stride[i] - w.pad[i] - w.pad_end[i] +
                 (w.kernel[i] - 1) * w.dilation[i] + more[i] + 1;
        if (out[i] < 1 || out[i] > 20) return false;
    }
    const double taps = (double)w.kernel[0] * w.kernel[1];
    if (!spend(m, taps * in.c / groups * k * pixels(&in))) return false;
    random_layer *layer = begin(m, "deconv", from);
    layer->c = k, layer->h = out[0], layer->w = out[1];
    say(m, " %d", k);
    say_pair(m, "kernel", w.kernel);
    if (w.stride[0] * w.stride[1] > 1) say_pair(m, "stride", w.stride);
    say_pads(m, &w);
    if (more[0] + more[1] > 0) say_pair(m, "output-pad", more);
    if (w.dilation[0] * w.dilation[1] > 1) say_pair(m, "dilation", w.dilation);
    if (groups > 1) say(m, " groups=%d", groups);
    say_algorithm(m, &w, groups, true);
    say_activation(m);
    say_weights(m);
    end(m, from);
    return true;
}

bool make_fc_of(maker *m, int from, int features)
{
    const random_layer *in = value_at(m, from);
    if (!spend(m, (double)in->c * pixels(in) * features)) return false;
    random_layer *layer = begin(m, "fc", from);
    layer->fc = true;
    layer->c = features, layer->h = layer->w = 1;
    say(m, " %d", features);
    say_activation(m);
    say_weights(m);
    end(m, from);
    return true;
}

static bool make_fc(maker *m, int from)
{
    return make_fc_of(m, from, some_features(m));
}

bool make_global_pool(maker *m, int from)
{
    random_layer *layer = begin(m, one_in(m, 2) ? "avgpool" : "maxpool", from);
    layer->h = layer->w = 1;
    say(m, " global");
    end(m, from);
    return true;
}

static bool make_sized_pool(maker *m, int from)
{
    int size[2];
    some_pair(m, 1, 5, size);
    random_layer *layer = begin(m, "avgpool", from);
    layer->h = size[0], layer->w = size[1];
    say_pair(m, "size", size);
    end(m, from);
    return true;
}

static bool make_pool(maker *m, int from)
{
    const random_layer in = *value_at(m, from);
    random_window w = {.dilation = {1, 1}, .ceil = one_in(m, 3)};
    const bool own = one_in(m, 2), mean = one_in(m, 2);
    int out[2];
    if (one_in(m, 6)) return make_global_pool(m, from);
    if (one_in(m, 5)) return make_sized_pool(m, from);
    some_pair(m, 1, 4, w.kernel);
    some_pair(m, 1, 3, w.stride);
    for (int i = 0; i < 2; i++) {
        if (!own) w.stride[i] = w.kernel[i];
        w.pad[i] = one_in(m, 3) ? below(m, w.kernel[i] / 2 + 1) : 0;
    }
    some_pad_end(m, &w);
    if (!slide(&in, &w, out)) return false;
    random_layer *layer = begin(m, mean ? "avgpool" : "maxpool", from);
    layer->h = out[0], layer->w = out[1];
    say_pair(m, "kernel", w.kernel);
    if (own) say_pair(m, "stride", w.stride);
    say_pads(m, &w);
    if (w.ceil) say(m, " ceil");
    if (mean && one_in(m, 3)) say(m, " exclude-pad");
    end(m, from);
    return true;
}

static bool make_activation(maker *m, int from)
{
    begin(m, ONE_OF(m, activations), from)->elementwise = true;
    end(m, from);
    return true;
}

static bool make_slice(maker *m, int from)
{
    random_layer *layer = begin(m, "slice", from);
    const int first = below(m, layer->c), end_at = first + 1 + below(m, layer->c - first);
    if (first) say(m, " first=%d", first);
    if (end_at < layer->c) say(m, " end=%d", end_at);
    layer->c = end_at - first;
    end(m, from);
    return true;
}

static bool make_shuffle(maker *m, int from)
{
    const int c = value_at(m, from)->c;
    begin(m, "shuffle", from);
    say(m, " %d", common_divisor(m, c, c));
    end(m, from);
    return true;
}

static bool make_upsample(maker *m, int from)
{
    static const char *const modes[] = {"", " mode=nearest", " mode=bilinear",
                                        " mode=bilinear align-corners"};
    const random_layer in = *value_at(m, from);
    int size[2];
    some_pair(m, 1, 3, size);
    const bool scale = one_in(m, 2);
    if (scale && in.c * pixels(&in) * size[0] * size[1] > 5000) return false;
    random_layer *layer = begin(m, "upsample", from);
    if (!scale) some_pair(m, 1, 12, size);
    say_pair(m, scale ? "scale" : "size", size);
    say(m, "%s", ONE_OF(m, modes));
    layer->h = size[0] * (scale ? in.h : 1), layer->w = size[1] * (scale ? in.w : 1);
    end(m, from);
    return true;
}

/* Kinds whose line says it all. */
static bool make_plain(maker *m, int from)
{
    static const char *const lines[] = {
        "dropout 0",         "dropout 0.25",        "dropout 0.9",   "stochasticdepth 0.25",
        "stochasticdepth 0", "stochasticdepth 0.5", "lrn 1 k=2",     "lrn 7 alpha=0.5 beta=1",
        "layerscale init=1", "layerscale init=-2",  "lrn 3 alpha=1", "lrn 6 alpha=0.1 beta=0.5"};
    const char *line = ONE_OF(m, lines);
    begin(m, line, from)->elementwise = line[0] != 'l';
    if (strstr(line, "init")) say_tuning(m);
    end(m, from);
    return true;
}

static bool make_batchnorm(maker *m, int from)
{
    static const char *const groups[] = {"",         " group=all", " group=5", " group=10",
                                         " group=2", " group=3",   " group=6"};
    static const char *const options[] = {"", "", " eps=0.01", " momentum=0.25"};
    begin(m, "batchnorm", from);
    /* of one pixel a last group of one sample is no use: minibatches have 13 */
    say(m, "%s", groups[below(m, pixels(value_at(m, from)) > 1 ? 7 : 4)]);
    say(m, "%s", ONE_OF(m, options));
    say_activation(m);
    say_tuning(m);
    end(m, from);
    return true;
}

static bool make_sample_norm(maker *m, int from)
{
    static const char *const lines[] = {"layernorm", "layernorm eps=0.01", "layernorm whole",
                                        "layernorm whole eps=0.1"};
    const int c = value_at(m, from)->c;
    if (one_in(m, 2)) begin(m, ONE_OF(m, lines), from);
    else {
        begin(m, "groupnorm", from);
        say(m, " %d", common_divisor(m, c, c));
    }
    say_activation(m);
    say_tuning(m);
    end(m, from);
    return true;
}

/* Values that 'from' can be joined with: of its shape, or only of its height and width. */
static int partners(maker *m, int from, bool same_channels, int *list)
{
    const random_layer *a = value_at(m, from);
    int count = 0;
    for (int i = 0; i <= last_value(m); i++) {
        const random_layer *b = value_at(m, i);
        const bool fits = a->h == b->h && a->w == b->w && (a->c == b->c || !same_channels);
        if (fits && (i != from || one_in(m, 4))) list[count++] = i;
    }
    return count;
}

void join(maker *m, const char *kind, const int *from, int count)
{
    random_layer *layer = begin(m, kind, from[0]);
    say(m, " %s", value_at(m, from[0])->name);
    layer->concat = kind[0] == 'c';
    for (int i = 1; i < count; i++) {
        const random_layer *other = value_at(m, from[i]);
        if (pixels(other) > pixels(layer)) layer->h = other->h, layer->w = other->w;
        layer->from[layer->from_count++] = from[i];
        value_at(m, from[i])->readers++;
        if (layer->concat) layer->c += value_at(m, from[i])->c;
        say(m, " %s", value_at(m, from[i])->name);
    }
    say_activation(m);
    say(m, "\n");
}

static bool make_join(maker *m, int from, bool concat)
{
    int list[RANDOM_LAYERS + 1], chosen[4] = {from}, channels = value_at(m, from)->c;
    const int count = partners(m, from, !concat, list), most = 2 + below(m, 3);
    int n = 1;
    while (count && n < most) {
        const int other = list[below(m, count)];
        chosen[n++] = other;
        channels += value_at(m, other)->c;
    }
    if (n < 2 || (concat && channels > (pixels(value_at(m, from)) > 1 ? 100 : 700))) return false;
    join(m, concat ? "concat" : "add", chosen, n);
    return true;
}

static bool make_add(maker *m, int from)
{
    return make_join(m, from, false);
}

/* Squeeze-and-excitation, or two values of one shape. */
static bool make_mul(maker *m, int from)
{
    int list[RANDOM_LAYERS + 1], chosen[2] = {from};
    const int count = partners(m, from, true, list);
    if (last_value(m) > RANDOM_LAYERS / 2) return false; /* leave room for what must follow */
    if (one_in(m, 2)) {
        make_global_pool(m, from);
        if (one_in(m, 2)) make_activation(m, last_value(m));
        chosen[1] = last_value(m);
    } else if (count) chosen[1] = list[below(m, count)];
    else return false;
    if (one_in(m, 2)) chosen[0] = chosen[1], chosen[1] = from;
    join(m, "mul", chosen, 2);
    return true;
}

static bool make_concat(maker *m, int from)
{
    return make_join(m, from, true);
}

random_maker *const random_makers[] = {
    make_conv,      make_conv,   make_conv,        make_conv,     make_fc,
    make_fc,        make_pool,   make_activation,  make_plain,    make_plain,
    make_add,       make_concat, make_mul,         make_slice,    make_shuffle,
    make_batchnorm, make_plain,  make_sample_norm, make_upsample, make_deconv,
};
const int random_maker_count = sizeof random_makers / sizeof *random_makers;
