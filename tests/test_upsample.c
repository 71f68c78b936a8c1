/* Images of another size: every row and one or two threads against the definition in double and
 * against each other; the gradient against what the definition makes of unit vectors. */
#include "rows.h"

#include <float.h>

#include "kernel/upsample.h"

static const double half = FLT_EPSILON / 2; /* the error of one rounding, relative */

/* n, c, h, w, out_h, out_w: larger, smaller, the same, from and to one pixel; the last ones are
 * enough for two threads */
static const int shapes[][6] = {
    {1, 1, 1, 1, 1, 1},  {2, 5, 3, 2, 6, 4},  {1, 17, 4, 5, 7, 13},    {2, 3, 1, 3, 4, 1},
    {1, 2, 7, 9, 3, 4},  {1, 20, 5, 5, 5, 5}, {2, 16, 2, 7, 5, 7},     {1, 3, 6, 4, 1, 9},
    {1, 1, 3, 3, 64, 3}, {1, 4, 11, 1, 2, 2}, {3, 40, 10, 12, 20, 24},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static tutti_upsample_shape shape_of(int i, int manner)
{
    const int *s = shapes[i];
    return (tutti_upsample_shape){s[1], s[2], s[3], s[4], s[5], manner > 0, manner > 1};
}

/* ---- the definition: how much of input i there is in output o, in one direction ---- */

static double amount(const tutti_upsample_shape *s, int i, int o, int in, int out)
{
    if (!s->bilinear) return i == o * in / out;
    double at =
        s->align_corners ? (out > 1 ? o * (in - 1.0) / (out - 1) : 0) : (o + 0.5) * in / out - 0.5;
    at = fmin(fmax(at, 0), in - 1);
    return fmax(0, 1 - fabs(at - i));
}

static size_t at(int c, int pixels, int n, int channel, int pixel)
{
    const size_t blocks = (size_t)(c + 15) / 16;
    return (((size_t)n * blocks + (size_t)channel / 16) * (size_t)pixels + (size_t)pixel) * 16 +
           (size_t)channel % 16;
}

/* to = the matrix of amounts, or its transpose, times from; bound: of what rounding may do. */
static void define(const tutti_upsample_shape *s, bool back, int n, int c, const float *from,
                   double *to, double *bound)
{
    const int to_h = back ? s->h : s->out_h, to_w = back ? s->w : s->out_w;
    const int from_h = back ? s->out_h : s->h, from_w = back ? s->out_w : s->w;
    for (int p = 0; p < to_h * to_w; p++) {
        double sum = 0, size = 0;
        int terms = 0;
        for (int q = 0; q < from_h * from_w; q++) {
            const int o = back ? q : p, i = back ? p : q;
            const double share = amount(s, i / s->w, o / s->out_w, s->h, s->out_h) *
                                 amount(s, i % s->w, o % s->out_w, s->w, s->out_w);
            const double x = (double)from[at(s->c, from_h * from_w, n, c, q)];
            sum += share * x;
            size += fabs(share * x);
            terms += share != 0;
        }
        to[p] = sum;
        /* shares are rounded twice, and so is their position: a few units of 1 beside a pixel */
        bound[p] = half * (terms + 6) * size + (s->bilinear ? 16 * DBL_EPSILON * (terms + 1) : 0);
    }
}

static void check(const tutti_upsample_shape *s, bool back, int n, const float *from,
                  const float *to)
{
    const int pixels = back ? s->h * s->w : s->out_h * s->out_w;
    double *want = malloc((size_t)pixels * sizeof *want), *bound = malloc((size_t)pixels * 8);
    for (int k = 0; k < n; k++)
        for (int c = 0; c < s->c; c++) {
            define(s, back, k, c, from, want, bound);
            for (int p = 0; p < pixels; p++) {
                const double got = (double)to[at(s->c, pixels, k, c, p)];
                if (!(fabs(got - want[p]) <= bound[p]))
                    fail_msg("%dx%d to %dx%d, %s%s%s, channel %d, pixel %d: %.9g, not %.9g by %.3g",
                             s->h, s->w, s->out_h, s->out_w, s->bilinear ? "bilinear" : "nearest",
                             s->align_corners ? ", corners" : "", back ? ", back" : "", c, p, got,
                             want[p], bound[p]);
            }
        }
    free(want), free(bound);
}

/* ---- tests ---- */

static void check_shape(tutti_team *const teams[2], const tutti_upsample_shape *s, int n)
{
    const int small = s->h * s->w, large = s->out_h * s->out_w;
    fenced x = random_activation(n, s->c, small, 1, -1, 1);
    fenced dy = random_activation(n, s->c, large, 2, -1, 1);
    fenced y = fenced_create(dy.count), dx = fenced_create(x.count), gated = fenced_create(x.count);
    fenced other_y = fenced_create(dy.count), other_dx = fenced_create(x.count);
    tutti_upsample *u = NULL;
    assert_int_equal(tutti_upsample_create(&u, s), TUTTI_OK);
    for (run r = {0}; next_run(&r, teams);) {
        fenced *to = r.first ? &y : &other_y, *back = r.first ? &dx : &other_dx;
        tutti_upsample_forward(r.exec, u, n, x.data, to->data);
        tutti_upsample_backward(r.exec, u, n, dy.data, NULL, back->data);
        tutti_upsample_backward(r.exec, u, n, dy.data, x.data, gated.data);
        for (size_t i = 0; i < x.count; i++)
            assert_true(gated.data[i] == (x.data[i] > 0 ? back->data[i] : 0));
        if (r.first) {
            check(s, false, n, x.data, y.data);
            check(s, true, n, dy.data, dx.data);
        } else same_bits(&r, "y", &y, &other_y), same_bits(&r, "dx", &dx, &other_dx);
    }
    tutti_upsample_destroy(&u);
    fenced_destroy(&x), fenced_destroy(&dy), fenced_destroy(&y), fenced_destroy(&dx);
    fenced_destroy(&gated), fenced_destroy(&other_y), fenced_destroy(&other_dx);
}

static void any_size_is_the_definition(void **state)
{
    for (int i = 0; i < SHAPES; i++)
        for (int manner = 0; manner < 3; manner++) {
            const tutti_upsample_shape s = shape_of(i, manner);
            check_shape(*state, &s, shapes[i][0]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_size_is_the_definition)};
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
