#include "checkpoint/tally.h"

#include <string.h>

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014): each bit of x changes half of the bits. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t tutti_tally(uint64_t place, const void *numbers, size_t count)
{
    const char *at = numbers;
    uint64_t tally = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t number;
        memcpy(&number, at + i * sizeof number, sizeof number);
        tally += mix((place + i + 1) * UINT64_C(0x9e3779b97f4a7c15) + number);
    }
    return tally;
}
