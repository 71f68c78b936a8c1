/* Included first by every kernel body (*_tmpl.c), which is compiled once per instruction set with
 * TUTTI_ISA_H naming the vocabulary. NAME(conv) becomes tutti_conv_avx512 and so on. */
#ifndef TUTTI_ISA_H
#error "TUTTI_ISA_H must name the vocabulary header"
#endif
#include <stdbool.h>
#include TUTTI_ISA_H

#define NAME_PASTE(name, isa)  tutti_##name##_##isa
#define NAME_EXPAND(name, isa) NAME_PASTE(name, isa)
#define NAME(name)             NAME_EXPAND(name, ISA)
/* What a row does not compile itself it has from the one it is LIKE. */
#ifndef LIKE
#define LIKE ISA
#endif
#define LIKE_NAME(name) NAME_EXPAND(name, LIKE)

/* gcc 12 keeps an array of accumulators in registers only when the function is inlined and every
 * loop over the array is unrolled; else each one goes to the stack and back (42 instead of 113
 * GFLOP/s on a 64x64x64 product). */
#define INLINE       static inline __attribute__((always_inline))
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define UNROLL(count) PRAGMA(clang loop unroll_count(count))
#else
#define UNROLL(count) PRAGMA(GCC unroll count)
#endif

/* The entries of a list of tiles: UP_TO(n, X, a) is X(a, 1) .. X(a, n). */
#define UP_TO(n, X, a)       UP_TO_PASTE(n, X, a)
#define UP_TO_PASTE(n, X, a) UP_TO_##n(X, a)
// clang-format off
#define UP_TO_1(X, a)  X(a, 1)
#define UP_TO_2(X, a)  UP_TO_1(X, a) X(a, 2)
#define UP_TO_3(X, a)  UP_TO_2(X, a) X(a, 3)
#define UP_TO_4(X, a)  UP_TO_3(X, a) X(a, 4)
#define UP_TO_5(X, a)  UP_TO_4(X, a) X(a, 5)
#define UP_TO_6(X, a)  UP_TO_5(X, a) X(a, 6)
#define UP_TO_7(X, a)  UP_TO_6(X, a) X(a, 7)
#define UP_TO_8(X, a)  UP_TO_7(X, a) X(a, 8)
#define UP_TO_9(X, a)  UP_TO_8(X, a) X(a, 9)
#define UP_TO_10(X, a) UP_TO_9(X, a) X(a, 10)
#define UP_TO_11(X, a) UP_TO_10(X, a) X(a, 11)
#define UP_TO_12(X, a) UP_TO_11(X, a) X(a, 12)
#define UP_TO_13(X, a) UP_TO_12(X, a) X(a, 13)
#define UP_TO_14(X, a) UP_TO_13(X, a) X(a, 14)
// clang-format on

/* A store, past the caches or not. */
INLINE void vf_put(float *p, vf x, bool stream)
{
    if (stream) vf_stream(p, x);
    else vf_store(p, x);
}

/* A load from a long array. It reads ahead: the processors' own prefetchers end at every page of
 * 4096 bytes and stay closer the more there is to compute; without this, adding two arrays is
 * 8 % slower, sigmoid 20 %. */
enum { TAKE_AHEAD = 1024 };
INLINE vf vf_take(const float *p)
{
    __builtin_prefetch(p + TAKE_AHEAD, 0, 3);
    return vf_load(p);
}

/* What a pointer points at is not remembered beyond here, so that nothing is kept in registers for
 * a later round of a loop. */
#define FORGET(pointer) __asm__("" : "+r"(pointer))
