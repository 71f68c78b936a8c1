/* Planes with one number for each channel, and channels in another order: every row and one or two
 * threads against the definition and against each other. */
#include "rows.h"

#include <float.h>

#include "base/tree.h"
#include "kernel/channels.h"
#include "kernel/planes.h"

static const double half = FLT_EPSILON / 2;

static const int shapes[][3] = {{1, 1, 1},  {2, 16, 3},   {3, 17, 5},   {2, 31, 4},
                                {7, 40, 7}, {1, 48, 400}, {5, 33, 111}, {6, 64, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static tutti_extent extent_of(const int shape[3])
{
    return (tutti_extent){shape[0], shape[1], shape[2]};
}

static fenced activation(tutti_extent e, uint64_t seed)
{
    return random_activation(e.n, e.c, e.pixels, seed, -2, 2);
}

/* Which of [n][c/16][16] numbers belongs to element i. */
static size_t plane_lane(tutti_extent e, size_t i)
{
    return i / 16 / (size_t)e.pixels * 16 + i % 16;
}

static void check_scale(tutti_team *const *teams, tutti_extent e)
{
    fenced x = activation(e, 1), mask = activation(e, 2);
    fenced factor = activation((tutti_extent){e.n, e.c, 1}, 3);
    fenced y = fenced_create(x.count), first = fenced_create(x.count);
    const tutti_factors factors = {factor.data, tutti_channel_blocks(e.c) * 16, 16};
    for (run r = {0}; next_run(&r, teams);) {
        fenced *out = r.first ? &first : &y;
        tutti_scale_planes(r.exec, e, factors, x.data, mask.data, out->data);
        if (!r.first) same_bits(&r, "scale planes", &first, &y);
        for (size_t i = 0; r.first && i < x.count; i++)
            assert_true(first.data[i] ==
                        (mask.data[i] <= 0.0f ? 0.0f : x.data[i] * factor.data[plane_lane(e, i)]));
        memcpy(y.data, x.data, x.count * sizeof(float));
        tutti_scale_planes(r.exec, e, factors, y.data, NULL, y.data);
        for (size_t i = 0; i < x.count; i++)
            assert_true(y.data[i] == x.data[i] * factor.data[plane_lane(e, i)]);
        fenced_fill(&y, NAN);
    }
    fenced_destroy(&x), fenced_destroy(&mask), fenced_destroy(&factor);
    fenced_destroy(&y), fenced_destroy(&first);
}

static void products_are_their_definitions(void **state)
{
    for (int i = 0; i < SHAPES; i++) check_scale(*state, extent_of(shapes[i]));
}

/* Adds up a * b by lanes in double, and how far off a sum of so many terms may be. */
static void want_dots(tutti_extent e, const fenced *a, const fenced *b, double *sum, double *bound)
{
    for (size_t i = 0; i < a->count; i++) {
        const double term = (double)a->data[i] * (double)b->data[i];
        sum[plane_lane(e, i)] += term;
        bound[plane_lane(e, i)] += half * (e.pixels + 3) * fabs(term);
    }
}

static void check_dot(tutti_team *const *teams, tutti_extent e)
{
    fenced a = activation(e, 1), b = activation(e, 2);
    const size_t count = (size_t)e.n * tutti_channel_blocks(e.c) * 16;
    fenced y = fenced_create(count), first = fenced_create(count);
    double *want = calloc(count, sizeof *want), *bound = calloc(count, sizeof *bound);
    want_dots(e, &a, &b, want, bound);
    for (run r = {0}; next_run(&r, teams);) {
        tutti_dot_planes(r.exec, e, a.data, b.data, r.first ? first.data : y.data);
        if (r.first) within("dot planes", count, first.data, want, bound);
        else same_bits(&r, "dot planes", &first, &y);
    }
    free(want), free(bound);
    fenced_destroy(&a), fenced_destroy(&b), fenced_destroy(&y), fenced_destroy(&first);
}

static void sums_are_their_definitions(void **state)
{
    for (int i = 0; i < SHAPES; i++) check_dot(*state, extent_of(shapes[i]));
}

/* However the grains are cut into roots, joining those gives the same bits. */
static void sums_over_grains_are_a_tree(void **state)
{
    tutti_team *const *teams = *state;
    const tutti_extent e = {8, 33, 21};
    const int begin[] = {0, 2, 3, 6, 8};
    enum { LANES = 48 };
    fenced a = activation(e, 1), b = activation(e, 2), planes = fenced_create(8 * LANES);
    for (run r = {0}; next_run(&r, teams);) {
        float all[LANES], left[LANES], right[LANES];
        tutti_dot_planes(r.exec, e, a.data, b.data, planes.data);
        tutti_dot_grains(r.exec, e, &(tutti_grains){4, begin}, a.data, b.data, all);
        tutti_dot_grains(r.exec, e, &(tutti_grains){2, begin}, a.data, b.data, left);
        tutti_dot_grains(r.exec, e, &(tutti_grains){2, begin + 2}, a.data, b.data, right);
        for (int l = 0; l < LANES; l++) {
            const float *p = planes.data + l;
            const float first = (0 + p[0]) + p[LANES], second = 0 + p[2 * LANES];
            assert_true(left[l] == first + second);
            assert_true(all[l] == left[l] + right[l]);
        }
        tutti_dot_grains(r.exec, e, &(tutti_grains){0, begin}, a.data, b.data, all);
        for (int l = 0; l < LANES; l++) assert_true(all[l] == 0.0f);
    }
    fenced_destroy(&a), fenced_destroy(&b), fenced_destroy(&planes);
}

/* Without a second factor; and what is added to each channel. */
static void check_alone(tutti_team *const *teams, tutti_extent e)
{
    fenced x = activation(e, 1), ones = fenced_create(x.count), y = fenced_create(x.count);
    fenced addends = activation((tutti_extent){1, e.c, 1}, 3);
    const int begin[] = {0, e.n};
    const tutti_grains grains = {1, begin};
    fenced_fill(&ones, 1);
    for (run r = {0}; next_run(&r, teams);) {
        float alone[64], beside[64];
        tutti_dot_grains(r.exec, e, &grains, x.data, NULL, alone);
        tutti_dot_grains(r.exec, e, &grains, x.data, ones.data, beside);
        assert_memory_equal(alone, beside, addends.count * sizeof(float));
        for (int relu = 0; relu < 2; relu++) {
            memcpy(y.data, x.data, x.count * sizeof(float));
            tutti_shift_planes(r.exec, e, addends.data, relu, y.data);
            for (size_t i = 0; i < x.count; i++) {
                const float sum = x.data[i] + addends.data[plane_lane(e, i) % addends.count];
                assert_true(y.data[i] == (relu && sum <= 0 ? 0 : sum));
            }
        }
    }
    fenced_destroy(&x), fenced_destroy(&ones), fenced_destroy(&y), fenced_destroy(&addends);
}

static void sums_and_shifts_need_one_array(void **state)
{
    for (int i = 0; i < SHAPES; i++) check_alone(*state, extent_of(shapes[i]));
}

/* ---- channels ---- */

static size_t place(tutti_extent e, int n, int c, int pixel)
{
    const size_t plane = (size_t)n * tutti_channel_blocks(e.c) + (size_t)(c / 16);
    return (plane * (size_t)e.pixels + (size_t)pixel) * 16 + (size_t)(c % 16);
}

static void check_map(const run *r, tutti_extent to, int from, const int *map)
{
    const tutti_extent in = {to.n, from, to.pixels};
    fenced x = activation(in, 1), mask = activation(to, 2), y = fenced_create(mask.count);
    for (int masked = 0; masked < 2; masked++) {
        tutti_map_channels(r->exec, to, from, map, x.data, masked ? mask.data : NULL, y.data);
        for (int n = 0; n < to.n; n++)
            for (int k = 0; k < (int)tutti_channel_blocks(to.c) * 16; k++)
                for (int p = 0; p < to.pixels; p++) {
                    const size_t at = place(to, n, k, p);
                    const bool none = k >= to.c || map[k] < 0 || (masked && mask.data[at] <= 0);
                    const float want = none ? 0 : x.data[place(in, n, map[k], p)];
                    assert_true(y.data[at] == want);
                }
        fenced_fill(&y, NAN);
    }
    fenced_destroy(&x), fenced_destroy(&mask), fenced_destroy(&y);
}

static void channels_go_where_they_should(void **state)
{
    tutti_team *const *teams = *state;
    int shuffled[58], some[64];
    for (int k = 0; k < 58; k++) shuffled[k] = k % 2 * 29 + k / 2;
    for (int k = 0; k < 64; k++) some[k] = k < 8 ? -1 : k < 32 ? k + 24 : k - 32;
    for (run r = {0}; next_run(&r, teams);) {
        check_map(&r, (tutti_extent){2, 58, 7}, 58, shuffled);
        check_map(&r, (tutti_extent){3, 64, 120}, 60, some);
        check_map(&r, (tutti_extent){1, 33, 1}, 60, some);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_their_definitions),
        cmocka_unit_test(sums_are_their_definitions),
        cmocka_unit_test(sums_over_grains_are_a_tree),
        cmocka_unit_test(sums_and_shifts_need_one_array),
        cmocka_unit_test(channels_go_where_they_should),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
