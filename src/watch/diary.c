#include "watch/diary.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum { TIME_DIGITS = 14, CHECKPOINTS_STAY = TUTTI_MOST_ENTRIES / 4 };

void tutti_diary_clear(tutti_diary *e)
{
    json_decref(e->begun);
    json_decref(e->confusion);
    json_decref(e->worst);
    *e = (tutti_diary){0};
}

/* ---- room ---- */

static bool is_checkpoint(const tutti_entry *event)
{
    return !strcmp(event->kind, "checkpoint");
}

/* Every other checkpoint goes; if that does not help, so does the oldest quarter. */
static void make_room(tutti_diary *e)
{
    int kept = 0, checkpoints = 0;
    for (int i = 0; i < e->count; i++)
        if (!is_checkpoint(&e->list[i]) || checkpoints++ % 2) e->list[kept++] = e->list[i];
    e->count = kept;
    const int drop = kept > TUTTI_MOST_ENTRIES - CHECKPOINTS_STAY ? CHECKPOINTS_STAY : 0;
    memmove(e->list, e->list + drop, (size_t)(kept - drop) * sizeof *e->list);
    e->count -= drop;
}

/* ---- in ---- */

/* A copy that ends where a character ends. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length >= size)
        for (length = size - 1; length && ((unsigned char)text[length] & 0xc0) == 0x80;) length--;
    if (length) memcpy(out, text, length);
    out[length] = 0;
}

static void keep(json_t **place, json_t *object)
{
    json_decref(*place);
    *place = json_incref(object);
}

static void note(tutti_diary *e, const tutti_entry *event, json_t *object)
{
    e->evaluating = !strcmp(event->kind, "evaluating") ? event->at : 0;
    e->ended = !strcmp(event->kind, "ended");
    if (e->ended) e->code = (int)json_integer_value(json_object_get(object, "code"));
    if (!strcmp(event->kind, "begun")) keep(&e->begun, object);
    if (!strcmp(event->kind, "confusion")) keep(&e->confusion, object);
    if (!strcmp(event->kind, "worst")) keep(&e->worst, object);
}

/* Shown on their own, not among what happened. */
static bool has_its_place(const char *kind)
{
    return !strcmp(kind, "evaluating") || !strcmp(kind, "confusion") || !strcmp(kind, "worst");
}

void tutti_diary_add(tutti_diary *e, int64_t step, const char *line, size_t length)
{
    json_t *object = json_loadb(line, length, 0, NULL);
    const char *kind = json_string_value(json_object_get(object, "event"));
    if (kind) {
        tutti_entry event = {.step = step};
        event.at = json_number_value(json_object_get(object, "at"));
        copy_text(event.kind, sizeof event.kind, kind);
        copy_text(event.text, sizeof event.text,
                  json_string_value(json_object_get(object, "text")));
        note(e, &event, object);
        if (e->count == TUTTI_MOST_ENTRIES) make_room(e);
        if (!has_its_place(kind)) e->list[e->count++] = event;
    }
    json_decref(object);
}

/* ---- out ---- */

static void put_event(tutti_string *out, const tutti_entry *event)
{
    tutti_string_append(out, "{", 1);
    tutti_json_field_real(out, "at", event->at, TIME_DIGITS);
    tutti_json_field_int(out, "step", event->step);
    tutti_json_field_string(out, "kind", event->kind);
    tutti_json_field_string(out, "text", event->text);
    tutti_string_append(out, "}", 1);
}

static void put_object(tutti_string *out, const char *key, const json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    tutti_json_key(out, key);
    tutti_string_printf(out, "%s", text ? text : "null");
    free(text);
}

void tutti_diary_json(tutti_string *out, const tutti_diary *e)
{
    tutti_json_key(out, "events");
    tutti_string_append(out, "[", 1);
    for (int i = 0; i < e->count; i++) {
        if (i) tutti_string_append(out, ",", 1);
        put_event(out, &e->list[i]);
    }
    tutti_string_append(out, "]", 1);
    put_object(out, "begun", e->begun);
    put_object(out, "confusion", e->confusion);
    put_object(out, "worst", e->worst);
}
