/* A tally of the numbers of a file: a sum of 64 bits in which every number counts with its place.
 * Who adds which numbers in which order does not matter, so each rank tallies what it writes, and
 * the sum of theirs is the tally of the file. Two different files have the same one by a chance of
 * 2^-64; it is no defence against malice, which SHA256SUMS, next to the file, is not either. */
#ifndef TUTTI_CHECKPOINT_TALLY_H
#define TUTTI_CHECKPOINT_TALLY_H

#include <stddef.h>
#include <stdint.h>

/* Of 'count' numbers of 4 bytes; the first one has place 'place' among those of the file. */
uint64_t tutti_tally(uint64_t place, const void *numbers, size_t count);

#endif
