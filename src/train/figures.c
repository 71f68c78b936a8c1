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

static tutti_status print_of_classes(const tutti_run *run, const tutti_tables *tables)
{
    const int classes = tutti_net_classes(run->net);
    const char **names = NULL;
    TUTTI_TRY(tutti_alloc(&names, (size_t)classes, sizeof *names));
    for (int i = 0; i < classes; i++) names[i] = tutti_run_class_name(run, i);
    tutti_confusion_print(run->options->show, tables->confusion, classes, names, WIDEST);
    tutti_free(names);
    return print_classes(run, tables->classes, classes);
}

/* Classes of pixels that there are, or that were said to be. */
static void print_pixels(const tutti_run *run, const tutti_class_count *counts)
{
    FILE *out = run->options->show;
    fprintf(out, "  %-23s | %8s | %8s | %8s | pixels\n", "class", "IoU", "precision", "recall");
    for (int c = 0; c < tutti_net_classes(run->net); c++) {
        const figures f = figures_of(&counts[c]);
        if (!counts[c].support && !counts[c].answered) continue;
        fprintf(out, "  %-23.23s | %6.1f %% | %6.1f %% | %6.1f %% | %lld\n",
                tutti_run_class_name(run, c), 100 * tutti_class_iou(&counts[c]), 100 * f.precision,
                100 * f.recall, (long long)counts[c].support);
    }
}

static void print_outputs(const tutti_run *run, const int64_t *sums)
{
    FILE *out = run->options->show;
    const int outputs = tutti_net_classes(run->net);
    if (outputs < 2) return;
    fprintf(out, "  %-23s | %10s | %10s | %8s\n", "output", "mean error", "RMSE", "R2");
    for (int c = 0; c < outputs && c < WIDEST; c++) {
        const tutti_found f = tutti_judge_output(tutti_run_target(run), sums, c);
        fprintf(out, "  %-23.23s | %10.5g | %10.5g | %8.4f\n", tutti_run_class_name(run, c),
                f.figures[0], f.figures[1], f.figures[2]);
    }
    if (outputs > WIDEST) fprintf(out, "  (%d more: --json has them all)\n", outputs - WIDEST);
}

static void print_targets(const tutti_run *run, const tutti_evaluation *e)
{
    const tutti_net *net = run->net;
    char text[TUTTI_FINDING_TEXT];
    for (int t = 0; t < net->target_count; t++) {
        const bool answers = t == tutti_net_answer(net);
        (void)tutti_judge_text(text, tutti_judge_of(&net->targets[t]), &e->findings[t]);
        fprintf(run->options->show, "%lld samples: %s%s%s\n", (long long)e->samples,
                answers ? "" : net->layers[net->judges[t]].name, answers ? "" : " ", text);
    }
}

static tutti_status print(const tutti_run *run, const tutti_evaluation *e,
                          const tutti_tables *tables)
{
    switch (tutti_run_target(run)->form) {
    case TUTTI_TARGET_CLASS: TUTTI_TRY(print_of_classes(run, tables)); break;
    case TUTTI_TARGET_PIXELS: print_pixels(run, tutti_judge_classes(tables->sums)); break;
    case TUTTI_TARGET_VALUES: print_outputs(run, tables->sums); break;
    case TUTTI_TARGET_SHARES: break;
    }
    print_targets(run, e);
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

static void write_classes(tutti_string *s, const tutti_run *run, const tutti_tables *tables)
{
    const int classes = tutti_run_classes(run);
    tutti_json_key(s, "classes");
    tutti_string_append(s, "[", 1);
    for (int c = 0; c < classes; c++) {
        if (c) tutti_string_append(s, ",", 1);
        write_class(s, tutti_run_class_name(run, c), &tables->classes[c]);
    }
    tutti_string_append(s, "]", 1);
    if (tables->confusion) write_confusion(s, tables->confusion, tutti_net_classes(run->net));
}

static void write_pixels(tutti_string *s, const tutti_run *run, const tutti_class_count *counts)
{
    tutti_json_key(s, "classes");
    tutti_string_append(s, "[", 1);
    for (int c = 0; c < tutti_net_classes(run->net); c++) {
        const figures f = figures_of(&counts[c]);
        tutti_string_append(s, c ? ",{" : "{", c ? 2 : 1);
        tutti_json_field_string(s, "name", tutti_run_class_name(run, c));
        tutti_json_field_real(s, "iou", tutti_class_iou(&counts[c]), DIGITS);
        tutti_json_field_real(s, "precision", f.precision, DIGITS);
        tutti_json_field_real(s, "recall", f.recall, DIGITS);
        tutti_json_field_int(s, "support", counts[c].support);
        tutti_string_append(s, "}", 1);
    }
    tutti_string_append(s, "]", 1);
}

static void write_finding(tutti_string *s, const tutti_judge *judge, const tutti_found *f)
{
    for (int i = 0; i < TUTTI_MOST_FIGURES && judge->figures[i].key; i++)
        tutti_json_field_real(s, judge->figures[i].key, f->figures[i], DIGITS);
}

static void write_outputs(tutti_string *s, const tutti_run *run, const int64_t *sums)
{
    tutti_json_key(s, "outputs");
    tutti_string_append(s, "[", 1);
    for (int c = 0; c < tutti_net_classes(run->net); c++) {
        const tutti_found f = tutti_judge_output(tutti_run_target(run), sums, c);
        tutti_string_append(s, c ? ",{" : "{", c ? 2 : 1);
        tutti_json_field_string(s, "name", tutti_run_class_name(run, c));
        write_finding(s, tutti_run_judge_of_answer(run), &f);
        tutti_string_append(s, "}", 1);
    }
    tutti_string_append(s, "]", 1);
}

/* Targets beside the net's answer, by the names of their losses. */
static void write_others(tutti_string *s, const tutti_run *run, const tutti_evaluation *e)
{
    const tutti_net *net = run->net;
    for (int t = 0; t < net->target_count; t++) {
        if (t == tutti_net_answer(net)) continue;
        tutti_json_key(s, net->layers[net->judges[t]].name);
        tutti_string_append(s, "{", 1);
        tutti_json_field_real(s, "loss", e->findings[t].loss, DIGITS);
        write_finding(s, tutti_judge_of(&net->targets[t]), &e->findings[t]);
        tutti_string_append(s, "}", 1);
    }
}

static void write(tutti_string *s, const tutti_run *run, const tutti_evaluation *e,
                  const tutti_tables *tables)
{
    tutti_string_append(s, "{", 1);
    tutti_json_field_int(s, "samples", e->samples);
    tutti_json_field_real(s, "loss", e->loss, DIGITS);
    write_finding(s, tutti_run_judge_of_answer(run), &e->findings[tutti_net_answer(run->net)]);
    switch (tutti_run_target(run)->form) {
    case TUTTI_TARGET_CLASS: write_classes(s, run, tables); break;
    case TUTTI_TARGET_PIXELS: write_pixels(s, run, tutti_judge_classes(tables->sums)); break;
    case TUTTI_TARGET_VALUES: write_outputs(s, run, tables->sums); break;
    case TUTTI_TARGET_SHARES: break;
    }
    write_others(s, run, e);
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
