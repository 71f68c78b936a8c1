/* layers: how fast each layer of a net runs, forward and backward, against the machine's limit and
 * against oneDNN. bench.h says how they are measured. */
#include <jansson.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/topology.h"
#include "base/tree.h"
#include "bench.h"
#include "cli.h"
#include "kernel/bf16_kernels.h"
#include "nn/model.h"

enum { AGAINST_AUTO = 2 }; /* of --against */

typedef struct layers_options {
    const char *net, *layer;
    int batch_size, threads, grains, pass, against, conv, precision, rounds;
    double seconds;
    bool json, explain;
} layers_options;

static const char *const pass_names[] = {"forward", "backward-data", "backward-weights"};

// clang-format off
#define AT(field) offsetof(layers_options, field)
static const cli_option options[] = {
    {"NET",          CLI_TEXT,   AT(net),        .required = true, .help = "a known net, or FILE.net"},
    {"batch-size|b", CLI_INT,    AT(batch_size), 1, 1e6, "16", .help = "samples at a time"},
    {"threads|t",    CLI_INT,    AT(threads),    0, 1e6, "0", .help = "threads; 0 means one per core"},
    {"grains",       CLI_INT,    AT(grains),     0, 1e6, "0", .help = "grains of a weight gradient; 0: as in training, 1: one flat sum"},
    {"against",      CLI_CHOICE, AT(against),    .fallback = "none", .choices = "none|onednn|onednn-auto", .help = "measure an opponent, too: its direct convolution, or whatever it takes"},
    {"pass",         CLI_CHOICE, AT(pass),       .fallback = "all", .choices = "all|forward|backward-data|backward-weights", .help = "one pass only"},
    {"conv",         CLI_CHOICE, AT(conv),       .fallback = "auto", .choices = "auto|direct|winograd-2x2|winograd-4x4", .help = "convolve so, where a layer may; auto: as in training"},
    {"precision",    CLI_CHOICE, AT(precision),  .fallback = "fp32", .choices = "fp32|bf16", .help = "multiply in this, where a layer can; the opponent, too"},
    {"layer",        CLI_TEXT,   AT(layer),      .help = "one layer only, or several: conv2,conv3"},
    {"seconds",      CLI_REAL,   AT(seconds),    0.0, 3600, "0.5", .help = "time for each layer and pass"},
    {"rounds",       CLI_INT,    AT(rounds),     1, 1e6, "5", .help = "least number of alternations"},
    {"json",         CLI_FLAG,   AT(json),       .help = "print JSON"},
    {"explain",      CLI_FLAG,   AT(explain),    .help = "print each layer's plan: blocks, register tile, predicted bytes per FLOP"},
    {.name = NULL},
};
// clang-format on

typedef struct row {
    const char *layer;
    bench_pass pass;
    double seconds, opponent_seconds; /* best; 0: not measured */
    double flops;
} row;

typedef struct table {
    double peak; /* GFLOP/s, the best of the whole run so far */
    int count;
    row rows[3 * TUTTI_MAX_LAYERS];
} table;

tutti_status bench_numbers(float **out, size_t count)
{
    TUTTI_TRY(tutti_alloc(out, count, sizeof **out));
    for (size_t i = 0; i < count; i++) (*out)[i] = (float)(i % 17) * 0.01f - 0.08f;
    return TUTTI_OK;
}

/* ---- measuring ---- */

enum { PEAK_ROUNDS = 1000000 };

static void burn(void *arg, int member, int size)
{
    (void)member, (void)size;
    float sink;
    const bench_setup *setup = arg;
    (setup->precision == TUTTI_IN_BF16 ? setup->row->bf16->rounds
                                       : setup->row->fma_rounds)(PEAK_ROUNDS, &sink);
}

/* Of products in the precision that is asked for. */
static double measure_peak(const bench_setup *setup)
{
    float sink;
    const double once = setup->precision == TUTTI_IN_BF16 ? setup->row->bf16->rounds(1, &sink)
                                                          : setup->row->fma_rounds(1, &sink);
    const double flops = once * PEAK_ROUNDS * setup->threads;
    const double begin = tutti_now();
    tutti_team_run(setup->team, burn, (void *)(size_t)setup);
    return flops / (tutti_now() - begin) * 1e-9;
}

static double time_of(const bench_subject *subject)
{
    const double begin = tutti_now();
    subject->run(subject->self);
    return tutti_now() - begin;
}

static double least(double a, double b)
{
    return a == 0 || b < a ? b : a;
}

static void measure(table *report, const bench_setup *setup, const layers_options *o, row *out,
                    const bench_subject *ours, const bench_subject *theirs)
{
    ours->run(ours->self); /* pages, caches, clocks */
    if (theirs) theirs->run(theirs->self);
    const double begin = tutti_now();
    for (int i = 0; i < o->rounds || tutti_now() - begin < o->seconds; i++) {
        report->peak = fmax(report->peak, measure_peak(setup));
        out->seconds = least(out->seconds, time_of(ours));
        if (theirs) out->opponent_seconds = least(out->opponent_seconds, time_of(theirs));
    }
}

static double pass_flops(const tutti_layer *layer, int n)
{
    return 2.0 * (double)layer->macs * n;
}

static double rate(double flops, double seconds)
{
    return seconds > 0 ? flops / seconds * 1e-9 : 0;
}

static void print_row(const table *report, const row *r)
{
    const double ours = rate(r->flops, r->seconds);
    printf("%-10s %-17s %8.1f %6.1f%%", r->layer, pass_names[r->pass], ours,
           100 * ours / report->peak);
    if (r->opponent_seconds > 0)
        printf(" %8.1f %7.2f", rate(r->flops, r->opponent_seconds),
               r->opponent_seconds / r->seconds);
    printf("\n");
    fflush(stdout);
}

static tutti_status open_ours(bench_subject *out, const bench_setup *setup,
                              const tutti_layer *layer, bench_pass pass)
{
    return bench_is(layer, "fc") ? bench_fc_open(out, setup, layer, pass)
                                 : bench_conv_open(out, setup, layer, pass);
}

static tutti_status run_one(table *report, const bench_setup *setup, const layers_options *o,
                            const tutti_layer *layer, bench_pass pass)
{
    bench_subject ours, theirs;
    if (pass == BENCH_BACKWARD_DATA && !layer->trains_below) return TUTTI_OK;
    TUTTI_TRY(open_ours(&ours, setup, layer, pass));
    if (o->explain) {
        printf("%-10s %-17s %s\n", layer->name, pass_names[pass], ours.explain);
        ours.close(ours.self);
        return TUTTI_OK;
    }
    const tutti_status s = o->against ? bench_onednn_open(&theirs, setup, layer, pass) : TUTTI_OK;
    if (s == TUTTI_OK) {
        row *r = &report->rows[report->count++];
        *r = (row){.layer = layer->name, .pass = pass, .flops = pass_flops(layer, setup->n)};
        measure(report, setup, o, r, &ours, o->against ? &theirs : NULL);
        if (!o->json) print_row(report, r);
        if (o->against) theirs.close(theirs.self);
    }
    ours.close(ours.self);
    return s;
}

static bool is_measured(const tutti_layer *layer)
{
    return bench_is(layer, "conv") || bench_is(layer, "fc");
}

/* The first name of a list "conv2,conv3" is 'name'. */
static bool is_first(const char *list, const char *name)
{
    const size_t length = strcspn(list, ",");
    return strlen(name) == length && !strncmp(list, name, length);
}

static const char *next_name(const char *list)
{
    list = strchr(list, ',');
    return list ? list + 1 : NULL;
}

static bool listed(const char *list, const char *name)
{
    for (; list; list = next_name(list))
        if (is_first(list, name)) return true;
    return false;
}

static tutti_status check_layers(const char *list, const tutti_net *net)
{
    for (; list; list = next_name(list)) {
        bool found = false;
        for (int i = 0; i < net->layer_count; i++)
            found = found || (is_measured(&net->layers[i]) && is_first(list, net->layers[i].name));
        if (!found)
            return tutti_fail(TUTTI_ARGUMENT,
                              "--layer %.*s: no convolution or fully connected layer of that name; "
                              "'tutti info' lists the net's layers",
                              (int)strcspn(list, ","), list);
    }
    return TUTTI_OK;
}

static tutti_status run_net(table *report, const bench_setup *setup, const layers_options *o,
                            const tutti_net *net)
{
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer *layer = &net->layers[i];
        if (!is_measured(layer)) continue;
        if (o->layer && !listed(o->layer, layer->name)) continue;
        for (int pass = 0; pass < BENCH_PASSES; pass++)
            if (!o->pass || o->pass == pass + 1)
                TUTTI_TRY(run_one(report, setup, o, layer, (bench_pass)pass));
    }
    return TUTTI_OK;
}

/* ---- printing ---- */

static double mean_ratio(const table *report)
{
    double sum = 0;
    for (int i = 0; i < report->count; i++)
        sum += log(report->rows[i].opponent_seconds / report->rows[i].seconds);
    return exp(sum / report->count);
}

static int print_json(const table *report)
{
    json_t *rows = json_array();
    for (int i = 0; i < report->count; i++) {
        const row *r = &report->rows[i];
        const double ours = rate(r->flops, r->seconds);
        json_t *object =
            json_pack("{s:s, s:s, s:f, s:f}", "layer", r->layer, "pass", pass_names[r->pass],
                      "gflops", ours, "percent", 100 * ours / report->peak);
        if (r->opponent_seconds > 0) {
            json_object_set_new(object, "onednn_gflops",
                                json_real(rate(r->flops, r->opponent_seconds)));
            json_object_set_new(object, "ratio", json_real(r->opponent_seconds / r->seconds));
        }
        json_array_append_new(rows, object);
    }
    json_t *all = json_pack("{s:f, s:o}", "peak_gflops", report->peak, "rows", rows);
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(all);
    return 0;
}

static void print_head(const bench_setup *setup, const layers_options *o)
{
    if (o->json) return;
    printf("%s, batch %d, %d threads, %s, %d grains\n", o->net, setup->n, setup->threads,
           setup->row->name, setup->grains);
    if (o->explain) return;
    printf("%-10s %-17s %8s %7s%s\n", "layer", "pass", "GFLOP/s", "peak",
           o->against ? "   oneDNN   ratio" : "");
}

static void print_foot(const table *report, const layers_options *o)
{
    if (o->json) print_json(report);
    else if (!o->explain) {
        printf("%speak %.1f GFLOP/s", o->precision ? "bf16 " : "", report->peak);
        if (o->against && report->count)
            printf(", geometric mean of the ratios %.3f", mean_ratio(report));
        printf("\n");
    }
}

/* ---- setting up ---- */

static tutti_status find_caches(tutti_caches *out)
{
    tutti_topology *t = NULL;
    TUTTI_TRY(tutti_topology_open(&t));
    *out = tutti_caches_of_thread(t, 1);
    tutti_topology_close(&t);
    return TUTTI_OK;
}

static tutti_status set_up(bench_setup *setup, const layers_options *o, const tutti_net *net)
{
    *setup = (bench_setup){.n = o->batch_size, .any_way = o->against == AGAINST_AUTO};
    setup->algorithm = (tutti_conv_algorithm)o->conv;
    setup->precision = (tutti_precision)o->precision;
    setup->grains = o->grains ? o->grains : tutti_default_grains(net, o->batch_size);
    if (setup->grains > setup->n)
        return tutti_fail(TUTTI_ARGUMENT, "--grains %d: there are only %d samples", setup->grains,
                          setup->n);
    TUTTI_TRY(tutti_kernels_choose(&setup->row));
    TUTTI_TRY(find_caches(&setup->caches));
    TUTTI_TRY(tutti_alloc(&setup->grain_begin, (size_t)setup->grains + 1, sizeof(int)));
    for (int i = 0; i <= setup->grains; i++)
        setup->grain_begin[i] = tutti_share_begin(setup->n, setup->grains, i);
    TUTTI_TRY(tutti_team_create(&setup->team, o->threads));
    setup->threads = tutti_team_size(setup->team);
    omp_set_num_threads(setup->threads); /* for the opponent, which takes what it finds */
    return TUTTI_OK;
}

static tutti_status bench(const layers_options *o)
{
    tutti_net *net = NULL;
    table *report = NULL;
    bench_setup setup = {0};
    tutti_status s = TUTTI_OK;
    if (o->against && !bench_onednn_present())
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "--against onednn: built without oneDNN (libdnnl-dev)");
    if ((s = tutti_net_load(&net, o->net))) goto out;
    if ((s = check_layers(o->layer, net))) goto out;
    if ((s = tutti_alloc(&report, 1, sizeof *report))) goto out;
    tutti_net_round(net, (tutti_precision)o->precision);
    if ((s = set_up(&setup, o, net))) goto out;
    for (int i = 0; i < 10; i++) report->peak = fmax(report->peak, measure_peak(&setup));
    print_head(&setup, o);
    if ((s = run_net(report, &setup, o, net))) goto out;
    print_foot(report, o);
out:
    tutti_team_destroy(&setup.team);
    tutti_free(setup.grain_begin);
    tutti_free(report);
    tutti_net_destroy(&net);
    return s;
}

static int run(const cli_call *call)
{
    const tutti_status s = bench(call->values);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

static const cli_verb verb = {
    "layers", "measure each layer of a net", options, sizeof(layers_options), run, NULL, NULL};

int main(int argc, char **argv)
{
    layers_options values;
    return cli_run_alone(&verb, &values, argc, argv);
}
