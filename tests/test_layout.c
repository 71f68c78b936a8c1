/* Changes of layout, against the formulas written out, and there and back; concatenation. */
#include "rows.h"

#include "kernel/layout.h"
#include "kernel/ops.h"
#include "kernel/ref_ops.h"

/* The last ones are so large that they stream; in the very last, planes begin in mid-line. */
static const int activations[][3] = {
    {1, 1, 1},    {2, 3, 5},    {1, 16, 7},   {2, 17, 3},       {3, 40, 33},
    {2, 48, 200}, {1, 8, 1600}, {1, 23, 640}, {2, 40, 1 << 16}, {1, 40, (1 << 17) + 5},
};

static void check_activation(const run *r, int n, int c, int pixels)
{
    const size_t count = (size_t)n * (size_t)c * (size_t)pixels;
    fenced nchw = random_array(count, 1, -1.0, 1.0), back = fenced_create(count);
    fenced blocked = fenced_create((size_t)n * (size_t)((c + 15) / 16 * 16) * (size_t)pixels);
    tutti_nchw_to_blocked(r->exec, (tutti_extent){n, c, pixels}, nchw.data, blocked.data);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < c; k++)
            for (int p = 0; p < pixels; p++)
                assert_true(
                    blocked.data[tutti_ref_at(c, pixels, i, k, p)] ==
                    nchw.data[((size_t)i * (size_t)c + (size_t)k) * (size_t)pixels + (size_t)p]);
    for (size_t i = 0; i < blocked.count; i++)
        if (!is_channel(c, pixels, i)) assert_true(blocked.data[i] == 0.0f);
    tutti_blocked_to_nchw(r->exec, (tutti_extent){n, c, pixels}, blocked.data, back.data);
    assert_memory_equal(back.data, nchw.data, count * sizeof(float));
    fenced_destroy(&nchw), fenced_destroy(&back), fenced_destroy(&blocked);
}

static void activations_go_there_and_back(void **state)
{
    for (size_t s = 0; s < sizeof activations / sizeof *activations; s++)
        for (run r = {0}; next_run(&r, *state);)
            check_activation(&r, activations[s][0], activations[s][1], activations[s][2]);
}

static void images_go_there_and_back(void **state)
{
    tutti_team *const *teams = *state;
    enum { N = 3, C = 3, PIXELS = 5000, COUNT = N * C * PIXELS };
    for (int t = 0; t < 2; t++) {
        fenced nchw = random_array(COUNT, 1, -1.0, 1.0), nhwc = fenced_create(COUNT);
        fenced back = fenced_create(COUNT);
        tutti_nchw_to_nhwc(teams[t], (tutti_extent){N, C, PIXELS}, nchw.data, nhwc.data);
        for (int i = 0; i < COUNT; i++) {
            const int n = i / C / PIXELS, p = i / C % PIXELS, c = i % C;
            assert_true(nhwc.data[i] == nchw.data[(n * C + c) * PIXELS + p]);
        }
        tutti_nhwc_to_nchw(teams[t], (tutti_extent){N, C, PIXELS}, nhwc.data, back.data);
        assert_memory_equal(back.data, nchw.data, COUNT * sizeof(float));
        fenced_destroy(&nchw), fenced_destroy(&nhwc), fenced_destroy(&back);
    }
}

/* ---- weights ---- */

static const tutti_weight_shape weights[] = {
    {1, 1, 1, 1, false},   {16, 16, 3, 3, false},  {17, 33, 3, 2, false},
    {64, 3, 7, 7, true},   {10, 1, 5, 5, true},    {37, 1, 1, 1, true} /* a bias */,
    {40, 20, 4, 3, false}, {100, 50, 1, 1, false},
};
enum { WEIGHTS = sizeof weights / sizeof *weights };

/* [k/16][c/16][r][s][16 c][16 k] and [k/16][r][s][c][16 k], written out. */
static size_t formula(const tutti_weight_shape *w, int k, int c, int r, int s)
{
    const int tap = r * w->s + s, taps = w->r * w->s;
    if (w->compact) return (size_t)(((k / 16 * taps + tap) * w->c + c) * 16 + k % 16);
    const int blocks = (w->c + 15) / 16;
    return (size_t)((((k / 16 * blocks + c / 16) * taps + tap) * 16 + c % 16) * 16 + k % 16);
}

static void weights_follow_the_formulas(void **state)
{
    tutti_team *const *teams = *state;
    for (int i = 0; i < WEIGHTS; i++)
        for (int t = 0; t < 2; t++) {
            const tutti_weight_shape *w = &weights[i];
            fenced torch = random_array(tutti_weight_torch_count(w), 2, 1.0, 2.0);
            fenced ours = fenced_create(tutti_weight_blocked_count(w));
            fenced back = fenced_create(torch.count);
            tutti_weights_from_torch(teams[t], w, torch.data, ours.data);
            size_t at = 0, zeros = 0;
            for (int k = 0; k < w->k; k++)
                for (int c = 0; c < w->c; c++)
                    for (int r = 0; r < w->r; r++)
                        for (int s = 0; s < w->s; s++, at++) {
                            const size_t place = formula(w, k, c, r, s);
                            assert_true(ours.data[place] == torch.data[at]);
                            assert_int_equal(tutti_weight_torch_index(w, place), (int64_t)at);
                        }
            for (size_t j = 0; j < ours.count; j++) {
                const bool zero = ours.data[j] == 0.0f;
                zeros += zero;
                assert_true(zero == (tutti_weight_torch_index(w, j) == -1));
            }
            assert_int_equal(zeros, ours.count - torch.count);
            tutti_weights_to_torch(teams[t], w, ours.data, back.data);
            assert_memory_equal(back.data, torch.data, torch.count * sizeof(float));
            fenced_destroy(&torch), fenced_destroy(&ours), fenced_destroy(&back);
        }
}

/* Any cut of ours, piece by piece, is the whole; only the piece's own elements are touched. */
static void strips_make_up_the_whole(void **state)
{
    (void)state;
    for (int i = 0; i < WEIGHTS; i++) {
        const tutti_weight_shape *w = &weights[i];
        fenced torch = random_array(tutti_weight_torch_count(w), 2, 1.0, 2.0);
        fenced ours = fenced_create(tutti_weight_blocked_count(w)),
               back = fenced_create(torch.count);
        tutti_weights_from_torch(NULL, w, torch.data, ours.data);
        for (int parts = 1; parts <= 4; parts++) {
            for (int p = 0; p < parts; p++) {
                const size_t begin = ours.count * (size_t)p / (size_t)parts;
                const size_t end = ours.count * (size_t)(p + 1) / (size_t)parts;
                fenced strip = fenced_create(end - begin);
                tutti_strip_from_torch(w, begin, end, torch.data, strip.data);
                assert_memory_equal(strip.data, ours.data + begin, strip.count * sizeof(float));
                tutti_strip_to_torch(w, begin, end, strip.data, back.data);
                fenced_destroy(&strip);
            }
            assert_memory_equal(back.data, torch.data, torch.count * sizeof(float));
            for (size_t j = 0; j < back.count; j++) back.data[j] = NAN;
        }
        fenced_destroy(&torch), fenced_destroy(&ours), fenced_destroy(&back);
    }
}

/* Blocks of output channels, converted as shapes of their own. */
static void blocks_of_output_channels_are_contiguous(void **state)
{
    (void)state;
    const tutti_weight_shape whole = {53, 20, 3, 3, false}, part = {53 - 32, 20, 3, 3, false};
    fenced torch = random_array(tutti_weight_torch_count(&whole), 2, 1.0, 2.0);
    fenced ours = fenced_create(tutti_weight_blocked_count(&whole));
    fenced strip = fenced_create(tutti_weight_blocked_count(&part));
    tutti_weights_from_torch(NULL, &whole, torch.data, ours.data);
    tutti_weights_from_torch(NULL, &part, torch.data + 32 * 20 * 9, strip.data);
    assert_memory_equal(strip.data, ours.data + ours.count - strip.count,
                        strip.count * sizeof(float));
    fenced_destroy(&torch), fenced_destroy(&ours), fenced_destroy(&strip);
}

/* ---- concatenation ---- */

enum { MAX_PARTS = 4 };
typedef struct concat_case {
    int n, pixels, parts, c[MAX_PARTS];
} concat_case;

static const concat_case concats[] = {
    {2, 5, 2, {16, 32}},        {1, 3, 3, {3, 5, 20}}, {2, 1, 1, {7}},
    {3, 40, 4, {17, 1, 30, 9}}, {2, 7, 2, {32, 10}},   {3, 130, 3, {16, 24, 40}},
};

static void check_concat(tutti_team *const teams[2], const concat_case *k)
{
    int total = 0;
    fenced x[MAX_PARTS], dx[MAX_PARTS];
    const float *from[MAX_PARTS];
    float *to[MAX_PARTS];
    for (int i = 0; i < k->parts; i++) {
        total += k->c[i];
        x[i] = random_activation(k->n, k->c[i], k->pixels, (uint64_t)i, -1.0, 1.0);
        dx[i] = fenced_create(x[i].count);
        from[i] = x[i].data, to[i] = dx[i].data;
    }
    fenced y = fenced_create((size_t)k->n * (size_t)((total + 15) / 16 * 16) * (size_t)k->pixels);
    const tutti_concat_shape shape = {k->n, k->pixels, k->parts, k->c};
    for (run r = {0}; next_run(&r, teams);) {
        tutti_concat(r.exec, &shape, from, y.data);
        for (size_t i = 0; i < y.count; i++)
            if (!is_channel(total, k->pixels, i)) assert_true(y.data[i] == 0.0f);
        tutti_concat_backward(r.exec, &shape, y.data, NULL, to);
        for (int i = 0, before = 0; i < k->parts; before += k->c[i++]) {
            for (int n = 0; n < k->n; n++)
                for (int c = 0; c < k->c[i]; c++)
                    for (int p = 0; p < k->pixels; p++)
                        assert_true(y.data[tutti_ref_at(total, k->pixels, n, before + c, p)] ==
                                    x[i].data[tutti_ref_at(k->c[i], k->pixels, n, c, p)]);
            assert_memory_equal(dx[i].data, x[i].data, x[i].count * sizeof(float));
            fenced_fill(&dx[i], NAN);
        }
        tutti_concat_backward(r.exec, &shape, y.data, from, to);
        for (int i = 0; i < k->parts; i++) {
            for (size_t j = 0; j < x[i].count; j++)
                assert_true(dx[i].data[j] == (x[i].data[j] <= 0.0f ? 0.0f : x[i].data[j]));
            fenced_fill(&dx[i], NAN);
        }
        fenced_fill(&y, NAN);
    }
    for (int i = 0; i < k->parts; i++) fenced_destroy(&x[i]), fenced_destroy(&dx[i]);
    fenced_destroy(&y);
}

static void concatenation_goes_there_and_back(void **state)
{
    for (size_t i = 0; i < sizeof concats / sizeof *concats; i++) check_concat(*state, &concats[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_go_there_and_back),
        cmocka_unit_test(images_go_there_and_back),
        cmocka_unit_test(weights_follow_the_formulas),
        cmocka_unit_test(strips_make_up_the_whole),
        cmocka_unit_test(blocks_of_output_channels_are_contiguous),
        cmocka_unit_test(concatenation_goes_there_and_back),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
