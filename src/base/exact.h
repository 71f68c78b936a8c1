/* Sums of doubles without any rounding, so that no order of adding can show: a number is cut into
 * pieces of 32 bits, each added to the word of its weight. Words are plain int64_t, so sums of
 * several ranks are added word by word. Good for 2^30 terms.
 *
 * (Kulisch and Miranker, "The arithmetic of the digital computer: a new approach", 1986.) */
#ifndef TUTTI_BASE_EXACT_H
#define TUTTI_BASE_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* Word i counts 2^(32 i - 1074), the least of which is the smallest double. */
enum { TUTTI_EXACT_WORDS = 68 };

/* 'term' is finite; words are 0 at first. */
void tutti_exact_add(int64_t words[TUTTI_EXACT_WORDS], double term);

/* The sum, within one unit in the last place. */
double tutti_exact_value(const int64_t words[TUTTI_EXACT_WORDS]);

#endif
