/* The row itself: what its bodies, compiled beside this one, contribute. */
#include "kernel/isa/isa.h"

#include "base/cpu.h"
#include "kernel/conv_kernels.h"
#include "kernel/ops_kernels.h"
#include "kernel/table.h"

#define TEXT_OF(name) #name
#define TEXT(name)    TEXT_OF(name)

double NAME(fma_rounds)(long rounds, float *sink);
void NAME(stream_read)(const float *x, size_t count, float *sink);
void NAME(stream_write)(float *y, size_t count, float value);
void NAME(stream_copy)(float *y, const float *x, size_t count);

extern const tutti_conv_tiles NAME(conv_tiles);
extern const tutti_conv_gradient_tiles NAME(conv_gradient_tiles);
extern const tutti_winograd_kernels NAME(winograd);
extern const tutti_winograd4_kernels NAME(winograd4);
extern const tutti_conv_lanes NAME(conv_lanes)[];
static const tutti_conv_kernels conv = {&NAME(conv_tiles), &NAME(conv_gradient_tiles),
                                        &NAME(winograd), &NAME(winograd4), NAME(conv_lanes)};

extern const struct tutti_fc_kernels NAME(fc);

#define X(type, name) type NAME(op_##name);
TUTTI_OPS_MAP(X)
#undef X
static const tutti_ops_kernels ops = {
#define X(type, name) .name = NAME(op_##name),
    TUTTI_OPS_MAP(X)
#undef X
};

extern const tutti_kernels NAME(row);
const tutti_kernels NAME(row) = {
    .name = TEXT(ISA),
    .needs = NEEDS,
    .vlen = VLEN,
    .fma_rounds = NAME(fma_rounds),
    .stream_read = NAME(stream_read),
    .stream_write = NAME(stream_write),
    .stream_copy = NAME(stream_copy),
    .conv = &conv,
    .fc = &NAME(fc),
    .ops = &ops,
};
