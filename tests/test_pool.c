/* Pooling: every row against the definition in double and against each other, on windows that
 * overlap, leave gaps, hang over the edge, and cover everything. */
#include "rows.h"

#include <float.h>

#include "kernel/pool.h"
#include "kernel/ref_ops.h"
#include "kernel/work.h"

typedef struct window_case {
    int r, s, stride_h, stride_w, top, bottom, left, right;
} window_case;

static const window_case windows[] = {
    {2, 2, 2, 2, 0, 0, 0, 0}, {3, 3, 2, 2, 0, 0, 0, 0}, {3, 3, 2, 2, 1, 1, 1, 1},
    {3, 3, 1, 1, 1, 1, 1, 1}, {2, 2, 3, 3, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0, 0, 0},
    {5, 2, 3, 1, 2, 0, 1, 0}, {2, 5, 1, 4, 0, 1, 0, 3}, {3, 3, 3, 3, 2, 2, 2, 2},
};
static const int images[][4] = {
    /* n, c, h, w; the last is large enough for two threads */
    {1, 16, 6, 6}, {2, 3, 7, 5}, {1, 17, 8, 9}, {1, 1, 1, 1}, {2, 32, 5, 13}, {2, 33, 19, 18},
};
enum {
    WINDOWS = sizeof windows / sizeof *windows,
    IMAGES = sizeof images / sizeof *images,
    MAX_VARIANTS = 2,     /* ceil_mode */
    AVERAGE_VARIANTS = 4, /* and count_padding */
};

static tutti_pool_shape shape_of(const int image[4], const window_case *w, int variant)
{
    return (tutti_pool_shape){.c = image[1],
                              .h = image[2],
                              .w = image[3],
                              .r = w->r,
                              .s = w->s,
                              .stride_h = w->stride_h,
                              .stride_w = w->stride_w,
                              .pad_top = w->top,
                              .pad_bottom = w->bottom,
                              .pad_left = w->left,
                              .pad_right = w->right,
                              .ceil_mode = variant & 1,
                              .count_padding = variant & 2};
}

static int out_pixels(const tutti_pool_shape *p)
{
    return tutti_pool_out_h(p) * tutti_pool_out_w(p);
}

static size_t out_count(const tutti_pool_shape *p, int n)
{
    return tutti_max_pool_tap_bytes(p, n) / sizeof(uint16_t);
}

typedef void case_fn(tutti_team *const teams[2], const tutti_pool_shape *p, int n);

/* Calls fn for every shape whose output is not empty, and for global windows. */
static int each_shape(tutti_team *const teams[2], int variants, case_fn *fn)
{
    int count = 0;
    for (int i = 0; i < IMAGES; i++)
        for (int v = 0; v < variants; v++) {
            const window_case whole = {images[i][2], images[i][3], 1, 1, 0, 0, 0, 0};
            for (int w = 0; w <= WINDOWS; w++) {
                const tutti_pool_shape p =
                    shape_of(images[i], w < WINDOWS ? &windows[w] : &whole, v);
                if (tutti_pool_out_h(&p) <= 0 || tutti_pool_out_w(&p) <= 0) continue;
                fn(teams, &p, images[i][0]);
                count++;
            }
        }
    return count;
}

/* Values repeat, so that maxima tie; some are NaN and -infinity. */
static fenced tied(const tutti_pool_shape *p, int n, bool special)
{
    fenced x = random_activation(n, p->c, p->h * p->w, 7, -3.0, 3.0);
    for (size_t i = 0; i < x.count; i++) {
        x.data[i] = floorf(x.data[i]);
        if (special && x.data[i] != 0.0f && i % 11 == 0) x.data[i] = i % 2 ? NAN : -INFINITY;
    }
    return x;
}

static void check_max(tutti_team *const teams[2], const tutti_pool_shape *p, int n, const fenced *x)
{
    const size_t count = out_count(p, n);
    fenced y = fenced_create(count), tap = fenced_create((count + 1) / 2);
    double *dx = as_double(x), *want = malloc((count + 1) * sizeof *want);
    uint16_t *won = malloc((count + 1) * sizeof *won);
    tutti_ref_max_pool_forward(p, n, dx, want, won);
    for (run r = {0}; next_run(&r, teams);) {
        uint16_t *taps = (uint16_t *)(tap.data + tap.count) - count; /* up to the fence */
        tutti_max_pool_forward(r.exec, p, n, x->data, y.data, taps);
        for (size_t i = 0; i < count; i++) {
            const bool same = (double)y.data[i] == want[i] || (isnan(y.data[i]) && isnan(want[i]));
            if (!same || (taps[i] != won[i] && is_channel(p->c, out_pixels(p), i)))
                fail_msg("max pool %dx%d of %dx%d, row %s, element %zu: %g tap %d, want %g tap %d",
                         p->r, p->s, p->h, p->w, r.exec.row->name, i, (double)y.data[i], taps[i],
                         want[i], won[i]);
        }
        fenced_fill(&y, NAN), fenced_fill(&tap, NAN);
        tutti_max_pool_forward(r.exec, p, n, x->data, y.data, NULL);
        for (size_t i = 0; i < count; i++)
            assert_true((double)y.data[i] == want[i] || (isnan(y.data[i]) && isnan(want[i])));
    }
    free(dx), free(want), free(won);
    fenced_destroy(&y), fenced_destroy(&tap);
}

static void max_case(tutti_team *const teams[2], const tutti_pool_shape *p, int n)
{
    for (int special = 0; special < 2; special++) {
        fenced x = tied(p, n, special);
        check_max(teams, p, n, &x);
        fenced_destroy(&x);
    }
}

static void max_pool_is_the_definition(void **state)
{
    assert_true(each_shape(*state, MAX_VARIANTS, max_case) > 75);
}

static void max_pool_finds_a_single_nan_anywhere(void **state)
{
    for (int kernel = 2; kernel <= 3; kernel++)
        for (int stride = 1; stride <= 4; stride++)
            for (int pad = 0; pad < 2; pad++) {
                const tutti_pool_shape p = {.c = 16,
                                            .h = 6,
                                            .w = 9,
                                            .r = kernel,
                                            .s = kernel,
                                            .stride_h = stride,
                                            .stride_w = stride,
                                            .pad_top = pad,
                                            .pad_left = pad};
                fenced x = tied(&p, 1, false);
                for (size_t i = 0; i < x.count; i += 15) { /* every pixel, most lanes */
                    const float kept = x.data[i];
                    x.data[i] = NAN;
                    check_max(*state, &p, 1, &x);
                    x.data[i] = kept;
                }
                fenced_destroy(&x);
            }
}

/* Bound of a sum of the contributions to each dx: overlapping windows at most r*s of them. */
static double *sum_bound(const tutti_pool_shape *p, int n, const double *magnitude, int roundings)
{
    const size_t count = (size_t)n * (size_t)((p->c + 15) / 16) * (size_t)(p->h * p->w) * 16;
    double *bound = malloc((count + 1) * sizeof *bound);
    for (size_t i = 0; i < count; i++) bound[i] = roundings * (FLT_EPSILON / 2) * magnitude[i];
    return bound;
}

static double *magnitudes(const double *x, size_t count)
{
    double *m = malloc((count + 1) * sizeof *m);
    for (size_t i = 0; i < count; i++) m[i] = fabs(x[i]);
    return m;
}

static void max_backward_case(tutti_team *const teams[2], const tutti_pool_shape *p, int n)
{
    const size_t count = out_count(p, n);
    fenced x = tied(p, n, false), dy = random_activation(n, p->c, out_pixels(p), 8, -1.0, 1.0);
    fenced dx = fenced_create(x.count), first = fenced_create(x.count), y = fenced_create(count);
    double *xd = as_double(&x), *yd = malloc((count + 1) * sizeof *yd), *dyd = as_double(&dy);
    double *want = malloc((x.count + 1) * sizeof *want), *sum = malloc((x.count + 1) * sizeof *sum);
    uint16_t *tap = malloc((count + 1) * sizeof *tap);
    tutti_ref_max_pool_forward(p, n, xd, yd, tap);
    for (size_t i = 0; i < count; i++) y.data[i] = (float)yd[i];
    for (int masked = 0; masked < 2; masked++) {
        for (size_t i = 0; masked && i < count; i++) dyd[i] = yd[i] <= 0.0 ? 0.0 : dyd[i];
        double *size = magnitudes(dyd, count);
        tutti_ref_max_pool_backward(p, n, dyd, tap, want);
        tutti_ref_max_pool_backward(p, n, size, tap, sum);
        double *bound = sum_bound(p, n, sum, p->r * p->s);
        for (run r = {0}; next_run(&r, teams);) {
            fenced *out = r.first ? &first : &dx;
            tutti_max_pool_backward(r.exec, p, n, dy.data, tap, masked ? y.data : NULL, out->data);
            if (r.first) within("max pool backward", x.count, first.data, want, bound);
            else same_bits(&r, "max pool backward", &first, &dx);
        }
        free(bound), free(size);
    }
    free(xd), free(yd), free(dyd), free(want), free(sum), free(tap);
    fenced_destroy(&x), fenced_destroy(&dy), fenced_destroy(&dx), fenced_destroy(&first);
    fenced_destroy(&y);
}

static void max_pool_backward_goes_to_the_winners(void **state)
{
    assert_true(each_shape(*state, MAX_VARIANTS, max_backward_case) > 0);
}

static void average_case(tutti_team *const teams[2], const tutti_pool_shape *p, int n)
{
    const size_t count = out_count(p, n);
    fenced x = random_activation(n, p->c, p->h * p->w, 9, -1.0, 1.0);
    fenced y = fenced_create(count), first = fenced_create(count);
    double *xd = as_double(&x), *size = magnitudes(xd, x.count);
    double *want = malloc((count + 1) * sizeof *want), *bound = malloc((count + 1) * sizeof *bound);
    tutti_ref_average_pool_forward(p, n, xd, want);
    tutti_ref_average_pool_forward(p, n, size, bound);
    for (size_t i = 0; i < count; i++) bound[i] *= (p->r * p->s + 1) * (FLT_EPSILON / 2);
    for (run r = {0}; next_run(&r, teams);) {
        tutti_average_pool_forward(r.exec, p, n, x.data, r.first ? first.data : y.data);
        if (r.first) within("average pool", count, first.data, want, bound);
        else same_bits(&r, "average pool", &first, &y);
    }
    free(xd), free(size), free(want), free(bound);
    fenced_destroy(&x), fenced_destroy(&y), fenced_destroy(&first);
}

static void average_pool_is_the_definition(void **state)
{
    assert_true(each_shape(*state, AVERAGE_VARIANTS, average_case) > 0);
}

static void average_backward_case(tutti_team *const teams[2], const tutti_pool_shape *p, int n)
{
    fenced dy = random_activation(n, p->c, out_pixels(p), 10, -1.0, 1.0);
    fenced x = random_activation(n, p->c, p->h * p->w, 11, -1.0, 1.0);
    fenced dx = fenced_create(x.count), first = fenced_create(x.count);
    double *dyd = as_double(&dy), *size = magnitudes(dyd, dy.count);
    double *want = malloc((x.count + 1) * sizeof *want), *sum = malloc((x.count + 1) * sizeof *sum);
    tutti_ref_average_pool_backward(p, n, dyd, want);
    tutti_ref_average_pool_backward(p, n, size, sum);
    double *bound = sum_bound(p, n, sum, p->r * p->s + 1);
    for (int masked = 0; masked < 2; masked++) {
        for (size_t i = 0; masked && i < x.count; i++) want[i] = x.data[i] <= 0.0f ? 0.0 : want[i];
        for (run r = {0}; next_run(&r, teams);) {
            fenced *out = r.first ? &first : &dx;
            tutti_average_pool_backward(r.exec, p, n, dy.data, masked ? x.data : NULL, out->data);
            if (r.first) within("average pool backward", x.count, first.data, want, bound);
            else same_bits(&r, "average pool backward", &first, &dx);
        }
    }
    free(dyd), free(size), free(want), free(sum), free(bound);
    fenced_destroy(&x), fenced_destroy(&dx), fenced_destroy(&first), fenced_destroy(&dy);
}

static void average_pool_backward_is_the_definition(void **state)
{
    assert_true(each_shape(*state, AVERAGE_VARIANTS, average_backward_case) > 0);
}

/* Arrays of many samples, and of one ('one_'), of which nothing is stored past the caches. */
typedef struct large {
    const tutti_pool_shape *p;
    fenced x, y, dx, one_y, one_dx;
    uint16_t *tap, *one_tap;
} large;

static void same_floats(const fenced *all, size_t sample, const fenced *one)
{
    assert_memory_equal(all->data + sample * one->count, one->data, one->count * sizeof(float));
}

static void check_large(const run *r, const large *t, int n)
{
    const size_t in = t->one_dx.count, out = t->one_y.count;
    tutti_max_pool_forward(r->exec, t->p, n, t->x.data, t->y.data, t->tap);
    tutti_max_pool_backward(r->exec, t->p, n, t->y.data, t->tap, NULL, t->dx.data);
    for (size_t i = 0; i < (size_t)n; i++) {
        const float *const x = t->x.data + i * in;
        tutti_max_pool_forward((tutti_exec){r->exec.row, NULL}, t->p, 1, x, t->one_y.data,
                               t->one_tap);
        same_floats(&t->y, i, &t->one_y);
        assert_memory_equal(t->tap + i * out, t->one_tap, out * sizeof *t->tap);
        tutti_max_pool_backward((tutti_exec){r->exec.row, NULL}, t->p, 1, t->one_y.data, t->one_tap,
                                NULL, t->one_dx.data);
        same_floats(&t->dx, i, &t->one_dx);
    }
    tutti_average_pool_forward(r->exec, t->p, n, t->x.data, t->y.data);
    tutti_average_pool_backward(r->exec, t->p, n, t->y.data, NULL, t->dx.data);
    for (size_t i = 0; i < (size_t)n; i++) {
        const float *const x = t->x.data + i * in;
        tutti_average_pool_forward((tutti_exec){r->exec.row, NULL}, t->p, 1, x, t->one_y.data);
        same_floats(&t->y, i, &t->one_y);
        tutti_average_pool_backward((tutti_exec){r->exec.row, NULL}, t->p, 1, t->one_y.data, NULL,
                                    t->one_dx.data);
        same_floats(&t->dx, i, &t->one_dx);
    }
}

/* So large that results and taps bypass the caches: the bits are those of one sample at a time,
 * which do not. With 2x2 elements every other plane begins in mid-line of the taps; one row has a
 * NaN. */
static void large_pooling_has_the_bits_of_single_samples(void **state)
{
    enum { N = 17, C = 64, H = 126, W = 125 };
    for (int size = 2; size <= 3; size++) {
        const window_case square = {size, size, 2, 2, 0, 0, 0, 0};
        const tutti_pool_shape p = shape_of((const int[]){N, C, H, W}, &square, 1);
        const size_t count = out_count(&p, N), one = out_count(&p, 1);
        large t = {.p = &p, .x = tied(&p, N, false), .y = fenced_create(count)};
        t.dx = fenced_create(t.x.count), t.one_dx = fenced_create(t.x.count / N);
        t.one_y = fenced_create(one);
        assert_true(count >= TUTTI_STREAMED && one < TUTTI_STREAMED);
        t.x.data[t.x.count / 2] = NAN;
        assert_int_equal(tutti_alloc(&t.tap, count, sizeof *t.tap), TUTTI_OK);
        assert_int_equal(tutti_alloc(&t.one_tap, one, sizeof *t.tap), TUTTI_OK);
        for (run r = {0}; next_run(&r, *state);) check_large(&r, &t, N);
        tutti_free(t.tap), tutti_free(t.one_tap);
        fenced_destroy(&t.x), fenced_destroy(&t.y), fenced_destroy(&t.dx);
        fenced_destroy(&t.one_y), fenced_destroy(&t.one_dx);
    }
}

/* Outputs of Caffe's and torch's rules, worked out by hand. */
static void sizes_follow_caffe_and_torch(void **state)
{
    (void)state;
    const struct {
        int size, kernel, stride, pad, floor, ceil;
    } cases[] = {
        {112, 3, 2, 0, 55, 56}, {55, 3, 2, 0, 27, 27}, {32, 3, 2, 1, 16, 17}, {5, 2, 3, 0, 2, 2},
        {4, 2, 3, 0, 1, 2},     {7, 7, 1, 0, 1, 1},    {2, 3, 1, 0, 0, 0},    {6, 2, 2, 1, 4, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tutti_pool_shape p = {.c = 1,
                              .h = cases[i].size,
                              .w = cases[i].size,
                              .r = cases[i].kernel,
                              .s = cases[i].kernel,
                              .stride_h = cases[i].stride,
                              .stride_w = cases[i].stride,
                              .pad_top = cases[i].pad,
                              .pad_bottom = cases[i].pad,
                              .pad_left = cases[i].pad,
                              .pad_right = cases[i].pad};
        assert_int_equal(tutti_pool_out_h(&p), cases[i].floor);
        p.ceil_mode = true;
        assert_int_equal(tutti_pool_out_w(&p), cases[i].ceil);
    }
}

/* d(sum of g*y)/dx by central differences of the definition. */
static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    const tutti_pool_shape p = {.c = 3,
                                .h = 6,
                                .w = 7,
                                .r = 3,
                                .s = 2,
                                .stride_h = 2,
                                .stride_w = 1,
                                .pad_top = 1,
                                .pad_bottom = 1,
                                .pad_left = 1,
                                .count_padding = true};
    enum { N = 2 };
    const size_t count = out_count(&p, N);
    fenced xf = random_activation(N, p.c, p.h * p.w, 12, -1.0, 1.0);
    fenced gf = random_activation(N, p.c, out_pixels(&p), 13, -1.0, 1.0);
    double *x = as_double(&xf), *g = as_double(&gf), *y = malloc(count * sizeof *y);
    double *dmax = malloc(xf.count * sizeof *dmax), *dmean = malloc(xf.count * sizeof *dmean);
    uint16_t *tap = malloc(count * sizeof *tap);
    tutti_ref_max_pool_forward(&p, N, x, y, tap);
    tutti_ref_max_pool_backward(&p, N, g, tap, dmax);
    tutti_ref_average_pool_backward(&p, N, g, dmean);
    const double h = 1e-7;
    for (size_t i = 0; i < xf.count; i++) {
        if (x[i] == 0.0) continue; /* fills up */
        double difference[2] = {0.0, 0.0};
        for (int side = -1; side <= 1; side += 2) {
            x[i] = (double)xf.data[i] + side * h;
            tutti_ref_max_pool_forward(&p, N, x, y, tap);
            for (size_t j = 0; j < count; j++) difference[0] += side * g[j] * y[j] / (2 * h);
            tutti_ref_average_pool_forward(&p, N, x, y);
            for (size_t j = 0; j < count; j++) difference[1] += side * g[j] * y[j] / (2 * h);
        }
        x[i] = (double)xf.data[i];
        assert_true(fabs(difference[0] - dmax[i]) < 1e-6);
        assert_true(fabs(difference[1] - dmean[i]) < 1e-6);
    }
    free(x), free(g), free(y), free(dmax), free(dmean), free(tap);
    fenced_destroy(&xf), fenced_destroy(&gf);
}

/* ---- to a given size ---- */

static const int sizes[][6] = {/* n, c, h, w, out_h, out_w */
                               {2, 17, 7, 5, 3, 4},
                               {1, 3, 1, 1, 6, 6},
                               {3, 16, 4, 9, 7, 2},
                               {2, 33, 19, 18, 5, 7}};

/* Does input i of 'in' take part in output o of 'out'? In whole numbers: do their spans meet? */
static bool meets(int i, int in, int o, int out)
{
    return i * out < (o + 1) * in && (i + 1) * out > o * in;
}

typedef struct sized_case {
    tutti_adaptive_shape s;
    int n, pixels, out_pixels;
} sized_case;

/* The share of output o that input i is: 0, or 1 / number of inputs. */
static double weight_of(const tutti_adaptive_shape *s, int i, int o)
{
    int rows = 0, columns = 0;
    for (int h = 0; h < s->h; h++) rows += meets(h, s->h, o / s->out_w, s->out_h);
    for (int w = 0; w < s->w; w++) columns += meets(w, s->w, o % s->out_w, s->out_w);
    const bool in = meets(i / s->w, s->h, o / s->out_w, s->out_h) &&
                    meets(i % s->w, s->w, o % s->out_w, s->out_w);
    return in ? 1.0 / (rows * columns) : 0;
}

/* Sums of 'from' by those shares, forward or back, and what rounding may add. */
static void want_sized(const sized_case *c, bool back, const fenced *from, double *want,
                       double *bound)
{
    const int to = back ? c->pixels : c->out_pixels, all = back ? c->out_pixels : c->pixels;
    const size_t planes = from->count / 16 / (size_t)all;
    for (size_t k = 0; k < planes * (size_t)to * 16; k++) {
        const size_t plane = k / 16 / (size_t)to;
        const int t = (int)(k / 16 % (size_t)to);
        want[k] = bound[k] = 0;
        for (int f = 0; f < all; f++) {
            const double x = (double)from->data[(plane * (size_t)all + (size_t)f) * 16 + k % 16];
            const double share = back ? weight_of(&c->s, t, f) : weight_of(&c->s, f, t);
            want[k] += share * x;
            bound[k] += FLT_EPSILON / 2 * (all + 2) * fabs(share * x);
        }
    }
}

static void check_sized(tutti_team *const *teams, const sized_case *c, bool back)
{
    fenced x = random_activation(c->n, c->s.c, c->pixels, 1, -1, 1);
    fenced dy = random_activation(c->n, c->s.c, c->out_pixels, 2, -1, 1);
    const fenced *from = back ? &dy : &x;
    const size_t count = back ? x.count : dy.count;
    fenced y = fenced_create(count), first = fenced_create(count);
    double *want = malloc(count * sizeof *want), *bound = malloc(count * sizeof *bound);
    want_sized(c, back, from, want, bound);
    for (size_t i = 0; back && i < count; i++)
        if (x.data[i] <= 0) want[i] = 0;
    for (run r = {0}; next_run(&r, teams);) {
        float *out = r.first ? first.data : y.data;
        if (back) tutti_adaptive_pool_backward(r.exec, &c->s, c->n, dy.data, x.data, out);
        else tutti_adaptive_pool_forward(r.exec, &c->s, c->n, x.data, out);
        if (r.first) within("pool to a size", count, first.data, want, bound);
        else same_bits(&r, "pool to a size", &first, &y);
    }
    free(want), free(bound);
    fenced_destroy(&x), fenced_destroy(&dy), fenced_destroy(&y), fenced_destroy(&first);
}

static void pooling_to_a_size_is_its_definition(void **state)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int *s = sizes[i];
        const sized_case c = {{s[1], s[2], s[3], s[4], s[5]}, s[0], s[2] * s[3], s[4] * s[5]};
        check_sized(*state, &c, false);
        check_sized(*state, &c, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_to_a_size_is_its_definition),
        cmocka_unit_test(max_pool_is_the_definition),
        cmocka_unit_test(max_pool_finds_a_single_nan_anywhere),
        cmocka_unit_test(max_pool_backward_goes_to_the_winners),
        cmocka_unit_test(average_pool_is_the_definition),
        cmocka_unit_test(average_pool_backward_is_the_definition),
        cmocka_unit_test(large_pooling_has_the_bits_of_single_samples),
        cmocka_unit_test(sizes_follow_caffe_and_torch),
        cmocka_unit_test(gradients_agree_with_finite_differences),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
