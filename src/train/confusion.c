#include "train/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { LISTED = 10, LABEL_BYTES = 24 };

static const char *label(char out[LABEL_BYTES], const char *const *names, int class)
{
    if (names && names[class]) snprintf(out, LABEL_BYTES, "%s", names[class]);
    else snprintf(out, LABEL_BYTES, "%d", class);
    return out;
}

static int64_t row_sum(const int64_t *counts, int classes, int truth)
{
    int64_t sum = 0;
    for (int c = 0; c < classes; c++) sum += counts[(size_t)truth * (size_t)classes + (size_t)c];
    return sum;
}

/* No sample is of the class, and none was taken for it. */
static bool is_unseen(const int64_t *counts, int classes, int class)
{
    int64_t taken = 0;
    for (int t = 0; t < classes; t++) taken += counts[(size_t)t * (size_t)classes + (size_t) class];
    return !taken && !row_sum(counts, classes, class);
}

static double percent(int64_t part, int64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static int widest_label(const char *const *names, int classes)
{
    int width = 5; /* "truth" */
    for (int c = 0; c < classes; c++) {
        char text[LABEL_BYTES];
        const int n = (int)strlen(label(text, names, c));
        if (n > width) width = n;
    }
    return width;
}

static int widest_count(const int64_t *counts, int classes)
{
    int width = 2;
    for (int64_t i = 0; i < (int64_t)classes * classes; i++) {
        const int n = snprintf(NULL, 0, "%lld", (long long)counts[i]);
        if (n > width) width = n;
    }
    return width;
}

static void print_row(FILE *stream, const int64_t *counts, int classes, int truth, int width)
{
    const int64_t *row = counts + (size_t)truth * (size_t)classes;
    for (int c = 0; c < classes; c++) {
        if (is_unseen(counts, classes, c)) continue;
        if (row[c]) fprintf(stream, "%*lld", width, (long long)row[c]);
        else fprintf(stream, "%*s", width, ".");
    }
    fprintf(stream, " | %5.1f %%\n", percent(row[truth], row_sum(counts, classes, truth)));
}

static void print_table(FILE *stream, const int64_t *counts, int classes, const char *const *names)
{
    const int first = widest_label(names, classes), width = widest_count(counts, classes) + 1;
    fprintf(stream, "  %-*s |", first, "truth");
    for (int c = 0; c < classes; c++)
        if (!is_unseen(counts, classes, c)) fprintf(stream, "%*d", width, c);
    fprintf(stream, " | right\n");
    for (int t = 0; t < classes; t++) {
        char text[LABEL_BYTES];
        if (is_unseen(counts, classes, t)) continue;
        fprintf(stream, "  %-*s |", first, label(text, names, t));
        print_row(stream, counts, classes, t, width);
    }
}

typedef struct confusion {
    int truth, answer;
    int64_t count;
} confusion;

/* Keeps 'top' sorted by count, most first; of equals the first found stays first. */
static void insert(confusion top[LISTED], confusion x)
{
    for (int i = 0; i < LISTED; i++)
        if (x.count > top[i].count) {
            const confusion lower = top[i];
            top[i] = x;
            x = lower;
        }
}

static void print_most_confused(FILE *stream, const int64_t *counts, int classes,
                                const char *const *names)
{
    confusion top[LISTED] = {{0}};
    for (int t = 0; t < classes; t++)
        for (int a = 0; a < classes; a++)
            if (t != a)
                insert(top, (confusion){t, a, counts[(size_t)t * (size_t)classes + (size_t)a]});
    fprintf(stream, "  most often confused:\n");
    for (int i = 0; i < LISTED && top[i].count; i++) {
        char truth[LABEL_BYTES], answer[LABEL_BYTES];
        fprintf(stream, "  %s taken for %s: %lld times, %.1f %%\n",
                label(truth, names, top[i].truth), label(answer, names, top[i].answer),
                (long long)top[i].count,
                percent(top[i].count, row_sum(counts, classes, top[i].truth)));
    }
}

void tutti_confusion_print(FILE *stream, const int64_t *counts, int classes,
                           const char *const *names, int widest)
{
    if (!counts)
        fprintf(stream, "  no table of confusions: %d classes are more than %d\n", classes,
                (int)TUTTI_CONFUSION_MOST);
    else if (classes <= widest) print_table(stream, counts, classes, names);
    else print_most_confused(stream, counts, classes, names);
}
