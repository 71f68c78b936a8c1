/* Measured platforms: what a text says, what is between and beyond its rows, where it is kept. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "format/file.h"
#include "plan/predict.h"
#include "scratch.h"

static const tutti_optimizer_cost sgd = {1, 4}; /* with momentum */

static const char measured[] = "tutti platform 1\n"
                               "title \"a test\"\n"
                               "machine \"a processor, its kernels\" threads=2 ranks=4\n"
                               "nodes 8\n"
                               "peak 100GF\n"
                               "memory 8GB\n"
                               "memory-bandwidth 10GB/s\n"
                               "link 1GB/s latency=2us overlap=1\n"
                               "steals 0.4 beside=2.5\n"
                               "meeting 30us\n"
                               "update 5e-10\n"
                               "common 7e-10\n"
                               "layer fc 64x1x1 128x1x1 1x1/1 1 0.001 0.002 0.003\n"
                               "layer fc 64x1x1 128x1x1 1x1/1 16 0.016 0.002 0.018\n"
                               "layer fc 64x1x1 128x1x1 1x1/1 4 0.004 0.002 0.006\n"
                               "layer input 64x1x1 64x1x1 1x1/1 4 0.01 0 0\n"
                               "exchange 2 1000 1e-4 2e-4\n"
                               "exchange 2 3000 2e-4 4e-4\n";

static const char net_text[] = "input 64\nfc0 fc 64\nfc1 fc 128\nloss softmax\n";

static tutti_platform *parse(const char *text)
{
    tutti_platform *p = NULL;
    if (tutti_platform_parse(&p, "mine", text) != TUTTI_OK) fail_msg("%s", tutti_message());
    return p;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void a_platform_survives_its_text(void **state)
{
    (void)state;
    tutti_platform *p = parse(measured), *again;
    char *text = NULL, *second = NULL;
    assert_int_equal(tutti_platform_text(&text, p, "by hand"), TUTTI_OK);
    again = parse(text);
    assert_string_equal(again->machine, "a processor, its kernels");
    assert_int_equal(again->threads, 2);
    assert_int_equal(again->ranks, 4);
    assert_true(is_near(again->meeting, 30e-6));
    assert_true(is_near(again->common, 7e-10));
    assert_true(is_near(again->steals, 0.4) && is_near(again->beside, 2.5));
    assert_int_equal(again->layer_count, 4);
    assert_int_equal(again->exchange_count, 2);
    assert_int_equal(tutti_platform_text(&second, again, "by hand"), TUTTI_OK);
    assert_string_equal(text, second);
    tutti_free(text);
    tutti_free(second);
    tutti_platform_destroy(&p);
    tutti_platform_destroy(&again);
}

static void times_follow_the_line_through_two_rows(void **state)
{
    (void)state;
    tutti_platform *p = parse(measured);
    tutti_net *net = NULL;
    assert_int_equal(tutti_net_parse(&net, net_text, "mine"), TUTTI_OK);
    static const struct {
        double samples, forward, data;
    } row[] = {{1, 0.001, 0.003}, {4, 0.004, 0.006}, {10, 0.010, 0.012}, {64, 0.064, 0.066}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const tutti_pass_seconds s = tutti_platform_layer(p, net, 1, row[i].samples, 128);
        assert_true(is_near(s.forward, row[i].forward));
        assert_true(is_near(s.weights, 0.002));
        assert_true(is_near(s.data, row[i].data));
    }
    /* a part that was not measured costs its share of the whole */
    assert_true(is_near(tutti_platform_layer(p, net, 1, 4, 32).forward, 0.001));
    assert_true(is_near(tutti_platform_input(p, net, 8), 0.02));
    assert_true(is_near(tutti_platform_reduce(p, 2, 2000), 1.5e-4));
    assert_true(is_near(tutti_platform_broadcast(p, 2, 5000), 6e-4));
    assert_true(is_near(tutti_platform_broadcast(p, 2, 10), 2e-4));
    assert_true(is_near(tutti_platform_update(p, 1000, 4), 5e-7));
    tutti_net_destroy(&net);
    tutti_platform_destroy(&p);
}

static void one_rank_alone_knows_no_network(void **state)
{
    (void)state;
    tutti_platform *p =
        parse("tutti platform 1\nmachine \"one\" threads=1 ranks=1\nnodes 1\npeak 1GF\n"
              "memory-bandwidth 1GB/s\n");
    tutti_net *net = NULL;
    tutti_plan *plan = NULL;
    tutti_prediction *prediction = NULL;
    const tutti_predict_options o = {8, true, true, sgd, 0, 0};
    assert_int_equal(tutti_net_parse(&net, net_text, "mine"), TUTTI_OK);
    for (int nodes = 1; nodes <= 2; nodes++) {
        assert_int_equal(tutti_plan_create(&plan, net, nodes), TUTTI_OK);
        const tutti_status s = tutti_predict_step(&prediction, net, p, plan, &o);
        assert_int_equal(s, nodes == 1 ? TUTTI_OK : TUTTI_ARGUMENT);
        tutti_prediction_destroy(&prediction);
        tutti_plan_destroy(&plan);
    }
    assert_non_null(strstr(tutti_message(), "mpirun -n 2 tutti calibrate"));
    tutti_net_destroy(&net);
    tutti_platform_destroy(&p);
}

/* Ranks that lose much whenever they meet are left data parallel. */
static void meetings_keep_layers_whole(void **state)
{
    (void)state;
    tutti_net *net = NULL;
    assert_int_equal(tutti_net_load(&net, "vgg-a"), TUTTI_OK);
    const tutti_predict_options o = {256, true, true, sgd, 0, 0};
    for (int costly = 0; costly < 2; costly++) {
        tutti_platform *p = NULL;
        tutti_plan *plan = NULL;
        assert_int_equal(tutti_platform_load(&p, "aws-c4"), TUTTI_OK);
        p->meeting = costly ? 10 : 0;
        assert_int_equal(tutti_plan_search(&plan, net, p, 16, &o), TUTTI_OK);
        const int fc6 = tutti_net_find_layer(net, "fc6");
        assert_int_equal(plan->groups[fc6] == 16, costly);
        tutti_plan_destroy(&plan);
        tutti_platform_destroy(&p);
    }
    tutti_net_destroy(&net);
}

/* Where here-4x2 is kept, in a folder of its own. */
static void open_home(scratch *folder, char *path, size_t size)
{
    scratch_open(folder);
    setenv("XDG_CACHE_HOME", folder->path, 1);
    assert_int_equal(tutti_platform_home(path, size), TUTTI_OK);
    assert_int_equal(tutti_file_make_directories(path), TUTTI_OK);
    strcat(path, "/here-4x2.platform");
}

static char *sealed(void)
{
    char *text = NULL;
    tutti_platform *p = parse(measured);
    assert_int_equal(tutti_platform_text(&text, p, "measured by a test"), TUTTI_OK);
    tutti_platform_destroy(&p);
    return text;
}

/* One line that names the file and the command. */
static void expect_refusal(const char *path, const char *bytes, size_t count)
{
    tutti_platform *p = NULL;
    unlink(path); /* writing a new file is much quicker than writing over one */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    if (tutti_platform_load(&p, "here-4x2") == TUTTI_OK)
        fail_msg("taken, with %zu bytes:\n%.*s", count, (int)count, bytes);
    assert_non_null(strstr(tutti_message(), path));
    assert_non_null(strstr(tutti_message(), "'mpirun -n 4 tutti calibrate'"));
    assert_null(strchr(tutti_message(), '\n'));
}

static void a_damaged_measurement_is_not_used(void **state)
{
    (void)state;
    char path[512], *text = sealed();
    const size_t length = strlen(text);
    scratch folder;
    open_home(&folder, path, sizeof path);
    for (size_t cut = 0; cut < length; cut++) expect_refusal(path, text, cut);
    for (size_t i = 0; i < length; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] ^= (char)(1 << bit);
            expect_refusal(path, text, length);
            text[i] ^= (char)(1 << bit);
        }
    expect_refusal(path, measured, strlen(measured));
    tutti_free(text);
    scratch_close(&folder);
}

static void expect_content(const char *path, const char *content)
{
    char *bytes = NULL;
    size_t length;
    assert_int_equal(tutti_file_load(&bytes, &length, path, 4096), TUTTI_OK);
    assert_string_equal(bytes, content);
    tutti_free(bytes);
}

/* Who has the old file open keeps the old bytes; what fails leaves nothing behind. */
static void a_file_is_replaced_whole(void **state)
{
    (void)state;
    char path[512], other[520];
    scratch folder;
    open_home(&folder, path, sizeof path);
    snprintf(other, sizeof other, "%s.other", path);
    assert_int_equal(tutti_file_replace(path, "old", 3), TUTTI_OK);
    assert_int_equal(link(path, other), 0);
    assert_int_equal(tutti_file_replace(path, "newer", 5), TUTTI_OK);
    expect_content(other, "old");
    expect_content(path, "newer");
    assert_int_equal(unlink(other), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(tutti_file_replace(path, "none", 4), TUTTI_IO);
    assert_non_null(strstr(tutti_message(), path));
    assert_int_equal(rmdir(path), 0);
    *strrchr(path, '/') = 0;
    assert_int_equal(rmdir(path), 0);
    scratch_close(&folder);
}

static void here_is_kept_with_the_caches(void **state)
{
    (void)state;
    char path[512], name[TUTTI_HERE_NAME], *text = sealed();
    tutti_platform *p = NULL;
    scratch folder;
    open_home(&folder, path, sizeof path);
    tutti_platform_here(name, 4, 2);
    assert_string_equal(name, "here-4x2");
    assert_false(tutti_platform_exists(name));
    assert_int_not_equal(tutti_platform_load(&p, "here"), TUTTI_OK);
    assert_non_null(strstr(tutti_message(), "tutti calibrate"));
    assert_int_equal(tutti_file_save(path, text, strlen(text)), TUTTI_OK);
    assert_true(tutti_platform_exists(name));
    assert_int_equal(tutti_platform_load(&p, name), TUTTI_OK);
    assert_string_equal(p->name, name);
    assert_int_equal(p->threads, 2);
    tutti_platform_destroy(&p);
    tutti_free(text);
    scratch_close(&folder);
}

static void key_of(const char *conv, char key[TUTTI_LAYER_KEY])
{
    tutti_net *net = NULL;
    char text[256];
    snprintf(text, sizeof text, "input 64 9 9\nc conv 64 kernel=3 %s\nf fc 2\nloss softmax\n",
             conv);
    assert_int_equal(tutti_net_parse(&net, text, "t.net"), TUTTI_OK);
    tutti_platform_key(&net->layers[0], net->layers[0].out.c, key);
    tutti_net_destroy(&net);
}

static void what_decides_the_time_is_in_the_key(void **state)
{
    (void)state;
    char plain[TUTTI_LAYER_KEY], other[TUTTI_LAYER_KEY];
    key_of("pad=1", plain);
    assert_string_equal(plain, "conv 64x9x9 64x9x9 3x3/1,winograd-4x4");
    key_of("pad=1 groups=32", other);
    assert_string_equal(other, "conv 64x9x9 64x9x9 3x3/1,g32");
    key_of("pad=2 dilation=2", other);
    assert_string_equal(other, "conv 64x9x9 64x9x9 3x3/1,d2x2");
    key_of("pad=1 stride=1x2", other);
    assert_string_equal(other, "conv 64x9x9 64x9x5 3x3/1x2");
    key_of("pad=1 algorithm=direct", other);
    assert_string_equal(other, "conv 64x9x9 64x9x9 3x3/1");
    key_of("pad=1 nobias init=he relu", other);
    assert_string_equal(other, plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_decides_the_time_is_in_the_key),
        cmocka_unit_test(a_platform_survives_its_text),
        cmocka_unit_test(a_damaged_measurement_is_not_used),
        cmocka_unit_test(a_file_is_replaced_whole),
        cmocka_unit_test(times_follow_the_line_through_two_rows),
        cmocka_unit_test(one_rank_alone_knows_no_network),
        cmocka_unit_test(meetings_keep_layers_whole),
        cmocka_unit_test(here_is_kept_with_the_caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
