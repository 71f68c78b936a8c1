#include "train/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "format/json.h"
#include "step/stepper.h"

typedef enum { WHOLE, LONG, REAL, SWITCH, TEXT, NAME } value_type;

/* An option: where it is among those given and among the resolved. A number that counts as given is
 * at least 'least'. A NAME is not resolved any further. */
typedef struct row {
    const char *name;
    value_type type;
    size_t option, setting;
    int least;
    size_t state; /* in tutti_state, for those with a field of their own; they come first */
    bool may_change;
} row;

#define O(field) offsetof(tutti_train_options, field)
#define S(field) offsetof(tutti_settings, field)
#define F(field) offsetof(tutti_state, field)

// clang-format off
static const row rows[] = {
    {"batch-size",       WHOLE,  O(batch_size),       S(batch),      1, F(batch_size), false},
    {"grains",           WHOLE,  O(grains),           S(grains),     1, F(grains),     false},
    {"seed",             LONG,   O(seed),             S(seed),       0, F(seed),       false},
    {"steps",            LONG,   O(steps),            S(pace.steps), 1, 0, true},
    {"lr",               REAL,   O(lr),               S(lr),         0, 0, true},
    {"lr-schedule",      TEXT,   O(lr_schedule),      S(lr_schedule), 0, 0, true},
    {"warmup",           TEXT,   O(warmup),           S(warmup),     0, 0, false},
    {"optimizer",        TEXT,   O(optimizer),        S(optimizer_text), 0, 0, false},
    {"weight-decay",     REAL,   O(weight_decay),     S(weight_decay), 0, 0, false},
    {"decay-all",        SWITCH, O(decay_all),        S(decay_all),  0, 0, false},
    {"clip",             REAL,   O(clip),             S(clip),       0, 0, false},
    {"label-smoothing",  REAL,   O(label_smoothing),  S(label_smoothing), 0, 0, false},
    {"ema",              REAL,   O(ema),              S(ema),        0, 0, false},
    {"eval-weights",     TEXT,   O(eval_weights),     S(eval_weights), 0, 0, true},
    {"init",             TEXT,   O(init),             S(init),       0, 0, false},
    {"bn-group",         TEXT,   O(bn_group),         S(bn_group),   0, 0, false},
    {"conv",             TEXT,   O(conv),             S(conv),       0, 0, false},
    {"precision",        TEXT,   O(precision),        S(precision),  0, 0, false},
    {"freeze",           TEXT,   O(freeze),           S(freeze),     0, 0, false},
    {"lr-scale",         TEXT,   O(lr_scale),         S(lr_scale),   0, 0, true},
    {"shuffle",          SWITCH, O(shuffle),          S(shuffle),    0, 0, false},
    {"augment",          SWITCH, O(augment),          S(augment),    0, 0, false},
    {"dropout",          SWITCH, O(dropout),          S(dropout),    0, 0, false},
    {"skip-bad",         SWITCH, O(skip_bad),         S(skip_bad),   0, 0, false},
    {"checkpoint-every", TEXT,   O(checkpoint_every), S(checkpoint_text), 0, 0, true},
    {"eval-every",       TEXT,   O(eval_every),       S(eval_text),  0, 0, true},
    {"keep",             WHOLE,  O(keep),             S(keep),       0, 0, true},
    {"patience",         WHOLE,  O(patience),         S(patience),   0, 0, true},
    {"class-weights",    NAME,   O(class_weights),    0,             0, 0, true},
    {"data",             NAME,   O(data),             0,             0, 0, true},
};
// clang-format on
enum { ROWS = sizeof rows / sizeof *rows };

static const row *find_row(const char *name)
{
    for (const row *r = rows; r < rows + ROWS; r++)
        if (!strcmp(r->name, name)) return r;
    return NULL;
}

/* Options that checkpoints of earlier versions do not know, and what they did. */
static const tutti_state_option younger[] = {
    {"patience", "0"},
    {"label-smoothing", "0"},
    {"class-weights", ""},
    {"class-weights-hash", "none"},
    {"freeze", ""},
    {"lr-scale", ""},
    {"ema", "0"},
    {"eval-weights", "ema"},
    {"conv", "winograd-2x2"},
};
enum { YOUNGER = sizeof younger / sizeof *younger };

/* What is no option, but makes runs differ all the same. */
static const char data_hash_name[] = "data-hash", weights_hash_name[] = "class-weights-hash",
                  arithmetic_name[] = "arithmetic";

/* ---- to texts ---- */

static void write_value(tutti_string *s, const row *r, const tutti_train_options *options,
                        const tutti_settings *settings)
{
    const char *field = (const char *)settings + r->setting;
    const char *name =
        r->type == NAME ? *(const char *const *)((const char *)options + r->option) : NULL;
    char real[TUTTI_REAL_TEXT];
    switch (r->type) {
    case WHOLE: tutti_string_printf(s, "%d", *(const int *)field); break;
    case LONG: tutti_string_printf(s, "%lld", (long long)*(const int64_t *)field); break;
    case REAL:
        tutti_string_printf(s, "%s", tutti_text_of_real(real, *(const double *)field));
        break;
    case SWITCH: tutti_string_printf(s, "%s", *(const bool *)field ? "on" : "off"); break;
    case TEXT: tutti_string_printf(s, "%s", field); break;
    case NAME: tutti_string_printf(s, "%s", name ? name : ""); break;
    }
}

/* Takes the value. */
static tutti_status add(tutti_kept *kept, const char *name, tutti_string *value)
{
    TUTTI_ASSERT(kept->count < TUTTI_KEPT_MOST);
    const tutti_status s = tutti_string_status(value);
    if (s == TUTTI_OK) kept->list[kept->count++] = (tutti_state_option){name, value->data};
    else tutti_string_deinit(value);
    return s;
}

static tutti_status add_text(tutti_kept *kept, const char *name, const char *text)
{
    tutti_string value = {0};
    tutti_string_printf(&value, "%s", text);
    return add(kept, name, &value);
}

static tutti_status fill(tutti_kept *kept, const tutti_train_options *options,
                         const tutti_settings *settings, const tutti_contents *contents)
{
    char arithmetic[16];
    for (const row *r = rows; r < rows + ROWS; r++) {
        tutti_string value = {0};
        write_value(&value, r, options, settings);
        TUTTI_TRY(add(kept, r->name, &value));
        if (r->state) kept->first = kept->count;
    }
    TUTTI_TRY(add_text(kept, data_hash_name, contents->data));
    TUTTI_TRY(add_text(kept, weights_hash_name, contents->class_weights));
    snprintf(arithmetic, sizeof arithmetic, "%d", TUTTI_ARITHMETIC);
    return add_text(kept, arithmetic_name, arithmetic);
}

tutti_status tutti_kept_init(tutti_kept *out, const tutti_train_options *options,
                             const tutti_settings *settings, const tutti_contents *contents)
{
    *out = (tutti_kept){0};
    const tutti_status s = fill(out, options, settings, contents);
    if (s != TUTTI_OK) tutti_kept_deinit(out);
    return s;
}

void tutti_kept_deinit(tutti_kept *kept)
{
    for (int i = 0; i < kept->count; i++) {
        char *value = NULL;
        memcpy(&value, &kept->list[i].value, sizeof value); /* ours, whatever its const says */
        tutti_free(value);
    }
    *kept = (tutti_kept){0};
}

/* ---- from a checkpoint ---- */

/* What the run was doing; 'own' is memory for those with a field of their own. NULL: not known. */
static const char *value_of(const tutti_state *was, const char *name, char own[24])
{
    for (const row *r = rows; r < rows + ROWS; r++) {
        if (!r->state || strcmp(r->name, name)) continue;
        int64_t value;
        memcpy(&value, (const char *)was + r->state, sizeof value);
        snprintf(own, 24, "%lld", (long long)value);
        return own;
    }
    const char *text = tutti_state_option_value(was, name);
    for (int i = 0; !text && i < YOUNGER; i++)
        if (!strcmp(younger[i].name, name)) text = younger[i].value;
    return text;
}

static tutti_status not_said(const char *path, const char *name, const char *text)
{
    if (!text) return tutti_fail(TUTTI_CHECKPOINT, "%s/state.json says nothing of %s", path, name);
    return tutti_fail(TUTTI_CHECKPOINT, "%s/state.json: '%s' is no value of %s", path, text, name);
}

static bool is_unset(const row *r, const tutti_train_options *options)
{
    const void *field = (const char *)options + r->option;
    switch (r->type) {
    case WHOLE: return *(const int *)field < r->least;
    case LONG: return *(const int64_t *)field < r->least;
    case REAL: return *(const double *)field < r->least;
    case SWITCH: return *(const int *)field < 0;
    case TEXT:
    case NAME: break;
    }
    return !*(const char *const *)field;
}

static bool set(const row *r, tutti_train_options *options, const char *text)
{
    void *field = (char *)options + r->option;
    char *end = NULL;
    switch (r->type) {
    case WHOLE: *(int *)field = (int)strtol(text, &end, 10); break;
    case LONG: *(int64_t *)field = strtoll(text, &end, 10); break;
    case REAL: *(double *)field = strtod(text, &end); break;
    case SWITCH: *(int *)field = !strcmp(text, "on"); return *(int *)field || !strcmp(text, "off");
    case TEXT:
    case NAME: *(const char **)field = text; return true;
    }
    return end != text && !*end && !is_unset(r, options);
}

tutti_status tutti_options_take(tutti_train_options *options, const tutti_state *was,
                                const char *path)
{
    const bool has_length = options->epochs > 0;
    for (const row *r = rows; r < rows + ROWS; r++) {
        char own[24];
        const char *text = value_of(was, r->name, own);
        if (!is_unset(r, options) || (r->option == O(steps) && has_length)) continue;
        if (!text || !set(r, options, text)) return not_said(path, r->name, text);
    }
    return TUTTI_OK;
}

/* Versions of the arithmetic whose bits this one makes as well: from 1 to 2 only the usual --conv
 * became another one, and a run keeps its own. */
static bool makes_bits_of(const char *version)
{
    return !strcmp(version, "1");
}

/* ---- the same run? ---- */

static tutti_status other_run(const char *path, const char *name, const char *was, const char *is)
{
    if (!strcmp(name, data_hash_name))
        return tutti_fail(TUTTI_OTHER_RUN,
                          "%s was trained on other data than --data names: give it the same to go "
                          "on, or start from it with --weights",
                          path);
    if (!strcmp(name, weights_hash_name))
        return tutti_fail(
            TUTTI_OTHER_RUN,
            "%s was trained with other class weights than --class-weights gives: leave "
            "the option out to go on as it was, or start from it with --weights",
            path);
    if (!find_row(name))
        return tutti_fail(TUTTI_OTHER_RUN,
                          "%s was trained by another version of this program, with %s %s, not %s: "
                          "go on with that version, or start from it with --weights",
                          path, name, was, is);
    return tutti_fail(
        TUTTI_OTHER_RUN,
        "%s was trained with --%s %s, not %s: leave the option out to go on as it was, "
        "or start from it with --weights",
        path, name, *was ? was : "of nothing", *is ? is : "of nothing");
}

tutti_status tutti_kept_compare(const tutti_kept *now, const tutti_state *was, const char *path,
                                char *note, size_t size)
{
    size_t used = 0;
    *note = 0;
    for (int i = 0; i < now->count; i++) {
        const tutti_state_option *is = &now->list[i];
        char own[24];
        const row *r = find_row(is->name);
        const char *text = value_of(was, is->name, own);
        if (!text) return not_said(path, is->name, NULL);
        if (!strcmp(text, is->value)) continue;
        const bool may_change =
            r ? r->may_change : !strcmp(is->name, arithmetic_name) && makes_bits_of(text);
        if (!may_change) return other_run(path, is->name, text, is->value);
        if (used < size)
            used += (size_t)snprintf(note + used, size - used, "%s%s %s -> %s", used ? ", " : "",
                                     is->name, text, is->value);
    }
    return TUTTI_OK;
}

/* ---- the same everywhere? ---- */

/* Options that are not the run's own, but decide when ranks meet: by value, or only by whether they
 * are given. */
static const struct meeting {
    const char *name;
    size_t option;
    enum { BY_SWITCH, BY_NUMBER, BY_TEXT, BY_BEING } type;
} meetings[] = {
    {"overlap", O(overlap), BY_SWITCH},
    {"priority", O(priority), BY_SWITCH},
    {"part-reduce", O(part_reduce), BY_TEXT},
    {"part-broadcast", O(part_broadcast), BY_TEXT},
    {"plan", O(plan), BY_TEXT},
    {"micro-batch", O(micro_batch), BY_NUMBER},
    {"checkpoint-sync", O(checkpoint_sync), BY_SWITCH},
    {"run", O(run), BY_BEING},
    {"resume", O(resume), BY_BEING},
    {"weights", O(weights), BY_BEING},
    {"trace", O(trace), BY_BEING},
};
enum { MEETINGS = sizeof meetings / sizeof *meetings };

/* Every rank may have the data at a place of its own: their hash counts. */
static bool travels(const char *name)
{
    const row *r = find_row(name);
    return !r || r->type != NAME;
}

/* 'number' is room for one. */
static const char *meeting_text(const struct meeting *m, const tutti_train_options *options,
                                char number[24])
{
    const void *field = (const char *)options + m->option;
    if (m->type == BY_SWITCH) return *(const bool *)field ? "on" : "off";
    if (m->type == BY_NUMBER) {
        snprintf(number, 24, "%d", *(const int *)field);
        return number;
    }
    const char *text = *(const char *const *)field;
    return !text ? "" : m->type == BY_TEXT ? text : "given";
}

/* Long texts by their hash: only their first characters travel. */
static tutti_status check_text(tutti_comm *comm, const char *what, const char *text)
{
    enum { SHORT = 40 };
    char hex[TUTTI_HASH_HEX];
    if (strlen(text) < SHORT) return tutti_comm_check_same_text(comm, what, text);
    TUTTI_TRY(tutti_comm_agree(comm, tutti_hash_bytes(hex, text, strlen(text))));
    return tutti_comm_check_same_text(comm, what, hex);
}

static tutti_status name_the_difference(const tutti_kept *kept, const tutti_train_options *options,
                                        tutti_comm *comm)
{
    char what[64], number[24];
    for (int i = 0; i < kept->count; i++) {
        const tutti_state_option *o = &kept->list[i];
        snprintf(what, sizeof what, find_row(o->name) ? "--%s" : "the %s", o->name);
        if (!strcmp(o->name, data_hash_name)) snprintf(what, sizeof what, "the data set");
        if (!strcmp(o->name, weights_hash_name)) snprintf(what, sizeof what, "--class-weights");
        if (travels(o->name)) TUTTI_TRY(check_text(comm, what, o->value));
    }
    for (const struct meeting *m = meetings; m < meetings + MEETINGS; m++) {
        snprintf(what, sizeof what, "--%s", m->name);
        TUTTI_TRY(check_text(comm, what, meeting_text(m, options, number)));
    }
    return tutti_fail(TUTTI_MISMATCH, "the ranks have different options");
}

/* One text of all is compared first: as long as ranks agree, that is all. */
tutti_status tutti_kept_check_same(const tutti_kept *kept, const tutti_train_options *options,
                                   tutti_comm *comm)
{
    tutti_string all = {0};
    char number[24];
    for (int i = 0; i < kept->count; i++)
        if (travels(kept->list[i].name))
            tutti_string_printf(&all, "%s=%s\n", kept->list[i].name, kept->list[i].value);
    for (const struct meeting *m = meetings; m < meetings + MEETINGS; m++)
        tutti_string_printf(&all, "%s=%s\n", m->name, meeting_text(m, options, number));
    tutti_status s = tutti_comm_agree(comm, tutti_string_status(&all));
    if (s == TUTTI_OK) s = check_text(comm, "the options", all.data);
    tutti_string_deinit(&all);
    return s == TUTTI_MISMATCH ? name_the_difference(kept, options, comm) : s;
}
