#include "train/about.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "format/json.h"
#include "step/stepper.h"

enum { FLOAT_DIGITS = 9, DOUBLE_DIGITS = 17 };

/* ---- writing ---- */

/* Takes the value. */
static tutti_status add(tutti_about_texts *texts, const char *name, tutti_string *value)
{
    TUTTI_ASSERT(texts->count < TUTTI_ABOUT_MOST);
    const tutti_status s = tutti_string_status(value);
    if (s == TUTTI_OK) texts->list[texts->count++] = (tutti_fact){name, value->data};
    else tutti_string_deinit(value);
    return s;
}

static tutti_status add_text(tutti_about_texts *texts, const char *name, const char *text)
{
    tutti_string s = {0};
    tutti_string_printf(&s, "%s", text);
    return add(texts, name, &s);
}

static tutti_status add_classes(tutti_about_texts *texts, const tutti_data *data)
{
    tutti_string s = {0};
    tutti_string_append(&s, "[", 1);
    for (int i = 0; i < tutti_data_classes(data); i++) {
        if (i) tutti_string_append(&s, ",", 1);
        tutti_json_string(&s, tutti_data_class_name(data, i));
    }
    tutti_string_append(&s, "]", 1);
    return add(texts, "classes", &s);
}

static tutti_status add_numbers(tutti_about_texts *texts, const char *name, const float *values,
                                int count)
{
    tutti_string s = {0};
    tutti_string_append(&s, "[", 1);
    for (int i = 0; i < count; i++) {
        if (i) tutti_string_append(&s, ",", 1);
        tutti_json_real(&s, (double)values[i], FLOAT_DIGITS);
    }
    tutti_string_append(&s, "]", 1);
    return add(texts, name, &s);
}

static tutti_status add_picture(tutti_about_texts *texts, const tutti_manner *m)
{
    tutti_string s = {0};
    if (!m->picture.channels) return TUTTI_OK;
    tutti_string_append(&s, "{", 1);
    tutti_json_field_int(&s, "channels", m->picture.channels);
    tutti_json_field_int(&s, "height", m->picture.height);
    tutti_json_field_int(&s, "width", m->picture.width);
    tutti_json_field_real(&s, "zoom", m->zoom, DOUBLE_DIGITS);
    tutti_string_append(&s, "}", 1);
    return add(texts, "picture", &s);
}

static tutti_status fill(tutti_about_texts *out, const tutti_net *net,
                         const tutti_settings *settings, const tutti_data *data)
{
    char text[64];
    const tutti_shape in = tutti_net_input(net);
    const tutti_normalisation n = tutti_data_normalise(data);
    const tutti_manner manner = tutti_data_manner(data);
    TUTTI_TRY(add_text(out, "net", net->name));
    TUTTI_TRY(add_text(out, "net_text", net->text));
    TUTTI_TRY(add_classes(out, data));
    TUTTI_TRY(add_numbers(out, "mean", n.mean, n.count));
    TUTTI_TRY(add_numbers(out, "std", n.std, n.count));
    TUTTI_TRY(add_picture(out, &manner));
    snprintf(text, sizeof text, "%dx%dx%d", in.c, in.h, in.w);
    TUTTI_TRY(add_text(out, "input", text));
    TUTTI_TRY(add_text(out, "precision", settings->precision));
    snprintf(text, sizeof text, "%d", TUTTI_ARITHMETIC);
    TUTTI_TRY(add_text(out, "arithmetic", text));
    return add_text(out, "conv", settings->conv);
}

tutti_status tutti_about_texts_init(tutti_about_texts *out, const tutti_net *net,
                                    const tutti_settings *settings, const tutti_data *data)
{
    *out = (tutti_about_texts){0};
    const tutti_status s = fill(out, net, settings, data);
    if (s != TUTTI_OK) tutti_about_texts_deinit(out);
    return s;
}

void tutti_about_texts_deinit(tutti_about_texts *texts)
{
    for (int i = 0; i < texts->count; i++) {
        char *value = NULL;
        memcpy(&value, &texts->list[i].value, sizeof value); /* ours, whatever its const says */
        tutti_free(value);
    }
    *texts = (tutti_about_texts){0};
}

/* ---- reading ---- */

static tutti_status bad_text(const char *path, const char *name)
{
    return tutti_fail(TUTTI_CHECKPOINT, "'%s': what it says of its %s cannot be understood", path,
                      name);
}

static json_t *parse(const tutti_safetensors *file, const char *name)
{
    const char *text = tutti_safetensors_metadata(file, name);
    return text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static tutti_status read_classes(tutti_about *a, const char *path)
{
    const json_t *list = a->lists[0] = parse(a->file, "classes");
    const size_t count = json_array_size(list);
    if (count < 1 || count > INT32_MAX) return bad_text(path, "classes");
    TUTTI_TRY(tutti_alloc(&a->classes, count, sizeof *a->classes));
    for (; a->class_count < (int)count; a->class_count++) {
        a->classes[a->class_count] =
            json_string_value(json_array_get(list, (size_t)a->class_count));
        if (!a->classes[a->class_count]) return bad_text(path, "classes");
    }
    return TUTTI_OK;
}

static tutti_status read_normalisation(tutti_about *a, const char *path)
{
    const json_t *mean = a->lists[1] = parse(a->file, "mean");
    const json_t *std = a->lists[2] = parse(a->file, "std");
    const size_t count = json_array_size(mean);
    if (!json_is_array(mean) || count > INT32_MAX || json_array_size(std) != count)
        return bad_text(path, "mean and std");
    TUTTI_TRY(tutti_alloc(&a->numbers, 2 * count + 1, sizeof *a->numbers));
    for (size_t i = 0; i < count; i++) {
        const json_t *m = json_array_get(mean, i), *s = json_array_get(std, i);
        a->numbers[i] = (float)json_number_value(m);
        a->numbers[count + i] = (float)json_number_value(s);
        if (!json_is_number(m) || !isfinite(a->numbers[i]) || !json_is_number(s) ||
            !isfinite(a->numbers[count + i]) || !(a->numbers[count + i] > 0))
            return bad_text(path, "mean and std");
    }
    a->normalise = (tutti_normalisation){(int)count, a->numbers, a->numbers + count};
    return TUTTI_OK;
}

static bool read_size(const json_t *picture, const char *name, int *out)
{
    enum { MOST = 1 << 16 };
    const json_t *number = json_object_get(picture, name);
    *out = (int)json_integer_value(number);
    return json_is_integer(number) && *out >= 1 && *out <= MOST;
}

static tutti_status read_picture(tutti_about *a, const char *path)
{
    if (!tutti_safetensors_metadata(a->file, "picture")) return TUTTI_OK;
    json_t *picture = parse(a->file, "picture");
    const json_t *zoom = json_object_get(picture, "zoom");
    tutti_sample_shape *p = &a->manner.picture;
    a->manner.zoom = json_number_value(zoom);
    const bool fits =
        read_size(picture, "channels", &p->channels) && read_size(picture, "height", &p->height) &&
        read_size(picture, "width", &p->width) && json_is_number(zoom) && a->manner.zoom >= 0 &&
        a->manner.zoom < 1e4 && p->channels == a->normalise.count;
    json_decref(picture);
    return fits ? TUTTI_OK : bad_text(path, "pictures");
}

static tutti_status read_about(tutti_about *a, const char *path)
{
    a->net = tutti_safetensors_metadata(a->file, "net");
    if (!a->net) return bad_text(path, "net");
    a->conv = tutti_safetensors_metadata(a->file, "conv");
    if (!a->conv) a->conv = "winograd-2x2"; /* what earlier versions took */
    a->precision = tutti_safetensors_metadata(a->file, "precision");
    TUTTI_TRY(read_classes(a, path));
    TUTTI_TRY(read_normalisation(a, path));
    return read_picture(a, path);
}

tutti_status tutti_about_open(tutti_about **out, const char *path)
{
    tutti_about *a = NULL;
    *out = NULL;
    TUTTI_TRY(tutti_alloc(&a, 1, sizeof *a));
    tutti_status s = tutti_safetensors_open(&a->file, path);
    if (s == TUTTI_OK) a->net_text = tutti_safetensors_metadata(a->file, "net_text");
    if (s == TUTTI_OK && a->net_text) s = read_about(a, path);
    if (s == TUTTI_OK && a->net_text) *out = a;
    else tutti_about_close(&a);
    return s;
}

void tutti_about_close(tutti_about **about)
{
    tutti_about *a = *about;
    if (!a) return;
    for (size_t i = 0; i < sizeof a->lists / sizeof *a->lists; i++) json_decref(a->lists[i]);
    tutti_free(a->classes);
    tutti_free(a->numbers);
    tutti_safetensors_close(&a->file);
    tutti_free(a);
    *about = NULL;
}
