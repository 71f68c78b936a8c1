/* The memory's limit: long arrays read, written and copied, nothing else. Stores go past the
 * caches, as a store that first fetches its line would move it twice. */
#include <stddef.h>

#include "kernel/isa/isa.h"

enum { STEP = 64 }; /* floats; every count is a multiple */

void NAME(stream_read)(const float *x, size_t count, float *sink);
void NAME(stream_write)(float *y, size_t count, float value);
void NAME(stream_copy)(float *y, const float *x, size_t count);

void NAME(stream_read)(const float *x, size_t count, float *sink)
{
    enum { CHAINS = STEP / VLEN < 8 ? STEP / VLEN : 8 };
    vf chain[CHAINS];
    UNROLL(8)
    for (int i = 0; i < CHAINS; i++) chain[i] = vf_zero();
    for (size_t at = 0; at < count; at += CHAINS * VLEN) {
        UNROLL(8)
        for (int i = 0; i < CHAINS; i++) chain[i] = vf_add(chain[i], vf_load(x + at + i * VLEN));
    }
    vf sum = vf_zero();
    UNROLL(8)
    for (int i = 0; i < CHAINS; i++) sum = vf_add(sum, chain[i]);
    float lanes[VLEN];
    vf_store(lanes, sum);
    *sink = lanes[0];
}

void NAME(stream_write)(float *y, size_t count, float value)
{
    const vf v = vf_set1(value);
    for (size_t at = 0; at < count; at += STEP) {
        UNROLL(8)
        for (int i = 0; i < STEP; i += VLEN) vf_stream(y + at + i, v);
    }
}

void NAME(stream_copy)(float *y, const float *x, size_t count)
{
    for (size_t at = 0; at < count; at += STEP) {
        UNROLL(8)
        for (int i = 0; i < STEP; i += VLEN) vf_stream(y + at + i, vf_load(x + at + i));
    }
}
