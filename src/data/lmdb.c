/* Caffe's databases: LMDB with a Datum for each sample. The database is mapped into memory, and
 * what the index keeps of a record is where it is there: threads read without asking the library.
 *
 * Raw data are [c][h][w]; those of Caffe's own tools that come from pictures have the colours blue,
 * green, red (order=bgr, the default). Files in records have the sizes they have, and are treated
 * like those of images:. */
#define _GNU_SOURCE
#include <lmdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "data/datum.h"
#include "data/source.h"

typedef struct database {
    char *path;
    MDB_env *env;
    MDB_txn *txn;
    MDB_val *record; /* [count], in the order of keys, inside the map */
    int count;
} database;

typedef struct lmdb_state {
    database set[TUTTI_SPLITS];
    tutti_datum first; /* what all others are like; it points to nothing */
    bool reversed;     /* blue comes first */
} lmdb_state;

/* ----------------------------------------------------------------------------- databases */

static tutti_status cannot(const char *path, int code)
{
    return tutti_fail(TUTTI_DATA, "cannot read the database '%s': %s", path, mdb_strerror(code));
}

/* What was lost at the end of the file would be a bus error. */
static tutti_status check_length(const database *d, bool is_file)
{
    char file[4096];
    struct stat about;
    MDB_envinfo info;
    MDB_stat pages;
    snprintf(file, sizeof file, is_file ? "%s" : "%s/data.mdb", d->path);
    int code = mdb_env_info(d->env, &info);
    if (!code) code = mdb_env_stat(d->env, &pages);
    if (code) return cannot(d->path, code);
    const uint64_t wanted = (uint64_t)(info.me_last_pgno + 1) * pages.ms_psize;
    if (!stat(file, &about) && (uint64_t)about.st_size >= wanted) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "'%s' is cut off: it should have %llu bytes", file,
                      (unsigned long long)wanted);
}

static tutti_status list_records(database *d, MDB_dbi dbi)
{
    MDB_cursor *cursor = NULL;
    MDB_stat about;
    MDB_val key;
    int code = mdb_stat(d->txn, dbi, &about);
    if (!code && about.ms_entries > INT32_MAX)
        return tutti_fail(TUTTI_DATA, "'%s' has more records than can be counted", d->path);
    if (code) return cannot(d->path, code);
    TUTTI_TRY(tutti_alloc(&d->record, about.ms_entries, sizeof *d->record));
    code = mdb_cursor_open(d->txn, dbi, &cursor);
    for (; !code && (size_t)d->count < about.ms_entries; d->count++)
        code = mdb_cursor_get(cursor, &key, &d->record[d->count], MDB_NEXT);
    if (cursor) mdb_cursor_close(cursor);
    return code ? cannot(d->path, code) : TUTTI_OK;
}

/* Without locks: nobody writes to it, and its folder may be read-only. */
static tutti_status open_database(database *d, const char *path)
{
    const bool is_file = tutti_path_is_file(path);
    const unsigned flags = MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD;
    MDB_dbi dbi = 0;
    TUTTI_TRY(tutti_strdup(&d->path, path));
    int code = mdb_env_create(&d->env);
    if (!code) code = mdb_env_open(d->env, path, flags | (is_file ? MDB_NOSUBDIR : 0), 0444);
    if (code) return cannot(path, code);
    TUTTI_TRY(check_length(d, is_file));
    code = mdb_txn_begin(d->env, NULL, MDB_RDONLY, &d->txn);
    if (!code) code = mdb_dbi_open(d->txn, NULL, 0, &dbi);
    return code ? cannot(path, code) : list_records(d, dbi);
}

static void close_database(database *d)
{
    if (d->txn) mdb_txn_abort(d->txn);
    if (d->env) mdb_env_close(d->env);
    tutti_free(d->record);
    tutti_free(d->path);
}

/* ------------------------------------------------------------------------------- records */

static tutti_status read_datum(const database *d, int64_t id, tutti_datum *out)
{
    if (tutti_datum_read(out, d->record[id].mv_data, d->record[id].mv_size))
        return tutti_fail(TUTTI_DATA, "'%s', record %lld: %s", d->path, (long long)id,
                          tutti_message());
    return TUTTI_OK;
}

static size_t numbers_of(const tutti_datum *d)
{
    return (size_t)d->channels * (size_t)d->height * (size_t)d->width;
}

/* Is the record what the first one is? */
static tutti_status check_like(const database *d, int64_t id, const tutti_datum *datum,
                               const tutti_datum *first)
{
    const bool alike = datum->encoded == first->encoded && !datum->floats == !first->floats;
    const size_t held = datum->floats ? datum->floats : datum->bytes;
    if (alike && datum->encoded) return TUTTI_OK;
    if (alike && datum->channels == first->channels && datum->height == first->height &&
        datum->width == first->width && held == numbers_of(datum))
        return TUTTI_OK;
    return tutti_fail(TUTTI_DATA,
                      "'%s', record %lld: %zu numbers of %dx%dx%d, but the first has %dx%dx%d",
                      d->path, (long long)id, held, datum->channels, datum->height, datum->width,
                      first->channels, first->height, first->width);
}

static tutti_status fetch_datum(const tutti_reader *r, tutti_split split, uint32_t id,
                                tutti_datum *datum, int *label)
{
    const lmdb_state *state = r->data->state;
    const database *d = &state->set[split];
    TUTTI_TRY(read_datum(d, id, datum));
    TUTTI_TRY(check_like(d, id, datum, &state->first));
    if (datum->label < 0 || datum->label >= r->data->classes)
        return tutti_fail(TUTTI_DATA,
                          "'%s', record %u: label %lld, but there are %d classes (classes=)",
                          d->path, id, (long long)datum->label, r->data->classes);
    *label = (int)datum->label;
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------- opening */

static const tutti_source numbers;

static tutti_status settle_raw(tutti_data *data, const tutti_datum *first, const char *path)
{
    const tutti_sample_shape want = data->options.shape;
    if (!numbers_of(first) || numbers_of(first) > TUTTI_MAX_PICTURE_BYTES)
        return tutti_fail(TUTTI_DATA, "'%s', record 0: %dx%dx%d is no shape of a sample", path,
                          first->channels, first->height, first->width);
    data->native = (tutti_sample_shape){first->channels, first->height, first->width};
    if (!first->floats && (first->channels == 1 || first->channels == 3)) return TUTTI_OK;
    data->source = &numbers;
    data->frame = data->native.channels;
    data->shape = want.channels ? want : data->native;
    if (!want.channels || (want.channels == first->channels && want.height == first->height &&
                           want.width == first->width))
        return TUTTI_OK;
    return tutti_fail(TUTTI_SHAPE,
                      "the net takes %d channels of %dx%d, a record of '%s' has %d of "
                      "%dx%d",
                      want.channels, want.height, want.width, path, first->channels, first->height,
                      first->width);
}

/* Photographs as those of images:. */
static void settle_files(tutti_data *data)
{
    data->native = (tutti_sample_shape){3, 224, 224};
    data->augment = (tutti_augment){.flip = true, .zoom = 8.0 / 7, .jitter = 0.25};
}

static tutti_status settle(tutti_data *data)
{
    lmdb_state *state = data->state;
    const database *train = &state->set[TUTTI_SPLIT_TRAIN];
    if (!train->count) return TUTTI_OK; /* data.c says it */
    TUTTI_TRY(read_datum(train, 0, &state->first));
    tutti_datum *first = &state->first;
    TUTTI_TRY(check_like(train, 0, first, first));
    first->data = NULL;
    tutti_data_digest_int(data, first->channels);
    tutti_data_digest_int(data, state->reversed);
    if (!first->encoded) return settle_raw(data, first, train->path);
    settle_files(data);
    return TUTTI_OK;
}

static tutti_status read_order(tutti_spec *spec, bool *reversed)
{
    const char *text = tutti_spec_value(spec, "order");
    *reversed = !text || !strcmp(text, "bgr");
    if (!*reversed && strcmp(text, "rgb"))
        return tutti_fail(TUTTI_ARGUMENT, "--data lmdb: order=%s must be bgr or rgb", text);
    return TUTTI_OK;
}

static tutti_status lmdb_open(tutti_data *data, tutti_spec *spec)
{
    lmdb_state *state = NULL;
    const char *test = tutti_spec_value(spec, "test"), *names = tutti_spec_value(spec, "names");
    int holdout;
    if (spec->places != 1)
        return tutti_fail(TUTTI_ARGUMENT, "--data lmdb needs a database: lmdb:DIR[,test=DIR]");
    TUTTI_TRY(tutti_alloc(&state, 1, sizeof *state));
    data->state = state;
    TUTTI_TRY(read_order(spec, &state->reversed));
    TUTTI_TRY(tutti_spec_holdout(spec, test, &holdout));
    data->classes = data->options.classes ? data->options.classes : 1000;
    if (names) TUTTI_TRY(tutti_data_read_names(data, names));
    TUTTI_TRY(tutti_spec_int(spec, "classes", &data->classes, 1, TUTTI_MAX_CLASSES));
    const char *const path[TUTTI_SPLITS] = {spec->place[0], test, data->val_place};
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        if (path[split]) TUTTI_TRY(open_database(&state->set[split], path[split]));
        data->count[split] = state->set[split].count;
        tutti_data_digest_int(data, data->count[split]);
    }
    TUTTI_TRY(settle(data));
    return test ? TUTTI_OK : tutti_data_hold_out(data, holdout);
}

static void lmdb_close(tutti_data *data)
{
    lmdb_state *state = data->state;
    if (!state) return;
    for (int split = 0; split < TUTTI_SPLITS; split++) close_database(&state->set[split]);
    tutti_free(state);
}

/* ------------------------------------------------------------------------------- samples */

static tutti_status lmdb_pixels(tutti_reader *r, tutti_split split, uint32_t id,
                                const tutti_fit *fit, int *label)
{
    const tutti_data *data = r->data;
    const lmdb_state *state = data->state;
    char name[600];
    tutti_datum datum;
    TUTTI_TRY(fetch_datum(r, split, id, &datum, label));
    if (!datum.encoded) return tutti_reader_planes(r, data->native, datum.data, state->reversed);
    snprintf(name, sizeof name, "%.512s, record %u", state->set[split].path, id);
    return tutti_decode(r->decoder, &r->image, data->picture.channels, fit, name, datum.data,
                        datum.bytes);
}

static tutti_status lmdb_numbers(tutti_reader *r, tutti_split split, uint32_t id,
                                 const uint32_t random[4], float *values, int *label)
{
    (void)random;
    const tutti_data *data = r->data;
    const lmdb_state *state = data->state;
    const MDB_val *record = &state->set[split].record[id];
    tutti_datum datum;
    TUTTI_TRY(fetch_datum(r, split, id, &datum, label));
    const size_t count = numbers_of(&datum), channels = (size_t)datum.channels;
    TUTTI_TRY(tutti_buffer_reserve(&r->bytes, count * sizeof(float)));
    float *planes = r->bytes.bytes;
    if (datum.floats) tutti_datum_floats(&datum, record->mv_data, record->mv_size, planes);
    else
        for (size_t i = 0; i < count; i++) planes[i] = (float)datum.data[i] / 255.0f;
    const size_t pixels = count / channels;
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++) values[p * channels + c] = *planes++;
    if (tutti_data_normalise_values(data, values, count)) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "'%s', record %u has a value that is not a number",
                      state->set[split].path, id);
}

static tutti_status lmdb_measure(tutti_data *data)
{
    const lmdb_state *state = data->state;
    if (!state->first.encoded) return tutti_measure_pictures(data);
    tutti_data_normalise_usually(data);
    return TUTTI_OK;
}

const tutti_source tutti_source_lmdb = {
    .kind = "lmdb",
    .open = lmdb_open,
    .close = lmdb_close,
    .pixels = lmdb_pixels,
    .measure = lmdb_measure,
};

static const tutti_source numbers = {
    .kind = "lmdb",
    .open = lmdb_open,
    .close = lmdb_close,
    .numbers = lmdb_numbers,
    .measure = tutti_measure_numbers,
    .takes_mean = true,
};
