/* The samples that an evaluation found worst, by their loss: what people look at first, for they
 * are hard, odd, or labelled wrongly. The same ones for any number of ranks. */
#ifndef TUTTI_TRAIN_WORST_H
#define TUTTI_TRAIN_WORST_H

#include <stdint.h>

enum { TUTTI_MOST_WORST = 12 };

typedef struct tutti_bad_answer {
    double loss; /* NaN is worse than any number */
    int64_t id;  /* in its split */
    int32_t truth,
        answer;     /* classes by the net's outputs; -1: it does not tell classes of samples */
    float sure;     /* the answer's probability */
    float of_truth; /* that of the truth */
} tutti_bad_answer;

typedef struct tutti_worst {
    tutti_bad_answer list[TUTTI_MOST_WORST]; /* the worst first, of equal ones the first id */
    int64_t count;
} tutti_worst;

void tutti_worst_add(tutti_worst *worst, const tutti_bad_answer *answer);
void tutti_worst_merge(tutti_worst *worst, const tutti_worst *other);

#endif
