/* Speech features in Kaldi's archives. With a label for each frame a sample is a frame between its
 * neighbours (context=); with a label for the whole utterance it is a stretch of the utterance
 * (frames=), unless context= asks for its frames one by one. Where a window reaches beyond an end
 * the first or last frame is repeated, as Kaldi's splice-feats does. */
#define _GNU_SOURCE
#include "data/utterances.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { MEASURED = 2000, MAX_WINDOW = 1 << 14 };

typedef struct kaldi_split {
    tutti_utterance *item;
    int count;
    const int *label;
} kaldi_split;

typedef struct kaldi_state {
    tutti_utterances set[TUTTI_SPLITS];
    kaldi_split split[TUTTI_SPLITS];
    tutti_utterance *divided; /* where one set serves both splits */
    int window;               /* frames of a sample */
    bool by_frame;            /* a sample for each frame */
} kaldi_state;

/* ------------------------------------------------------------------------- what to open */

typedef struct places {
    char *features[TUTTI_SPLITS], *labels[TUTTI_SPLITS], *names;
} places;

static void free_places(places *p)
{
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        tutti_free(p->features[split]);
        tutti_free(p->labels[split]);
    }
    tutti_free(p->names);
}

/* The first of 'names' that is in the folder; *out stays NULL if none is. */
static tutti_status first_present(char **out, const char *dir, const char *const names[])
{
    for (int i = 0; names[i]; i++) {
        char *path = NULL;
        TUTTI_TRY(tutti_path_join(&path, dir, names[i]));
        if (tutti_path_is_file(path)) {
            *out = path;
            return TUTTI_OK;
        }
        tutti_free(path);
    }
    return TUTTI_OK;
}

/* Features without labels, or labels without features, were not meant. */
static tutti_status check_pair(const char *dir, const char *features, const char *labels,
                               const char *split)
{
    if (!features == !labels) return TUTTI_OK;
    return features
               ? tutti_fail(TUTTI_DATA, "'%s' has no labels: 'utt2label_%s.txt' is not in '%s'",
                            features, split, dir)
               : tutti_fail(TUTTI_DATA,
                            "'%s' has no features: 'feats_%s.ark' (or .scp) is not in '%s'", labels,
                            split, dir);
}

/* feats_SPLIT.scp or .ark, and utt2label_SPLIT.txt or without ending. */
static tutti_status places_of_split(places *p, const char *dir, int split, const char *name)
{
    char script[256], archive[256], text[256], plain[256];
    snprintf(script, sizeof script, "feats_%s.scp", name);
    snprintf(archive, sizeof archive, "feats_%s.ark", name);
    snprintf(text, sizeof text, "utt2label_%s.txt", name);
    snprintf(plain, sizeof plain, "utt2label_%s", name);
    const bool train = split == TUTTI_SPLIT_TRAIN;
    const char *const features[] = {script, archive, train ? "feats.scp" : NULL, NULL};
    const char *const labels[] = {text, plain, train ? "utt2label" : NULL, NULL};
    TUTTI_TRY(first_present(&p->features[split], dir, features));
    TUTTI_TRY(first_present(&p->labels[split], dir, labels));
    return check_pair(dir, p->features[split], p->labels[split], name);
}

static tutti_status places_in_folder(places *p, const char *dir, const char *val)
{
    static const char *const names[] = {"words.txt", "labels.txt", NULL};
    TUTTI_TRY(places_of_split(p, dir, TUTTI_SPLIT_TRAIN, "train"));
    TUTTI_TRY(places_of_split(p, dir, TUTTI_SPLIT_TEST, "test"));
    if (val) TUTTI_TRY(places_of_split(p, dir, TUTTI_SPLIT_VAL, val));
    if (!p->features[0])
        return tutti_fail(TUTTI_DATA, "'%s' has no feats_train.ark and utt2label_train.txt", dir);
    if (val && !p->features[TUTTI_SPLIT_VAL])
        return tutti_fail(TUTTI_DATA,
                          "--data kaldi: val=%s is neither a percentage, nor has '%s' a "
                          "feats_%s.ark",
                          val, dir, val);
    return first_present(&p->names, dir, names);
}

static tutti_status copy_if(char **out, const char *text)
{
    return text ? tutti_strdup(out, text) : TUTTI_OK;
}

static tutti_status find_places(places *p, tutti_spec *spec, const char *val, bool asks)
{
    const char *test = tutti_spec_value(spec, "test");
    const char *test_labels = tutti_spec_value(spec, "test-labels");
    const char *val_labels = tutti_spec_value(spec, "val-labels");
    const char *names = tutti_spec_value(spec, "names");
    if (spec->places == 1 && tutti_path_is_dir(spec->place[0])) {
        if (test || test_labels || val_labels || names)
            return tutti_fail(TUTTI_ARGUMENT,
                              "--data kaldi: test=, test-labels=, val-labels= and names= go with "
                              "kaldi:FEATS,LABELS; a folder has files of its own for them");
        return places_in_folder(p, spec->place[0], val);
    }
    if (asks && spec->places == 1)
        return tutti_strdup(&p->features[TUTTI_SPLIT_TRAIN], spec->place[0]);
    if (spec->places != 2 || !test != !test_labels || !val != !val_labels)
        return tutti_fail(TUTTI_ARGUMENT, "--data kaldi needs kaldi:DIR or kaldi:FEATS,LABELS"
                                          "[,test=FEATS,test-labels=LABELS][,val=PERCENT or "
                                          "val=FEATS,val-labels=LABELS][,names=FILE]");
    TUTTI_TRY(tutti_strdup(&p->features[TUTTI_SPLIT_TRAIN], spec->place[0]));
    TUTTI_TRY(tutti_strdup(&p->labels[TUTTI_SPLIT_TRAIN], spec->place[1]));
    TUTTI_TRY(copy_if(&p->features[TUTTI_SPLIT_TEST], test));
    TUTTI_TRY(copy_if(&p->labels[TUTTI_SPLIT_TEST], test_labels));
    TUTTI_TRY(copy_if(&p->features[TUTTI_SPLIT_VAL], val));
    TUTTI_TRY(copy_if(&p->labels[TUTTI_SPLIT_VAL], val_labels));
    return copy_if(&p->names, names);
}

static tutti_status read_sets(tutti_data *data, const places *p)
{
    kaldi_state *state = data->state;
    if (p->names) TUTTI_TRY(tutti_data_read_names(data, p->names));
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        tutti_utterances *u = &state->set[split];
        if (!p->features[split]) continue;
        TUTTI_TRY(
            tutti_utterances_open(u, data, p->features[split], p->labels[split], &data->names));
        state->split[split] = (kaldi_split){u->item, u->count, u->label};
        if (u->columns != state->set[0].columns)
            return tutti_fail(TUTTI_DATA, "'%s' has %d numbers per frame, '%s' has %d",
                              p->features[0], state->set[0].columns, p->features[split],
                              u->columns);
    }
    return TUTTI_OK;
}

static tutti_status hold_out(tutti_data *data, int percent)
{
    kaldi_state *state = data->state;
    const tutti_utterances *u = &state->set[0];
    kaldi_split *train = &state->split[0], *test = &state->split[1];
    TUTTI_TRY(tutti_alloc(&state->divided, (size_t)u->count, sizeof *state->divided));
    *test = (kaldi_split){.item = state->divided, .label = u->label};
    train->count = 0;
    for (int i = 0; i < u->count; i++) {
        kaldi_split *to = tutti_held_out(i, percent) ? test : train;
        to->item[to->count++] = u->item[i];
    }
    snprintf(data->note, sizeof data->note, "%d %% held out", percent);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------- the window */

/* From the keys; else from what the net takes; else the usual. */
static tutti_status choose_window(tutti_data *data, tutti_spec *spec)
{
    kaldi_state *state = data->state;
    const tutti_utterances *u = &state->set[0];
    const tutti_sample_shape want = data->options.shape;
    const int wanted = want.channels * want.height * want.width, columns = u->columns;
    int context = -1, frames = 0;
    TUTTI_TRY(tutti_spec_int(spec, "context", &context, 0, MAX_WINDOW / 2 - 1));
    TUTTI_TRY(tutti_spec_int(spec, "frames", &frames, 1, MAX_WINDOW));
    if (frames && (context >= 0 || u->by_frame))
        return tutti_fail(TUTTI_ARGUMENT, "--data kaldi: frames= is for labels of utterances, "
                                          "without context=");
    state->by_frame = u->by_frame || context >= 0 || (data->unlabelled && !frames);
    const int usual = state->by_frame ? 11 : u->item[0].matrix.rows;
    state->window = context >= 0 ? 2 * context + 1 : frames;
    if (!state->window) state->window = wanted && wanted % columns == 0 ? wanted / columns : usual;
    if (state->window > MAX_WINDOW)
        return tutti_fail(TUTTI_SHAPE, "a window of %d frames; at most %d are possible",
                          state->window, (int)MAX_WINDOW);
    if (wanted && wanted != state->window * columns)
        return tutti_fail(TUTTI_SHAPE,
                          "the net takes %d numbers; %d frames of %d make %d (set frames= or "
                          "context=)",
                          wanted, state->window, columns, state->window * columns);
    data->frame = columns;
    data->shape = wanted ? want : (tutti_sample_shape){state->window * columns, 1, 1};
    return TUTTI_OK;
}

static tutti_status count_samples(tutti_data *data)
{
    const kaldi_state *state = data->state;
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        int64_t total = 0;
        for (int i = 0; i < state->split[split].count; i++) {
            tutti_utterance *it = &state->split[split].item[i];
            total += state->by_frame ? it->matrix.rows : 1;
            it->samples = total;
        }
        if (total > INT32_MAX)
            return tutti_fail(TUTTI_DATA, "%lld frames are more than can be counted",
                              (long long)total);
        data->count[split] = (int)total;
    }
    return TUTTI_OK;
}

static tutti_status kaldi_open(tutti_data *data, tutti_spec *spec)
{
    places p = {0};
    int holdout = 10;
    TUTTI_TRY(tutti_alloc(&data->state, 1, sizeof(kaldi_state)));
    tutti_status s = find_places(&p, spec, data->val_place, data->options.asks);
    data->unlabelled = !s && !p.labels[TUTTI_SPLIT_TRAIN];
    if (!s) s = tutti_spec_holdout(spec, p.features[1], &holdout);
    if (!s) s = read_sets(data, &p);
    if (!s && !p.features[1] && !data->unlabelled) s = hold_out(data, holdout);
    free_places(&p);
    if (!s) s = choose_window(data, spec);
    return s ? s : count_samples(data);
}

static void kaldi_close(tutti_data *data)
{
    kaldi_state *state = data->state;
    if (!state) return;
    for (int split = 0; split < TUTTI_SPLITS; split++) tutti_utterances_close(&state->set[split]);
    tutti_free(state->divided);
    tutti_free(state);
}

/* ------------------------------------------------------------------------- one sample */

static const tutti_utterance *utterance_of(const kaldi_split *split, uint32_t id)
{
    int low = 0, high = split->count - 1;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (split->item[middle].samples > (int64_t)id) high = middle;
        else low = middle + 1;
    }
    return &split->item[low];
}

static int first_frame(const kaldi_state *state, const tutti_utterance *it, uint32_t id,
                       const uint32_t *random)
{
    const int rows = it->matrix.rows, spare = rows - state->window;
    if (state->by_frame) return rows - (int)(it->samples - id) - state->window / 2;
    if (!random || spare <= 0) return (int)floor(spare / 2.0);
    return (int)((uint64_t)random[0] * (uint64_t)(spare + 1) >> 32);
}

/* Frames begin .. begin+window-1; beyond the ends the first or last one is repeated. */
static tutti_status read_window(tutti_reader *r, const tutti_ark_matrix *m, int begin, int window,
                                float *sample)
{
    const size_t frame = (size_t)m->columns;
    const int end = begin + window < m->rows ? begin + window : m->rows;
    const int first = begin < 0 ? 0 : begin, last = end - 1;
    float *inside = sample + (size_t)(first - begin) * frame;
    TUTTI_TRY(tutti_ark_rows(m, first, last - first + 1, &r->bytes, inside));
    for (int i = 0; i < first - begin; i++)
        memcpy(sample + (size_t)i * frame, inside, frame * sizeof *sample);
    for (int i = last - begin + 1; i < window; i++)
        memcpy(sample + (size_t)i * frame, sample + (size_t)(i - 1) * frame,
               frame * sizeof *sample);
    return TUTTI_OK;
}

/* Of the sample whose window begins at frame 'begin'. */
static int label_at(const kaldi_state *state, const kaldi_split *split, const tutti_utterance *it,
                    int begin)
{
    const int centre = state->by_frame ? begin + state->window / 2 : 0;
    return split->label ? split->label[it->label + (it->labels > 1 ? centre : 0)] : 0;
}

static int kaldi_label(const tutti_data *data, uint32_t id)
{
    const kaldi_state *state = data->state;
    const kaldi_split *train = &state->split[TUTTI_SPLIT_TRAIN];
    const tutti_utterance *it = utterance_of(train, id);
    return label_at(state, train, it, first_frame(state, it, id, NULL));
}

static tutti_status kaldi_numbers(tutti_reader *r, tutti_split split, uint32_t id,
                                  const uint32_t random[4], float *sample, int *label)
{
    const tutti_data *data = r->data;
    const kaldi_state *state = data->state;
    const tutti_utterance *it = utterance_of(&state->split[split], id);
    const int begin = first_frame(state, it, id, random), columns = data->frame;
    TUTTI_TRY(read_window(r, &it->matrix, begin, state->window, sample));
    *label = label_at(state, &state->split[split], it, begin);
    for (int i = 0; i < state->window * columns; i++) {
        if (!isfinite(sample[i]))
            return tutti_fail(
                TUTTI_DATA, "'%s' byte %llu: frame %d has a value that is not a number",
                it->matrix.file->path, (unsigned long long)it->matrix.data, begin + i / columns);
        sample[i] = (sample[i] - data->mean[i % columns]) / data->std[i % columns];
    }
    return TUTTI_OK;
}

static bool kaldi_sequence(const tutti_data *data, tutti_split split, uint32_t id,
                           tutti_sequence *out)
{
    const kaldi_state *state = data->state;
    const kaldi_split *in = &state->split[split];
    const tutti_utterance *it = utterance_of(in, id);
    const int64_t first = it > in->item ? it[-1].samples : 0;
    const tutti_utterances *u = &state->set[state->set[split].count ? split : TUTTI_SPLIT_TRAIN];
    if (first != (int64_t)id) return false;
    *out = (tutti_sequence){u->keys.name[it->key], (int)(it->samples - first)};
    return true;
}

static uint32_t kaldi_unit(const tutti_data *data, uint32_t id)
{
    const kaldi_split *train = &((const kaldi_state *)data->state)->split[TUTTI_SPLIT_TRAIN];
    return (uint32_t)(utterance_of(train, id) - train->item);
}

static tutti_status add_frames(const tutti_ark_matrix *m, tutti_buffer *scratch,
                               tutti_buffer *frames, tutti_moments *of)
{
    const size_t columns = (size_t)m->columns, numbers = (size_t)m->rows * columns;
    TUTTI_TRY(tutti_buffer_reserve(frames, numbers * sizeof(float)));
    const float *value = frames->bytes;
    TUTTI_TRY(tutti_ark_rows(m, 0, m->rows, scratch, frames->bytes));
    for (size_t i = 0; i < numbers; i++)
        if (isfinite(value[i])) /* others are reported when they are fetched */
            tutti_moments_add(&of[i % columns], value[i]);
    return TUTTI_OK;
}

/* Over at most MEASURED utterances, evenly chosen, in order. */
static tutti_status kaldi_measure(tutti_data *data)
{
    const kaldi_state *state = data->state;
    const kaldi_split *train = &state->split[0];
    const int chosen = train->count < MEASURED ? train->count : MEASURED;
    tutti_moments *of = NULL;
    tutti_buffer scratch = {0}, frames = {0};
    TUTTI_TRY(tutti_alloc(&of, (size_t)data->frame, sizeof *of));
    tutti_status s = TUTTI_OK;
    for (int i = 0; !s && i < chosen; i++) {
        const int64_t at = (int64_t)i * train->count / chosen;
        s = add_frames(&train->item[at].matrix, &scratch, &frames, of);
    }
    if (!s) tutti_moments_finish(of, data);
    tutti_buffer_deinit(&scratch);
    tutti_buffer_deinit(&frames);
    tutti_free(of);
    return s;
}

const tutti_source tutti_source_kaldi = {
    .kind = "kaldi",
    .open = kaldi_open,
    .close = kaldi_close,
    .numbers = kaldi_numbers,
    .label = kaldi_label,
    .measure = kaldi_measure,
    .unit = kaldi_unit,
    .sequence = kaldi_sequence,
};
