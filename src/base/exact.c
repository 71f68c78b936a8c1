#include "base/exact.h"

#include <math.h>
#include <string.h>

enum { PIECE = 32, SMALLEST = -1074, DIGITS = 53 };

static const int64_t RADIX = (int64_t)1 << PIECE;

void tutti_exact_add(int64_t words[TUTTI_EXACT_WORDS], double term)
{
    int exponent;
    const double fraction = frexp(fabs(term), &exponent);
    if (term == 0) return;
    int place = exponent - DIGITS - SMALLEST;
    const int below = place < 0 ? -place : 0; /* a subnormal one has fewer digits */
    const uint64_t whole = (uint64_t)ldexp(fraction, DIGITS) >> below;
    place += below;
    const int shift = place % PIECE;
    const uint64_t low = (whole & (RADIX - 1)) << shift, high = (whole >> PIECE) << shift;
    const int64_t sign = term < 0 ? -1 : 1;
    int64_t *to = words + place / PIECE;
    to[0] += sign * (int64_t)(low & (RADIX - 1));
    to[1] += sign * (int64_t)((low >> PIECE) + (high & (RADIX - 1)));
    to[2] += sign * (int64_t)(high >> PIECE);
}

/* Every word but the last becomes one of 0 .. 2^32 - 1. */
static void carry(int64_t words[TUTTI_EXACT_WORDS])
{
    for (int i = 0; i + 1 < TUTTI_EXACT_WORDS; i++) {
        const int64_t rest = words[i] & (RADIX - 1);
        words[i + 1] += (words[i] - rest) / RADIX;
        words[i] = rest;
    }
}

double tutti_exact_value(const int64_t words[TUTTI_EXACT_WORDS])
{
    int64_t w[TUTTI_EXACT_WORDS];
    memcpy(w, words, sizeof w);
    carry(w);
    const bool negative = w[TUTTI_EXACT_WORDS - 1] < 0;
    for (int i = 0; negative && i < TUTTI_EXACT_WORDS; i++) w[i] = -w[i];
    if (negative) carry(w);
    int top = TUTTI_EXACT_WORDS - 1;
    while (top > 0 && !w[top]) top--;
    double sum = 0; /* three words have more digits than a double */
    for (int i = top < 3 ? 0 : top - 3; i <= top; i++)
        sum += ldexp((double)w[i], PIECE * i + SMALLEST);
    return negative ? -sum : sum;
}
