/* Which utterances are for training, testing and validation, by files, folders and shares. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

/* Utterance u is "u<u>", 4 + u frames of one number. */
static void put_archive(bytes *b, int utterances)
{
    b->count = 0;
    for (int u = 0; u < utterances; u++) {
        char key[16];
        snprintf(key, sizeof key, "u%d ", u);
        put_text(b, key);
        put(b, "\0BFM \4", 6);
        put_int(b, 4 + u);
        put_byte(b, 4);
        put_int(b, 1);
        for (int row = 0; row < 4 + u; row++) put_float(b, (float)(u + row));
    }
}

static void write_archive(const scratch *s, int utterances)
{
    static bytes b;
    put_archive(&b, utterances);
    write_bytes(scratch_file(s, "f.ark"), b.data, b.count);
}

static const char *archive_spec(const scratch *s, const char *keys)
{
    static char spec[2048];
    snprintf(spec, sizeof spec, "kaldi:%s/f.ark,%s/l.txt%s", s->path, s->path, keys);
    return spec;
}

static tutti_data *open_data(const char *spec)
{
    tutti_data *data = NULL;
    const tutti_data_options o = tutti_data_defaults();
    assert_ok(tutti_data_open(&data, spec, &o));
    return data;
}

static void must_fail(const char *spec, tutti_status status, const char *part)
{
    tutti_data *data = NULL;
    const tutti_data_options o = tutti_data_defaults();
    assert_fails(tutti_data_open(&data, spec, &o), status, part);
    assert_null(data);
}

static int label_of(tutti_data *data, tutti_split split, uint32_t id)
{
    float sample[64];
    int label;
    tutti_reader *reader = NULL;
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, split, 0, id, sample, &label));
    tutti_reader_destroy(&reader);
    return label;
}

/* Features without labels, labels without features, keys that a folder has no use for. */
static void folders_with_half_a_split(void **state)
{
    scratch *s = *state;
    static bytes b;
    put_archive(&b, 4);
    write_bytes(scratch_file(s, "feats_train.ark"), b.data, b.count);
    must_fail(spec_of("kaldi", s, ""), TUTTI_DATA, "'utt2label_train.txt' is not in");
    write_text(scratch_file(s, "utt2label_train.txt"), "u0 0\nu1 1\nu2 1\n");
    write_bytes(scratch_file(s, "feats_test.ark"), b.data, b.count);
    must_fail(spec_of("kaldi", s, ""), TUTTI_DATA, "'utt2label_test.txt' is not in");
    write_text(scratch_file(s, "utt2label_test.txt"), "u3 0\n");
    must_fail(spec_of("kaldi", s, ",holdout=20"), TUTTI_ARGUMENT, "feats_test.ark: leave it out");
    must_fail(spec_of("kaldi", s, ",names=words"), TUTTI_ARGUMENT, "go with kaldi:FEATS,LABELS");
    unlink(scratch_file(s, "feats_test.ark"));
    must_fail(spec_of("kaldi", s, ""), TUTTI_DATA, "'feats_test.ark' (or .scp) is not in");
    unlink(scratch_file(s, "utt2label_test.txt"));
    tutti_data *data = open_data(spec_of("kaldi", s, ",holdout=40"));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 1);
    tutti_data_close(&data);
}

/* The frames of an utterance resemble each other: all of them are in one part. */
static void utterances_stay_whole(void **state)
{
    scratch *s = *state;
    int seen[10] = {0};
    write_archive(s, 10);
    write_text(scratch_file(s, "l.txt"),
               "u0 0\nu1 1\nu2 2\nu3 3\nu4 4\nu5 5\nu6 6\nu7 7\nu8 8\nu9 9\n");
    tutti_data *data = open_data(archive_spec(s, ",context=1,holdout=0,val=30"));
    for (int split = 0; split < TUTTI_SPLITS; split++)
        for (uint32_t id = 0; id < (uint32_t)tutti_data_count(data, split); id++) {
            const int label = label_of(data, split, id);
            assert_true(!seen[label] || seen[label] == 1 + split);
            seen[label] = 1 + split;
        }
    int drawn = 0;
    for (int u = 0; u < 10; u++) drawn += seen[u] == 1 + TUTTI_SPLIT_VAL;
    assert_int_equal(drawn, 3);
    tutti_data_close(&data);
    must_fail(archive_spec(s, ",context=1,holdout=0,val=9"), TUTTI_DATA, "of 10 utterances");
}

/* Files of their own for validation: beside features and labels, and in a folder. */
static void places_for_validation(void **state)
{
    scratch *s = *state;
    static bytes b;
    char keys[1024];
    write_archive(s, 4);
    write_text(scratch_file(s, "l.txt"), "u0 0\nu1 1\n");
    write_text(scratch_file(s, "v.txt"), "u3 2\n");
    snprintf(keys, sizeof keys, ",holdout=50,frames=4,val=%s/f.ark,val-labels=%s/v.txt", s->path,
             s->path);
    tutti_data *data = open_data(archive_spec(s, keys));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 1);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 1);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), 1);
    assert_int_equal(label_of(data, TUTTI_SPLIT_VAL, 0), 2);
    tutti_data_close(&data);
    must_fail(archive_spec(s, ",val=f.ark"), TUTTI_ARGUMENT, "val=FEATS,val-labels=LABELS");

    put_archive(&b, 4);
    write_bytes(scratch_file(s, "feats_train.ark"), b.data, b.count);
    write_bytes(scratch_file(s, "feats_dev.ark"), b.data, b.count);
    write_text(scratch_file(s, "utt2label_train.txt"), "u0 0\nu1 1\n");
    must_fail(spec_of("kaldi", s, ",val=dev"), TUTTI_DATA, "'utt2label_dev.txt' is not in");
    write_text(scratch_file(s, "utt2label_dev.txt"), "u2 0\nu3 1\n");
    data = open_data(spec_of("kaldi", s, ",holdout=0,val=dev"));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), 2);
    tutti_data_close(&data);
    must_fail(spec_of("kaldi", s, ",val=eval"), TUTTI_DATA, "feats_eval.ark");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(folders_with_half_a_split),
        SCRATCH_TEST(utterances_stay_whole),
        SCRATCH_TEST(places_for_validation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
