/* Random nets: the losses and gradients of the plain reference, and the same bits with every
 * instruction set, number of threads, workers and passes, split and size of caches; then the same
 * bits again where all layers that can round what they multiply to bf16.
 *
 *     test_random [--seed N] [--seconds S | --count N] [--print]
 *
 * Seeds N, N+1, ... are tried for S seconds, or as many as are asked for; --print shows the nets
 * instead, with comments that say which of their layers may be split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "agree.h"
#include "nn/kinds/kind.h"
#include "nn/passes.h"
#include "plan/plan.h"
#include "random_net.h"
#include "workers.h"

enum { WORLDS = 4, MAX_ROWS = 8 };

/* ---- ways to run a net ---- */

typedef struct variant {
    tutti_model_options options;
    int workers, threads;
    int groups[RANDOM_LAYERS];
} variant;

static int rows_here(const tutti_kernels **rows)
{
    int count = 0;
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        if (!((*row)->needs & ~tutti_cpu_features())) rows[count++] = *row;
    return count;
}

static void choose_groups(const random_net *net, const tutti_net *parsed, variant *v,
                          random_numbers *numbers)
{
    for (int i = 0; i < net->layer_count; i++) {
        int choices[MAX_WORKERS], count = 0;
        for (int g = 1; g <= v->workers; g++)
            if (tutti_layer_can_split(&parsed->layers[i], v->workers, g)) choices[count++] = g;
        v->groups[i] = count ? choices[random_below(numbers, count)] : 0;
    }
}

static variant choose_variant(const random_net *net, const batch *b, random_numbers *numbers)
{
    static const tutti_caches caches[] = {
        {32 << 10, 512 << 10, 8 << 20}, {1 << 10, 4 << 10, 16 << 10}, {4 << 20, 4 << 20, 4 << 20}};
    const tutti_kernels *rows[MAX_ROWS];
    variant v = {.options = b->options};
    const int row_count = rows_here(rows);
    v.workers = 1 + random_below(numbers, MAX_WORKERS);
    v.threads = v.workers <= 2 ? 1 + random_below(numbers, 3) : 1;
    v.options.row = rows[random_below(numbers, row_count)];
    v.options.caches = caches[random_below(numbers, 3)];
    v.options.late = random_below(numbers, net->layer_count + 1);
    choose_groups(net, b->net, &v, numbers);
    const tutti_sharing sharing = {BATCH, GRAINS, v.workers, 0};
    const int least = tutti_passes_least(b->net, &sharing);
    if (random_below(numbers, 3)) v.options.micro_batch = least + random_below(numbers, 4);
    return v;
}

static void check_variant(const batch *b, const whole *all, const variant *v)
{
    world w = {.batch = b,
               .options = &v->options,
               .workers = v->workers,
               .threads = v->threads,
               .groups = v->groups};
    run_world(&w);
    compare_world(&w, all);
    end_world(&w);
}

/* ---- trials ---- */

typedef struct trials {
    const char *program;
    uint64_t first; /* seed */
    double seconds;
    int count; /* 0: as many as fit into the seconds */
    bool print;
    bool rounds;
    bool busy; /* with this seed and net; and with this variant, unless it has no workers yet */
    uint64_t seed;
    random_net net;
    variant variant;
} trials;

static void check_bits(trials *t, const batch *b, const whole *all)
{
    const tutti_kernels *rows[MAX_ROWS];
    random_numbers numbers = {t->seed};
    for (int i = 0; i < rows_here(rows); i++) {
        t->variant = (variant){.options = b->options, .workers = 1, .threads = 1 + i % 2};
        t->variant.options.row = rows[i];
        check_variant(b, all, &t->variant);
    }
    for (int i = 0; i < WORLDS; i++) {
        t->variant = choose_variant(&t->net, b, &numbers);
        check_variant(b, all, &t->variant);
    }
}

/* Returns the largest error as a share of what is allowed. */
static double check_numbers(const batch *b, const whole *all)
{
    reference_net *reference = reference_of(b, all->model);
    double worst = losses_agree(reference, b, true, all->losses);
    worst = fmax(worst, losses_agree(reference, b, false, all->evaluated));
    reference_step(reference, b);
    worst = fmax(worst, gradients_agree(reference, b, all->model));
    reference_destroy(reference);
    return worst;
}

/* More layers than a run would let. How many? */
static int round_all(const batch *b)
{
    int count = 0;
    for (int i = 0; i < b->net->layer_count; i++) {
        tutti_layer *layer = &b->net->layers[i];
        if (!layer->kind->may_round || !layer->kind->may_round(layer)) continue;
        layer->precision = TUTTI_IN_BF16;
        count++;
    }
    return count;
}

static void try_net(trials *t)
{
    batch b = make_batch(t->net.text);
    whole all = make_whole(&b, &b.options), rounded;
    const double worst = check_numbers(&b, &all);
    t->rounds = false;
    check_bits(t, &b, &all);
    t->rounds = true;
    const int rounding = round_all(&b);
    if (rounding) {
        t->variant = (variant){0};
        rounded = make_whole(&b, &b.options);
        check_bits(t, &b, &rounded);
        free_whole(&rounded);
    }
    printf("%d layers, errors up to %.2f of what is allowed; %d round\n", t->net.layer_count, worst,
           rounding);
    free_whole(&all);
    free_batch(&b);
}

static void random_nets_have_right_gradients_and_the_same_bits(void **state)
{
    trials *t = *state;
    const double begin = tutti_now();
    t->busy = true;
    for (int i = 0; t->count ? i < t->count : !i || tutti_now() - begin < t->seconds; i++) {
        t->seed = t->first + (uint64_t)i;
        t->variant = (variant){0};
        random_net_make(&t->net, t->seed);
        printf("seed %llu: ", (unsigned long long)t->seed);
        fflush(stdout); /* a crash leaves the seed behind */
        try_net(t);
    }
    t->busy = false;
}

/* What to do about a failure. */
static int explain(void **state)
{
    const trials *t = *state;
    const variant *v = &t->variant;
    if (!t->busy) return 0;
    printf("\n%s%s", t->net.text, t->rounds ? "# where layers round to bf16\n" : "");
    if (v->workers) {
        printf("with %s kernels, %d workers of %d threads, micro-batch %d, %d late layers, caches "
               "of %zu, groups",
               v->options.row->name, v->workers, v->threads, v->options.micro_batch,
               v->options.late, v->options.caches.l1);
        for (int i = 0; i < t->net.layer_count; i++) printf(" %d", v->groups[i]);
        printf("\n");
    }
    printf("again: %s --seed %llu --count 1\n", t->program, (unsigned long long)t->seed);
    return 0;
}

/* ---- the program ---- */

static void print_nets(const trials *t)
{
    random_net net;
    for (int i = 0; i < (t->count ? t->count : 1); i++) {
        random_net_make(&net, t->first + (uint64_t)i);
        printf("# seed %llu\n%s", (unsigned long long)t->first + (unsigned)i, net.text);
        for (int k = 1; k <= net.layer_count; k++)
            if (net.values[k].fc) printf("# split %s %d\n", net.values[k].name, net.values[k].c);
    }
}

static bool read_arguments(trials *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--print")) t->print = true;
        else if (value && !strcmp(argv[i], "--seed")) t->first = strtoull(argv[++i], NULL, 10);
        else if (value && !strcmp(argv[i], "--seconds")) t->seconds = strtod(argv[++i], NULL);
        else if (value && !strcmp(argv[i], "--count")) t->count = atoi(argv[++i]);
        else return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static trials t = {.first = 1, .seconds = 15};
    t.program = argv[0];
    if (!read_arguments(&t, argc, argv)) {
        fprintf(stderr, "usage: %s [--seed N] [--seconds S | --count N] [--print]\n", argv[0]);
        return 2;
    }
    if (t.print) {
        print_nets(&t);
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate_setup_teardown(
        random_nets_have_right_gradients_and_the_same_bits, NULL, explain, &t)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
