/* The balance equations against the figures of the paper's networks and platforms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/balance.h"

#define CONV(i, in, o, k, out)       \
    {                                \
        i, o, k, k, in, in, out, out \
    }
#define FC(i, o)               \
    {                          \
        i, o, 1, 1, 1, 1, 1, 1 \
    }

enum { VGG_CONVS = 8, VGG_LAYERS = 11, OVERFEAT_CONVS = 5, OVERFEAT_LAYERS = 8 };

static const tutti_balance_layer vgg_a[VGG_LAYERS] = {
    CONV(3, 224, 64, 3, 224),
    CONV(64, 112, 128, 3, 112),
    CONV(128, 56, 256, 3, 56),
    CONV(256, 56, 256, 3, 56),
    CONV(256, 28, 512, 3, 28),
    CONV(512, 28, 512, 3, 28),
    CONV(512, 14, 512, 3, 14),
    CONV(512, 14, 512, 3, 14),
    FC(25088, 4096),
    FC(4096, 4096),
    FC(4096, 1000),
};

static const tutti_balance_layer overfeat[OVERFEAT_LAYERS] = {
    CONV(3, 231, 96, 11, 56),
    CONV(96, 28, 256, 5, 24),
    CONV(256, 12, 512, 3, 12),
    CONV(512, 12, 1024, 3, 12),
    CONV(1024, 12, 1024, 3, 12),
    FC(36864, 3072),
    FC(3072, 4096),
    FC(4096, 1000),
};

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) fail_msg("got %.6g, want %.6g within %g", got, want, within);
}

static const double fdr = 2355.2e9 / 7e9;         /* 2x E5-2698v3 on 56 Gbit/s InfiniBand */
static const double ethernet = 1670.4e9 / 1.25e9; /* 2x E5-2666v3 on 10 GbE */

static void flop_per_byte_of_the_systems(void **state)
{
    (void)state;
    near(fdr, 336, 0.6);
    near(ethernet, 1336, 0.6);
}

static void flop_per_byte_of_the_nets(void **state)
{
    (void)state;
    near(1 / tutti_balance_min_points(vgg_a, VGG_CONVS, 1, 1), 1218, 0.6);
    near(1 / tutti_balance_min_points(overfeat, OVERFEAT_CONVS, 1, 1), 251, 0.6);
    near(1 / tutti_balance_min_points(vgg_a, VGG_LAYERS, 1, 1), 85.9, 0.06);
    near(1 / tutti_balance_min_points(overfeat, OVERFEAT_LAYERS, 1, 1), 28.8, 0.06);
    near(tutti_balance_data_ratio(&vgg_a[1], 1, 1), 1.5 * 112 * 112, 1e-9);
    near(tutti_balance_data_ratio(&overfeat[4], 4, 1), 4 * 216, 1e-9);
}

static void minimum_points_per_node(void **state)
{
    (void)state;
    near(tutti_balance_min_points(vgg_a, VGG_CONVS, fdr, 1), 0.28, 0.005);
    near(tutti_balance_min_points(vgg_a, VGG_CONVS, ethernet, 1), 1.10, 0.005);
    near(tutti_balance_min_points(overfeat, OVERFEAT_CONVS, fdr, 1), 1.34, 0.005);
    near(tutti_balance_min_points(overfeat, OVERFEAT_CONVS, ethernet, 1), 5.33, 0.005);
    near(tutti_balance_min_points(vgg_a, VGG_LAYERS, fdr, 1), 3.9, 0.05);
    near(tutti_balance_min_points(vgg_a, VGG_LAYERS, ethernet, 1), 15.6, 0.05);
    near(tutti_balance_min_points(overfeat, OVERFEAT_LAYERS, fdr, 1), 11.7, 0.05);
    near(tutti_balance_min_points(overfeat, OVERFEAT_LAYERS, ethernet, 1), 46.4, 0.05);
}

static void data_against_model_parallel(void **state)
{
    (void)state;
    static const struct {
        const tutti_balance_layer *layer;
        double data_overlapped, data, model_pass; /* MB at minibatch 256 */
    } row[] = {
        {&vgg_a[8], 411.0, 822.1, 25.7},  {&vgg_a[9], 67.1, 134.2, 4.2},
        {&vgg_a[10], 16.4, 32.8, 4.2},    {&overfeat[5], 453.0, 906.0, 37.7},
        {&overfeat[6], 50.3, 100.7, 3.1}, {&overfeat[4], 37.7, 75.5, 151.0},
        {&vgg_a[7], 9.4, 18.9, 102.8},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        near(tutti_balance_data_bytes(row[i].layer, 1) * 1e-6, row[i].data_overlapped, 0.06);
        near(tutti_balance_data_bytes(row[i].layer, 0) * 1e-6, row[i].data, 0.06);
        near(tutti_balance_model_bytes(row[i].layer, 256) * 1e-6, 2 * row[i].model_pass, 0.11);
    }
}

static void hybrid_volumes(void **state)
{
    (void)state;
    const tutti_balance_layer f10 = FC(4096, 4096), hidden = FC(2048, 2048);
    near(tutti_balance_best_groups(&f10, 256, 1, 64), 2.83, 0.005);
    near(tutti_balance_hybrid_bytes(&f10, 256, 1, 64, 3) * 1e-6, 5.94, 0.005);
    near(tutti_balance_hybrid_bytes(&f10, 256, 1, 64, 2) * 1e-6, 6.29, 0.005);
    near(tutti_balance_hybrid_bytes(&f10, 256, 1, 64, 4) * 1e-6, 6.29, 0.005);
    near(tutti_balance_hybrid_bytes(&f10, 256, 1, 64, 1) * 1e-6, 8.39, 0.005);
    near(tutti_balance_hybrid_bytes(&f10, 256, 1, 64, 64) * 1e-6, 67.1, 0.05);
    near(tutti_balance_best_groups(&f10, 256, 0, 64), 2, 1e-9);
    near(tutti_balance_best_groups(&f10, 512, 1, 128), 5.66, 0.005);
    near(tutti_balance_hybrid_bytes(&f10, 512, 1, 128, 4) * 1e-6, 6.29, 0.005);
    assert_int_equal(tutti_balance_search_groups(&f10, 512, 1, 128), 4);
    near(tutti_balance_best_groups(&hidden, 1024, 1, 16), 4, 1e-9);
    assert_int_equal(tutti_balance_search_groups(&hidden, 1024, 1, 16), 4);
    near(tutti_balance_hybrid_bytes(&hidden, 1024, 1, 16, 4) * 1e-6, 8.39, 0.005);
    near(tutti_balance_hybrid_bytes(&hidden, 1024, 1, 16, 1) * 1e-6, 16.78, 0.005);
    near(tutti_balance_hybrid_bytes(&hidden, 1024, 1, 16, 16) * 1e-6, 16.78, 0.005);
}

/* The volume is convex in G, so the best divisor is one of the two around G*, unless an end, where
 * one of its terms vanishes, is better still. */
static void search_agrees_with_the_closed_form(void **state)
{
    (void)state;
    static const double sizes[] = {256, 1000, 2048, 4096, 9304};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int nodes = 2; nodes <= 1024; nodes *= 2)
            for (int minibatch = 64; minibatch <= 4096; minibatch *= 2) {
                const tutti_balance_layer fc = FC(2048, sizes[i]);
                const double best = tutti_balance_best_groups(&fc, minibatch, 1, nodes);
                const int found = tutti_balance_search_groups(&fc, minibatch, 1, nodes);
                if (found > 1 && found < nodes) {
                    assert_true(found <= 2 * best + 1e-9);
                    assert_true(found >= best / 2 - 1e-9);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flop_per_byte_of_the_systems),
        cmocka_unit_test(flop_per_byte_of_the_nets),
        cmocka_unit_test(minimum_points_per_node),
        cmocka_unit_test(data_against_model_parallel),
        cmocka_unit_test(hybrid_volumes),
        cmocka_unit_test(search_agrees_with_the_closed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
