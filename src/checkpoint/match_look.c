#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/match.h"

/* ---- modules ---- */

enum { LOOK = 256 };

/* Tensors with the same name up to its last dot, in the order of their suffixes. */
typedef struct module {
    const tutti_tensor_spec *const *tensors;
    const int *numbers; /* of these in their file */
    int count;
    int place;       /* the smallest of the numbers */
    char look[LOOK]; /* suffixes and shapes */
    int other;       /* its counterpart; -1: none */
} module;

typedef struct side {
    int tensor_count, count;
    const tutti_tensor_spec **tensors;
    int *numbers;
    module *modules;
} side;

static const char *name_of(const module *m)
{
    return m->tensors[0]->name;
}

static int by_module(const tutti_tensor_spec *a, const tutti_tensor_spec *b)
{
    const int m = tutti_match_stem(a->name), n = tutti_match_stem(b->name);
    const int stems = strncmp(a->name, b->name, (size_t)(m < n ? m : n));
    if (stems || m != n) return stems ? stems : m - n;
    return strcmp(a->name, b->name);
}

/* Insertion: files are nearly sorted, and have some hundred tensors. */
static void add_tensor(side *s, const tutti_tensor_spec *spec, int number)
{
    int at = s->tensor_count++;
    for (; at && by_module(s->tensors[at - 1], spec) > 0; at--) {
        s->tensors[at] = s->tensors[at - 1];
        s->numbers[at] = s->numbers[at - 1];
    }
    s->tensors[at] = spec;
    s->numbers[at] = number;
}

/* Minibatches are counted by some files only. */
static bool is_counter(const tutti_tensor_spec *spec)
{
    static const char counter[] = "num_batches_tracked";
    const size_t length = strlen(spec->name), suffix = sizeof counter - 1;
    return length >= suffix && !strcmp(spec->name + length - suffix, counter);
}

/* A module of too many tensors looks like none but itself. */
static void describe(module *m)
{
    int used = 0;
    m->other = -1;
    m->place = m->numbers[0];
    for (int i = 0; i < m->count; i++) {
        char shape[128];
        if (m->numbers[i] < m->place) m->place = m->numbers[i];
        if (is_counter(m->tensors[i])) continue;
        tutti_tensor_shape_text(m->tensors[i], shape, sizeof shape);
        const char *suffix = m->tensors[i]->name + tutti_match_stem(m->tensors[i]->name);
        used += snprintf(m->look + used, LOOK - (size_t)used, "%s%s %s", used ? ", " : "",
                         suffix + (*suffix == '.'), shape);
        if (used < LOOK) continue;
        snprintf(m->look, LOOK, "%s", name_of(m));
        return;
    }
}

static void find_modules(side *s)
{
    for (int i = 0; i < s->tensor_count; i++) {
        const char *name = s->tensors[i]->name;
        const int stem = tutti_match_stem(name);
        module *last = s->count ? &s->modules[s->count - 1] : NULL;
        const bool same = last && tutti_match_stem(name_of(last)) == stem &&
                          !strncmp(name_of(last), name, (size_t)stem);
        if (!same) {
            last = &s->modules[s->count++];
            *last = (module){.tensors = s->tensors + i, .numbers = s->numbers + i};
        }
        last->count++;
    }
    for (int i = 0; i < s->count; i++) describe(&s->modules[i]);
}

static tutti_status init_side(side *s, int tensors)
{
    *s = (side){0};
    TUTTI_TRY(tutti_alloc(&s->tensors, (size_t)tensors, sizeof *s->tensors));
    TUTTI_TRY(tutti_alloc(&s->numbers, (size_t)tensors, sizeof *s->numbers));
    return tutti_alloc(&s->modules, (size_t)tensors, sizeof *s->modules);
}

static void deinit_side(side *s)
{
    tutti_free(s->tensors);
    tutti_free(s->numbers);
    tutti_free(s->modules);
}

/* ---- order ---- */

/* Where the digits at the end of a component begin. */
static int word_length(const char *component, int length)
{
    while (length && isdigit((unsigned char)component[length - 1])) length--;
    return length;
}

/* Below 0: a comes before b, by their names; above: after it; 0: they do not say. */
static int order_of(const module *m, const module *n)
{
    const char *a = name_of(m), *b = name_of(n);
    const char *a_end = a + tutti_match_stem(a), *b_end = b + tutti_match_stem(b);
    while (a < a_end && b < b_end) {
        const int la = (int)strcspn(a, "."), lb = (int)strcspn(b, ".");
        if (la != lb || strncmp(a, b, (size_t)la)) {
            const int wa = word_length(a, la), wb = word_length(b, lb);
            if (wa != wb || strncmp(a, b, (size_t)wa) || wa == la || wb == lb) return 0;
            const long x = strtol(a + wa, NULL, 10), y = strtol(b + wb, NULL, 10);
            return x < y ? -1 : x > y;
        }
        a += la + 1;
        b += lb + 1;
    }
    return 0;
}

/* ---- counterparts ---- */

typedef struct question {
    side ours, theirs;
    const char *net, *path;
} question;

static bool looks_like(const module *a, const module *b)
{
    return !strcmp(a->look, b->look);
}

static tutti_status doubt(const question *q, const module *a, const module *b)
{
    return tutti_fail(TUTTI_DATA,
                      "%s: its names are not those of %s, and %.*s and %.*s look alike (%s): say "
                      "which is which in a file for --rename (doc/FINETUNING.md)",
                      q->path, q->net, tutti_match_stem(name_of(a)), name_of(a),
                      tutti_match_stem(name_of(b)), name_of(b), a->look);
}

/* Among those that look like it, the place of one of ours. */
static int rank_of(const question *q, const module *mine, int *alike)
{
    int rank = 0;
    *alike = 0;
    for (int i = 0; i < q->ours.count; i++) {
        if (!looks_like(&q->ours.modules[i], mine)) continue;
        ++*alike;
        rank += q->ours.modules[i].place < mine->place;
    }
    return rank;
}

/* The same of one of theirs; fails where names do not say. */
static tutti_status rank_theirs(const question *q, const module *one, int *rank, int *alike)
{
    *rank = *alike = 0;
    for (int i = 0; i < q->theirs.count; i++) {
        const module *other = &q->theirs.modules[i];
        if (!looks_like(other, one)) continue;
        ++*alike;
        if (other == one) continue;
        const int order = order_of(other, one);
        if (!order) return doubt(q, one, other);
        *rank += order < 0;
    }
    return TUTTI_OK;
}

static tutti_status find_other(question *q, module *mine)
{
    int alike, rank = rank_of(q, mine, &alike);
    for (int i = 0; i < q->theirs.count; i++) {
        module *one = &q->theirs.modules[i];
        int place, count;
        if (!looks_like(one, mine)) continue;
        TUTTI_TRY(rank_theirs(q, one, &place, &count));
        if (count != alike) return doubt(q, mine, one);
        if (place == rank) mine->other = i;
    }
    return TUTTI_OK;
}

/* Do names that say their order contradict the net's, or do gaps? */
static tutti_status check_order(const question *q)
{
    int last = -1;
    for (int i = 0; i < q->ours.count; i++) {
        const module *a = &q->ours.modules[i];
        if (a->other >= 0 && a->place > last) last = a->place;
        for (int k = 0; a->other >= 0 && k < i; k++) {
            const module *b = &q->ours.modules[k];
            if (b->other < 0) continue;
            const int order = order_of(&q->theirs.modules[a->other], &q->theirs.modules[b->other]);
            if (order && (order < 0) != (a->place < b->place)) return doubt(q, a, b);
        }
    }
    for (int i = 0; i < q->ours.count; i++) {
        const module *a = &q->ours.modules[i];
        if (a->other < 0 && a->place < last)
            return tutti_fail(TUTTI_DATA,
                              "%s: its names are not those of %s, and nothing in it looks like "
                              "layer %.*s (%s): give the names in a file for --rename "
                              "(doc/FINETUNING.md)",
                              q->path, q->net, tutti_match_stem(name_of(a)), name_of(a), a->look);
    }
    if (last >= 0) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "%s: none of its tensors fits %s, by name or by shape", q->path,
                      q->net);
}

static void take(const question *q, tutti_match *out)
{
    for (int i = 0; i < out->count; i++) out->tensor[i] = -1;
    for (int i = 0; i < q->ours.count; i++) {
        const module *a = &q->ours.modules[i];
        if (a->other < 0) continue;
        const module *b = &q->theirs.modules[a->other];
        for (int k = 0; k < a->count; k++)
            for (int l = 0; l < b->count; l++)
                if (!strcmp(strrchr(a->tensors[k]->name, '.'), strrchr(b->tensors[l]->name, '.')))
                    out->tensor[a->numbers[k]] = b->numbers[l];
    }
}

tutti_status tutti_match_look(tutti_match *out, const tutti_safetensors_layout *want,
                              const char *net, const tutti_safetensors *file, const char *path)
{
    question q = {.net = net, .path = path};
    tutti_status s = init_side(&q.ours, out->count);
    if (s == TUTTI_OK) s = init_side(&q.theirs, tutti_safetensors_count(file));
    if (s != TUTTI_OK) goto out;
    for (int i = 0; i < out->count; i++)
        add_tensor(&q.ours, tutti_safetensors_layout_tensor(want, i), i);
    for (int i = 0; i < tutti_safetensors_count(file); i++)
        add_tensor(&q.theirs, &tutti_safetensors_tensor(file, i)->spec, i);
    find_modules(&q.ours);
    find_modules(&q.theirs);
    for (int i = 0; s == TUTTI_OK && i < q.ours.count; i++) s = find_other(&q, &q.ours.modules[i]);
    if (s == TUTTI_OK) s = check_order(&q);
    if (s == TUTTI_OK) take(&q, out);
    out->by_look = true;
out:
    deinit_side(&q.ours);
    deinit_side(&q.theirs);
    return s;
}
