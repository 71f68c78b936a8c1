#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include <tutti/net.h>

#include "cli.h"

typedef struct info_options {
    const char *net, *precision;
    int batch_size, micro_batch, threads;
    cli_texts freeze;
    double ema;
    bool json, unrolled;
} info_options;

#define AT(field) offsetof(info_options, field)
// clang-format off
static const cli_option options[] = {
    {"NET",          CLI_TEXT, AT(net), .help = "a net's name or FILE.net; without one, all nets are listed"},
    {"batch-size|b", CLI_INT,  AT(batch_size), 1, 1 << 24, .help = "samples per step", .otherwise = "the net's"},
    {"micro-batch",  CLI_INT,  AT(micro_batch), 1, 1 << 24, .help = "samples in memory at a time", .otherwise = "all of a step's"},
    {"precision",    CLI_TEXT, AT(precision), .value = "fp32|bf16", .help = "which layers round what they multiply", .otherwise = "the net's, usually fp32"},
    {"freeze",       CLI_TEXTS, AT(freeze), .value = "PATTERN,...", .help = "layers that are not trained: conv1, 'conv*'"},
    {"ema",          CLI_REAL, AT(ema), 0, 0.9999999, .unset = -1, .help = "with an average of the weights; 0: without", .otherwise = "the net's"},
    {"threads",      CLI_INT,  AT(threads), 1, 65536, .help = "threads to plan the memory for"},
    {"json",         CLI_FLAG, AT(json), .help = "print JSON"},
    {"unrolled",     CLI_FLAG, AT(unrolled), .help = "print the net's text with every block's lines in its place"},
    {.name = NULL},
};
// clang-format on

/* ---- words ---- */

/* 1234567 -> "1,234,567" */
static const char *grouped(uint64_t number, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

/* Three digits and a unit: of 1000 for operations, of 1024 for bytes. */
static const char *scaled(double number, double unit, const char *const *names, char text[32])
{
    int i = 0;
    for (; number >= unit && names[i + 1]; i++) number /= unit;
    snprintf(text, 32, "%.*f%s", i && number < 100 ? 1 : 0, number, names[i]);
    return text;
}

static const char *bytes(uint64_t number, char text[32])
{
    static const char *const names[] = {" B", " KiB", " MiB", " GiB", " TiB", NULL};
    return scaled((double)number, 1024, names, text);
}

static const char *count(uint64_t number, char text[32])
{
    static const char *const names[] = {"", " k", " M", " G", " T", " P", NULL};
    return number ? scaled((double)number, 1000, names, text) : strcpy(text, "");
}

static const char *shape(tutti_shape s, char text[32])
{
    if (s.h == 1 && s.w == 1) snprintf(text, 32, "%d", s.c);
    else snprintf(text, 32, "%dx%dx%d", s.c, s.h, s.w);
    return text;
}

/* ---- the table ---- */

/* Columns as wide as what is in them. */
typedef struct widths {
    int name, kind;
} widths;

static const char *kind_of(const tutti_layer_info *l, char text[64])
{
    snprintf(text, 64, "%s%s%s", l->kind, *l->activation ? "+" : "", l->activation);
    return text;
}

static widths widths_of(const tutti_net *net)
{
    widths w = {10, 13};
    char kind[64];
    for (int i = 0; i < tutti_net_layer_count(net); i++) {
        const tutti_layer_info layer = tutti_net_layer_info(net, i);
        const int name = (int)strlen(layer.name), length = (int)strlen(kind_of(&layer, kind));
        if (name > w.name) w.name = name;
        if (length > w.kind) w.kind = length;
    }
    return w;
}

static void print_row(const tutti_layer_info *l, int batch, widths w)
{
    char out[32], parameters[32], macs[32], flops[32], weights[32], activations[32], kind[64];
    printf("%-*s %-*s %-13s %13s %9s %9s %10s %10s%s%s\n", w.name, l->name, w.kind,
           kind_of(l, kind), shape(l->out, out),
           l->parameters ? grouped(l->parameters, parameters) : "", count(l->macs, macs),
           count(l->train_flops, flops), l->weight_bytes ? bytes(l->weight_bytes, weights) : "",
           bytes(l->activation_bytes * (uint64_t)batch, activations),
           strcmp(l->precision, "bf16") ? "" : "  bf16",
           l->parameters && !l->trained ? "  frozen" : "");
}

static void print_memory(const tutti_memory *m, int batch)
{
    char a[32], b[32], c[32], d[32], e[32], f[32], g[32], h[32], passes[32] = "", mean[64] = "";
    if (m->passes > 1) snprintf(passes, sizeof passes, " in %d passes", m->passes);
    if (m->average)
        snprintf(mean, sizeof mean, " the average of the weights %s,", bytes(m->average, a));
    printf("\nTraining on one node with batches of %d%s is expected to take %s:\n"
           "  parameters %s, gradients %s, optimizer %s,%s\n"
           "  activations and scratch %s (%s if no memory were reused), batches and program %s,\n"
           "  the copy that checkpoints are written from %s (none with --checkpoint-sync);\n"
           "  a data set that is kept in memory (idx, cifar10) comes on top\n",
           batch, passes, bytes(m->peak, a), bytes(m->parameters, b), bytes(m->gradients, c),
           bytes(m->momentum, d), mean, bytes(m->activations, e), bytes(m->separate, f),
           bytes(m->data + m->program, g), bytes(m->snapshot, h));
}

static bool rounds(const tutti_net *net)
{
    for (int i = 0; i < tutti_net_layer_count(net); i++)
        if (!strcmp(tutti_net_layer_info(net, i).precision, "bf16")) return true;
    return false;
}

static void print_net(const tutti_net *net, const tutti_memory *memory, int batch)
{
    char in[32];
    const tutti_layer_info total = tutti_net_total(net);
    const widths w = widths_of(net);
    printf("%s: %s in, %s out\n\n", total.name, shape(total.in, in), tutti_net_answers(net));
    printf("%-*s %-*s %-13s %13s %9s %9s %10s %10s\n", w.name, "layer", w.kind, "kind", "output",
           "parameters", "MACs", "FLOPs", "weights", "outputs");
    printf("%-*s %13s %9s %9s %10s %7s %2d\n", w.name + w.kind + 15, "", "", "1 sample", "1 sample",
           "", "batch", batch);
    for (int i = 0; i < tutti_net_layer_count(net); i++) {
        const tutti_layer_info layer = tutti_net_layer_info(net, i);
        print_row(&layer, batch, w);
    }
    print_row(&total, batch, w);
    if (total.trained < total.parameters)
        printf(
            "\n%s of the parameters are trained; frozen layers have no weight gradient, and what "
            "is below\nthe first trained one has no backward pass.\n",
            grouped(total.trained, in));
    if (rounds(net))
        printf(
            "\nLayers with bf16 round what they multiply; sums, weights, activations and messages "
            "stay in fp32.\n");
    printf("\nFLOPs are those of training: forward, weight gradient and, except in the first "
           "layer, backward-data.\n");
    print_memory(memory, batch);
}

/* ---- JSON ---- */

static json_t *shape_json(tutti_shape s)
{
    return json_pack("[i, i, i]", s.c, s.h, s.w);
}

static json_t *layer_json(const tutti_layer_info *l)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
                     l->name, "kind", l->kind, "activation", l->activation, "precision",
                     l->precision, "in", shape_json(l->in), "out", shape_json(l->out), "parameters",
                     (json_int_t)l->parameters, "trained", (json_int_t)l->trained, "macs",
                     (json_int_t)l->macs, "train_flops", (json_int_t)l->train_flops, "weight_bytes",
                     (json_int_t)l->weight_bytes, "activation_bytes",
                     (json_int_t)l->activation_bytes);
}

static json_t *memory_json(const tutti_memory *m)
{
    return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "passes", m->passes,
                     "parameters", (json_int_t)m->parameters, "gradients", (json_int_t)m->gradients,
                     "momentum", (json_int_t)m->momentum, "average", (json_int_t)m->average,
                     "activations", (json_int_t)m->activations, "data", (json_int_t)m->data,
                     "snapshot", (json_int_t)m->snapshot, "program", (json_int_t)m->program, "peak",
                     (json_int_t)m->peak, "separate", (json_int_t)m->separate);
}

static void print_net_json(const tutti_net *net, const tutti_memory *memory, int batch)
{
    const tutti_layer_info total = tutti_net_total(net);
    json_t *layers = json_array(), *root = layer_json(&total);
    for (int i = 0; i < tutti_net_layer_count(net); i++) {
        const tutti_layer_info layer = tutti_net_layer_info(net, i);
        json_array_append_new(layers, layer_json(&layer));
    }
    json_object_set_new(root, "classes", json_integer(tutti_net_classes(net)));
    json_object_set_new(root, "answers", json_string(tutti_net_answers(net)));
    json_object_set_new(root, "batch_size", json_integer(batch));
    json_object_set_new(root, "memory", memory_json(memory));
    json_object_set_new(root, "layers", layers);
    json_dumpf(root, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(root);
}

/* ---- the verb ---- */

static tutti_status print_known(bool json)
{
    if (json) printf("[");
    for (int i = 0; tutti_net_known(i); i++) {
        tutti_net *net = NULL;
        char in[32], parameters[32];
        const tutti_status s = tutti_net_load(&net, tutti_net_known(i));
        if (s) return s;
        const tutti_layer_info total = tutti_net_total(net);
        if (json) printf("%s\"%s\"", i ? ", " : "", total.name);
        else
            printf("%-18s %-10s in, %-20s %14s parameters\n", total.name, shape(total.in, in),
                   tutti_net_answers(net), grouped(total.parameters, parameters));
        tutti_net_destroy(&net);
    }
    if (json) printf("]\n");
    return TUTTI_OK;
}

static tutti_status show_net(const tutti_net *net, const info_options *o)
{
    tutti_memory memory;
    int batch;
    if (o->unrolled) return tutti_net_print(net, stdout);
    tutti_status s = tutti_net_batch_size(net, &batch);
    if (o->batch_size) batch = o->batch_size;
    if (s == TUTTI_OK)
        s = tutti_net_memory(net, batch, o->micro_batch, o->threads, o->ema, &memory);
    if (s == TUTTI_OK) (o->json ? print_net_json : print_net)(net, &memory, batch);
    return s;
}

static int run(const cli_call *call)
{
    const info_options *o = call->values;
    tutti_net *net = NULL;
    if (*o->freeze.joined && !o->net)
        return cli_misused(call, "--freeze %s needs NET, whose layers it names", o->freeze.joined);
    if (o->precision && !o->net)
        return cli_misused(call, "--precision %s needs NET, whose layers round", o->precision);
    tutti_status s = o->net ? tutti_net_load(&net, o->net) : print_known(o->json);
    if (s == TUTTI_OK && net) s = tutti_net_freeze(net, o->freeze.joined);
    if (s == TUTTI_OK && net) s = tutti_net_set_precision(net, o->precision);
    if (s == TUTTI_OK && net) s = show_net(net, o);
    tutti_net_destroy(&net);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_info = {
    "info",
    "show a net: layers, parameters, operations, memory",
    options,
    sizeof(info_options),
    run,
    "Examples:\n"
    "  tutti info                       the nets that came with the program\n"
    "  tutti info vgg-a --batch-size 32\n"
    "  tutti info resnet50 --unrolled   as text, one line per layer\n"
    "  tutti info vgg-a --freeze 'conv*' what fine-tuning the last layers costs\n"
    "  tutti info my.net --json | jq '.memory.peak'\n",
    NULL,
};
