/* The line of a terminal that shows how far something has come and is rewritten:
 *
 *   reading [=====>     ] 250/1000
 *
 * as wide as the terminal is just then: where there is little room, first the bar goes, then what
 * stands at the end. Coloured, unless NO_COLOR is set or TERM is dumb. */
#ifndef TUTTI_BASE_BAR_H
#define TUTTI_BASE_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TUTTI_BAR_BYTES = 512, TUTTI_BAR_NARROWEST = 8 };

/* The width of the terminal that the stream is; 0: it is none, or one too narrow for anything. */
int tutti_bar_columns(FILE *stream);
bool tutti_bar_may_colour(void);

/* Leaves out values from the end, each begun by " | ", until the line is no wider than 'most'. */
void tutti_bar_shorten(char line[TUTTI_BAR_BYTES], int most);

/* 'name', a bar that takes what room the values leave, and the values. */
void tutti_bar_compose(char line[TUTTI_BAR_BYTES], int columns, const char *name, double part,
                       const char *values);
void tutti_bar_draw(FILE *stream, const char *line, bool colour);

/* Takes the line away: of a terminal that was made narrower it takes several. */
void tutti_bar_clear(FILE *stream, const char *line, int columns);

/* ---- something that takes long, by itself ---- */

/* Begins as zeros but for the stream; NULL: silence. */
typedef struct tutti_bar {
    FILE *stream; /* borrowed */
    double begun, shown;
    char line[TUTTI_BAR_BYTES];
} tutti_bar;

/* It is called 'what' and has come to 'done' of 'total', which ends it and takes it away. What
 * is over within a second is not shown. Off a terminal it is a line every ten seconds. */
void tutti_bar_show(tutti_bar *bar, const char *what, int64_t done, int64_t total);

#endif
