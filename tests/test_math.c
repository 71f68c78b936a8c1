/* Our own exp, log, sigmoid, tanh and x^-3/4: their errors in ulp over all of their range, special
 * values, and the same bits from every row. */
#include "rows.h"

#include <float.h>

#include "kernel/ops_kernels.h"

typedef struct function {
    const char *name;
    size_t offset; /* of its kernel in tutti_ops_kernels */
    double (*exact)(double);
    float low, high;
    double ulp; /* the bound isa/math.h states */
} function;

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double gelu(double x)
{
    return x * erfc(-x / sqrt(2)) / 2;
}

static double pow_minus_3_4(double x)
{
    return pow(x, -0.75);
}

static const function functions[] = {
    {"exp", offsetof(tutti_ops_kernels, exp), exp, -87.3f, 88.7f, 1.1},
    {"log", offsetof(tutti_ops_kernels, log), log, FLT_MIN, FLT_MAX, 0.9},
    {"sigmoid", offsetof(tutti_ops_kernels, sigmoid), sigmoid, -87.0f, 100.0f, 3.3},
    {"tanh", offsetof(tutti_ops_kernels, tanh), tanh, -20.0f, 20.0f, 3.6},
    {"x^-3/4", offsetof(tutti_ops_kernels, pow_minus_3_4), pow_minus_3_4, FLT_MIN, FLT_MAX, 2.3},
    {"silu", offsetof(tutti_ops_kernels, silu), silu, -80.0f, 100.0f, 3.9},
    {"gelu", offsetof(tutti_ops_kernels, gelu), gelu, -12.8f, 100.0f, 8.0},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, CHUNK = 4096, STRIDE = 499 };

static tutti_elementwise_fn *kernel_of(const tutti_kernels *row, const function *f)
{
    tutti_elementwise_fn *kernel;
    memcpy(&kernel, (const char *)row->ops + f->offset, sizeof kernel);
    return kernel;
}

static void apply(const tutti_kernels *row, const function *f, const float *x, float *y, size_t n)
{
    const tutti_elementwise flat = {.a = x, .y = y, .lanes = TUTTI_BLOCK};
    kernel_of(row, f)(&flat, 0, n);
}

static const tutti_kernels *best_row(void)
{
    const tutti_kernels *best = NULL;
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        if (tutti_kernels_run_here(*row)) best = *row;
    return best;
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The next CHUNK floats of the range, every STRIDE-th bit pattern; false when there are no more.
 * The last value is repeated to fill up. */
static bool next_chunk(const function *f, uint64_t *bits, float x[CHUNK])
{
    int count = 0;
    for (; *bits <= UINT32_MAX && count < CHUNK; *bits += STRIDE) {
        const float value = of_bits((uint32_t)*bits);
        if (value >= f->low && value <= f->high) x[count++] = value;
    }
    const bool any = count > 0;
    for (; any && count < CHUNK; count++) x[count] = x[count - 1];
    return any;
}

/* |got - want| in units of the last place of a float near want. */
static double ulps(float got, double want)
{
    int exponent;
    frexp(want, &exponent);
    return fabs((double)got - want) /
           ldexp(1.0, (exponent < -125 ? -125 : exponent) - FLT_MANT_DIG);
}

static void errors_are_within_the_stated_ulps(void **state)
{
    (void)state;
    const tutti_kernels *row = best_row();
    for (int i = 0; i < FUNCTIONS; i++) {
        const function *f = &functions[i];
        static float x[CHUNK], y[CHUNK];
        double worst = 0.0, at = 0.0;
        for (uint64_t bits = 0; next_chunk(f, &bits, x);) {
            apply(row, f, x, y, CHUNK);
            for (int j = 0; j < CHUNK; j++) {
                const double error = ulps(y[j], f->exact((double)x[j]));
                if (!(error <= worst)) worst = error, at = (double)x[j];
            }
        }
        print_message("%-8s worst error %.3f ulp at %a\n", f->name, worst, at);
        assert_true(worst > 0.4); /* a sweep over nothing would be perfect */
        assert_true(worst < f->ulp);
    }
}

static void rows_agree(void **state)
{
    (void)state;
    static float x[CHUNK], want[CHUNK], got[CHUNK];
    const tutti_random_key key = {.seed = 1, .purpose = TUTTI_RANDOM_SYNTHETIC};
    for (int i = 0; i < FUNCTIONS; i++)
        for (uint64_t round = 0; round < 64; round++) {
            for (int j = 0; j < CHUNK; j++) {
                x[j] = of_bits(tutti_random_u32(&key, round * CHUNK + (uint64_t)j));
                const bool normal = x[j] >= FLT_MIN, all = functions[i].low < 0;
                if (!all && !normal) x[j] = 1.0f + (float)j; /* log and x^-3/4 take no other */
            }
            apply(tutti_kernel_table[0], &functions[i], x, want, CHUNK);
            for (int k = 0; tutti_kernel_table[k]; k++) {
                const tutti_kernels *const row = tutti_kernel_table[k];
                if (!tutti_kernels_run_here(row)) continue;
                apply(row, &functions[i], x, got, CHUNK);
                for (int j = 0; j < CHUNK; j++)
                    if (memcmp(&got[j], &want[j], 4) && !(isnan(got[j]) && isnan(want[j])))
                        fail_msg("%s(%a): row %s %a, plain C %a", functions[i].name, (double)x[j],
                                 row->name, (double)got[j], (double)want[j]);
            }
        }
}

static float value_of(const tutti_kernels *row, const function *f, float x)
{
    float in[TUTTI_BLOCK], out[TUTTI_BLOCK];
    for (int i = 0; i < TUTTI_BLOCK; i++) in[i] = x;
    apply(row, f, in, out, TUTTI_BLOCK);
    return out[TUTTI_BLOCK - 1];
}

static void check_special_values(const tutti_kernels *row)
{
    const function *e = &functions[0], *l = &functions[1], *s = &functions[2], *t = &functions[3];
    for (int i = 0; i < FUNCTIONS; i++) assert_true(isnan(value_of(row, &functions[i], NAN)));
    assert_true(value_of(row, e, 0.0f) == 1.0f && value_of(row, e, -INFINITY) == 0.0f);
    assert_true(value_of(row, e, INFINITY) == INFINITY && value_of(row, e, 88.73f) == INFINITY);
    assert_true(value_of(row, e, -87.33f) >= FLT_MIN && value_of(row, e, -87.34f) == 0.0f);
    assert_true(value_of(row, l, 1.0f) == 0.0f && value_of(row, l, INFINITY) == INFINITY);
    assert_true(value_of(row, s, 0.0f) == 0.5f && value_of(row, s, INFINITY) == 1.0f);
    assert_true(value_of(row, s, -INFINITY) == 0.0f);
    assert_true(value_of(row, t, INFINITY) == 1.0f && value_of(row, t, -INFINITY) == -1.0f);
    assert_true(value_of(row, &functions[4], INFINITY) == 0.0f);
    assert_true(value_of(row, t, -0.0f) == 0.0f && signbit(value_of(row, t, -0.0f)));
    assert_true(value_of(row, t, 1e-30f) == 1e-30f);
    for (int i = 5; i < FUNCTIONS; i++) { /* silu, gelu */
        assert_true(value_of(row, &functions[i], INFINITY) == INFINITY);
        assert_true(value_of(row, &functions[i], 1e30f) == 1e30f);
        assert_true(value_of(row, &functions[i], -1e30f) == 0.0f);
        assert_true(value_of(row, &functions[i], 0.0f) == 0.0f);
    }
}

static void special_values(void **state)
{
    (void)state;
    for (int i = 0; tutti_kernel_table[i]; i++) {
        const tutti_kernels *const row = tutti_kernel_table[i];
        if (tutti_kernels_run_here(row)) check_special_values(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_within_the_stated_ulps),
        cmocka_unit_test(rows_agree),
        cmocka_unit_test(special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
