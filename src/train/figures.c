/* What a test found, class by class. */
#include "train/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "format/json.h"

enum { WIDEST = 20, DIGITS = 9 };

/* Of a class. Without samples, or without answers, there is nothing to be right about: 0. */
typedef struct figures {
    double precision, recall, f1;
} figures;

static double part(int64_t of, int64_t all)
{
    return all ? (double)of / (double)all : 0;
}

static figures figures_of(const tutti_class_count *c)
{
    return (figures){.precision = part(c->right, c->answered),
                     .recall = part(c->right, c->support),
                     .f1 = part(2 * c->right, c->answered + c->support)};
}

/* ---- for people ---- */

typedef struct ranked {
    int class;
    double f1;
} ranked;

static int by_f1(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->f1 != y->f1 ? (x->f1 > y->f1) - (x->f1 < y->f1) : x->class - y->class;
}

static void print_class(FILE *out, const char *name, const tutti_class_count *count)
{
    const figures f = figures_of(count);
    fprintf(out, "  %-23.23s | %6.1f %% | %6.1f %% | %6.1f %% | %lld\n", name, 100 * f.precision,
            100 * f.recall, 100 * f.f1, (long long)count->support);
}

/* All classes, or the worst by F1 of those that have samples. */
static tutti_status print_classes(const tutti_run *run, const tutti_class_count *counts,
                                  int classes)
{
    ranked *order = NULL;
    int shown = 0;
    FILE *out = run->options->show;
    TUTTI_TRY(tutti_alloc(&order, (size_t)classes, sizeof *order));
    for (int c = 0; c < classes; c++)
        if (counts[c].support || (classes <= WIDEST && counts[c].answered))
            order[shown++] = (ranked){c, figures_of(&counts[c]).f1};
    if (shown > WIDEST) qsort(order, (size_t)shown, sizeof *order, by_f1);
    fprintf(out, "  %-23s | %8s | %8s | %8s | samples\n",
            shown > WIDEST ? "the worst by F1" : "class", "precision", "recall", "F1");
    for (int i = 0; i < shown && i < WIDEST; i++)
        print_class(out, tutti_run_class_name(run, order[i].class), &counts[order[i].class]);
    tutti_free(order);
    return TUTTI_OK;
}

static tutti_status print(const tutti_run *run, const tutti_evaluation *e,
                          const tutti_tables *tables)
{
    const int classes = tutti_net_classes(run->net);
    const char **names = NULL;
    TUTTI_TRY(tutti_alloc(&names, (size_t)classes, sizeof *names));
    for (int i = 0; i < classes; i++) names[i] = tutti_run_class_name(run, i);
    tutti_confusion_print(run->options->show, tables->confusion, classes, names, WIDEST);
    tutti_free(names);
    TUTTI_TRY(print_classes(run, tables->classes, classes));
    fprintf(run->options->show, "%lld samples: top-1 %.2f %%, top-5 %.2f %%, loss %.6f\n",
            (long long)e->samples, 100 * e->top1, 100 * e->top5, e->loss);
    return TUTTI_OK;
}

/* ---- for programs ---- */

static void write_class(tutti_string *s, const char *name, const tutti_class_count *count)
{
    const figures f = figures_of(count);
    tutti_string_append(s, "{", 1);
    tutti_json_field_string(s, "name", name);
    tutti_json_field_real(s, "precision", f.precision, DIGITS);
    tutti_json_field_real(s, "recall", f.recall, DIGITS);
    tutti_json_field_real(s, "f1", f.f1, DIGITS);
    tutti_json_field_int(s, "support", count->support);
    tutti_string_append(s, "}", 1);
}

static void write_confusion(tutti_string *s, const int64_t *confusion, int classes)
{
    tutti_json_key(s, "confusion");
    tutti_string_append(s, "[", 1);
    for (int t = 0; t < classes; t++) {
        tutti_string_printf(s, t ? ",[" : "[");
        for (int c = 0; c < classes; c++)
            tutti_string_printf(s, c ? ",%lld" : "%lld",
                                (long long)confusion[(int64_t)t * classes + c]);
        tutti_string_append(s, "]", 1);
    }
    tutti_string_append(s, "]", 1);
}

static void write(tutti_string *s, const tutti_run *run, const tutti_evaluation *e,
                  const tutti_tables *tables)
{
    const int classes = tutti_run_classes(run);
    tutti_string_append(s, "{", 1);
    tutti_json_field_int(s, "samples", e->samples);
    tutti_json_field_real(s, "loss", e->loss, DIGITS);
    tutti_json_field_real(s, "top1", e->top1, DIGITS);
    tutti_json_field_real(s, "top5", e->top5, DIGITS);
    tutti_json_key(s, "classes");
    tutti_string_append(s, "[", 1);
    for (int c = 0; c < classes; c++) {
        if (c) tutti_string_append(s, ",", 1);
        write_class(s, tutti_run_class_name(run, c), &tables->classes[c]);
    }
    tutti_string_append(s, "]", 1);
    if (tables->confusion) write_confusion(s, tables->confusion, tutti_net_classes(run->net));
    tutti_string_append(s, "}", 1);
}

tutti_status tutti_figures_show(const tutti_run *run, const tutti_evaluation *e,
                                const tutti_tables *tables)
{
    tutti_string s = {0};
    if (run->me.rank || !run->options->show) return TUTTI_OK;
    if (!run->options->json) return print(run, e, tables);
    write(&s, run, e, tables);
    const tutti_status status = tutti_string_status(&s);
    if (status == TUTTI_OK) fprintf(run->options->show, "%s\n", s.data);
    tutti_string_deinit(&s);
    return status;
}
