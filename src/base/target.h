/* What a net's outputs are compared with, as it lies in memory: words of four bytes, sample after
 * sample. A net may have several targets, numbered from 0; losses name theirs. */
#ifndef TUTTI_BASE_TARGET_H
#define TUTTI_BASE_TARGET_H

#include <stddef.h>
#include <stdint.h>

enum {
    TUTTI_MOST_TARGETS = 4,
    TUTTI_IGNORED = -1 /* instead of a pixel's class: it does not count */
};

typedef enum tutti_target_form {
    TUTTI_TARGET_CLASS,  /* int32: the sample's class */
    TUTTI_TARGET_PIXELS, /* int32 [h][w]: each pixel's class, or TUTTI_IGNORED */
    TUTTI_TARGET_VALUES, /* floats as outputs lie, [c/16][h][w][16], what fills up is zero */
    TUTTI_TARGET_SHARES  /* likewise, from 0 to 1: is the sample of that class? */
} tutti_target_form;

typedef struct tutti_target {
    tutti_target_form form;
    int c, h, w; /* of the output: c classes, or values of a pixel */
} tutti_target;

static inline int tutti_target_is_values(const tutti_target *t)
{
    return t->form == TUTTI_TARGET_VALUES || t->form == TUTTI_TARGET_SHARES;
}

/* Words of a sample. */
static inline size_t tutti_target_words(const tutti_target *t)
{
    const size_t pixels = (size_t)t->h * (size_t)t->w;
    if (tutti_target_is_values(t)) return ((size_t)t->c + 15) / 16 * 16 * pixels;
    return t->form == TUTTI_TARGET_PIXELS ? pixels : 1;
}

#endif
