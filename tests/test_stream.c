/* Kernels whose stores can bypass the caches give the same bits either way. The drivers choose by
 * size, and few other tests have such sizes. */
#include "rows.h"

#include "base/memory.h"
#include "kernel/ops_kernels.h"

enum { N = 16 * 37 };

typedef struct arrays {
    fenced a, b, mask, plain, streamed;
} arrays;

static arrays create(size_t in, size_t out)
{
    return (arrays){random_array(in, 1, -1.0, 1.0), random_array(in, 2, -1.0, 1.0),
                    random_array(in, 3, -1.0, 1.0), fenced_create(out), fenced_create(out)};
}

static void check_and_destroy(arrays *x, const tutti_kernels *row, const char *what)
{
    const run r = {.exec = {row, NULL}};
    same_bits(&r, what, &x->plain, &x->streamed);
    fenced_destroy(&x->a), fenced_destroy(&x->b), fenced_destroy(&x->mask);
    fenced_destroy(&x->plain), fenced_destroy(&x->streamed);
}

static float *output(arrays *x, int stream)
{
    return stream ? x->streamed.data : x->plain.data;
}

static void check_flat(const tutti_kernels *row, tutti_elementwise_fn *kernel, const char *what)
{
    arrays x = create(N, N);
    for (int stream = 0; stream < 2; stream++) {
        const tutti_elementwise flat = {.a = x.a.data,
                                        .b = x.b.data,
                                        .mask = x.mask.data,
                                        .factor = 0.7f,
                                        .lanes = TUTTI_BLOCK,
                                        .y = output(&x, stream),
                                        .stream = stream};
        kernel(&flat, 0, N);
    }
    check_and_destroy(&x, row, what);
}

static void check_dropout(const tutti_kernels *row)
{
    arrays x = create(N, N);
    const tutti_random_key key = {.seed = 4, .purpose = TUTTI_RANDOM_DROPOUT};
    for (int stream = 0; stream < 2; stream++) {
        const tutti_drop drop = {1u << 31, 2.0f, stream};
        row->ops->drop(&key, &drop, 3, 3 + N / 16, x.a.data, x.mask.data, output(&x, stream));
    }
    check_and_destroy(&x, row, "dropout");
}

static void check_lrn(const tutti_kernels *row)
{
    const tutti_lrn lrn = {5, 1.0f, 0.75f, 1.0f};
    for (int backward = 0; backward < 2; backward++) {
        arrays x = create(N, N);
        tutti_lrn_fn *kernel = backward ? row->ops->lrn_backward : row->ops->lrn_forward;
        for (int stream = 0; stream < 2; stream++)
            kernel(&lrn, 1, N / 16, 0, N / 16, x.a.data, x.b.data, x.mask.data, output(&x, stream),
                   stream);
        check_and_destroy(&x, row, "lrn");
    }
}

static void check_pools(const tutti_kernels *row)
{
    enum { SIDE = 9, IN = SIDE * SIDE * 16, OUT = 4 * 4 * 16 };
    const tutti_pool_shape p = {
        .c = 16, .h = SIDE, .w = SIDE, .r = 3, .s = 3, .stride_h = 2, .stride_w = 2};
    _Alignas(TUTTI_CACHE_LINE) uint16_t tap[2][OUT] = {{0}};
    arrays max = create(IN, OUT), mean = create(IN, OUT);
    arrays unmax = create(IN, IN), unmean = create(IN, IN);
    for (int stream = 0; stream < 2; stream++) {
        row->ops->max_pool(&p, max.a.data, output(&max, stream), tap[stream], stream);
        row->ops->average_pool(&p, mean.a.data, output(&mean, stream), stream);
        row->ops->max_unpool(&p, unmax.a.data, tap[0], unmax.b.data, output(&unmax, stream),
                             stream);
        row->ops->average_unpool(&p, unmean.a.data, unmean.mask.data, output(&unmean, stream),
                                 stream);
    }
    assert_memory_equal(tap[0], tap[1], sizeof tap[0]);
    check_and_destroy(&max, row, "max pool"), check_and_destroy(&mean, row, "average pool");
    check_and_destroy(&unmax, row, "max pool backward");
    check_and_destroy(&unmean, row, "average pool backward");
}

static void streamed_stores_change_nothing(void **state)
{
    (void)state;
    for (int i = 0; tutti_kernel_table[i]; i++) {
        const tutti_kernels *const row = tutti_kernel_table[i];
        if (!tutti_kernels_run_here(row)) continue;
        check_flat(row, row->ops->add, "add");
        check_flat(row, row->ops->scale, "scale");
        check_flat(row, row->ops->relu, "relu");
        check_flat(row, row->ops->mask, "mask");
        check_flat(row, row->ops->sigmoid, "sigmoid");
        check_flat(row, row->ops->sigmoid_backward, "sigmoid backward");
        check_flat(row, row->ops->tanh, "tanh");
        check_flat(row, row->ops->tanh_backward, "tanh backward");
        check_dropout(row);
        check_lrn(row);
        check_pools(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streamed_stores_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
