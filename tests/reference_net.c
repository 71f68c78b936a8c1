#include "reference_net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference_kinds.h"

enum { MOST_OPS = 128, MOST_WORDS = 32, MOST_LOSSES = 4 };

struct reference_net {
    int op_count; /* all but the loss, which is last */
    op ops[MOST_OPS];
    value values[REFERENCE_MOST_SAMPLES][MOST_OPS]; /* the sample, then what each op gives */
    int loss_count;
    reference_loss losses[MOST_LOSSES];
    int parameter_count;
    tensor parameters[5 * MOST_OPS];
    int name_count; /* of layers: what they are called, and which value they give */
    char names[MOST_OPS][64];
    int given[MOST_OPS];
};

static const kind kinds[] = {
    {"conv", FEATURES, true, shape_conv, conv_forward, conv_backward},
    {"deconv", FEATURES, true, shape_deconv, deconv_forward, deconv_backward},
    {"fc", FEATURES, true, shape_fc, fc_forward, fc_backward},
    {"maxpool", NO_ARGUMENT, false, shape_pool, maxpool_forward, maxpool_backward},
    {"avgpool", NO_ARGUMENT, false, shape_pool, avgpool_forward, avgpool_backward},
    {"relu", NO_ARGUMENT, false, shape_same, relu_forward, relu_backward},
    {"relu6", NO_ARGUMENT, false, shape_same, relu6_forward, relu6_backward},
    {"silu", NO_ARGUMENT, false, shape_same, silu_forward, silu_backward},
    {"gelu", NO_ARGUMENT, false, shape_same, gelu_forward, gelu_backward},
    {"hardswish", NO_ARGUMENT, false, shape_same, hardswish_forward, hardswish_backward},
    {"hardsigmoid", NO_ARGUMENT, false, shape_same, hardsigmoid_forward, hardsigmoid_backward},
    {"leakyrelu", NO_ARGUMENT, false, shape_same, leaky_forward, leaky_backward},
    {"sigmoid", NO_ARGUMENT, false, shape_same, sigmoid_forward, sigmoid_backward},
    {"tanh", NO_ARGUMENT, false, shape_same, tanh_forward, tanh_backward},
    {"dropout", RATE, false, shape_same, dropout_forward, dropout_backward},
    {"layerscale", NO_ARGUMENT, true, shape_same, layerscale_forward, layerscale_backward},
    {"stochasticdepth", RATE, false, shape_same, depth_forward, depth_backward},
    {"lrn", FEATURES, false, shape_same, lrn_forward, lrn_backward},
    {"batchnorm", NO_ARGUMENT, true, shape_same, NULL, NULL},
    {"groupnorm", FEATURES, true, shape_same, sample_norm_forward, sample_norm_backward},
    {"layernorm", NO_ARGUMENT, true, shape_same, sample_norm_forward, sample_norm_backward},
    {"add", NAMES, false, shape_same, join_forward, join_backward},
    {"mul", NAMES, false, shape_mul, mul_forward, mul_backward},
    {"slice", NO_ARGUMENT, false, shape_slice, channels_forward, channels_backward},
    {"shuffle", FEATURES, false, shape_same, channels_forward, channels_backward},
    {"upsample", NO_ARGUMENT, false, shape_upsample, upsample_forward, upsample_backward},
    {"concat", NAMES, false, shape_concat, join_forward, join_backward},
    {"softmax", NO_ARGUMENT, false, NULL, NULL, NULL},
    {"pixelsoftmax", NO_ARGUMENT, false, NULL, NULL, NULL},
    {"mse", NO_ARGUMENT, false, NULL, NULL, NULL},
    {"l1", NO_ARGUMENT, false, NULL, NULL, NULL},
    {"huber", NO_ARGUMENT, false, NULL, NULL, NULL},
    {"bce", NO_ARGUMENT, false, NULL, NULL, NULL},
};

/* ---- reading ---- */

static const kind *kind_named(const char *word)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(word, kinds[i].word)) return &kinds[i];
    return NULL;
}

static void *give_up(const char *what, const char *word)
{
    fprintf(stderr, "reference_net: %s '%s'\n", what, word);
    abort();
}

/* The value of that name, -1 if there is none. */
static int value_named(const reference_net *net, const char *name)
{
    if (!strcmp(name, "input")) return 0;
    for (int i = 0; i < net->name_count; i++)
        if (!strcmp(name, net->names[i])) return net->given[i];
    return -1;
}

/* Of value 'i', whose shape the first sample's has. */
static void make_room(reference_net *net, int i)
{
    for (int s = 0; s < REFERENCE_MOST_SAMPLES; s++) {
        value *x = &net->values[s][i];
        double **const all[] = {&x->v, &x->v_error, &x->d, &x->d_error};
        *x = net->values[0][i];
        for (int k = 0; k < 4; k++) *all[k] = calloc(value_count(x), sizeof **all[k]);
    }
}

static int add_parameter(reference_net *net, size_t count)
{
    tensor *t = &net->parameters[net->parameter_count];
    double **const all[] = {&t->v, &t->d, &t->size, &t->error};
    for (int i = 0; i < 4; i++) *all[i] = calloc(count, sizeof **all[i]);
    t->count = count;
    return net->parameter_count++;
}

static void add_norm_parameters(reference_net *net, op *o)
{
    const size_t channels = (size_t)net->values[0][o->from[0]].c;
    o->weight = add_parameter(net, channels);
    o->bias = add_parameter(net, channels);
    o->more = add_parameter(net, channels);
    add_parameter(net, channels);
    add_parameter(net, 1);
}

static void add_parameters(reference_net *net, op *o)
{
    const value *in = &net->values[0][o->from[0]];
    const size_t features = (size_t)o->features;
    if (o->kind->shape == shape_same) { /* one for each channel, or for each value */
        const size_t count = o->whole ? value_count(in) : (size_t)in->c;
        o->weight = add_parameter(net, count);
        if (o->kind->forward == sample_norm_forward) o->bias = add_parameter(net, count);
        return;
    }
    const bool windows = o->kind->shape != shape_fc;
    const size_t rows =
        windows ? (size_t)(in->c / o->groups * o->kernel[0] * o->kernel[1]) : value_count(in);
    o->weight = add_parameter(net, features * rows);
    if (!o->no_bias) o->bias = add_parameter(net, features);
}

/* Adds an op whose options are known; returns the value it gives. */
static int add_op(reference_net *net, const op *described)
{
    op *o = &net->ops[net->op_count];
    const value *in[MOST_INPUTS];
    value *out = &net->values[0][++net->op_count];
    *o = *described;
    if (net->op_count == MOST_OPS) give_up("too many layers at", o->kind->word);
    o->weight = o->bias = o->more = -1;
    for (int k = 0; k < o->input_count; k++) in[k] = &net->values[0][o->from[k]];
    o->kind->shape(o, in, out);
    make_room(net, net->op_count);
    if (!o->kind->forward) add_norm_parameters(net, o);
    else if (o->kind->has_parameters) add_parameters(net, o);
    return net->op_count;
}

static bool read_pair(const char *word, const char *key, int pair[2])
{
    const size_t length = strlen(key);
    if (strncmp(word, key, length) != 0 || word[length] != '=') return false;
    pair[0] = 0; /* "all" */
    if (sscanf(word + length + 1, "%dx%d", &pair[0], &pair[1]) < 2) pair[1] = pair[0];
    return true;
}

static bool read_real(const char *word, const char *key, double *out)
{
    const size_t length = strlen(key);
    if (strncmp(word, key, length) != 0 || word[length] != '=') return false;
    *out = (double)strtof(word + length + 1, NULL); /* what nets store is single precision */
    return true;
}

/* One option of a layer; a fused activation goes to *activation. */
static void read_option(const reference_net *net, const char *word, op *o, const kind **activation)
{
    int pair[2];
    double ignored;
    if (read_pair(word, "kernel", o->kernel) || read_pair(word, "stride", o->stride)) return;
    if (read_pair(word, "pad-end", o->pad_end) || read_pair(word, "size", o->size)) return;
    if (read_pair(word, "scale", o->scale) || read_pair(word, "output-pad", o->output_pad)) return;
    if (read_pair(word, "pad", o->pad) || read_pair(word, "dilation", o->dilation)) return;
    if (read_real(word, "alpha", &o->alpha) || read_real(word, "beta", &o->beta)) return;
    if (read_real(word, "k", &o->k) || read_real(word, "slope", &o->slope)) return;
    if (read_real(word, "weight", &o->share) || read_real(word, "delta", &o->delta)) return;
    if (read_pair(word, "target", pair)) {
        o->target = pair[0] - 1;
        return;
    }
    if (read_real(word, "eps", &o->eps) || read_real(word, "momentum", &ignored)) return;
    if (read_pair(word, "group", pair)) {
        o->group = pair[0];
        return;
    }
    if (read_real(word, "std", &ignored) || read_real(word, "bias", &ignored)) return;
    if (read_real(word, "lr", &ignored)) return;
    if (!strncmp(word, "init=", 5) || !strcmp(word, "linear")) return;
    if (!strcmp(word, "precision=fp32")) return;
    if (!strncmp(word, "algorithm=", 10)) return;
    if (read_pair(word, "groups", pair)) o->groups = pair[0];
    else if (read_pair(word, "first", pair)) o->first = pair[0];
    else if (read_pair(word, "end", pair)) o->end = pair[0];
    else if (!strncmp(word, "from=", 5)) o->from[0] = value_named(net, word + 5);
    else if (!strcmp(word, "frozen")) o->frozen = true;
    else if (!strcmp(word, "global")) o->global = true;
    else if (!strcmp(word, "ceil")) o->ceil = true;
    else if (!strcmp(word, "exclude-pad")) o->exclude_pad = true;
    else if (!strcmp(word, "mode=bilinear")) o->bilinear = true;
    else if (!strcmp(word, "mode=nearest")) o->bilinear = false;
    else if (!strcmp(word, "align-corners")) o->align_corners = true;
    else if (!strcmp(word, "nobias")) o->no_bias = true;
    else if (!strcmp(word, "whole")) o->whole = true;
    else if (!strcmp(word, "smooth")) o->smooth = true;
    else if (!(*activation = kind_named(word))) give_up("no such option", word);
}

static int read_names(const reference_net *net, char **words, int count, op *o)
{
    o->input_count = 0;
    while (o->input_count < count && value_named(net, words[o->input_count]) >= 0) {
        o->from[o->input_count] = value_named(net, words[o->input_count]);
        o->input_count++;
    }
    return o->input_count;
}

static void read_layer(reference_net *net, char **words, int count)
{
    op o = {.kind = kind_named(words[1]),
            .layer = net->name_count,
            .input_count = 1,
            .from = {net->name_count ? net->given[net->name_count - 1] : 0},
            .groups = 1,
            .dilation = {1, 1},
            .pad_end = {-1, -1},
            .alpha = (double)1e-4f,
            .beta = 0.75,
            .k = 1,
            .group = 32,
            .eps = 1e-5,
            .share = 1,
            .delta = 1};
    const kind *activation = NULL;
    int next = 2;
    if (!o.kind) give_up("no such kind", words[1]);
    if (o.kind->takes == FEATURES) o.features = atoi(words[next++]);
    if (o.kind->takes == RATE) o.rate = strtod(words[next++], NULL);
    if (o.kind->takes == NAMES) next += read_names(net, words + 2, count - 2, &o);
    for (; next < count; next++) read_option(net, words[next], &o, &activation);
    snprintf(net->names[net->name_count], sizeof net->names[0], "%s", words[0]);
    if (!o.kind->shape) {
        if (net->loss_count == MOST_LOSSES) give_up("too many losses", words[0]);
        reference_loss *loss = &net->losses[net->loss_count++];
        *loss = (reference_loss){.from = o.from[0],
                                 .target = o.target,
                                 .weight = o.share,
                                 .delta = o.delta,
                                 .smooth = o.smooth};
        snprintf(loss->word, sizeof loss->word, "%s", o.kind->word);
        return;
    }
    int given = add_op(net, &o);
    if (activation)
        given = add_op(net, &(op){.kind = activation, .input_count = 1, .from = {given}});
    net->given[net->name_count++] = given;
}

static void read_line(reference_net *net, char *line)
{
    char *words[MOST_WORDS], *rest = NULL;
    int count = 0;
    line[strcspn(line, "#")] = 0;
    for (char *w = strtok_r(line, " ", &rest); w && count < MOST_WORDS;
         w = strtok_r(NULL, " ", &rest))
        words[count++] = w;
    if (!count || !strcmp(words[0], "default")) return;
    if (!strcmp(words[0], "input")) {
        net->values[0][0].c = atoi(words[1]);
        net->values[0][0].h = count > 2 ? atoi(words[2]) : 1;
        net->values[0][0].w = count > 2 ? atoi(words[3]) : 1;
        make_room(net, 0);
    } else read_layer(net, words, count);
}

reference_net *reference_read(const char *text)
{
    reference_net *net = calloc(1, sizeof *net);
    char *copy = strdup(text), *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(net, line);
    free(copy);
    return net;
}

void reference_destroy(reference_net *net)
{
    for (int i = 0; i <= net->op_count; i++)
        for (int s = 0; s < REFERENCE_MOST_SAMPLES; s++) {
            free(net->values[s][i].v);
            free(net->values[s][i].v_error);
            free(net->values[s][i].d);
            free(net->values[s][i].d_error);
        }
    for (int i = 0; i < net->parameter_count; i++) {
        free(net->parameters[i].v);
        free(net->parameters[i].d);
        free(net->parameters[i].size);
        free(net->parameters[i].error);
    }
    free(net);
}

/* ---- running ---- */

int reference_parameters(const reference_net *net)
{
    return net->parameter_count;
}

size_t reference_parameter_count(const reference_net *net, int parameter)
{
    return net->parameters[parameter].count;
}

double *reference_parameter(reference_net *net, int parameter)
{
    return net->parameters[parameter].v;
}

/* A minibatch on its way. */
typedef struct minibatch {
    reference_net *net;
    const reference_mode *mode;
    const reference_sample *samples;
    int count;
} minibatch;

static work work_of(const minibatch *m, int i, int sample)
{
    reference_net *net = m->net;
    const op *o = &net->ops[i];
    work w = {
        .o = o, .out = &net->values[sample][i + 1], .mode = m->mode, .sample = &m->samples[sample]};
    for (int k = 0; k < o->input_count; k++) w.in[k] = &net->values[sample][o->from[k]];
    w.weight = o->weight < 0 ? NULL : &net->parameters[o->weight];
    w.bias = o->bias < 0 ? NULL : &net->parameters[o->bias];
    for (int k = 0; k < 3; k++) w.more[k] = o->more < 0 ? NULL : &net->parameters[o->more + k];
    return w;
}

/* One op, sample by sample or all at once. */
static void run(const minibatch *m, int i, pass_fn *one, minibatch_fn *all)
{
    work w[REFERENCE_MOST_SAMPLES];
    for (int s = 0; s < m->count; s++) w[s] = work_of(m, i, s);
    for (int s = 0; s < m->count && one; s++) one(&w[s]);
    if (!one) all(w, m->count);
}

static void forward(const minibatch *m)
{
    if (m->count > REFERENCE_MOST_SAMPLES) give_up("too many samples for", "a reference");
    for (int s = 0; s < m->count; s++) {
        value *x = &m->net->values[s][0];
        memcpy(x->v, m->samples[s].x, value_count(x) * sizeof *x->v);
    }
    for (int i = 0; i < m->net->op_count; i++) {
        run(m, i, m->net->ops[i].kind->forward, norm_forward);
    }
}

/* Of the answer's target; evaluations see the last of it alone. */
static bool counts(const reference_net *net, const reference_mode *mode, int loss)
{
    const int last = net->loss_count - 1;
    return loss == last || (mode->training && net->losses[loss].target == net->losses[last].target);
}

void reference_losses(reference_net *net, const reference_mode *mode,
                      const reference_sample *samples, int count, double *losses,
                      double *deviations)
{
    const minibatch m = {net, mode, samples, count};
    forward(&m);
    for (int s = 0; s < count; s++) {
        double total = 0, variance = 0;
        for (int i = 0; i < net->loss_count; i++) {
            const reference_loss *loss = &net->losses[i];
            const double weight = loss->weight;
            double own;
            if (!counts(net, mode, i)) continue;
            total += weight * loss_of(loss, &net->values[s][loss->from], &samples[s], &own);
            variance += square(weight) * own;
        }
        losses[s] = total;
        deviations[s] = sqrt(variance);
    }
}

static void begin_gradient(reference_net *net)
{
    for (int i = 0; i < net->parameter_count; i++) {
        tensor *t = &net->parameters[i];
        memset(t->d, 0, t->count * sizeof *t->d);
        memset(t->size, 0, t->count * sizeof *t->size);
        memset(t->error, 0, t->count * sizeof *t->error);
        t->terms = 0;
    }
    for (int s = 0; s < REFERENCE_MOST_SAMPLES; s++)
        for (int i = 0; i <= net->op_count; i++) {
            value *x = &net->values[s][i];
            memset(x->d, 0, value_count(x) * sizeof *x->d);
            memset(x->d_error, 0, value_count(x) * sizeof *x->d_error);
        }
}

void reference_backward(reference_net *net, const reference_mode *mode,
                        const reference_sample *samples, int count)
{
    const minibatch m = {net, mode, samples, count};
    begin_gradient(net);
    forward(&m);
    for (int i = 0; i < net->loss_count; i++)
        for (int s = 0; s < count; s++)
            loss_backward(&net->losses[i], &net->values[s][net->losses[i].from], &samples[s]);
    for (int i = net->op_count - 1; i >= 0; i--) {
        run(&m, i, net->ops[i].kind->backward, norm_backward);
    }
}

double reference_gradient(const reference_net *net, int parameter, size_t i, double *deviation)
{
    const tensor *t = &net->parameters[parameter];
    *deviation = sqrt(t->error[i] + of_sum(t->terms, t->size[i]));
    return t->d[i];
}
