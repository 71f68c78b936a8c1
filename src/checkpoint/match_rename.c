#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "checkpoint/match.h"

enum { NAME = 512 };

/* A line: names like 'theirs' become names like 'ours'. */
typedef struct rule {
    char theirs[NAME], ours[NAME];
} rule;

/* What the star of the pattern stands for in a text of 'length' characters; false: it is not like
 * that. */
static bool is_like(const char *pattern, const char *text, size_t length, char star[NAME])
{
    const char *at = strchr(pattern, '*');
    const size_t before = at ? (size_t)(at - pattern) : strlen(pattern);
    const size_t after = at ? strlen(at + 1) : 0;
    *star = 0;
    if (strncmp(pattern, text, before) || length < before + after) return false;
    if (!at) return length == before;
    if (strncmp(at + 1, text + length - after, after)) return false;
    snprintf(star, NAME, "%.*s", (int)(length - before - after), text + before);
    return true;
}

/* The name that the rule gives to a tensor, or its own. */
static bool rename_by(const rule *r, const char *name, char out[NAME])
{
    char star[NAME];
    size_t length = (size_t)tutti_match_stem(name);
    if (!length || !is_like(r->theirs, name, length, star)) {
        length = strlen(name);
        if (!is_like(r->theirs, name, length, star)) return false;
    }
    const int before = (int)strcspn(r->ours, "*");
    const char *after = r->ours[before] ? r->ours + before + 1 : "";
    const int needs = snprintf(out, NAME, "%.*s%s%s%s", before, r->ours,
                               r->ours[before] ? star : "", after, name + length);
    return needs < NAME; /* no parameter has a name as long as that */
}

static tutti_status take_word(const tutti_text *text, tutti_word word, char out[NAME])
{
    if (word.length >= NAME)
        return tutti_text_fail(text, word, "a name of %d letters", word.length);
    snprintf(out, NAME, "%.*s", word.length, word.start);
    return TUTTI_OK;
}

static tutti_status read_rule(tutti_text *text, tutti_word *at, rule *out)
{
    tutti_word ours;
    *at = tutti_text_next(text);
    TUTTI_TRY(tutti_text_need(text, &ours, "THEIRS OURS, as in 'features.0 conv1'"));
    TUTTI_TRY(take_word(text, *at, out->theirs));
    TUTTI_TRY(take_word(text, ours, out->ours));
    if (strchr(out->ours, '*') && !strchr(out->theirs, '*'))
        return tutti_text_fail(text, ours, "a '*' that stands for nothing in '%s'", out->theirs);
    return tutti_text_end_of_line(text);
}

/* What a line does; the first that is like a name counts. */
static tutti_status apply(tutti_match *m, const tutti_safetensors_layout *want,
                          const tutti_safetensors *file, const rule *r, bool *renamed, int *used)
{
    for (int t = 0; t < tutti_safetensors_count(file); t++) {
        char name[NAME];
        if (renamed[t] || !rename_by(r, tutti_safetensors_tensor(file, t)->spec.name, name))
            continue;
        renamed[t] = true;
        ++*used;
        for (int i = 0; i < m->count; i++) {
            if (strcmp(tutti_safetensors_layout_tensor(want, i)->name, name)) continue;
            if (m->tensor[i] >= 0)
                return tutti_fail(TUTTI_DATA, "'%s' and '%s' both become '%s'",
                                  tutti_safetensors_tensor(file, m->tensor[i])->spec.name,
                                  tutti_safetensors_tensor(file, t)->spec.name, name);
            m->tensor[i] = t;
        }
    }
    return TUTTI_OK;
}

static tutti_status apply_lines(tutti_match *m, const tutti_safetensors_layout *want,
                                const tutti_safetensors *file, const char *path, tutti_text *text,
                                bool *renamed)
{
    while (tutti_text_next_line(text)) {
        rule r;
        tutti_word at;
        int used = 0;
        TUTTI_TRY(read_rule(text, &at, &r));
        if (apply(m, want, file, &r, renamed, &used))
            return tutti_text_fail(text, at, "%s", tutti_message());
        if (!used)
            return tutti_text_fail(text, at, "%s has no tensor or module '%s'", path, r.theirs);
    }
    return TUTTI_OK;
}

tutti_status tutti_match_rename(tutti_match *out, const tutti_safetensors_layout *want,
                                const tutti_safetensors *file, const char *path, const char *rename)
{
    bool *renamed = NULL;
    tutti_text *text = NULL;
    for (int i = 0; i < out->count; i++) out->tensor[i] = -1;
    TUTTI_TRY(tutti_alloc(&renamed, (size_t)tutti_safetensors_count(file), sizeof *renamed));
    tutti_status s = tutti_text_open(&text, rename);
    if (s == TUTTI_OK) s = apply_lines(out, want, file, path, text, renamed);
    for (int i = 0; s == TUTTI_OK && i < out->count; i++) {
        const int same =
            tutti_safetensors_find(file, tutti_safetensors_layout_tensor(want, i)->name);
        if (out->tensor[i] < 0 && same >= 0 && !renamed[same]) out->tensor[i] = same;
    }
    tutti_text_destroy(&text);
    tutti_free(renamed);
    return s;
}
