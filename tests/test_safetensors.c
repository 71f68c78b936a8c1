/* Safetensors files: what is written is what is read, by us and by an independent reader; what is
 * damaged is refused with a sentence that names it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/memory.h"
#include "format/safetensors.h"
#include "scratch.h"

static scratch dir;

static int open_dir(void **state)
{
    (void)state;
    scratch_open(&dir);
    return 0;
}

static int close_dir(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static const tutti_tensor_spec specs[] = {
    {"conv1.weight", 4, {3, 2, 2, 2}, TUTTI_F32},
    {"conv1.bias", 1, {3}, TUTTI_F32},
    {"empty", 2, {0, 7}, TUTTI_F32},
    {"scale", 0, {0}, TUTTI_F32},
    {"fc.\"odd\"\\\n", 2, {2, 5}, TUTTI_F32},
};
enum { SPECS = sizeof specs / sizeof *specs };

static float value_at(int tensor, int64_t i)
{
    return (float)(tensor + 1) / 3.0f + (float)i * 0.7f;
}

static void write_range(tutti_safetensors_writer *w, int tensor, int64_t first, int64_t count)
{
    float values[64];
    for (int64_t i = 0; i < count; i++) values[i] = value_at(tensor, first + i);
    assert_int_equal(tutti_safetensors_write(w, tensor, first, values, count), TUTTI_OK);
}

/* Writes the file with 'writers' writers, each its share of every tensor, the last one first. */
static void write_file(const char *path, int writers)
{
    tutti_safetensors_layout *layout = NULL;
    tutti_safetensors_writer *w[8] = {NULL};
    assert_int_equal(tutti_safetensors_layout_create(&layout, specs, SPECS), TUTTI_OK);
    for (int r = 0; r < writers; r++)
        assert_int_equal(tutti_safetensors_writer_open(&w[r], path, layout, r == 0), TUTTI_OK);
    for (int r = writers - 1; r >= 0; r--) {
        for (int t = 0; t < SPECS; t++) {
            const int64_t n = tutti_tensor_elements(&specs[t]);
            write_range(w[r], t, n * r / writers, n * (r + 1) / writers - n * r / writers);
        }
        assert_int_equal(tutti_safetensors_writer_close(&w[r]), TUTTI_OK);
        assert_null(w[r]);
    }
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, tutti_safetensors_layout_bytes(layout));
    tutti_safetensors_layout_destroy(&layout);
}

static size_t slurp(const char *path, char *bytes, size_t size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, size, f);
    fclose(f);
    return n;
}

static void spit(const char *path, const void *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    fclose(f);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    const char *path = scratch_file(&dir, "a.safetensors");
    tutti_safetensors *f = NULL;
    write_file(path, 1);
    assert_int_equal(tutti_safetensors_open(&f, path), TUTTI_OK);
    assert_int_equal(tutti_safetensors_count(f), SPECS);
    assert_string_equal(tutti_safetensors_metadata(f, "format"), "pt");
    assert_null(tutti_safetensors_metadata(f, "nothing"));
    assert_int_equal(tutti_safetensors_find(f, "nothing"), -1);
    for (int t = 0; t < SPECS; t++) {
        const int i = tutti_safetensors_find(f, specs[t].name);
        const tutti_tensor_info *info = tutti_safetensors_tensor(f, i);
        const int64_t n = tutti_tensor_elements(&specs[t]);
        float got[64];
        assert_int_equal(info->spec.dims, specs[t].dims);
        assert_memory_equal(info->spec.shape, specs[t].shape,
                            (size_t)specs[t].dims * sizeof specs[t].shape[0]);
        for (int64_t first = 0; first <= n; first++) {
            assert_int_equal(tutti_safetensors_read(f, i, first, got, n - first), TUTTI_OK);
            for (int64_t k = first; k < n; k++) assert_true(got[k - first] == value_at(t, k));
        }
        assert_int_equal(tutti_safetensors_read(f, i, 0, got, n + 1), TUTTI_DATA);
        assert_int_equal(tutti_safetensors_read(f, i, n + 1, got, 0), TUTTI_DATA);
        assert_int_equal(tutti_safetensors_read(f, i, -1, got, 1), TUTTI_DATA);
    }
    tutti_safetensors_close(&f);
    assert_null(f);
}

static void any_number_of_writers_makes_the_same_bytes(void **state)
{
    (void)state;
    static char one[1 << 14], many[1 << 14];
    write_file(scratch_file(&dir, "one"), 1);
    const size_t n = slurp(scratch_file(&dir, "one"), one, sizeof one);
    for (int writers = 2; writers <= 8; writers++) {
        write_file(scratch_file(&dir, "many"), writers);
        assert_int_equal(slurp(scratch_file(&dir, "many"), many, sizeof many), n);
        assert_memory_equal(one, many, n);
    }
    uint64_t header = 0;
    memcpy(&header, one, 8);
    assert_int_equal((8 + header) % 64, 0);
}

static void an_independent_reader_agrees(void **state)
{
    (void)state;
    char command[1024], line[4096], want[4096];
    const char *path = scratch_file(&dir, "b.safetensors");
    write_file(path, 3);
    snprintf(command, sizeof command, "python3 '%s/read_safetensors.py' '%s'", TESTS_DIR, path);
    FILE *reader = popen(command, "r");
    assert_non_null(reader);
    for (int t = 0; t < 4; t++) { /* the last name has a newline in it */
        size_t used = (size_t)snprintf(want, sizeof want, "%s ", specs[t].name);
        if (specs[t].dims) tutti_tensor_shape_text(&specs[t], want + used, sizeof want - used);
        used = strlen(want);
        for (int64_t i = 0; i < tutti_tensor_elements(&specs[t]); i++)
            used +=
                (size_t)snprintf(want + used, sizeof want - used, " %.9g", (double)value_at(t, i));
        snprintf(want + used, sizeof want - used, "\n");
        assert_non_null(fgets(line, sizeof line, reader));
        assert_string_equal(line, want);
    }
    while (fgets(line, sizeof line, reader)) {}
    assert_int_equal(pclose(reader), 0);
}

static void impossible_lists_are_refused(void **state)
{
    (void)state;
    static const struct {
        tutti_tensor_spec list[2];
        const char *sentence;
    } bad[] = {
        {{{"", 1, {1}, TUTTI_F32}, {"b", 1, {1}, TUTTI_F32}}, "'' cannot be the name of a tensor"},
        {{{"a", 1, {1}, TUTTI_F32}, {"a", 1, {2}, TUTTI_F32}}, "two tensors have the name 'a'"},
        {{{"a", 1, {-1}, TUTTI_F32}, {"b", 1, {2}, TUTTI_F32}}, "tensor 'a' cannot have extent -1"},
        {{{"a", 2, {INT64_MAX, 2}, TUTTI_F32}, {"b", 1, {2}, TUTTI_F32}},
         "tensor 'a' cannot have extent 9223372036854775807"},
        {{{"a", 9, {1}, TUTTI_F32}, {"b", 1, {2}, TUTTI_F32}},
         "tensor 'a' has 9 dimensions, not 0 to 8"},
        {{{"__metadata__", 1, {1}, TUTTI_F32}, {"b", 1, {2}, TUTTI_F32}},
         "'__metadata__' cannot be the name of a tensor"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tutti_safetensors_layout *layout = NULL;
        assert_int_equal(tutti_safetensors_layout_create(&layout, bad[i].list, 2), TUTTI_ARGUMENT);
        assert_string_equal(tutti_message(), bad[i].sentence);
        assert_null(layout);
    }
}

/* A file made of a header text and 'data' bytes of data; 'extra' is added to the true length. */
static void write_raw(const char *path, const char *header, size_t data, int64_t extra)
{
    static char bytes[4096];
    const size_t n = strlen(header);
    const uint64_t length = (uint64_t)n + (uint64_t)extra;
    assert_true(8 + n + data <= sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, n);
    spit(path, bytes, 8 + n + data);
}

#define A "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

static void damage_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        int64_t extra;
        const char *part; /* of the sentence */
    } bad[] = {
        {A, 8, 100, "its header should have"},
        {A, 8, INT64_MAX, "its header should have"},
        {A, 8, -1 - (int64_t)sizeof A, "its header should have"},
        {A, 8, -3, "header, column"},
        {A, 7, 0, "tensor 'a': bytes 0 to 8 are not in the file, which has 7 bytes of data"},
        {A, 9, 0, "1 bytes at the end belong to no tensor"},
        {"", 0, 0, "no header"},
        {" {}", 0, 0, "no header"},
        {"[]", 0, 0, "no header"},
        {"{\"a\":1}", 0, 0, "tensor 'a': is not described by an object"},
        {"{\"\":{}}", 0, 0, "a tensor needs a name"},
        {"{\"a\":{}}", 0, 0, "has no \"dtype\""},
        {"{\"a\":{\"dtype\":\"F99\"}}", 0, 0, "unknown dtype 'F99'"},
        {"{\"a\":{\"dtype\":\"F32\"}}", 0, 0, "has no \"shape\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1]}}", 0, 0, "more than 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1]}}", 0, 0, "not a list of possible sizes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5]}}", 0, 0, "not a list of possible sizes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296]}}", 0, 0, "possible sizes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 0, 0, "\"data_offsets\" of two numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, 0, "two numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, 0, "bytes 8 to 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, 0, "bytes -8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, 0,
         "has 4 bytes, but its shape needs 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, 0,
         "leaves a gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         12, 0, "tensor 'b': overlaps"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         8, 0, "duplicate object key"},
        {"{\"__metadata__\":{\"x\":1}}", 0, 0, "'x' in its __metadata__ is not a text"},
        {"{\"__metadata__\":[]}", 0, 0, "__metadata__ is not an object"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = scratch_file(&dir, "bad.safetensors");
        tutti_safetensors *f = NULL;
        write_raw(path, bad[i].header, bad[i].data, bad[i].extra);
        const tutti_status s = tutti_safetensors_open(&f, path);
        if (s != TUTTI_DATA || !strstr(tutti_message(), bad[i].part) ||
            !strstr(tutti_message(), path))
            fail_msg("case %zu: status %s, sentence \"%s\"", i, tutti_status_name(s),
                     tutti_message());
        assert_null(f);
    }
}

/* Every truncation and every flipped bit of a good file is refused or read without harm. */
static void no_damage_crashes(void **state)
{
    (void)state;
    static char good[1 << 14], bad[1 << 14];
    const char *path = scratch_file(&dir, "hurt.safetensors");
    write_file(path, 1);
    const size_t n = slurp(path, good, sizeof good);
    for (size_t length = 0; length < n; length++) {
        tutti_safetensors *f = NULL;
        spit(path, good, length);
        assert_int_equal(tutti_safetensors_open(&f, path), TUTTI_DATA);
    }
    uint64_t header = 0;
    memcpy(&header, good, 8);
    for (size_t bit = 0; bit < 8 * (8 + header); bit++) {
        tutti_safetensors *f = NULL;
        memcpy(bad, good, n);
        bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
        spit(path, bad, n);
        if (tutti_safetensors_open(&f, path)) continue;
        for (int i = 0; i < tutti_safetensors_count(f); i++) {
            float values[64];
            const int64_t count = tutti_tensor_elements(&tutti_safetensors_tensor(f, i)->spec);
            assert_true(count <= 64);
            const tutti_status s = tutti_safetensors_read(f, i, 0, values, count);
            assert_true(s == TUTTI_OK || s == TUTTI_DATA);
        }
        tutti_safetensors_close(&f);
    }
}

static void read_as_floats(const char *type, const void *data, int size, int count, float *out)
{
    char header[256];
    unsigned char bytes[4096];
    const char *path = scratch_file(&dir, "typed.safetensors");
    const int n = snprintf(header, sizeof header,
                           "{\"x\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%d]}}",
                           type, count, count * size);
    const uint64_t length = (uint64_t)n;
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, (size_t)n);
    memcpy(bytes + 8 + n, data, (size_t)(count * size));
    spit(path, bytes, (size_t)(8 + n + count * size));
    tutti_safetensors *f = NULL;
    assert_int_equal(tutti_safetensors_open(&f, path), TUTTI_OK);
    const tutti_status s = tutti_safetensors_read(f, 0, 0, out, count);
    tutti_safetensors_close(&f);
    assert_int_equal(s, TUTTI_OK);
}

static void other_types_are_converted(void **state)
{
    (void)state;
    float got[8];
    const double f64[] = {1.0, -0.1, 1e300, 1e-50};
    read_as_floats("F64", f64, 8, 4, got);
    assert_true(got[0] == 1.0f && got[1] == -0.1f && isinf(got[2]) && got[3] == 0.0f);

    const uint16_t bf16[] = {0x3f80, 0xc000, 0x0001, 0x7f80};
    read_as_floats("BF16", bf16, 2, 4, got);
    assert_true(got[0] == 1.0f && got[1] == -2.0f && got[2] == 0x1p-133f && isinf(got[3]));

    const uint16_t f16[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0xfc00, 0x7e00};
    read_as_floats("F16", f16, 2, 8, got);
    assert_true(got[0] == 1.0f && got[1] == -2.0f && got[2] == 65504.0f && got[3] == 0x1p-14f);
    assert_true(got[4] == 0x1p-24f && got[5] == -1023.0f * 0x1p-24f);
    assert_true(isinf(got[6]) && got[6] < 0 && isnan(got[7]));
}

static void counts_are_whole_numbers_for_others(void **state)
{
    (void)state;
    const tutti_tensor_spec list[] = {{"steps", 0, {0}, TUTTI_I64}, {"a", 1, {2}, TUTTI_F32}};
    const char *path = scratch_file(&dir, "counts.safetensors");
    const float steps = 50000, a[] = {1.5f, -2};
    tutti_safetensors_layout *layout = NULL;
    tutti_safetensors_writer *w = NULL;
    tutti_safetensors *f = NULL;
    float got[2];
    assert_int_equal(tutti_safetensors_layout_create(&layout, list, 2), TUTTI_OK);
    assert_int_equal(tutti_safetensors_writer_open(&w, path, layout, true), TUTTI_OK);
    assert_int_equal(tutti_safetensors_write(w, 0, 0, &steps, 1), TUTTI_OK);
    assert_int_equal(tutti_safetensors_write(w, 1, 0, a, 2), TUTTI_OK);
    assert_int_equal(tutti_safetensors_writer_close(&w), TUTTI_OK);
    assert_int_equal(tutti_safetensors_open(&f, path), TUTTI_OK);
    assert_int_equal(tutti_safetensors_tensor(f, 0)->spec.dtype, TUTTI_I64);
    assert_int_equal(tutti_safetensors_tensor(f, 0)->end - tutti_safetensors_tensor(f, 0)->begin,
                     8);
    assert_int_equal(tutti_safetensors_read(f, 0, 0, got, 1), TUTTI_OK);
    assert_true(got[0] == steps);
    assert_int_equal(tutti_safetensors_read(f, 1, 0, got, 2), TUTTI_OK);
    assert_memory_equal(got, a, sizeof a);
    tutti_safetensors_close(&f);
    tutti_safetensors_layout_destroy(&layout);
}

static void integers_are_no_weights(void **state)
{
    (void)state;
    const char *path = scratch_file(&dir, "int.safetensors");
    float value;
    tutti_safetensors *f = NULL;
    write_raw(path, "{\"n\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, 0);
    assert_int_equal(tutti_safetensors_open(&f, path), TUTTI_OK);
    assert_int_equal(tutti_safetensors_read(f, 0, 0, &value, 1), TUTTI_DATA);
    assert_non_null(strstr(tutti_message(), "tensor 'n': has type I32"));
    tutti_safetensors_close(&f);
}

static void a_writer_of_another_directory_is_told(void **state)
{
    (void)state;
    tutti_safetensors_layout *layout = NULL;
    tutti_safetensors_writer *w = NULL;
    assert_int_equal(tutti_safetensors_layout_create(&layout, specs, SPECS), TUTTI_OK);
    const char *path = scratch_file(&dir, "elsewhere/model");
    assert_int_equal(tutti_safetensors_writer_open(&w, path, layout, false), TUTTI_IO);
    assert_non_null(strstr(tutti_message(), "do all ranks see the same directory?"));
    assert_null(w);
    tutti_safetensors_layout_destroy(&layout);
}

/* Texts of any bytes: what is UTF-8 comes back, other bytes as what Latin-1 means by them. */
static void facts_come_back(void **state)
{
    (void)state;
    static const struct {
        const char *text, *read;
    } cases[] = {
        {"input 4\n\tfc 2 # \"quoted\" \\\r\n", "input 4\n\tfc 2 # \"quoted\" \\\r\n"},
        {"gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x8d\x8e", "gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x8d\x8e"},
        {"caf\xe9", "caf\xc3\xa9"},
        {"\xc3", "\xc3\x83"},
        {"\xe2\x82", "\xc3\xa2\xc2\x82"},
        {"\xc0\xaf", "\xc3\x80\xc2\xaf"},             /* longer than need be */
        {"\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80"}, /* half a pair */
        {"\xf5\x80\x80\x80", "\xc3\xb5\xc2\x80\xc2\x80\xc2\x80"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tutti_fact facts[] = {{"a", cases[i].text}, {"b", "other"}};
        tutti_safetensors_layout *layout = NULL;
        tutti_safetensors_writer *w = NULL;
        tutti_safetensors *f = NULL;
        char path[600];
        snprintf(path, sizeof path, "%s/facts%zu", dir.path, i);
        assert_int_equal(tutti_safetensors_layout_create_with(&layout, specs, 1, facts, 2),
                         TUTTI_OK);
        assert_int_equal(tutti_safetensors_writer_open(&w, path, layout, true), TUTTI_OK);
        write_range(w, 0, 0, tutti_tensor_elements(&specs[0]));
        assert_int_equal(tutti_safetensors_writer_close(&w), TUTTI_OK);
        assert_int_equal(tutti_safetensors_open(&f, path), TUTTI_OK);
        assert_string_equal(tutti_safetensors_metadata(f, "a"), cases[i].read);
        assert_string_equal(tutti_safetensors_metadata(f, "b"), "other");
        assert_string_equal(tutti_safetensors_metadata(f, "format"), "pt");
        tutti_safetensors_close(&f);
        tutti_safetensors_layout_destroy(&layout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(facts_come_back),
        cmocka_unit_test(any_number_of_writers_makes_the_same_bytes),
        cmocka_unit_test(an_independent_reader_agrees),
        cmocka_unit_test(impossible_lists_are_refused),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(no_damage_crashes),
        cmocka_unit_test(other_types_are_converted),
        cmocka_unit_test(counts_are_whole_numbers_for_others),
        cmocka_unit_test(integers_are_no_weights),
        cmocka_unit_test(a_writer_of_another_directory_is_told),
    };
    return cmocka_run_group_tests(tests, open_dir, close_dir);
}
