#include "interchange/about.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/file.h"

enum { MOST_CLASSES_BYTES = 1 << 24 };

static tutti_status add(tutti_told *t, const char *name, tutti_string *text)
{
    TUTTI_ASSERT(t->count < TUTTI_TOLD_MOST);
    const tutti_status s = tutti_string_status(text);
    t->texts[t->count] = *text;
    if (s == TUTTI_OK) {
        t->list[t->count] = (tutti_fact){name, text->data};
        t->count++;
    } else tutti_string_deinit(text);
    return s;
}

static tutti_status add_text(tutti_told *t, const char *name, const char *text)
{
    tutti_string s = {0};
    tutti_string_printf(&s, "%s", text);
    return add(t, name, &s);
}

/* ---- classes ---- */

/* Lines of a file. */
static tutti_status classes_of_file(const char *path, int classes, tutti_string *list)
{
    char *text = NULL;
    size_t length;
    int count = 0;
    TUTTI_TRY(tutti_file_load(&text, &length, path, MOST_CLASSES_BYTES));
    tutti_string_append(list, "[", 1);
    for (char *at = text, *end; *at; at = end) {
        end = at + strcspn(at, "\n");
        const bool is_last = !*end;
        *end = 0;
        at[strcspn(at, "\r")] = 0;
        if (count++) tutti_string_append(list, ",", 1);
        tutti_json_string(list, at);
        if (!is_last) end++;
    }
    tutti_string_append(list, "]", 1);
    tutti_free(text);
    if (count == classes) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "--classes %s has %d lines, the net tells %d classes apart",
                      path, count, classes);
}

static bool is_list(const char *text, int classes)
{
    json_t *list = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    bool fits = json_is_array(list) && json_array_size(list) == (size_t)classes;
    for (size_t i = 0; fits && i < (size_t)classes; i++)
        fits = json_is_string(json_array_get(list, i));
    json_decref(list);
    return fits;
}

static tutti_status add_classes(tutti_told *t, const tutti_importer *im, int classes)
{
    const char *own = tutti_onnx_metadata(im->model, "classes");
    tutti_string list = {0};
    tutti_status s = TUTTI_OK;
    if (im->options->classes) s = classes_of_file(im->options->classes, classes, &list);
    else if (own && is_list(own, classes)) tutti_string_printf(&list, "%s", own);
    else
        for (int i = 0; i < classes; i++)
            tutti_string_printf(&list, "%s\"%d\"%s", i ? "," : "[", i, i == classes - 1 ? "]" : "");
    if (s != TUTTI_OK) {
        tutti_string_deinit(&list);
        return s;
    }
    return add(t, "classes", &list);
}

/* ---- normalisation ---- */

/* "0.485,0.456,0.406", or one number for all channels. */
static tutti_status list_numbers(const char *option, const char *text, int channels, bool positive,
                                 tutti_string *list)
{
    int count = 0;
    double last = 0;
    tutti_string_append(list, "[", 1);
    for (const char *at = text; *at; count++) {
        char *end;
        last = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(last) || (positive && !(last > 0)))
            return tutti_fail(TUTTI_ARGUMENT, "--%s %s: numbers with commas between them%s", option,
                              text, positive ? ", above 0" : "");
        if (count) tutti_string_append(list, ",", 1);
        tutti_json_real(list, last, 9);
        at = *end ? end + 1 : end;
    }
    for (; count && count < channels && !strchr(text, ','); count++) {
        tutti_string_append(list, ",", 1);
        tutti_json_real(list, last, 9);
    }
    tutti_string_append(list, "]", 1);
    if (count == channels) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "--%s has %d numbers, the net's input has %d channels",
                      option, count, channels);
}

static tutti_status add_numbers(tutti_told *t, const tutti_importer *im, const char *name,
                                const char *said, bool positive)
{
    const char *own = tutti_onnx_metadata(im->model, name);
    tutti_string list = {0};
    tutti_status s = TUTTI_OK;
    if (said) s = list_numbers(name, said, im->input.c, positive, &list);
    else tutti_string_printf(&list, "%s", own ? own : "[]");
    if (s != TUTTI_OK) {
        tutti_string_deinit(&list);
        return s;
    }
    return add(t, name, &list);
}

/* How pictures become samples: PyTorch's way, the middle of an image that is a seventh larger. */
static tutti_status add_picture(tutti_told *t, const tutti_importer *im)
{
    const tutti_shape in = im->input;
    const char *own = tutti_onnx_metadata(im->model, "picture");
    tutti_string s = {0};
    if (own) return add_text(t, "picture", own);
    if (in.h * in.w == 1 || !im->options->mean) return TUTTI_OK;
    tutti_string_append(&s, "{", 1);
    tutti_json_field_int(&s, "channels", in.c);
    tutti_json_field_int(&s, "height", in.h);
    tutti_json_field_int(&s, "width", in.w);
    tutti_json_field_real(&s, "zoom", 8.0 / 7, 17);
    tutti_string_append(&s, "}", 1);
    return add(t, "picture", &s);
}

static tutti_status fill(tutti_told *t, const tutti_importer *im, const char *net_name,
                         const char *net_text, int classes)
{
    char input[64];
    snprintf(input, sizeof input, "%dx%dx%d", im->input.c, im->input.h, im->input.w);
    TUTTI_TRY(add_text(t, "net", net_name));
    TUTTI_TRY(add_text(t, "net_text", net_text));
    TUTTI_TRY(add_classes(t, im, classes));
    TUTTI_TRY(add_numbers(t, im, "mean", im->options->mean, false));
    TUTTI_TRY(add_numbers(t, im, "std", im->options->std, true));
    TUTTI_TRY(add_picture(t, im));
    return add_text(t, "input", input);
}

tutti_status tutti_told_init(tutti_told *out, const tutti_importer *im, const char *net_name,
                             const char *net_text, int classes)
{
    const tutti_import_options *o = im->options;
    *out = (tutti_told){0};
    if (!o->mean != !o->std)
        return tutti_fail(TUTTI_ARGUMENT, "--mean and --std belong together: give both");
    if (!o->mean && !o->classes && !tutti_onnx_metadata(im->model, "classes")) return TUTTI_OK;
    const tutti_status s = fill(out, im, net_name, net_text, classes);
    if (s != TUTTI_OK) tutti_told_deinit(out);
    return s;
}

void tutti_told_deinit(tutti_told *told)
{
    for (int i = 0; i < told->count; i++) tutti_string_deinit(&told->texts[i]);
    *told = (tutti_told){0};
}
