/* How training samples are varied: within their limits, the same for whoever asks. What becomes of
 * the pixels is compared with torchvision by check_data.py. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/loader.h"
#include "data/mix.h"
#include "data/view.h"
#include "data_files.h"

enum { SIDE = 8, FLOATS = 3 * SIDE * SIDE, SEED = 3 };

static void parts_are_inside_and_of_the_sizes_asked_for(void **state)
{
    static const int sizes[][2] = {{1, 1}, {1, 40}, {40, 1}, {37, 53}, {300, 20}};
    const tutti_crop_range range = {{0.2, 0.5}, {0.5, 2}};
    (void)state;
    for (int s = 0; s < 5; s++)
        for (uint32_t id = 0; id < 500; id++) {
            const int height = sizes[s][0], width = sizes[s][1];
            const tutti_random_key key = {.seed = SEED, .sample = id};
            const tutti_crop c = tutti_crop_draw(&range, &key, height, width);
            assert_true(c.height >= 1 && c.width >= 1 && c.top >= 0 && c.left >= 0);
            assert_true(c.top + c.height <= height && c.left + c.width <= width);
            if (s != 3) continue;
            /* either side is half a pixel off, at most */
            const double h = c.height, w = c.width, all = height * width;
            assert_true((h + 0.5) * (w + 0.5) >= 0.2 * all && (h - 0.5) * (w - 0.5) <= 0.5 * all);
            assert_true((w + 0.5) / (h - 0.5) >= 0.5 && (w - 0.5) / (h + 0.5) <= 2);
        }
}

/* A picture that no crop of that shape fits into: torchvision then takes the middle. */
static void the_middle_where_nothing_fits(void **state)
{
    const tutti_crop_range range = {{0.9, 1}, {3.0 / 4, 4.0 / 3}};
    const tutti_random_key key = {.seed = SEED};
    const tutti_crop wide = tutti_crop_draw(&range, &key, 30, 300);
    const tutti_crop high = tutti_crop_draw(&range, &key, 300, 30);
    (void)state;
    assert_true(wide.height == 30 && wide.width == 40 && wide.top == 0 && wide.left == 130);
    assert_true(high.height == 40 && high.width == 30 && high.top == 130 && high.left == 0);
}

static void colours_stay_within_their_range(void **state)
{
    static const double most[TUTTI_COLOURS] = {0.5, 2, 0, 0.25};
    int first[TUTTI_COLOURS] = {0};
    (void)state;
    for (uint32_t id = 0; id < 400; id++) {
        const tutti_random_key key = {.seed = SEED, .sample = id};
        const tutti_colour_changes c = tutti_colour_draw(most, &key);
        int seen = 0;
        for (int i = 0; i < TUTTI_COLOURS; i++) seen |= 1 << c.order[i];
        first[c.order[0]]++;
        assert_int_equal(seen, 15);
        assert_true(c.by[0] >= 0.5f && c.by[0] <= 1.5f && c.by[1] >= 0 && c.by[1] <= 3);
        assert_true(c.by[2] == 1 && fabsf(c.by[3]) <= 0.25f);
    }
    for (int i = 0; i < TUTTI_COLOURS; i++) assert_true(first[i] > 50);
}

/* A third of the circle turns red to green; no saturation leaves grey; grey has no colours. */
static void colours_change_as_one_expects(void **state)
{
    tutti_colour_changes c = {{1, 1, 1, 1.0f / 3}, {0, 1, 2, 3}};
    float red[] = {1, 0, 0}, dull[] = {0.2f, 0.6f, 0.4f}, grey[] = {0.1f, 0.9f};
    (void)state;
    tutti_colour_change(&c, red, 1, 3);
    assert_true(red[0] < 1e-6f && fabsf(red[1] - 1) < 1e-6f && red[2] < 1e-6f);
    c = (tutti_colour_changes){{1, 1, 0, 0}, {0, 1, 2, 3}};
    tutti_colour_change(&c, dull, 1, 3);
    assert_true(dull[0] == dull[1] && dull[1] == dull[2]);
    c = (tutti_colour_changes){{2, 1, 0, 0.5f}, {0, 1, 2, 3}};
    tutti_colour_change(&c, grey, 2, 1);
    assert_true(grey[0] == 0.2f && grey[1] == 1);
}

static void holes_are_squares_as_far_as_they_fit(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < 200; id++) {
        const tutti_random_key key = {.seed = SEED, .sample = id};
        float sample[FLOATS];
        int zeros = 0;
        for (int i = 0; i < FLOATS; i++) sample[i] = 1;
        tutti_view_cut_out(4, &key, SIDE, SIDE, 3, sample);
        for (int i = 0; i < FLOATS; i++) zeros += sample[i] == 0;
        assert_true(zeros % 3 == 0 && zeros <= 3 * 16 && zeros >= 3 * 2 * 2);
    }
}

/* The mean of Beta(a, a) is 1/2, its variance 1 / (8 a + 4): six deviations of the means of both,
 * and of the square's (at most 1/16 / n), are more than chance will be off by. */
static void shares_have_the_moments_of_beta(void **state)
{
    enum { COUNT = 4000 };
    static const double alphas[] = {0.01, 0.2, 1, 4, 50};
    (void)state;
    for (int a = 0; a < 5; a++) {
        const double variance = 1 / (8 * alphas[a] + 4);
        double sum = 0, square = 0;
        for (uint32_t id = 0; id < COUNT; id++) {
            const tutti_partner p = tutti_mix_partner(alphas[a], SEED, 1, id, COUNT);
            assert_true(p.id < COUNT && p.share >= 0 && p.share <= 1);
            sum += (double)p.share;
            square += pow((double)p.share - 0.5, 2);
        }
        assert_true(fabs(sum / COUNT - 0.5) <= 6 * sqrt(variance / COUNT));
        assert_true(fabs(square / COUNT - variance) <= 6 * sqrt(1.0 / 16 / COUNT));
    }
}

static tutti_data *open_varied(const scratch *s, const char *keys)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.seed = SEED;
    make_idx(s, 30, 4, 10, 12);
    assert_ok(tutti_data_open(&data, spec_of("idx", s, keys), &o));
    return data;
}

static void every_rank_mixes_the_same(void **state)
{
    tutti_data *data = open_varied(*state, ",mixup=0.4,flip=on,random-resized-crop=0.3,"
                                           "color-jitter=0.4,cutout=3");
    const size_t stride = tutti_data_stride(data);
    tutti_loader_options o = tutti_loader_defaults();
    o.batch = 13, o.seed = SEED;
    tutti_loader *all = NULL, *part = NULL;
    tutti_batch a, b;
    int mixed = 0;
    o.end = 13;
    assert_ok(tutti_loader_create(&all, data, &o));
    o.first = 5, o.end = 9;
    assert_ok(tutti_loader_create(&part, data, &o));
    for (int step = 0; step < 5; step++) {
        assert_ok(tutti_loader_next(all, &a));
        assert_ok(tutti_loader_next(part, &b));
        for (int i = 0; i < b.count; i++) {
            assert_int_equal(a.others[5 + i], b.others[i]);
            assert_true(a.shares[5 + i] == b.shares[i]);
            assert_memory_equal(a.samples + (size_t)(5 + i) * stride,
                                b.samples + (size_t)i * stride, stride * sizeof(float));
            mixed += b.others[i] != b.labels[i] && b.shares[i] > 0 && b.shares[i] < 1;
        }
    }
    assert_true(mixed > 5);
    tutti_loader_destroy(&part);
    tutti_loader_destroy(&all);
    tutti_data_close(&data);
}

/* Samples to test on are not varied, and --augment off varies none. */
static void only_training_samples_are_varied(void **state)
{
    static const char keys[] = ",mean=0,std=1,mixup=1,color-jitter=0.9,cutout=5,"
                               "random-resized-crop=on";
    tutti_data *plain = open_varied(*state, ",mean=0,std=1");
    tutti_data *varied = open_varied(*state, keys);
    tutti_reader *a = NULL, *b = NULL;
    float x[128], y[128];
    int label;
    assert_ok(tutti_reader_create(&a, plain));
    assert_ok(tutti_reader_create(&b, varied));
    for (uint32_t id = 0; id < 4; id++) {
        assert_ok(tutti_reader_fetch(a, TUTTI_SPLIT_TEST, 0, id, x, &label));
        assert_ok(tutti_reader_fetch(b, TUTTI_SPLIT_TEST, 0, id, y, &label));
        assert_memory_equal(x, y, sizeof x);
        assert_ok(tutti_reader_fetch(a, TUTTI_SPLIT_TRAIN, 0, id, x, &label));
        assert_ok(tutti_reader_fetch(b, TUTTI_SPLIT_TRAIN, 0, id, y, &label));
        assert_memory_not_equal(x, y, sizeof x);
    }
    assert_true(tutti_data_mixes(varied));
    assert_non_null(strstr(tutti_data_description(varied), "mixed by Beta(1, 1)"));
    assert_string_not_equal(tutti_data_hash(plain), tutti_data_hash(varied));
    tutti_reader_destroy(&a);
    tutti_reader_destroy(&b);
    tutti_data_close(&plain);
    tutti_data_close(&varied);
    tutti_data_options o = tutti_data_defaults();
    o.augment = false;
    assert_ok(tutti_data_open(&varied, spec_of("idx", *state, keys), &o));
    assert_false(tutti_data_mixes(varied));
    tutti_data_close(&varied);
}

static void wrong_numbers_are_refused(void **state)
{
    static const char *const wrong[][2] = {
        {",random-resized-crop=0.5/0.2", "random-resized-crop= must be LEAST/MOST"},
        {",random-resized-crop=0/1", "random-resized-crop= must be"},
        {",random-resized-crop=yes", "random-resized-crop= must be"},
        {",random-resized-crop=on,aspect=0/1", "aspect= must be LEAST/MOST"},
        {",random-resized-crop=on,pad=2", "two ways to crop"},
        {",color-jitter=0.1/0.1/0.1/0.6", "hue up to 0.5"},
        {",color-jitter=-1", "color-jitter= must be"},
        {",cutout=-1", "cutout="},
        {",mixup=-0.1", "mixup="},
    };
    make_idx(*state, 30, 4, 10, 12);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tutti_data *data = NULL;
        const tutti_data_options o = tutti_data_defaults();
        assert_fails(tutti_data_open(&data, spec_of("idx", *state, wrong[i][0]), &o),
                     TUTTI_ARGUMENT, wrong[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_inside_and_of_the_sizes_asked_for),
        cmocka_unit_test(the_middle_where_nothing_fits),
        cmocka_unit_test(colours_stay_within_their_range),
        cmocka_unit_test(colours_change_as_one_expects),
        cmocka_unit_test(holes_are_squares_as_far_as_they_fit),
        cmocka_unit_test(shares_have_the_moments_of_beta),
        SCRATCH_TEST(every_rank_mixes_the_same),
        SCRATCH_TEST(only_training_samples_are_varied),
        SCRATCH_TEST(wrong_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
