/* Planes of channels into blocks of 16 channels, and back: squares of VLEN pixels by VLEN channels,
 * transposed in registers. Planes are often a power of two apart, where the first-level cache has
 * room for no more than a line of each; so a line of a plane is read, and written, at once. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK, AHEAD = 64 }; /* floats of a plane fetched ahead, into the next cache */

tutti_block_plane_fn NAME(op_block_plane);
tutti_unblock_plane_fn NAME(op_unblock_plane);

/* 'channels' of VLEN are there, from pixel 'at' on; the others become zero. */
INLINE void block_square(size_t pixels, int channels, const float *plane, size_t at, float *block,
                         bool stream)
{
    vf v[VLEN];
    UNROLL(16)
    for (int i = 0; i < VLEN; i++) {
        const float *from = plane + (size_t)i * pixels + at;
        if (i < channels) __builtin_prefetch(from + AHEAD, 0, 2);
        v[i] = i < channels ? vf_load(from) : vf_zero();
    }
    vf_transpose(v);
    UNROLL(16)
    for (size_t i = 0; i < VLEN; i++) vf_put(block + (at + i) * B, v[i], stream);
}

INLINE void block_all(size_t pixels, int lanes, const float *planes, float *block, bool stream)
{
    const size_t whole = pixels / VLEN * VLEN;
    for (size_t at = 0; at < whole; at += VLEN)
        for (int l = 0; l < B; l += VLEN) {
            const float *plane = planes + (size_t)(l < lanes ? l : 0) * pixels;
            if (lanes - l >= VLEN) block_square(pixels, VLEN, plane, at, block + l, stream);
            else block_square(pixels, lanes - l, plane, at, block + l, stream);
        }
    for (size_t at = whole; at < pixels; at++)
        for (int l = 0; l < B; l++)
            block[at * B + (size_t)l] = l < lanes ? planes[(size_t)l * pixels + at] : 0.0f;
}

void NAME(op_block_plane)(size_t pixels, int lanes, const float *planes, float *block, bool stream)
{
    if (stream) block_all(pixels, lanes, planes, block, true);
    else block_all(pixels, lanes, planes, block, false);
}

INLINE void unblock_square(size_t pixels, int channels, const float *block, float *plane, size_t at,
                           bool stream)
{
    vf v[VLEN];
    UNROLL(16)
    for (size_t i = 0; i < VLEN; i++) v[i] = vf_take(block + (at + i) * B);
    vf_transpose(v);
    UNROLL(16)
    for (int i = 0; i < VLEN; i++)
        if (i < channels) vf_put(plane + (size_t)i * pixels + at, v[i], stream);
}

INLINE void unblock_all(size_t pixels, int lanes, const float *block, float *planes, bool stream)
{
    const size_t whole = pixels / VLEN * VLEN;
    for (size_t at = 0; at < whole; at += VLEN)
        for (int l = 0; l < lanes; l += VLEN) {
            float *plane = planes + (size_t)l * pixels;
            if (lanes - l >= VLEN) unblock_square(pixels, VLEN, block + l, plane, at, stream);
            else unblock_square(pixels, lanes - l, block + l, plane, at, stream);
        }
    for (size_t at = whole; at < pixels; at++)
        for (int l = 0; l < lanes; l++) planes[(size_t)l * pixels + at] = block[at * B + (size_t)l];
}

void NAME(op_unblock_plane)(size_t pixels, int lanes, const float *block, float *planes,
                            bool stream)
{
    if (stream) unblock_all(pixels, lanes, block, planes, true);
    else unblock_all(pixels, lanes, block, planes, false);
}
