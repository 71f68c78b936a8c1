/* The row itself: what its bodies, compiled beside this one, contribute. */
#include "kernel/isa/isa.h"

#include "base/cpu.h"
#include "kernel/bf16_kernels.h"
#include "kernel/conv_kernels.h"
#include "kernel/ops_kernels.h"
#include "kernel/table.h"

#define TEXT_OF(name) #name
#define TEXT(name)    TEXT_OF(name)

double LIKE_NAME(fma_rounds)(long rounds, float *sink);
void LIKE_NAME(stream_read)(const float *x, size_t count, float *sink);
void LIKE_NAME(stream_write)(float *y, size_t count, float value);
void LIKE_NAME(stream_copy)(float *y, const float *x, size_t count);

extern const tutti_conv_tiles LIKE_NAME(conv_tiles);
extern const tutti_conv_gradient_tiles LIKE_NAME(conv_gradient_tiles);
extern const tutti_winograd_kernels LIKE_NAME(winograd);
extern const tutti_winograd4_kernels LIKE_NAME(winograd4);
extern const tutti_conv_lanes LIKE_NAME(conv_lanes)[];
static const tutti_conv_kernels conv = {&LIKE_NAME(conv_tiles), &LIKE_NAME(conv_gradient_tiles),
                                        &LIKE_NAME(winograd), &LIKE_NAME(winograd4),
                                        LIKE_NAME(conv_lanes)};

extern const tutti_bf16_kernels NAME(bf16);
extern const struct tutti_fc_kernels LIKE_NAME(fc);

#define X(type, name) type LIKE_NAME(op_##name);
TUTTI_OPS_MAP(X)
#undef X
static const tutti_ops_kernels ops = {
#define X(type, name) .name = LIKE_NAME(op_##name),
    TUTTI_OPS_MAP(X)
#undef X
};

extern const tutti_kernels NAME(row);
const tutti_kernels NAME(row) = {
    .name = TEXT(ISA),
    .needs = NEEDS,
    .vlen = VLEN,
    .fma_rounds = LIKE_NAME(fma_rounds),
    .stream_read = LIKE_NAME(stream_read),
    .stream_write = LIKE_NAME(stream_write),
    .stream_copy = LIKE_NAME(stream_copy),
    .conv = &conv,
    .fc = &LIKE_NAME(fc),
    .ops = &ops,
    .bf16 = &NAME(bf16),
};
