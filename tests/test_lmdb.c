/* Caffe's databases, written as its tools write them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>
#include <lmdb.h>

#include "data_files.h"

/* ---- the writer ---- */

static void put_varint(bytes *b, uint64_t value)
{
    for (; value >= 128; value >>= 7) put_byte(b, (int)(value & 127) | 128);
    put_byte(b, (int)value);
}

static void put_number(bytes *b, int field, int64_t value)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)value);
}

static void put_data(bytes *b, const void *data, size_t size)
{
    put_varint(b, 4 << 3 | 2);
    put_varint(b, size);
    put(b, data, size);
}

static void put_shape(bytes *b, int channels, int height, int width)
{
    b->count = 0;
    put_number(b, 1, channels);
    put_number(b, 2, height);
    put_number(b, 3, width);
}

typedef struct writer {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    int count;
} writer;

static void begin(writer *w, const char *dir)
{
    *w = (writer){0};
    if (mkdir(dir, 0755) || mdb_env_create(&w->env) || mdb_env_set_mapsize(w->env, 1 << 24) ||
        mdb_env_open(w->env, dir, 0, 0644) || mdb_txn_begin(w->env, NULL, 0, &w->txn) ||
        mdb_dbi_open(w->txn, NULL, 0, &w->dbi))
        abort();
}

static void add(writer *w, const bytes *b)
{
    char name[32];
    MDB_val value = {b->count, (void *)b->data};
    MDB_val key = {(size_t)snprintf(name, sizeof name, "%08d_x.jpg", w->count++), name};
    if (mdb_put(w->txn, w->dbi, &key, &value, 0)) abort();
}

static void end(writer *w)
{
    if (mdb_txn_commit(w->txn)) abort();
    mdb_env_close(w->env);
}

/* 'count' raw records, label n % 3. */
static void write_raw(const char *dir, int count, int channels, int height, int width)
{
    static bytes b;
    static uint8_t pixels[4096];
    writer w;
    begin(&w, dir);
    for (int n = 0; n < count; n++) {
        for (int i = 0; i < channels * height * width; i++) pixels[i] = pixel_of(n, i);
        put_shape(&b, channels, height, width);
        put_data(&b, pixels, (size_t)(channels * height * width));
        put_number(&b, 5, n % 3);
        add(&w, &b);
    }
    end(&w);
}

/* ---- tests ---- */

static tutti_status open_keys(tutti_data **data, const scratch *s, const char *keys, bool skip_bad)
{
    tutti_data_options o = tutti_data_defaults();
    char spec[1024];
    snprintf(spec, sizeof spec, "lmdb:%s/db%s", s->path, keys);
    o.augment = false;
    o.skip_bad = skip_bad;
    return tutti_data_open(data, spec, &o);
}

static tutti_status fetch(tutti_data *data, tutti_split split, uint32_t id, float *sample,
                          int *label)
{
    tutti_reader *reader = NULL;
    assert_ok(tutti_reader_create(&reader, data));
    const tutti_status s = tutti_reader_fetch(reader, split, 0, id, sample, label);
    tutti_reader_destroy(&reader);
    return s;
}

/* Raw colours are blue, green, red unless order= says otherwise; with more channels as they are. */
static void raw_planes_become_pixels(void **state)
{
    static const struct {
        int channels;
        const char *keys;
        bool reversed;
    } cases[] = {{1, "", false}, {3, "", true}, {3, ",order=rgb", false}, {5, "", false}};
    const scratch *s = *state;
    static float sample[4096];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int channels = cases[i].channels;
        scratch own;
        char keys[64];
        int label;
        tutti_data *data = NULL;
        snprintf(keys, sizeof keys, ",mean=0,std=1,holdout=0,classes=3%s", cases[i].keys);
        scratch_open(&own);
        write_raw(scratch_file(&own, "db"), 7, channels, 4, 5);
        assert_ok(open_keys(&data, &own, keys, false));
        assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 7);
        assert_ok(fetch(data, TUTTI_SPLIT_TRAIN, 5, sample, &label));
        assert_int_equal(label, 2);
        for (int p = 0; p < 20; p++)
            for (int c = 0; c < channels; c++) {
                const int plane = cases[i].reversed ? channels - 1 - c : c;
                const double want = pixel_of(5, plane * 20 + p) / 255.0;
                if (fabs(sample[p * channels + c] - want) > 1e-6) fail_msg("%zu: %d %d", i, p, c);
            }
        tutti_data_close(&data);
        scratch_close(&own);
    }
    (void)s;
}

static void floats_come_one_by_one_or_packed(void **state)
{
    const scratch *s = *state;
    static bytes b;
    writer w;
    begin(&w, scratch_file(s, "db"));
    for (int packed = 0; packed < 2; packed++) {
        put_shape(&b, 2, 3, 1);
        put_number(&b, 5, packed);
        if (packed) put_varint(&b, 6 << 3 | 2), put_varint(&b, 24);
        for (int i = 0; i < 6; i++) {
            if (!packed) put_varint(&b, 6 << 3 | 5);
            put_float(&b, (float)i - 2.5f);
        }
        add(&w, &b);
    }
    end(&w);
    tutti_data *data = NULL;
    assert_ok(open_keys(&data, s, ",mean=0,std=1,holdout=0", false));
    for (uint32_t id = 0; id < 2; id++) {
        float sample[16];
        int label;
        assert_ok(fetch(data, TUTTI_SPLIT_TRAIN, id, sample, &label));
        assert_int_equal(label, id);
        for (int i = 0; i < 6; i++) assert_true(sample[i] == (float)(i % 2 * 3 + i / 2) - 2.5f);
    }
    tutti_data_close(&data);
}

/* A file in a record is the picture that the same file is in a folder. */
static void files_are_decoded(void **state)
{
    const scratch *s = *state;
    static bytes b;
    static float from_record[3 * 224 * 224 + 16], from_file[3 * 224 * 224 + 16];
    uint8_t *jpeg = NULL;
    const size_t size = make_jpeg(&jpeg, 40, 60, 77);
    write_bytes(scratch_file(s, "x.jpg"), jpeg, size);
    writer w;
    begin(&w, scratch_file(s, "db"));
    put_shape(&b, 3, 40, 60);
    put_data(&b, jpeg, size);
    put_number(&b, 5, 1);
    put_number(&b, 7, 1);
    add(&w, &b);
    end(&w);
    tjFree(jpeg);
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    int label;
    assert_ok(open_keys(&data, s, ",holdout=0", false));
    assert_ok(fetch(data, TUTTI_SPLIT_TRAIN, 0, from_record, &label));
    assert_int_equal(label, 1);
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch_file(reader, scratch_file(s, "x.jpg"), from_file));
    assert_memory_equal(from_record, from_file, sizeof from_file);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

static void samples_are_held_out_or_named(void **state)
{
    const scratch *s = *state;
    char keys[700];
    tutti_data *data = NULL;
    write_raw(scratch_file(s, "db"), 40, 1, 2, 2);
    write_raw(scratch_file(s, "other"), 6, 1, 2, 2);
    assert_ok(open_keys(&data, s, ",val=50", false));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 4);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), 18);
    tutti_data_close(&data);
    snprintf(keys, sizeof keys, ",test=%s", scratch_file(s, "other"));
    assert_ok(open_keys(&data, s, keys, false));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 40);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 6);
    tutti_data_close(&data);
}

static void damage_gets_a_sentence(void **state)
{
    const scratch *s = *state;
    static bytes b;
    tutti_data *data = NULL;
    float sample[64];
    int label;
    assert_fails(open_keys(&data, s, "", false), TUTTI_DATA, "cannot read the database");
    writer w;
    begin(&w, scratch_file(s, "db"));
    for (int n = 0; n < 3; n++) {
        put_shape(&b, 1, 2, n == 1 ? 3 : 2);
        put_data(&b, "\1\2\3\4\5\6", n == 1 ? 6 : 4);
        put_number(&b, 5, n == 2 ? 9 : 0);
        add(&w, &b);
    }
    b.count = 0;
    put_text(&b, "nothing of the kind");
    add(&w, &b);
    end(&w);
    assert_fails(open_keys(&data, s, ",holdout=0,classes=3", false), TUTTI_DATA, "record 1");
    assert_fails(open_keys(&data, s, ",holdout=0,order=bgg", false), TUTTI_ARGUMENT, "bgr or rgb");
    assert_ok(open_keys(&data, s, ",holdout=0,classes=3,mean=0,std=1", false));
    assert_fails(fetch(data, TUTTI_SPLIT_TRAIN, 1, sample, &label), TUTTI_DATA,
                 "6 numbers of 1x2x3");
    assert_fails(fetch(data, TUTTI_SPLIT_TRAIN, 2, sample, &label), TUTTI_DATA, "label 9");
    assert_fails(fetch(data, TUTTI_SPLIT_TRAIN, 3, sample, &label), TUTTI_DATA, "not a Datum");
    tutti_data_close(&data);
}

/* The first damaged sample would be a bus error otherwise. */
static void a_database_that_is_cut_off_is_refused(void **state)
{
    const scratch *s = *state;
    tutti_data *data = NULL;
    write_raw(scratch_file(s, "db"), 40, 3, 30, 30);
    if (truncate(scratch_file(s, "db/data.mdb"), 4096 * 9)) abort();
    assert_fails(open_keys(&data, s, "", false), TUTTI_DATA, "is cut off");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(raw_planes_become_pixels), SCRATCH_TEST(floats_come_one_by_one_or_packed),
        SCRATCH_TEST(files_are_decoded),        SCRATCH_TEST(samples_are_held_out_or_named),
        SCRATCH_TEST(damage_gets_a_sentence),   SCRATCH_TEST(a_database_that_is_cut_off_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
