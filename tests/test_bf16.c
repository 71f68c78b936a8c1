/* Products of bf16: every instruction set has the bits of the definition, on numbers chosen to
 * hurt: not normal, at the edge of it, infinite, not numbers; and in every form. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/tree.h"
#include "bf16_numbers.h"

/* ---- rounding ---- */

/* All upper halves, with lower halves on both sides of the middle. */
static void every_row_rounds_as_defined(void **state)
{
    (void)state;
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    EACH_ROW(row)
    for (int l = 0; l < 6; l++)
        for (uint32_t upper = 0; upper < 65536; upper += TERMS) {
            float from[TERMS];
            tutti_bf16 to[TERMS];
            for (uint32_t k = 0; k < TERMS; k++) from[k] = of_bits((upper + k) << 16 | lower[l]);
            (*row)->bf16->rows(1, TERMS, from, TERMS, TUTTI_BLOCK, to, TERMS);
            for (int k = 0; k < TERMS; k++)
                if (to[tutti_ref_bf16_place(k)] != tutti_ref_bf16_round(from[k]))
                    fail_msg("%s rounds %08x to %04x, not %04x", (*row)->name,
                             (unsigned)((upper + (uint32_t)k) << 16 | lower[l]),
                             to[tutti_ref_bf16_place(k)], tutti_ref_bf16_round(from[k]));
        }
}

static void the_definition_rounds_to_the_nearest(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, to;
    } cases[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81},
                 {0x3f818000, 0x3f82}, {0xbf80ffff, 0xbf81}, {0x7f7fffff, 0x7f80},
                 {0xff7f8000, 0xff80}, {0x7f7f7fff, 0x7f7f}, {0x7f800000, 0x7f80},
                 {0x7f800001, 0x7fc0}, {0xffa00000, 0xffe0}, {0x007fffff, 0x0000},
                 {0x80000001, 0x8000}, {0x00800000, 0x0080}, {0x80000000, 0x8000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tutti_ref_bf16_round(of_bits(cases[i].from)), cases[i].to);
}

/* ---- forms ---- */

/* Lines of 16 floats with gaps, the second 16 terms elsewhere; what is beyond 'terms' is NaN. */
typedef struct lines {
    fenced from;
    size_t term, half;
    int terms;
} lines;

static lines lines_create(int terms)
{
    lines l = {.term = 20, .half = 16 * 20 + 12, .terms = terms};
    l.from = fenced_create(terms > 16 ? l.half + (size_t)(terms - 17) * l.term + 16
                                      : (size_t)(terms - 1) * l.term + 16);
    for (int k = 0; k < terms; k++)
        for (int c = 0; c < 16; c++)
            l.from.data[(size_t)(k / 16) * l.half + (size_t)(k % 16) * l.term + c] =
                (float)(k * 16 + c) + 0.001f;
    return l;
}

static uint32_t rounded(int terms, int k, int column)
{
    return k < terms ? tutti_ref_bf16_round((float)(k * 16 + column) + 0.001f) : 0;
}

static void check_panel(const tutti_kernels *row, const lines *l)
{
    const int slots = tutti_bf16_slots(l->terms);
    fenced f = fenced_create((size_t)(slots * LINE));
    tutti_bf16 *to = fenced_bf16(&f);
    row->bf16->panel(l->terms, l->from.data, l->term, l->half, to);
    for (int k = 0; k < 4 * slots; k++)
        for (int c = 0; c < 16; c++) {
            const uint32_t got = to[slot_of(k, slots) * LINE + 2 * c + in_slot(k)];
            const uint32_t want = rounded(l->terms, k, c);
            if (got != want)
                fail_msg("%s panel terms=%d term %d column %d: %04x, not %04x", row->name, l->terms,
                         k, c, got, want);
        }
    fenced_destroy(&f);
}

static void check_turned_rows(const tutti_kernels *row, const lines *l)
{
    const int slots = tutti_bf16_slots(l->terms), gap = 4 * slots;
    fenced f = fenced_create((size_t)(15 * gap + TERMS) / 2);
    tutti_bf16 *to = fenced_bf16(&f);
    row->bf16->turned_rows(l->terms, l->from.data, l->term, l->half, to, (size_t)gap);
    for (int k = 0; k < 4 * slots; k++)
        for (int c = 0; c < 16; c++)
            assert_int_equal(to[c * gap + slot_of(k, slots) * 2 + in_slot(k)],
                             rounded(l->terms, k, c));
    fenced_destroy(&f);
}

static void panels_and_their_transpositions_have_their_terms_in_place(void **state)
{
    (void)state;
    for (int terms = 1; terms <= TERMS; terms++) {
        lines l = lines_create(terms);
        EACH_ROW(row)
        {
            check_panel(*row, &l);
            check_turned_rows(*row, &l);
        }
        fenced_destroy(&l.from);
    }
}

/* 'count' rows of numbers; term k of row r is 100 r + k. */
static fenced rows_create(int count, int terms, size_t row, size_t half)
{
    fenced f = fenced_create((size_t)(count - 1) * row + (terms > 16 ? half : 0) + 16);
    for (int r = 0; r < count; r++)
        for (int k = 0; k < terms; k++)
            f.data[(size_t)r * row + (size_t)(k / 16) * half + k % 16] = (float)(100 * r + k);
    return f;
}

static void check_rows(const tutti_kernels *row, int count, int terms)
{
    fenced from = rows_create(count, terms, 60, 40), f = fenced_create((size_t)count * TERMS / 2);
    const int slots = tutti_bf16_slots(terms);
    fenced p = fenced_create((size_t)(slots * LINE));
    tutti_bf16 *to = fenced_bf16(&f), *panel = fenced_bf16(&p);
    row->bf16->rows(count, terms, from.data, 60, 40, to, TERMS);
    row->bf16->turned_panel(count, terms, from.data, 60, 40, panel);
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < TERMS; k++) {
            const int place = tutti_ref_bf16_place(k);
            const int want =
                r < count && k < terms ? tutti_ref_bf16_round((float)(100 * r + k)) : 0;
            if (r < count) assert_int_equal(to[r * TERMS + place], want);
            if (k < terms)
                assert_int_equal(panel[slot_of(k, slots) * LINE + 2 * r + in_slot(k)], want);
        }
    fenced_destroy(&from);
    fenced_destroy(&f);
    fenced_destroy(&p);
}

static void rows_and_their_transpositions_have_their_terms_in_place(void **state)
{
    (void)state;
    EACH_ROW(row)
    for (int count = 1; count <= 16; count++) {
        check_rows(*row, count, 16);
        check_rows(*row, count, 32);
    }
}

/* ---- products ---- */

enum { MOST_BLOCKS = 3, MOST_ROWS = 19, MOST_COLUMNS = 64 };

/* A product in natural order: a[row][term], b[column][term] of all blocks. */
typedef struct natural {
    int rows, panels, count, terms[MOST_BLOCKS];
    tutti_bf16 a[MOST_ROWS][MOST_BLOCKS * TERMS], b[MOST_COLUMNS][MOST_BLOCKS * TERMS];
    float from[MOST_ROWS][MOST_COLUMNS], mask[MOST_ROWS][MOST_COLUMNS], bias[MOST_COLUMNS];
    bool starts, has_bias, relu, has_mask, backward;
} natural;

static void natural_fill(natural *n, uint64_t *state, kind k)
{
    for (int t = 0; t < MOST_BLOCKS * TERMS; t++) {
        for (int r = 0; r < MOST_ROWS; r++) n->a[r][t] = (tutti_bf16)(random_bits(state, k) >> 16);
        for (int c = 0; c < MOST_COLUMNS; c++)
            n->b[c][t] = (tutti_bf16)(random_bits(state, k) >> 16);
    }
    for (int c = 0; c < MOST_COLUMNS; c++) {
        for (int r = 0; r < MOST_ROWS; r++)
            n->from[r][c] = tutti_ref_bf16_add(of_bits(random_bits(state, k)), 0.0f);
        for (int r = 0; r < MOST_ROWS; r++) n->mask[r][c] = of_bits(random_bits(state, k));
        n->bias[c] = of_bits(random_bits(state, k));
    }
}

static float natural_sum(const natural *n, int r, int c)
{
    float sum = n->starts ? 0.0f : n->from[r][c];
    for (int k = 0; k < n->count; k++)
        sum =
            tutti_ref_bf16_block(n->terms[k], n->a[r] + k * TERMS, 1, n->b[c] + k * TERMS, 1, sum);
    if (n->has_bias) sum = tutti_ref_bf16_add(sum, n->bias[c]);
    if (n->has_mask && n->mask[r][c] <= 0.0f) return 0.0f;
    return n->relu && 0.0f > sum ? 0.0f : sum;
}

/* The operands as the kernels read them, with gaps; rows at an odd number of bf16. */
typedef struct packed {
    fenced a, b, from, to, mask;
    tutti_bf16_block block[MOST_BLOCKS];
    tutti_bf16_product job;
} packed;

enum { A_ROW = MOST_BLOCKS * TERMS + 7, FROM_ROW = 70, TO_ROW = 76, GAP = 3 * LINE };

static void pack_a(packed *p, const natural *n)
{
    tutti_bf16 *a = fenced_bf16(&p->a) + 1;
    for (int k = 0; k < n->count; k++) {
        const int slots = tutti_bf16_slots(n->terms[k]), last = n->backward ? 2 * (slots - 1) : 0;
        p->block[k] =
            (tutti_bf16_block){k * TERMS + last, k * TERMS + TUTTI_BF16_ODD + last, slots};
        for (int r = 0; r < n->rows; r++)
            for (int t = 0; t < 4 * slots; t++) {
                const int place = tutti_ref_bf16_place(t), chain = place & TUTTI_BF16_ODD;
                const int at =
                    n->backward ? chain + last - (place - chain) / 2 * 2 + place % 2 : place;
                a[r * A_ROW + k * TERMS + at] = t < n->terms[k] ? n->a[r][k * TERMS + t] : 0;
            }
    }
    p->job.a = a;
}

static void pack_b(packed *p, const natural *n)
{
    tutti_bf16 *b = fenced_bf16(&p->b);
    p->job.b_block = PANEL + GAP;
    p->job.b_panel = p->job.b_block * (size_t)n->count;
    for (int k = 0; k < n->count; k++)
        for (int c = 0; c < n->panels * 16; c++)
            for (int t = 0; t < 4 * tutti_bf16_slots(n->terms[k]); t++) {
                const int slot = slot_of(t, tutti_bf16_slots(n->terms[k]));
                b[(size_t)(c / 16) * p->job.b_panel + (size_t)k * p->job.b_block +
                  (size_t)(slot * LINE + c % 16 * 2 + in_slot(t))] =
                    t < n->terms[k] ? n->b[c][k * TERMS + t] : 0;
            }
    p->job.b = b;
}

static packed packed_create(const natural *n)
{
    packed p = {.a = fenced_create(MOST_ROWS * A_ROW / 2 + 1),
                .b = fenced_create((size_t)(n->panels * n->count * (PANEL + GAP)) / 2),
                .from = fenced_create(MOST_ROWS * FROM_ROW),
                .to = fenced_create(MOST_ROWS * TO_ROW),
                .mask = fenced_create(MOST_ROWS * TO_ROW)};
    pack_a(&p, n);
    pack_b(&p, n);
    for (int r = 0; r < n->rows; r++)
        memcpy(p.from.data + r * FROM_ROW, n->from[r], sizeof n->from[r]);
    for (int r = 0; r < n->rows; r++)
        for (int c = 0; c < n->panels * 16; c++)
            p.mask.data[r * TO_ROW + c / 16 * 18 + c % 16] = n->mask[r][c];
    p.job.mask = n->has_mask ? p.mask.data : NULL;
    p.job.rows = n->rows;
    p.job.panels = n->panels;
    p.job.count = n->count;
    p.job.a_row = A_ROW;
    p.job.backward = n->backward;
    p.job.from = n->starts ? NULL : p.from.data;
    p.job.from_row = FROM_ROW;
    p.job.from_panel = 16;
    p.job.to = p.to.data;
    p.job.to_row = TO_ROW;
    p.job.to_panel = 18;
    p.job.bias = n->has_bias ? n->bias : NULL;
    p.job.relu = n->relu;
    return p;
}

static void check_product(const tutti_kernels *row, const natural *n)
{
    packed p = packed_create(n);
    p.job.block = p.block;
    p.job.fetch = (const char *)p.b.data;
    p.job.fetch_too = (const char *)p.to.data;
    p.job.fetch_bytes = 500;
    row->bf16->product(&p.job);
    for (int r = 0; r < n->rows; r++)
        for (int c = 0; c < n->panels * 16; c++) {
            const float got = p.to.data[r * TO_ROW + c / 16 * 18 + c % 16];
            const float want = natural_sum(n, r, c);
            if (!same_bits(got, want))
                fail_msg("%s rows=%d panels=%d count=%d terms=%d backward=%d at (%d,%d): got %a, "
                         "want %a",
                         row->name, n->rows, n->panels, n->count, n->terms[0], n->backward, r, c,
                         (double)got, (double)want);
        }
    fenced *const all[] = {&p.a, &p.b, &p.from, &p.to, &p.mask};
    for (int i = 0; i < 5; i++) fenced_destroy(all[i]);
}

static void products_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    uint64_t seed = 1;
    natural *n = calloc(1, sizeof *n);
    assert_non_null(n);
    for (int i = 0; i < 400; i++) {
        natural_fill(n, &seed, (kind)(i % KINDS));
        n->rows = 1 + (int)(next(&seed) % MOST_ROWS);
        n->count = 1 + (int)(next(&seed) % MOST_BLOCKS);
        for (int k = 0; k < n->count; k++)
            n->terms[k] = next(&seed) % 2 ? TERMS : 1 + (int)(next(&seed) % TERMS);
        n->starts = next(&seed) % 2;
        n->has_bias = next(&seed) % 4 == 0;
        n->relu = next(&seed) % 4 == 0;
        n->has_mask = next(&seed) % 4 == 0;
        n->backward = next(&seed) % 4 == 0;
        EACH_ROW(row)
        for (n->panels = 1; n->panels <= (*row)->bf16->panels; n->panels++) check_product(*row, n);
    }
    free(n);
}

/* ---- trees ---- */

enum { MOST_LEAVES = 11, TREE_ROWS = 6, TREE_COLUMNS = 32, ROW_GAP = TERMS + 6 };

/* Leaves of one to three blocks, all of the same number of terms. */
typedef struct forest {
    int leaves, terms, begin[MOST_LEAVES + 1];
    tutti_bf16 a[MOST_LEAVES * MOST_BLOCKS][TREE_ROWS][TERMS];
    tutti_bf16 b[MOST_LEAVES * MOST_BLOCKS][TREE_COLUMNS][TERMS];
    tutti_bf16 rows[MOST_LEAVES * MOST_BLOCKS][TREE_ROWS][ROW_GAP];
    tutti_bf16 panels[TREE_COLUMNS / 16][MOST_LEAVES * MOST_BLOCKS][PANEL];
} forest;

static void forest_fill(forest *f, uint64_t *state, kind k)
{
    f->leaves = 1 + (int)(next(state) % MOST_LEAVES);
    f->terms = next(state) % 2 ? TERMS : 1 + (int)(next(state) % TERMS);
    for (int l = 0; l < f->leaves; l++)
        f->begin[l + 1] = f->begin[l] + 1 + (int)(next(state) % MOST_BLOCKS);
    const int slots = tutti_bf16_slots(f->terms);
    for (int n = 0; n < f->begin[f->leaves]; n++)
        for (int t = 0; t < 4 * slots; t++) {
            const int at = slot_of(t, slots);
            for (int r = 0; r < TREE_ROWS; r++)
                f->rows[n][r][2 * at + in_slot(t)] = f->a[n][r][t] =
                    t < f->terms ? (tutti_bf16)(random_bits(state, k) >> 16) : 0;
            for (int c = 0; c < TREE_COLUMNS; c++)
                f->panels[c / 16][n][at * LINE + c % 16 * 2 + in_slot(t)] = f->b[n][c][t] =
                    t < f->terms ? (tutti_bf16)(random_bits(state, k) >> 16) : 0;
        }
}

/* The counter of base/tree.h. */
static float forest_sum(const forest *f, int r, int c)
{
    float stack[MOST_LEAVES];
    int depth = 0;
    for (int l = 0; l < f->leaves; l++) {
        float leaf = 0.0f;
        for (int n = f->begin[l]; n < f->begin[l + 1]; n++)
            leaf = tutti_ref_bf16_block(f->terms, f->a[n][r], 1, f->b[n][c], 1, leaf);
        stack[depth++] = leaf;
        for (int joins = tutti_tree_joins(l); joins; joins--, depth--)
            stack[depth - 2] += stack[depth - 1];
    }
    for (; depth > 1; depth--) stack[depth - 2] += stack[depth - 1];
    return stack[0];
}

static void check_tree(const tutti_kernels *row, const forest *f, int rows, int panels)
{
    const int slots = tutti_bf16_slots(f->terms);
    tutti_bf16_place place[MOST_LEAVES * MOST_BLOCKS];
    for (int n = 0; n < f->begin[f->leaves]; n++)
        place[n] = (tutti_bf16_place){.a = (size_t)n * TREE_ROWS * ROW_GAP,
                                      .b = (size_t)n * PANEL,
                                      .odd = 2 * slots,
                                      .row = ROW_GAP,
                                      .slots = slots};
    fenced to = fenced_create(TREE_ROWS * TREE_COLUMNS);
    row->bf16->tree(&(tutti_bf16_tree){.rows = rows,
                                       .panels = panels,
                                       .leaves = f->leaves,
                                       .begin = f->begin,
                                       .place = place,
                                       .a = f->rows[0][0],
                                       .b = f->panels[0][0],
                                       .b_panel = sizeof f->panels[0] / sizeof(tutti_bf16),
                                       .to = to.data,
                                       .to_row = TREE_COLUMNS,
                                       .to_panel = 16,
                                       .stream = f->leaves % 2});
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < panels * 16; c++) {
            const float got = to.data[r * TREE_COLUMNS + c], want = forest_sum(f, r, c);
            if (!same_bits(got, want))
                fail_msg("%s tree rows=%d panels=%d leaves=%d terms=%d at (%d,%d): got %a, want %a",
                         row->name, rows, panels, f->leaves, f->terms, r, c, (double)got,
                         (double)want);
        }
    fenced_destroy(&to);
}

static void trees_have_the_bits_of_the_definition(void **state)
{
    (void)state;
    uint64_t seed = 2;
    forest *f = calloc(1, sizeof *f);
    assert_non_null(f);
    for (int i = 0; i < 60; i++) {
        forest_fill(f, &seed, (kind)(i % KINDS));
        EACH_ROW(row)
        for (int panels = 1; (*row)->bf16->tree && panels <= (*row)->bf16->panels; panels++)
            check_tree(*row, f, 1 + i % TREE_ROWS, panels);
    }
    free(f);
}

/* The least normal number less a little: to which of both it rounds is seen with more exponents
 * only. And what a short block is filled up with takes the sign from a zero. */
static void edges_of_the_normal_are_as_defined(void **state)
{
    (void)state;
    const tutti_bf16 one = 0x3f80;
    const tutti_bf16 least = 0x0080, drop[] = {0x1980, 0x9980, 0x9a40, 0x1a40}, half = 0x1980;
    static const float want[] = {FLT_MIN, FLT_MIN, 0.0f, FLT_MIN};
    for (int i = 0; i < 4; i++) {
        const tutti_bf16 a[] = {least, 0, drop[i]}, b[] = {one, 0, half};
        assert_true(same_bits(tutti_ref_bf16_block(3, a, 1, b, 1, 0.0f), want[i]));
    }
    const tutti_bf16 tiny[] = {0x8080, 0x8080, 0, 0}, small[] = {0x0080, 0x0080, 0, 0};
    const tutti_bf16 full[] = {0x8080, 0x8080, 0x8080, 0x8080};
    const tutti_bf16 times[] = {0x0080, 0x0080, 0x0080, 0x0080};
    assert_true(same_bits(tutti_ref_bf16_block(4, full, 1, times, 1, -0.0f), -0.0f));
    assert_true(same_bits(tutti_ref_bf16_block(2, tiny, 1, small, 1, -0.0f), 0.0f));
    assert_true(same_bits(tutti_ref_bf16_block(4, tiny, 1, small, 1, -0.0f), 0.0f));
}

/* Flushing ends with the product: nothing else may notice. */
static void modes_are_left_as_they_were(void **state)
{
    (void)state;
    natural *n = calloc(1, sizeof *n);
    assert_non_null(n);
    *n = (natural){.rows = 1, .panels = 1, .count = 1, .terms = {4}, .starts = true};
    EACH_ROW(row)
    {
        check_product(*row, n);
        volatile float least = FLT_MIN;
        assert_true(least / 2 > 0.0f);
    }
    free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_rounds_to_the_nearest),
        cmocka_unit_test(every_row_rounds_as_defined),
        cmocka_unit_test(panels_and_their_transpositions_have_their_terms_in_place),
        cmocka_unit_test(rows_and_their_transpositions_have_their_terms_in_place),
        cmocka_unit_test(products_have_the_bits_of_the_definition),
        cmocka_unit_test(trees_have_the_bits_of_the_definition),
        cmocka_unit_test(edges_of_the_normal_are_as_defined),
        cmocka_unit_test(modes_are_left_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
