#define _GNU_SOURCE
#include "data/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

static const tutti_source *const kinds[] = {
    &tutti_source_fashion,   &tutti_source_idx,
    &tutti_source_cifar10,   &tutti_source_cifar100,
    &tutti_source_images,    &tutti_source_npy,
    &tutti_source_lmdb,      &tutti_source_kaldi,
    &tutti_source_synthetic, NULL,
};

const char *tutti_data_known(int index)
{
    return kinds[index] ? kinds[index]->kind : NULL;
}

tutti_data_options tutti_data_defaults(void)
{
    return (tutti_data_options){.augment = true};
}

void tutti_data_tell(const tutti_data *data, const char *what, int64_t done, int64_t total)
{
    if (data->options.bar) tutti_bar_show(data->options.bar, what, done, total);
}

/* ------------------------------------------------------------------------------- hash */

void tutti_data_digest(tutti_data *data, const void *bytes, size_t size)
{
    tutti_hash_add(data->digest, bytes, size);
}

void tutti_data_digest_text(tutti_data *data, const char *text)
{
    tutti_data_digest(data, text, strlen(text) + 1);
}

void tutti_data_digest_int(tutti_data *data, int64_t value)
{
    uint8_t little[8];
    for (int i = 0; i < 8; i++) little[i] = (uint8_t)((uint64_t)value >> 8 * i);
    tutti_data_digest(data, little, sizeof little);
}

static void finish_digest(tutti_data *data)
{
    const size_t frame = (size_t)data->frame;
    tutti_data_digest_text(data, data->description); /* has the shape and the augmentation */
    tutti_data_digest(data, data->mean, frame * sizeof *data->mean);
    tutti_data_digest(data, data->std, frame * sizeof *data->std);
    tutti_hash_finish(data->digest, data->hash);
    tutti_hash_destroy(&data->digest);
}

/* ------------------------------------------------------------------------------- open */

static tutti_status find_kind(const tutti_source **out, const char *kind, const tutti_own_data *own)
{
    char known[256] = "";
    size_t used = 0;
    if (!strcmp(kind, TUTTI_OWN_KIND)) {
        *out = &tutti_source_own;
        return own ? TUTTI_OK
                   : tutti_fail(TUTTI_ARGUMENT, "--data own: a program's own samples, which only "
                                                "that program has; name another data set");
    }
    for (int i = 0; kinds[i]; i++) {
        if (!strcmp(kinds[i]->kind, kind)) {
            *out = kinds[i];
            return TUTTI_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 kinds[i]->kind);
    }
    return tutti_fail(TUTTI_ARGUMENT, "--data: '%s' is not a kind of data set; known: %s", kind,
                      known);
}

static tutti_status fill_names(tutti_data *data)
{
    for (int i = data->names.count; i < data->classes; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        TUTTI_TRY(tutti_names_add(&data->names, number));
    }
    return TUTTI_OK;
}

/* Those of a program may all be handed over. */
static bool has_samples(const tutti_data *data)
{
    return !data->options.own || data->options.own->read;
}

static tutti_status check_counts(const tutti_data *data, const char *spec)
{
    if (data->count[TUTTI_SPLIT_TRAIN] < 1 && has_samples(data))
        return tutti_fail(TUTTI_DATA, "--data %s: there are no samples to train on", spec);
    if (data->classes < 1 || data->classes > TUTTI_MAX_CLASSES)
        return tutti_fail(TUTTI_DATA, "--data %s: %d classes; 1 to %d are possible", spec,
                          data->classes, (int)TUTTI_MAX_CLASSES);
    return TUTTI_OK;
}

static TUTTI_PRINTF(2, 3) void say(tutti_data *data, const char *format, ...)
{
    const size_t used = strlen(data->description);
    va_list args;
    va_start(args, format);
    vsnprintf(data->description + used, sizeof data->description - used, format, args);
    va_end(args);
}

static void describe_targets(tutti_data *data)
{
    const tutti_data_options *o = &data->options;
    static const char *const forms[] = {
        [TUTTI_TARGET_CLASS] = "classes",
        [TUTTI_TARGET_PIXELS] = "classes of pixels",
        [TUTTI_TARGET_VALUES] = "values",
        [TUTTI_TARGET_SHARES] = "classes, any of them",
    };
    const bool goals = tutti_data_has_goals(data);
    if (!goals) say(data, "%d classes, ", data->classes);
    for (int t = 0; goals && t < o->target_count; t++) {
        const tutti_target *target = &o->targets[t];
        const int pixels = target->form == TUTTI_TARGET_VALUES ? target->h * target->w : 1;
        say(data, "%d %s, ", target->c * pixels, forms[target->form]);
    }
}

static void describe(tutti_data *data)
{
    const tutti_sample_shape s = data->shape;
    const tutti_augment *a = &data->augment;
    say(data, "%d + %d samples, ", data->count[0], data->count[1]);
    describe_targets(data);
    if (s.height == 1 && s.width == 1) say(data, "%d numbers", s.channels);
    else say(data, "%dx%dx%d", s.height, s.width, s.channels);
    if (data->note[0]) say(data, ", %s", data->note);
    if (data->count[TUTTI_SPLIT_VAL])
        say(data, ", %d more for validation", data->count[TUTTI_SPLIT_VAL]);
    if (!data->options.augment) say(data, ", not varied");
    if (a->resizes)
        say(data, ", parts of %.4g to %.4g of the area and %.4g to %.4g wide for each high",
            a->range.area.least, a->range.area.most, a->range.aspect.least, a->range.aspect.most);
    if (a->zoom > 0) say(data, ", 1/%.4g of the side%s", a->zoom, a->resizes ? " for tests" : "");
    if (a->jitter > 0) say(data, ", scaled by 1 to %.3g", 1 + a->jitter);
    if (a->pad) say(data, ", shifted by up to %d", a->pad);
    if (a->flip) say(data, ", flipped");
    if (tutti_colour_is_varied(a->colour))
        say(data, ", colours off by up to %.4g/%.4g/%.4g/%.4g", a->colour[0], a->colour[1],
            a->colour[2], a->colour[3]);
    if (a->cutout) say(data, ", a hole of %dx%d", a->cutout, a->cutout);
    if (a->mixup > 0) say(data, ", mixed by Beta(%.4g, %.4g)", a->mixup, a->mixup);
}

static tutti_status make_bad_maps(tutti_data *data)
{
    for (int split = 0; data->options.skip_bad && split < TUTTI_SPLITS; split++)
        TUTTI_TRY(tutti_alloc(&data->bad[split], (size_t)data->count[split] / 32 + 1,
                              sizeof *data->bad[split]));
    return TUTTI_OK;
}

static tutti_status open_parsed(tutti_data *data, const char *text, tutti_spec *spec)
{
    TUTTI_TRY(find_kind(&data->source, spec->kind, data->options.own));
    if (data->source != &tutti_source_own) data->options.own = NULL;
    TUTTI_TRY(tutti_hash_create(&data->digest));
    tutti_data_digest_text(data, spec->kind);
    TUTTI_TRY(tutti_data_read_val(data, spec));
    TUTTI_TRY(data->source->open(data, spec));
    if (data->unlabelled) data->classes = data->options.classes;
    TUTTI_TRY(tutti_goals_check(data));
    TUTTI_TRY(check_counts(data, text));
    TUTTI_TRY(tutti_data_check_val(data));
    TUTTI_TRY(tutti_data_settle(data, spec));
    TUTTI_TRY(tutti_goals_check_mixing(data));
    TUTTI_TRY(tutti_data_divide(data));
    if (data->unlabelled) {
        data->count[TUTTI_SPLIT_TEST] = data->count[TUTTI_SPLIT_TRAIN];
        data->count[TUTTI_SPLIT_TRAIN] = 0;
    }
    TUTTI_TRY(make_bad_maps(data));
    TUTTI_TRY(fill_names(data));
    describe(data);
    finish_digest(data);
    data->val_place = NULL; /* a part of the spec */
    data->options.bar = NULL;
    return TUTTI_OK;
}

tutti_status tutti_data_open(tutti_data **out, const char *spec, const tutti_data_options *options)
{
    tutti_spec parsed;
    tutti_data *data = NULL;
    TUTTI_TRY(tutti_spec_init(&parsed, spec));
    tutti_status s = tutti_alloc(&data, 1, sizeof *data);
    if (!s) {
        data->options = *options;
        if (sched_getaffinity(0, sizeof data->cpus, &data->cpus)) CPU_ZERO(&data->cpus);
        s = open_parsed(data, spec, &parsed);
    }
    tutti_spec_deinit(&parsed);
    if (s) tutti_data_close(&data);
    else *out = data;
    return s;
}

void tutti_data_close(tutti_data **data)
{
    tutti_data *d = *data;
    if (!d) return;
    if (d->source) d->source->close(d);
    tutti_hash_destroy(&d->digest);
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        tutti_free(d->bad[split]);
        tutti_free(d->part[split]);
    }
    tutti_names_deinit(&d->names);
    tutti_free(d->mean);
    tutti_free(d->std);
    tutti_free(d);
    *data = NULL;
}

/* ---------------------------------------------------------------------------- getters */

const char *tutti_data_kind(const tutti_data *data)
{
    return data->source->kind;
}

int tutti_data_count(const tutti_data *data, tutti_split split)
{
    return data->count[split];
}

int tutti_data_classes(const tutti_data *data)
{
    return data->classes;
}

bool tutti_data_is_labelled(const tutti_data *data)
{
    return !data->unlabelled;
}

bool tutti_data_sequence(const tutti_data *data, tutti_split split, uint32_t id,
                         tutti_sequence *out)
{
    if (!data->source->sequence) return false;
    return data->source->sequence(data, data->unlabelled ? TUTTI_SPLIT_TRAIN : split,
                                  tutti_data_stored_id(data, split, id), out);
}

const char *tutti_data_class_name(const tutti_data *data, int label)
{
    return label >= 0 && label < data->names.count ? data->names.name[label] : "?";
}

tutti_sample_shape tutti_data_shape(const tutti_data *data)
{
    return data->shape;
}

tutti_normalisation tutti_data_normalise(const tutti_data *data)
{
    return (tutti_normalisation){data->frame, data->mean, data->std};
}

size_t tutti_data_stride(const tutti_data *data)
{
    const tutti_sample_shape s = data->shape;
    const size_t pixels = (size_t)s.height * (size_t)s.width, channels = (size_t)s.channels;
    return channels < TUTTI_SAMPLE_BLOCK ? tutti_round_up(channels * pixels, TUTTI_SAMPLE_BLOCK)
                                         : tutti_round_up(channels, TUTTI_SAMPLE_BLOCK) * pixels;
}

const char *tutti_data_description(const tutti_data *data)
{
    return data->description;
}

const char *tutti_data_hash(const tutti_data *data)
{
    return data->hash;
}

int tutti_data_bad_count(const tutti_data *data)
{
    return atomic_load(&data->bad_count);
}
