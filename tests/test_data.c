/* idx, CIFAR and synthetic sets: the right numbers, and a sentence for every kind of damage. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/memory.h"
#include "data_files.h"

static tutti_data_options plain(void)
{
    tutti_data_options o = tutti_data_defaults();
    o.augment = false;
    return o;
}

static tutti_status open_plain(tutti_data **data, const char *spec)
{
    const tutti_data_options o = plain();
    return tutti_data_open(data, spec, &o);
}

static float *fetch(tutti_data *data, tutti_split split, uint32_t epoch, uint32_t id, int *label)
{
    static float sample[1 << 18];
    tutti_reader *reader = NULL;
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, split, epoch, id, sample, label));
    tutti_reader_destroy(&reader);
    return sample;
}

/* Opens with skip_bad off: must fail with a sentence that holds 'part'. */
static void must_fail(const char *spec, tutti_status status, const char *part)
{
    tutti_data *data = NULL;
    assert_fails(open_plain(&data, spec), status, part);
    assert_null(data);
}

static void write_part(const scratch *s, const char *name, const bytes *b, size_t count)
{
    write_bytes(scratch_file(s, name), b->data, count);
}

/* ---------------------------------------------------------------------------------- idx */

static void idx_gives_the_pixels_normalised(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    int label;
    make_idx(s, 7, 3, 4, 5);
    assert_ok(open_plain(&data, spec_of("idx", s, "")));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 7);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 3);
    assert_int_equal(tutti_data_classes(data), 3);
    assert_string_equal(tutti_data_class_name(data, 2), "2");
    assert_int_equal(tutti_data_stride(data), 32);

    double sum = 0, square = 0;
    for (int n = 0; n < 7; n++)
        for (int i = 0; i < 20; i++) {
            sum += pixel_of(n, i) / 255.0;
            square += pixel_of(n, i) / 255.0 * pixel_of(n, i) / 255.0;
        }
    const double mean = sum / 140, std = sqrt(square / 140 - mean * mean);
    assert_true(fabs(tutti_data_normalise(data).mean[0] - mean) < 1e-6);
    assert_true(fabs(tutti_data_normalise(data).std[0] - std) < 1e-6);
    for (uint32_t n = 0; n < 7; n++) {
        const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, 0, n, &label);
        assert_int_equal(label, n % 3);
        for (int i = 0; i < 20; i++) {
            const double want = (pixel_of((int)n, i) / 255.0 - mean) / std;
            if (fabs(sample[i] - want) > 1e-5) fail_msg("%u %d: %g %g", n, i, sample[i], want);
        }
        for (int i = 20; i < 32; i++) assert_true(sample[i] == 0);
    }
    tutti_data_close(&data);
}

static void idx_packed_is_the_same(void **state)
{
    scratch *s = *state, packed;
    static bytes b;
    tutti_data *data[2] = {NULL, NULL};
    scratch_open(&packed);
    make_idx(s, 7, 3, 4, 5);
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    for (int i = 0; i < 4; i++) {
        char name[64];
        FILE *f = fopen(scratch_file(s, names[i]), "rb");
        assert_non_null(f);
        b.count = fread(b.data, 1, sizeof b.data, f);
        fclose(f);
        snprintf(name, sizeof name, "%s.gz", names[i]);
        write_gzip(scratch_file(&packed, name), &b);
    }
    assert_ok(open_plain(&data[0], spec_of("idx", s, "")));
    assert_ok(open_plain(&data[1], spec_of("idx", &packed, "")));
    assert_string_equal(tutti_data_hash(data[0]), tutti_data_hash(data[1]));
    for (uint32_t n = 0; n < 7; n++) {
        float first[32];
        int label;
        memcpy(first, fetch(data[0], TUTTI_SPLIT_TRAIN, 0, n, &label), sizeof first);
        assert_memory_equal(first, fetch(data[1], TUTTI_SPLIT_TRAIN, 0, n, &label), sizeof first);
    }
    tutti_data_close(&data[0]);
    tutti_data_close(&data[1]);

    FILE *f = fopen(scratch_file(&packed, "train-images-idx3-ubyte.gz"), "rb");
    b.count = fread(b.data, 1, sizeof b.data, f);
    fclose(f);
    write_part(&packed, "train-images-idx3-ubyte.gz", &b, b.count - 9);
    must_fail(spec_of("idx", &packed, ""), TUTTI_DATA, "cannot be unpacked");
    scratch_close(&packed);
}

static void idx_damage_has_a_sentence(void **state)
{
    scratch *s = *state;
    static bytes b;
    const char *images = "train-images-idx3-ubyte", *labels = "train-labels-idx1-ubyte";
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "no file named like 'train-images");
    must_fail("idx:/no/such/folder", TUTTI_DATA, "/no/such/folder");
    must_fail("idx", TUTTI_ARGUMENT, "idx:DIR");
    make_idx(s, 7, 3, 4, 5);

    put_idx_images(&b, 7, 4, 5);
    write_part(s, images, &b, b.count - 1);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "cut off: it should have 7 items and has 6");
    write_part(s, images, &b, 10);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "ends at byte 10");
    write_part(s, images, &b, 0);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "ends at byte 0");
    b.data[0] = 'x';
    write_part(s, images, &b, b.count);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "not an idx file");
    put_idx_images(&b, 7, 4, 5);
    b.data[2] = 0x0d;
    write_part(s, images, &b, b.count);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "type 0d");
    put_idx_images(&b, 0, 4, 5);
    write_part(s, images, &b, b.count);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "dimension 1 of 3 is 0");
    put_idx_images(&b, 7, 4, 5);
    memset(b.data + 8, 0x7f, 8); /* two billion by two billion */
    write_part(s, images, &b, b.count);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "dimension 2 of 3");
    put_idx_images(&b, 7, 4, 5);
    write_part(s, images, &b, b.count);
    put_idx_labels(&b, 6);
    write_part(s, labels, &b, b.count);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "6 labels in 1 dimensions for 7 images");
    put_idx_labels(&b, 7);
    write_part(s, labels, &b, b.count - 2);
    must_fail(spec_of("idx", s, ""), TUTTI_DATA, "should have 7 labels and has 5");
}

static void idx_cut_off_can_be_skipped(void **state)
{
    scratch *s = *state;
    static bytes b;
    tutti_data *data = NULL;
    int label;
    make_idx(s, 7, 3, 4, 5);
    put_idx_images(&b, 7, 4, 5);
    write_part(s, "train-images-idx3-ubyte", &b, b.count - 30); /* 5 and 6 are gone */
    put_idx_images(&b, 3, 4, 5);
    write_part(s, "t10k-images-idx3-ubyte", &b, b.count - 1);
    tutti_data_options o = plain();
    o.skip_bad = true;
    assert_ok(tutti_data_open(&data, spec_of("idx", s, ""), &o));
    float first[32];
    memcpy(first, fetch(data, TUTTI_SPLIT_TRAIN, 0, 0, &label), sizeof first);
    assert_memory_equal(first, fetch(data, TUTTI_SPLIT_TRAIN, 0, 5, &label), sizeof first);
    assert_int_equal(label, 0);
    assert_memory_equal(first, fetch(data, TUTTI_SPLIT_TRAIN, 0, 6, &label), sizeof first);
    assert_int_equal(tutti_data_bad_count(data), 2);
    const float *zeros = fetch(data, TUTTI_SPLIT_TEST, 0, 2, &label);
    assert_int_equal(label, TUTTI_LABEL_NONE);
    for (int i = 0; i < 32; i++) assert_true(zeros[i] == 0);
    assert_int_equal(tutti_data_bad_count(data), 3);
    tutti_data_close(&data);
}

/* -------------------------------------------------------------------------------- CIFAR */

static void cifar_gives_colours_side_by_side(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    make_cifar(s, 4);
    write_text(scratch_file(s, "batches.meta.txt"), "plane\ncar\n");
    assert_ok(open_plain(&data, spec_of("cifar10", s, ",mean=0/0/0,std=1/1/1")));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 20);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 4);
    assert_string_equal(tutti_data_class_name(data, 1), "car");
    assert_string_equal(tutti_data_class_name(data, 2), "2");
    for (int n = 0; n < 20; n++) {
        int label;
        const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, 0, (uint32_t)n, &label);
        assert_int_equal(label, n % 10);
        for (int i = 0; i < 1024; i++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(lround(255.0 * sample[3 * i + c]), pixel_of(n, c * 1024 + i));
    }
    tutti_data_close(&data);
}

static void cifar_damage_has_a_sentence(void **state)
{
    scratch *s = *state;
    static bytes b;
    tutti_data *data = NULL;
    int label;
    must_fail(spec_of("cifar10", s, ""), TUTTI_DATA, "data_batch_1.bin");
    make_cifar(s, 4);
    put_cifar(&b, 4, 4);
    write_part(s, "data_batch_2.bin", &b, b.count - 100);
    must_fail(spec_of("cifar10", s, ""), TUTTI_DATA, "data_batch_2.bin' is cut off in record 3");
    write_part(s, "data_batch_2.bin", &b, 17);
    must_fail(spec_of("cifar10", s, ""), TUTTI_DATA, "17 bytes");
    b.data[3073] = 77;
    write_part(s, "data_batch_2.bin", &b, b.count - 100);
    tutti_data_options o = plain();
    o.skip_bad = true;
    assert_ok(tutti_data_open(&data, spec_of("cifar10", s, ""), &o));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 19);
    fetch(data, TUTTI_SPLIT_TRAIN, 0, 5, &label); /* record 1 of batch 2 is bad, 2 is taken */
    assert_int_equal(label, 6);
    assert_int_equal(tutti_data_bad_count(data), 1);
    tutti_data_close(&data);
    write_part(s, "data_batch_2.bin", &b, b.count);
    must_fail(spec_of("cifar10", s, ""), TUTTI_DATA, "record 1 (byte 3073): label 77 of 10");
}

/* ------------------------------------------------------------------------------ variation */

/* A sample depends on (seed, epoch, id) alone: not on what was fetched before. */
static void variation_is_a_function_of_the_key(void **state)
{
    enum { N = 20, FLOATS = 3072 };
    scratch *s = *state;
    static float want[N][FLOATS], got[FLOATS];
    tutti_data *data = NULL, *other = NULL;
    tutti_reader *reader = NULL;
    int label, differ = 0, differ_seed = 0;
    make_cifar(s, 4);
    tutti_data_options o = tutti_data_defaults();
    o.seed = 5;
    assert_ok(tutti_data_open(&data, spec_of("cifar10", s, ""), &o));
    o.seed = 6;
    assert_ok(tutti_data_open(&other, spec_of("cifar10", s, ""), &o));
    for (int n = 0; n < N; n++)
        memcpy(want[n], fetch(data, TUTTI_SPLIT_TRAIN, 3, (uint32_t)n, &label), sizeof want[n]);
    assert_ok(tutti_reader_create(&reader, data));
    for (int n = N - 1; n >= 0; n--) {
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 9, (uint32_t)n, got, &label));
        differ += memcmp(got, want[n], sizeof got) != 0;
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 3, (uint32_t)n, got, &label));
        assert_memory_equal(got, want[n], sizeof got);
        differ_seed += memcmp(fetch(other, TUTTI_SPLIT_TRAIN, 3, (uint32_t)n, &label), want[n],
                              sizeof got) != 0;
    }
    assert_in_range(differ, N - 3, N); /* 162 views of each picture */
    assert_in_range(differ_seed, N - 3, N);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
    tutti_data_close(&other);
}

/* Every variation is a crop of the padded picture, mirrored or not, and all of them occur. */
static void crops_and_flips_are_those_promised(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    int seen[2][3][3] = {{{0}}};
    make_idx(s, 1, 1, 4, 5);
    const tutti_data_options o = tutti_data_defaults();
    assert_ok(tutti_data_open(&data, spec_of("idx", s, ",pad=1,flip=on,mean=0,std=1"), &o));
    for (uint32_t epoch = 0; epoch < 400; epoch++) {
        int label, matches = 0;
        const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, epoch, 0, &label);
        for (int view = 0; view < 18; view++) {
            const int flip = view / 9, top = view / 3 % 3 - 1, left = view % 3 - 1;
            int same = 1;
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 5; x++) {
                    const int row = y + top, column = (flip ? 4 - x : x) + left;
                    const int inside = row >= 0 && row < 4 && column >= 0 && column < 5;
                    const int want = inside ? pixel_of(0, row * 5 + column) : 0;
                    same &= lround(255.0 * sample[y * 5 + x]) == want;
                }
            matches += same;
            seen[flip][top + 1][left + 1] += same;
        }
        assert_int_equal(matches, 1);
    }
    for (int view = 0; view < 18; view++)
        assert_in_range(seen[view / 9][view / 3 % 3][view % 3], 5, 50); /* 22 expected */
    tutti_data_close(&data);
}

/* -------------------------------------------------------------------- shapes, keys, hash */

static void shapes_adapt_or_explain(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    int label;
    make_idx(s, 2, 1, 4, 5);
    tutti_data_options o = plain();
    const char *spec = spec_of("idx", s, ",mean=0,std=1");
    o.shape = (tutti_sample_shape){20, 1, 1};
    assert_ok(tutti_data_open(&data, spec, &o));
    assert_int_equal(tutti_data_shape(data).channels, 20);
    assert_int_equal(lround(255.0 * fetch(data, TUTTI_SPLIT_TRAIN, 0, 1, &label)[19]),
                     pixel_of(1, 19));
    tutti_data_close(&data);
    o.shape = (tutti_sample_shape){1, 6, 7}; /* one black pixel around */
    assert_ok(tutti_data_open(&data, spec, &o));
    const float *sample = fetch(data, TUTTI_SPLIT_TEST, 0, 0, &label);
    assert_int_equal(lround(255.0 * sample[8]), pixel_of(0, 0));
    assert_true(sample[0] == 0 && sample[41] == 0);
    tutti_data_close(&data);
    o.shape = (tutti_sample_shape){3, 4, 5}; /* grey repeated */
    assert_ok(tutti_data_open(&data, spec_of("idx", s, ",mean=0/0/0,std=1/1/1"), &o));
    sample = fetch(data, TUTTI_SPLIT_TEST, 0, 0, &label);
    assert_true(sample[3] == sample[4] && sample[4] == sample[5]);
    tutti_data_close(&data);
    o.shape = (tutti_sample_shape){1, 224, 224};
    assert_fails(tutti_data_open(&data, spec, &o), TUTTI_SHAPE, "add ',resize=224'");
    o.shape = (tutti_sample_shape){16, 4, 5};
    assert_fails(tutti_data_open(&data, spec, &o), TUTTI_SHAPE, "1 or 3 channels");
}

static void keys_are_checked(void **state)
{
    scratch *s = *state;
    make_idx(s, 2, 1, 4, 5);
    must_fail("", TUTTI_ARGUMENT, "known: fashion-mnist, idx");
    must_fail("lmbd:x", TUTTI_ARGUMENT, "'lmbd' is not a kind");
    must_fail(spec_of("idx", s, ",flop=on"), TUTTI_ARGUMENT,
              "'flop' is not a key; known: val, pad");
    must_fail(spec_of("idx", s, ",flip=maybe"), TUTTI_ARGUMENT, "flip= must be on or off");
    must_fail(spec_of("idx", s, ",pad=1.5"), TUTTI_ARGUMENT, "whole number");
    must_fail(spec_of("idx", s, ",pad=-1"), TUTTI_ARGUMENT, "from 0 to 4096");
    must_fail(spec_of("idx", s, ",pad=nan"), TUTTI_ARGUMENT, "not 'nan'");
    must_fail(spec_of("idx", s, ",pad=1,pad=1"), TUTTI_ARGUMENT, "twice");
    must_fail(spec_of("idx", s, ",mean=0.1/0.2,std=1/1"), TUTTI_ARGUMENT, "1 numbers");
    must_fail(spec_of("idx", s, ",mean=0,std=0"), TUTTI_ARGUMENT, "positive");
    must_fail("synthetic,mean=5,std=2", TUTTI_ARGUMENT, "'mean' is not a key");
    must_fail(spec_of("idx", s, ",jitter=0.5"), TUTTI_ARGUMENT, "needs resize=");
    must_fail(spec_of("idx", s, ",a,b,c,d,e"), TUTTI_ARGUMENT, "one place too many");
    must_fail("fashion-mnist:/no/such/folder", TUTTI_DATA, "dataset-fashion-mnist");
}

static void the_hash_sees_the_index_and_the_options(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    char hash[6][65];
    static const char *const keys[] = {"", "", ",pad=1", ",flip=on", ",mean=0,std=1"};
    make_idx(s, 7, 3, 4, 5);
    for (int i = 0; i < 6; i++) {
        const tutti_data_options o = tutti_data_defaults();
        if (i == 5) make_idx(s, 8, 3, 4, 5);
        assert_ok(tutti_data_open(&data, spec_of("idx", s, i < 5 ? keys[i] : ""), &o));
        snprintf(hash[i], sizeof hash[i], "%s", tutti_data_hash(data));
        assert_int_equal(strlen(hash[i]), 64);
        tutti_data_close(&data);
    }
    assert_string_equal(hash[0], hash[1]);
    for (int i = 1; i < 6; i++)
        for (int j = i + 1; j < 6; j++) assert_string_not_equal(hash[i], hash[j]);
}

static void a_models_normalisation_is_used(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    const float mean = 0.25f, std = 0.5f;
    int label;
    make_idx(s, 2, 1, 4, 5);
    tutti_data_options o = plain();
    o.normalise = (tutti_normalisation){1, &mean, &std};
    assert_ok(tutti_data_open(&data, spec_of("idx", s, ""), &o));
    const double want = (pixel_of(1, 3) / 255.0 - 0.25) / 0.5;
    assert_true(fabs(fetch(data, TUTTI_SPLIT_TRAIN, 0, 1, &label)[3] - want) < 1e-6);
    tutti_data_close(&data);
    o.normalise.count = 3;
    assert_fails(tutti_data_open(&data, spec_of("idx", s, ""), &o), TUTTI_SHAPE, "3 numbers");
}

static void synthetic_has_any_shape(void **state)
{
    (void)state;
    tutti_data *data = NULL;
    int label;
    tutti_data_options o = plain();
    o.shape = (tutti_sample_shape){429, 1, 1};
    o.classes = 9304;
    assert_ok(tutti_data_open(&data, "synthetic,train=100000", &o));
    assert_int_equal(tutti_data_classes(data), 9304);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 100000);
    assert_int_equal(tutti_data_stride(data), 432);
    double sum = 0, square = 0;
    const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, 0, 99999, &label);
    assert_int_equal(label, 99999 % 9304);
    for (int i = 0; i < 429; i++) sum += sample[i], square += sample[i] * sample[i];
    assert_true(fabs(sum / 429) < 0.3 && fabs(square / 429 - 0.97) < 0.4);
    assert_true(sample[429] == 0 && sample[431] == 0);
    tutti_data_close(&data);
    must_fail("synthetic,shape=3", TUTTI_ARGUMENT, "224x224x3");
    assert_fails(tutti_data_open(&data, "synthetic,shape=8x8x3", &o), TUTTI_SHAPE, "1x1x429");
}

/* Images of any number of channels have the numbers of a vector, in the order the contract says;
 * nothing is left of what was in the memory before. */
static void any_number_of_channels_has_its_layout(void **state)
{
    (void)state;
    static float got[1 << 12], want[1 << 12];
    for (int i = 0; i < AWKWARD_SHAPES; i++) {
        const tutti_sample_shape s = awkward_shapes[i];
        tutti_data *image = NULL, *vector = NULL;
        tutti_reader *reader = NULL;
        int label, same;
        tutti_data_options o = plain();
        o.shape = s;
        assert_ok(tutti_data_open(&image, "synthetic", &o));
        o.shape = (tutti_sample_shape){s.channels * s.height * s.width, 1, 1};
        assert_ok(tutti_data_open(&vector, "synthetic", &o));
        assert_int_equal(tutti_data_stride(image), floats_of(s));
        assert_ok(tutti_reader_create(&reader, image));
        for (uint32_t id = 0; id < 40; id++) {
            const tutti_split split = id % 2 ? TUTTI_SPLIT_TEST : TUTTI_SPLIT_TRAIN;
            lay_out(want, fetch(vector, split, 0, id, &same), s);
            memset(got, 0xff, sizeof got);
            assert_ok(tutti_reader_fetch(reader, split, 0, id, got, &label));
            assert_int_equal(label, same);
            assert_memory_equal(got, want, floats_of(s) * sizeof *got);
        }
        tutti_reader_destroy(&reader);
        tutti_data_close(&image);
        tutti_data_close(&vector);
    }
}

static void the_debian_package_is_found(void **state)
{
    (void)state;
    tutti_data *data = NULL;
    int label;
    if (access("/usr/share/datasets/fashion-mnist", R_OK)) {
        print_message("dataset-fashion-mnist is not installed: skipped\n");
        skip();
    }
    assert_ok(open_plain(&data, "fashion-mnist"));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 60000);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 10000);
    assert_true(fabs(tutti_data_normalise(data).mean[0] - 0.2860) < 1e-4); /* the well-known mean */
    assert_true(fabs(tutti_data_normalise(data).std[0] - 0.3530) < 1e-4);
    fetch(data, TUTTI_SPLIT_TEST, 0, 0, &label);
    assert_string_equal(tutti_data_class_name(data, label), "Ankle boot");
    tutti_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(idx_gives_the_pixels_normalised),
        SCRATCH_TEST(idx_packed_is_the_same),
        SCRATCH_TEST(idx_damage_has_a_sentence),
        SCRATCH_TEST(idx_cut_off_can_be_skipped),
        SCRATCH_TEST(cifar_gives_colours_side_by_side),
        SCRATCH_TEST(cifar_damage_has_a_sentence),
        SCRATCH_TEST(variation_is_a_function_of_the_key),
        SCRATCH_TEST(crops_and_flips_are_those_promised),
        SCRATCH_TEST(shapes_adapt_or_explain),
        SCRATCH_TEST(keys_are_checked),
        SCRATCH_TEST(the_hash_sees_the_index_and_the_options),
        SCRATCH_TEST(a_models_normalisation_is_used),
        SCRATCH_TEST(synthetic_has_any_shape),
        SCRATCH_TEST(any_number_of_channels_has_its_layout),
        SCRATCH_TEST(the_debian_package_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
