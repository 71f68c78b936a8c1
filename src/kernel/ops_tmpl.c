/* The row's table of ops. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

#define X(type, name) type NAME(op_##name);
TUTTI_OPS_MAP(X)
#undef X

extern const tutti_ops_kernels NAME(ops);

const tutti_ops_kernels NAME(ops) = {
#define X(type, name) .name = NAME(op_##name),
    TUTTI_OPS_MAP(X)
#undef X
};
