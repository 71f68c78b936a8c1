/* Passes: where a share may be cut, which partial gradients are kept between passes, and that a
 * model in several passes has the bits of one and less memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "nn/parse.h"
#include "nn/partials.h"
#include "nn/passes.h"
#include "workers.h"

static const char plain[] = "input 3 8 8\n"
                            "c1 conv 20 kernel=3 pad=1 relu\n"
                            "c2 conv 24 kernel=3 pad=1 relu\n"
                            "d dropout 0.4\n"
                            "f fc 10\n"
                            "loss softmax\n";

static const char together[] = "input 2 5 5\n"
                               "c1 conv 20 kernel=3 pad=1\n"
                               "b1 batchnorm group=3 relu\n"
                               "c2 conv 20 kernel=1\n"
                               "b2 batchnorm group=1\n"
                               "sum add b1 b2 relu\n"
                               "depth stochasticdepth 0.3\n"
                               "f fc 10\n"
                               "loss softmax\n";

static tutti_net *parse(const char *text)
{
    tutti_net *net = NULL;
    must(tutti_net_parse(&net, text, "t.net"));
    return net;
}

static tutti_net *normalised(const char *group)
{
    char text[200];
    snprintf(text, sizeof text,
             "input 3 4 4\nc conv 16 kernel=1\nbn batchnorm group=%s\nf fc 4\n"
             "loss softmax\n",
             group);
    return parse(text);
}

/* ---- where to cut ---- */

/* The cuts are where they may be, and every worker has all its grains in order. */
static void check_cuts(const tutti_passes *p, const tutti_sharing *s, int group, int most)
{
    for (int w = 0; w < s->workers; w++) {
        const int *cuts = tutti_passes_of(p, w);
        assert_int_equal(cuts[0], tutti_share_begin(s->grains, s->workers, w));
        assert_int_equal(cuts[p->count], tutti_share_begin(s->grains, s->workers, w + 1));
        assert_true(cuts[p->count] > cuts[p->count - 1]);
        for (int i = 0; i < p->count; i++) {
            const int begin = tutti_sharing_sample(s, cuts[i]);
            const int end = tutti_sharing_sample(s, cuts[i + 1]);
            assert_true(end >= begin && end - begin <= most);
            if (i && begin < end) assert_int_equal(begin % group, 0);
        }
        assert_true(tutti_passes_largest(p, s, w) <= most);
    }
}

static void passes_have_whole_grains(void **state)
{
    (void)state;
    tutti_net *net = parse(plain);
    for (int workers = 1; workers <= 8; workers++)
        for (int samples = 16; samples < 40; samples += 5) {
            const tutti_sharing s = {samples, 8, workers, 0};
            const int least = tutti_passes_least(net, &s);
            assert_int_equal(least, tutti_ceil_div(samples, 8));
            for (int most = least; most <= samples; most++) {
                tutti_passes p;
                must(tutti_passes_init(&p, net, &s, true, most));
                check_cuts(&p, &s, 1, most);
                tutti_passes_deinit(&p);
            }
        }
    tutti_net_destroy(&net);
}

static void passes_have_whole_statistics_groups(void **state)
{
    (void)state;
    tutti_net *net = normalised("8");
    for (int workers = 1; workers <= 4; workers *= 2) {
        const tutti_sharing s = {64, 16, workers, 0};
        tutti_passes p;
        assert_int_equal(tutti_passes_least(net, &s), 8);
        must(tutti_passes_init(&p, net, &s, true, 20));
        assert_int_equal(p.count, tutti_ceil_div(64 / workers, 16));
        check_cuts(&p, &s, 8, 16);
        tutti_passes_deinit(&p);
    }
    tutti_net_destroy(&net);
}

static void refuses(const char *group, const tutti_sharing *s, int most, const char *why)
{
    tutti_net *net = group ? normalised(group) : parse(plain);
    tutti_passes p = {0};
    assert_int_equal(tutti_passes_init(&p, net, s, true, most), TUTTI_ARGUMENT);
    if (!strstr(tutti_message(), why)) fail_msg("'%s' without '%s'", tutti_message(), why);
    must(tutti_passes_init(&p, net, s, true, tutti_passes_least(net, s)));
    tutti_passes_deinit(&p);
    tutti_net_destroy(&net);
}

static void what_does_not_work_names_the_smallest_that_does(void **state)
{
    (void)state;
    refuses(NULL, &(tutti_sharing){64, 16, 1, 0}, 3, "smallest that works is --micro-batch 4");
    refuses(NULL, &(tutti_sharing){65, 16, 2, 0}, 4, "smallest that works is --micro-batch 5");
    refuses("32", &(tutti_sharing){64, 16, 2, 0}, 31, "bn normalises its samples in groups");
    refuses("32", &(tutti_sharing){64, 16, 2, 0}, 31, "smallest that works is --micro-batch 32");
    refuses("all", &(tutti_sharing){64, 16, 1, 0}, 32, "smallest that works is --micro-batch 64");
    refuses("all", &(tutti_sharing){64, 16, 2, 0}, 16, "ranks share statistics groups of bn");
    refuses("32", &(tutti_sharing){64, 16, 4, 0}, 8, "use --micro-batch 16");
    refuses("32", &(tutti_sharing){64, 16, 3, 0}, 8, "use --micro-batch 24");
}

/* An evaluation normalises by running statistics. */
static void evaluation_has_no_groups(void **state)
{
    (void)state;
    tutti_net *net = normalised("all");
    const tutti_sharing s = {64, 16, 2, 0};
    tutti_passes p;
    must(tutti_passes_init(&p, net, &s, false, 4));
    assert_int_equal(p.count, 8);
    tutti_passes_deinit(&p);
    tutti_net_destroy(&net);
}

/* ---- what is kept ---- */

enum { MOST_LEAVES = 64 };

/* A sum as text, in the order of adding, stands for a partial gradient. */
typedef struct texts {
    char slot[MOST_LEAVES][700], spare[700];
} texts;

static char *text_of(texts *t, int slot)
{
    return slot == TUTTI_PARTIALS_SPARE ? t->spare : t->slot[slot];
}

static void add_texts(texts *t, const tutti_partials_sum *sums, int count)
{
    for (int i = 0; i < count; i++) {
        char sum[700];
        assert_true(snprintf(sum, sizeof sum, "(%s%s)", text_of(t, sums[i].to),
                             text_of(t, sums[i].from)) < (int)sizeof sum);
        strcpy(text_of(t, sums[i].to), sum);
    }
}

/* The tree over leaves begin .. begin + 2^level - 1. */
static void write_tree(char *out, int begin, int level)
{
    if (!level) {
        sprintf(out + strlen(out), "<%d>", begin);
        return;
    }
    strcat(out, "(");
    write_tree(out, begin, level - 1);
    write_tree(out, begin + (1 << (level - 1)), level - 1);
    strcat(out, ")");
}

static void run_pass(tutti_partials *p, texts *t, int run, int begin, int end)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const int count = tutti_tree_roots(roots, p->leaves, begin, end);
    for (int i = 0; i < count; i++) {
        tutti_partials_sum sums[TUTTI_TREE_LEVELS];
        int sum_count;
        char *to = text_of(t, tutti_partials_push(p, run, roots[i], sums, &sum_count));
        *to = 0;
        write_tree(to, roots[i].index << roots[i].level, roots[i].level);
        add_texts(t, sums, sum_count);
    }
}

/* Runs of leaves from 'begin' on, each 'length' long, in passes of 'piece' leaves. */
static int check_partials(int leaves, int begin, int run_count, int length, int piece)
{
    static texts t;
    int cuts[8][MOST_LEAVES + 1];
    const int *rows[8];
    const int passes = tutti_ceil_div(length, piece);
    for (int r = 0; r < run_count; r++) {
        for (int i = 0; i <= passes; i++)
            cuts[r][i] = begin + r * length + (i < passes ? i * piece : length);
        rows[r] = cuts[r];
    }
    tutti_partials p;
    must(tutti_partials_init(&p, leaves, run_count, rows, passes));
    for (int step = 0; step < 2; step++) {
        tutti_partials_begin(&p);
        for (int i = 0; i < passes; i++)
            for (int r = 0; r < run_count; r++) run_pass(&p, &t, r, cuts[r][i], cuts[r][i + 1]);
        add_texts(&t, p.last, p.last_count);
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int count = tutti_tree_roots(roots, leaves, begin, begin + run_count * length);
        assert_int_equal(count, p.root_count);
        for (int i = 0; i < count; i++) {
            char want[700] = "";
            write_tree(want, roots[i].index << roots[i].level, roots[i].level);
            assert_string_equal(t.slot[p.slots[i]], want);
        }
    }
    const int slots = tutti_partials_slots(&p);
    tutti_partials_deinit(&p);
    return slots;
}

static void partial_sums_make_the_tree(void **state)
{
    (void)state;
    for (int runs = 1; runs <= 5; runs++)
        for (int length = 1; runs * length <= 32; length++)
            for (int piece = 1; piece <= length; piece++)
                for (int begin = 0; begin + runs * length <= 32; begin += 3)
                    check_partials(32, begin, runs, length, piece);
}

static void few_partial_sums_are_kept(void **state)
{
    (void)state;
    assert_int_equal(check_partials(64, 0, 1, 64, 64), 1);
    assert_int_equal(check_partials(64, 0, 1, 64, 32), 1);
    assert_int_equal(check_partials(64, 0, 1, 64, 16), 2);
    assert_int_equal(check_partials(64, 0, 1, 64, 1), 6);
    assert_int_equal(check_partials(64, 0, 4, 16, 4), 8);
}

/* ---- models ---- */

/* Returns how many workers in several passes were tried. */
static int check_bits(const batch *b, const whole *all, int workers)
{
    const tutti_sharing s = {BATCH, GRAINS, workers, 0};
    int several = 0;
    for (int most = tutti_passes_least(b->net, &s); most < BATCH; most++) {
        tutti_model_options o = b->options;
        o.micro_batch = most;
        world w = {.batch = b, .options = &o, .workers = workers};
        run_world(&w);
        compare_world(&w, all);
        for (int i = 0; i < workers; i++) {
            several += tutti_model_passes(w.models[i]) > 1;
            assert_true(tutti_model_most_samples(w.models[i]) <= most);
        }
        end_world(&w);
    }
    return several;
}

static void passes_have_the_bits_of_one(void **state)
{
    (void)state;
    const char *const nets[] = {plain, together};
    for (int i = 0; i < 2; i++) {
        batch b = make_batch(nets[i]);
        whole all = make_whole(&b, &b.options);
        int several = 0;
        for (int workers = 1; workers <= 5; workers++) several += check_bits(&b, &all, workers);
        assert_true(several > 5);
        free_whole(&all);
        free_batch(&b);
    }
}

/* The second step of a model has the bits of its first: it begins with nothing. */
static void nothing_is_left_of_the_step_before(void **state)
{
    (void)state;
    batch b = make_batch(together);
    whole all = make_whole(&b, &b.options);
    tutti_model_options o = b.options;
    o.micro_batch = 4;
    tutti_model *m = make_model(&b, &o);
    for (int step = 0; step < 2; step++) {
        train(m, &b);
        for (int i = 0; i < b.net->layer_count; i++)
            assert_memory_equal(tutti_model_gradient(m, i, 0),
                                tutti_model_gradient(all.model, i, 0),
                                tutti_model_region(m, i).trained * sizeof(float));
    }
    tutti_model_destroy(&m);
    free_whole(&all);
    free_batch(&b);
}

static void memory_falls(void **state)
{
    (void)state;
    tutti_net *net = parse(plain);
    tutti_model_options o;
    tutti_model_bytes full, half, least;
    must(tutti_model_defaults(&o, net, 256));
    must(tutti_model_measure(&full, net, &o));
    o.micro_batch = 128;
    must(tutti_model_measure(&half, net, &o));
    o.micro_batch = 4;
    must(tutti_model_measure(&least, net, &o));
    assert_true(half.arena < full.arena * 6 / 10);
    assert_true(least.arena < full.arena / 10);
    assert_int_equal(half.gradients, full.gradients);
    assert_int_equal(least.gradients, 6 * full.gradients);
    tutti_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_have_whole_grains),
        cmocka_unit_test(passes_have_whole_statistics_groups),
        cmocka_unit_test(what_does_not_work_names_the_smallest_that_does),
        cmocka_unit_test(evaluation_has_no_groups),
        cmocka_unit_test(partial_sums_make_the_tree),
        cmocka_unit_test(few_partial_sums_are_kept),
        cmocka_unit_test(passes_have_the_bits_of_one),
        cmocka_unit_test(nothing_is_left_of_the_step_before),
        cmocka_unit_test(memory_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
