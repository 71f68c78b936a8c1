#include "checkpoint/state.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "format/file.h"
#include "format/json.h"

/* Format 1 knew no optimizers but SGD, and its hash of the net left options out; format 2 left out
 * some of a run's options. */
enum { FORMAT = 3, MOST_BYTES = 1 << 20 };

struct tutti_state_file {
    tutti_state state;
    json_t *root; /* owns the texts */
    tutti_state_option *options;
    tutti_state_metric *metrics;
};

/* The whole numbers of a state: name, offset, least value. */
static const struct whole {
    const char *name;
    size_t offset;
    int64_t least;
} wholes[] = {
    {"step", offsetof(tutti_state, step), 0},
    {"epoch", offsetof(tutti_state, epoch), 0},
    {"epoch_sample", offsetof(tutti_state, epoch_sample), 0},
    {"seed", offsetof(tutti_state, seed), 0},
    {"batch_size", offsetof(tutti_state, batch_size), 1},
    {"grains", offsetof(tutti_state, grains), 1},
};
enum { WHOLES = sizeof wholes / sizeof *wholes };

/* ---- Writing ------------------------------------------------------------------------------ */

/* With a point or an exponent, so that readers see a real; -0 keeps its sign that way. */
static void put_real(tutti_string *s, double value)
{
    const size_t start = s->length;
    tutti_json_real(s, value, 17);
    if (!s->status && !strpbrk(s->data + start, ".e")) tutti_string_append(s, ".0", 2);
}

static void put_options(tutti_string *s, const tutti_state *state)
{
    tutti_string_printf(s, "  \"options\": {");
    for (int i = 0; i < state->option_count; i++) {
        tutti_string_printf(s, i ? ",\n    " : "\n    ");
        tutti_json_string(s, state->options[i].name);
        tutti_string_printf(s, ": ");
        tutti_json_string(s, state->options[i].value);
    }
    tutti_string_printf(s, "\n  },\n");
}

static void put_metrics(tutti_string *s, const tutti_state *state)
{
    tutti_string_printf(s, "  \"metrics\": {");
    for (int i = 0, put = 0; i < state->metric_count; i++) {
        if (!isfinite(state->metrics[i].value)) continue;
        tutti_string_printf(s, put++ ? ",\n    " : "\n    ");
        tutti_json_string(s, state->metrics[i].name);
        tutti_string_printf(s, ": ");
        put_real(s, state->metrics[i].value);
    }
    tutti_string_printf(s, "\n  }\n}\n");
}

tutti_status tutti_state_text(char **out, const tutti_state *state)
{
    tutti_string s = {0};
    tutti_string_printf(&s, "{\n  \"format\": %d,\n", FORMAT);
    for (int i = 0; i < WHOLES; i++) {
        int64_t value;
        memcpy(&value, (const char *)state + wholes[i].offset, sizeof value);
        TUTTI_ASSERT(value >= wholes[i].least);
        tutti_string_printf(&s, "  \"%s\": %lld,\n", wholes[i].name, (long long)value);
    }
    tutti_string_printf(&s, "  \"net\": ");
    tutti_json_string(&s, state->net);
    tutti_string_printf(&s, ",\n  \"net_sha256\": ");
    tutti_json_string(&s, state->net_sha256);
    tutti_string_printf(&s, ",\n");
    put_options(&s, state);
    put_metrics(&s, state);
    const tutti_status status = tutti_string_status(&s);
    if (status) tutti_string_deinit(&s);
    else *out = s.data;
    return status;
}

/* ---- Reading ------------------------------------------------------------------------------ */

static tutti_status bad_field(const char *path, const char *field)
{
    return tutti_fail(TUTTI_CHECKPOINT, "'%s': '%s' is missing or is not what it should be", path,
                      field);
}

static tutti_status read_wholes(tutti_state_file *f, const char *path)
{
    const json_t *format = json_object_get(f->root, "format");
    if (!json_is_integer(format)) return bad_field(path, "format");
    const long long number = json_integer_value(format);
    if (number > 0 && number < FORMAT)
        return tutti_fail(
            TUTTI_CHECKPOINT,
            "'%s' was written by an earlier version (format %lld) and cannot be gone on "
            "with: start from its weights, with --weights instead of --resume",
            path, number);
    if (number != FORMAT)
        return tutti_fail(TUTTI_CHECKPOINT, "'%s' has format %lld; this program reads format %d",
                          path, number, FORMAT);
    for (int i = 0; i < WHOLES; i++) {
        const json_t *field = json_object_get(f->root, wholes[i].name);
        const int64_t value = json_integer_value(field);
        if (!json_is_integer(field) || value < wholes[i].least)
            return bad_field(path, wholes[i].name);
        memcpy((char *)&f->state + wholes[i].offset, &value, sizeof value);
    }
    return TUTTI_OK;
}

static tutti_status read_options(tutti_state_file *f, const char *path)
{
    json_t *options = json_object_get(f->root, "options"), *value;
    const char *name;
    if (!json_is_object(options)) return bad_field(path, "options");
    TUTTI_TRY(tutti_alloc(&f->options, json_object_size(options), sizeof *f->options));
    json_object_foreach(options, name, value)
    {
        if (!json_is_string(value)) return bad_field(path, name);
        f->options[f->state.option_count++] = (tutti_state_option){name, json_string_value(value)};
    }
    f->state.options = f->options;
    return TUTTI_OK;
}

static tutti_status read_metrics(tutti_state_file *f, const char *path)
{
    json_t *metrics = json_object_get(f->root, "metrics"), *value;
    const char *name;
    if (!json_is_object(metrics)) return bad_field(path, "metrics");
    TUTTI_TRY(tutti_alloc(&f->metrics, json_object_size(metrics), sizeof *f->metrics));
    json_object_foreach(metrics, name, value)
    {
        if (!json_is_number(value)) return bad_field(path, name);
        f->metrics[f->state.metric_count++] = (tutti_state_metric){name, json_number_value(value)};
    }
    f->state.metrics = f->metrics;
    return TUTTI_OK;
}

static tutti_status read_state(tutti_state_file *f, const char *path, const char *text,
                               size_t length)
{
    json_error_t error;
    f->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!f->root)
        return tutti_fail(TUTTI_CHECKPOINT, "'%s':%d:%d: %s", path, error.line, error.column,
                          error.text);
    TUTTI_TRY(read_wholes(f, path));
    f->state.net = json_string_value(json_object_get(f->root, "net"));
    if (!f->state.net) return bad_field(path, "net");
    f->state.net_sha256 = json_string_value(json_object_get(f->root, "net_sha256"));
    if (!f->state.net_sha256) return bad_field(path, "net_sha256");
    TUTTI_TRY(read_options(f, path));
    return read_metrics(f, path);
}

tutti_status tutti_state_open(tutti_state_file **out, const char *path)
{
    tutti_state_file *f = NULL;
    char *text = NULL;
    size_t length = 0;
    tutti_status s = TUTTI_OK;
    if ((s = tutti_file_load(&text, &length, path, MOST_BYTES))) goto out;
    if ((s = tutti_alloc(&f, 1, sizeof *f))) goto out;
    if ((s = read_state(f, path, text, length))) goto out;
    *out = f;
    f = NULL;
out:
    tutti_state_close(&f);
    tutti_free(text);
    return s;
}

void tutti_state_close(tutti_state_file **file)
{
    if (!*file) return;
    json_decref((*file)->root);
    tutti_free((*file)->options);
    tutti_free((*file)->metrics);
    tutti_free(*file);
    *file = NULL;
}

const tutti_state *tutti_state_of(const tutti_state_file *file)
{
    return &file->state;
}

const char *tutti_state_option_value(const tutti_state *state, const char *name)
{
    for (int i = 0; i < state->option_count; i++)
        if (strcmp(state->options[i].name, name) == 0) return state->options[i].value;
    return NULL;
}

double tutti_state_metric_value(const tutti_state *state, const char *name)
{
    for (int i = 0; i < state->metric_count; i++)
        if (strcmp(state->metrics[i].name, name) == 0) return state->metrics[i].value;
    return NAN;
}
