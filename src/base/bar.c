#define _GNU_SOURCE
#include "base/bar.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

enum { WIDEST_BAR = 30, NARROWEST_TERMINAL = 20 };

static const double patience = 1, rewritten = 0.1, repeated = 10; /* seconds */

/* A terminal without a width is none: mpirun gives its ranks such a one even when its own output
 * goes to a file. */
int tutti_bar_columns(FILE *stream)
{
    struct winsize size = {0};
    if (!isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return 0;
    if (size.ws_col < NARROWEST_TERMINAL) return 0;
    return size.ws_col < TUTTI_BAR_BYTES ? size.ws_col : TUTTI_BAR_BYTES - 1;
}

bool tutti_bar_may_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && !(term && !strcmp(term, "dumb"));
}

void tutti_bar_shorten(char line[TUTTI_BAR_BYTES], int most)
{
    while ((int)strlen(line) > most) {
        char *last = strrchr(line, '|');
        if (!last || last - line < 2) break;
        last[-1] = 0;
    }
    if ((int)strlen(line) > most) line[most] = 0;
}

void tutti_bar_compose(char line[TUTTI_BAR_BYTES], int columns, const char *name, double part,
                       const char *values)
{
    char bar[WIDEST_BAR + 4] = "";
    const int room = columns - 1 - (int)(strlen(name) + strlen(values)) - 3;
    const int width = room < WIDEST_BAR ? room : WIDEST_BAR, full = (int)(part * width);
    const bool has_bar = room >= TUTTI_BAR_NARROWEST;
    if (has_bar) {
        for (int i = 0; i < width; i++) bar[i + 2] = i < full ? '=' : i == full ? '>' : ' ';
        bar[0] = ' ', bar[1] = '[', bar[width + 2] = ']';
    }
    /* the bar stands for the stroke of the first value */
    snprintf(line, TUTTI_BAR_BYTES, "%s%s%s", name, bar, values + (has_bar ? 2 : 0));
    tutti_bar_shorten(line, columns - 1);
}

void tutti_bar_draw(FILE *stream, const char *line, bool colour)
{
    const char *begin = strchr(line, '['), *end = strchr(line, ']');
    if (colour && begin && end)
        fprintf(stream, "%.*s\033[32m%.*s\033[0m%s", (int)(begin - line), line,
                (int)(end + 1 - begin), begin, end + 1);
    else fputs(line, stream);
}

void tutti_bar_clear(FILE *stream, const char *line, int columns)
{
    const int above = ((int)strlen(line) - 1) / columns;
    if (!*line) return;
    if (above > 0) fprintf(stream, "\033[%dA\r\033[J", above);
    else fputs("\r\033[K", stream);
}

/* ---- a task ---- */

static void write_line(tutti_bar *t, const char *what, int64_t done, int64_t total)
{
    fprintf(t->stream, "%s | %lld/%lld\n", what, (long long)done, (long long)total);
}

static void rewrite_line(tutti_bar *t, int columns, const char *what, int64_t done, int64_t total)
{
    char values[64];
    tutti_bar_clear(t->stream, t->line, columns);
    t->line[0] = 0;
    if (done >= total) return;
    snprintf(values, sizeof values, " | %lld/%lld", (long long)done, (long long)total);
    tutti_bar_compose(t->line, columns, what, (double)done / (double)total, values);
    tutti_bar_draw(t->stream, t->line, tutti_bar_may_colour());
}

void tutti_bar_show(tutti_bar *t, const char *what, int64_t done, int64_t total)
{
    if (!t->stream) return;
    const double now = tutti_now();
    const int columns = tutti_bar_columns(t->stream);
    const bool ends = done >= total;
    if (!done || !(t->begun > 0)) t->begun = t->shown = now;
    if (ends && !t->line[0]) return;
    if (!ends && (now - t->begun < patience || now - t->shown < (columns ? rewritten : repeated)))
        return;
    t->shown = now;
    if (columns) rewrite_line(t, columns, what, done, total);
    else if (!ends) write_line(t, what, done, total);
    fflush(t->stream);
}
