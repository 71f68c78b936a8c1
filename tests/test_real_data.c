/* Real data sets, where the environment variable TUTTI_DATA names a folder that has them (as
 * folders, or packed as NAME.tar.xz): known counts, means and labels; every sample can be read. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/memory.h"
#include "data_files.h"

static scratch unpacked;

/* The folder 'name' of $TUTTI_DATA; unpacks 'archive' if need be. Skips the test without it. */
static const char *find(const char *name, const char *archive)
{
    static char path[512];
    char command[1200];
    const char *root = getenv("TUTTI_DATA");
    snprintf(path, sizeof path, "%s/%s", root, name);
    if (!access(path, R_OK)) return path;
    snprintf(path, sizeof path, "%s/%s", root, archive);
    if (access(path, R_OK)) {
        print_message("'%s' has no %s: skipped\n", root, name);
        skip();
    }
    snprintf(command, sizeof command, "tar -xJf '%s' -C '%s'", path, unpacked.path);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/%s", unpacked.path, name);
    return path;
}

static tutti_data *open_data(const char *spec, int train, int test, int classes)
{
    tutti_data *data = NULL;
    const tutti_data_options o = tutti_data_defaults();
    assert_ok(tutti_data_open(&data, spec, &o));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), train);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), test);
    assert_int_equal(tutti_data_classes(data), classes);
    return data;
}

/* Reads all samples of a split; numbers are finite and their mean is near 'mean'. */
static void read_all(tutti_data *data, tutti_split split, double tolerance)
{
    tutti_reader *reader = NULL;
    float *sample = NULL;
    const size_t stride = tutti_data_stride(data);
    double sum = 0;
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_alloc(&sample, stride, sizeof *sample));
    for (uint32_t id = 0; id < (uint32_t)tutti_data_count(data, split); id++) {
        int label;
        assert_ok(tutti_reader_fetch(reader, split, 0, id, sample, &label));
        assert_in_range(label, 0, tutti_data_classes(data) - 1);
        for (size_t i = 0; i < stride; i++) sum += sample[i];
    }
    const double mean = sum / ((double)stride * tutti_data_count(data, split));
    if (!(fabs(mean) < tolerance)) fail_msg("the mean is %g", mean);
    tutti_free(sample);
    tutti_reader_destroy(&reader);
}

static void mnist(void **state)
{
    (void)state;
    char spec[600];
    snprintf(spec, sizeof spec, "idx:%s", find("mnist", "mnist.tar.xz"));
    tutti_data *data = open_data(spec, 60000, 10000, 10);
    assert_true(fabs(tutti_data_normalise(data).mean[0] - 0.1307) < 1e-4);
    assert_true(fabs(tutti_data_normalise(data).std[0] - 0.3081) < 1e-4);
    read_all(data, TUTTI_SPLIT_TRAIN, 1e-4);
    tutti_data_close(&data);
}

static void cifar10(void **state)
{
    (void)state;
    static const double mean[] = {0.4914, 0.4822, 0.4465}, std[] = {0.2470, 0.2435, 0.2616};
    char spec[600];
    snprintf(spec, sizeof spec, "cifar10:%s", find("cifar10", "cifar10.tar.xz"));
    tutti_data *data = open_data(spec, 50000, 10000, 10);
    assert_string_equal(tutti_data_class_name(data, 9), "truck");
    for (int c = 0; c < 3; c++) {
        assert_true(fabs(tutti_data_normalise(data).mean[c] - mean[c]) < 1e-4);
        assert_true(fabs(tutti_data_normalise(data).std[c] - std[c]) < 1e-4);
    }
    read_all(data, TUTTI_SPLIT_TEST, 0.02);
    tutti_data_close(&data);
}

static void trashnet(void **state)
{
    (void)state;
    const char *root = find("trashnet", "trashnet-352x264.tar.xz");
    char spec[1400];
    snprintf(spec, sizeof spec,
             "images:%s/352x264,train=../one-indexed-files-notrash_train.txt,"
             "test=../one-indexed-files-notrash_test.txt",
             root);
    tutti_data *data = open_data(spec, 1768, 431, 6);
    static const char *const names[] = {"glass", "paper", "cardboard", "plastic", "metal"};
    for (int i = 0; i < 5; i++) assert_string_equal(tutti_data_class_name(data, i), names[i]);
    read_all(data, TUTTI_SPLIT_TRAIN, 2);
    read_all(data, TUTTI_SPLIT_TEST, 2);
    tutti_data_close(&data);
}

static void speech_commands(void **state)
{
    (void)state;
    char spec[600];
    snprintf(spec, sizeof spec, "kaldi:%s",
             find("speech_commands_v2_test_fbank", "speech_commands_v2_test_fbank.tar.xz"));
    tutti_data *data = open_data(spec, 3853, 1037, 12);
    assert_int_equal(tutti_data_shape(data).channels, 98 * 40);
    assert_string_equal(tutti_data_class_name(data, 11), "yes");
    read_all(data, TUTTI_SPLIT_TRAIN, 0.01);
    read_all(data, TUTTI_SPLIT_TEST, 0.2);
    tutti_data_close(&data);
}

static int set_up(void **state)
{
    (void)state;
    scratch_open(&unpacked);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&unpacked);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist),
        cmocka_unit_test(cifar10),
        cmocka_unit_test(trashnet),
        cmocka_unit_test(speech_commands),
    };
    if (!getenv("TUTTI_DATA")) {
        printf("TUTTI_DATA is not set: skipped\n");
        return 77; /* as meson understands it */
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
