/* Targets that are more than labels: loss and gradient against the definition in double, with
 * awkward numbers of classes; one and two threads alike; and none where there are only labels. */
#include "rows.h"

#include "kernel/ops.h"
#include "kernel/targets.h"

enum { MOST = 1024 };

static const int tables[][2] = {{1, 2}, {3, 7}, {4, 16}, {2, 17}, {5, 33}, {40, 1000}};
enum { TABLES = sizeof tables / sizeof *tables };

typedef struct problem {
    int n, classes;
    fenced x, p, loss, dx;
    int32_t labels[64], others[64];
    float shares[64], weights[MOST];
    tutti_targets targets;
} problem;

static problem make(const int table[2], double smoothing)
{
    const int n = table[0], classes = table[1];
    problem q = {.n = n, .classes = classes, .x = random_activation(n, classes, 1, 4, -9, 9)};
    const tutti_random_key key = {.seed = 3, .purpose = TUTTI_RANDOM_SYNTHETIC};
    q.p = fenced_create(q.x.count), q.dx = fenced_create(q.x.count);
    q.loss = fenced_create((size_t)n);
    for (int i = 0; i < n; i++) {
        q.labels[i] = (int32_t)tutti_random_below(&key, (uint64_t)i, (uint32_t)classes);
        q.others[i] = i % 3 ? (int32_t)((q.labels[i] + i) % classes) : q.labels[i];
        q.shares[i] = (float)tutti_random_uniform(&key, (uint64_t)(100 + i));
    }
    for (int c = 0; c < classes; c++)
        q.weights[c] = (float)(0.1 + 3 * tutti_random_uniform(&key, (uint64_t)(1000 + c)));
    q.targets.smoothing = smoothing;
    return q;
}

static void point(problem *q, bool mixed, bool weighted)
{
    q->targets.labels = q->labels;
    q->targets.others = mixed ? q->others : NULL;
    q->targets.shares = mixed ? q->shares : NULL;
    q->targets.weights = weighted ? q->weights : NULL;
}

static void destroy(problem *q)
{
    fenced_destroy(&q->x), fenced_destroy(&q->p);
    fenced_destroy(&q->dx), fenced_destroy(&q->loss);
}

/* The target of sample i, as targets.h writes it; returns its sum. */
static double target(const problem *q, int i, double *t)
{
    const tutti_targets *of = &q->targets;
    const double share = of->others ? (double)of->shares[i] : 1;
    const int label = of->labels[i], other = of->others ? of->others[i] : label;
    double sum = 0;
    for (int c = 0; c < q->classes; c++) {
        const double w = of->weights ? (double)of->weights[c] : 1;
        t[c] = of->smoothing / q->classes * w;
        if (c == label) t[c] += (1 - of->smoothing) * share * w;
        if (c == other) t[c] += (1 - of->smoothing) * (1 - share) * w;
        sum += t[c];
    }
    return sum;
}

static void compare(const problem *q, int i, double scale)
{
    double t[MOST], sum = 0, top = -1e9, loss = 0;
    const size_t row = q->x.count / (size_t)q->n;
    const float *x = q->x.data + (size_t)i * row, *dx = q->dx.data + (size_t)i * row;
    const double all = target(q, i, t);
    for (int c = 0; c < q->classes; c++) /* gcc 12 for arm64 breaks down over fmax here */
        if ((double)x[c] > top) top = (double)x[c];
    for (int c = 0; c < q->classes; c++) sum += exp((double)x[c] - top);
    for (int c = 0; c < q->classes; c++) loss += t[c] * (log(sum) + top - (double)x[c]);
    assert_true(fabs((double)q->loss.data[i] - loss) <= 4e-6 * (all + fabs(loss)));
    for (int c = 0; c < (int)row; c++) {
        const double p = c < q->classes ? exp((double)x[c] - top) / sum : 0;
        const double want = c < q->classes ? scale * (p * all - t[c]) : 0;
        assert_true(fabs((double)dx[c] - want) <= 4e-6 * scale * all);
    }
}

static void check(tutti_team *const teams[2], problem *q)
{
    const double scale = 1.0 / 7;
    const tutti_extent extent = {q->n, q->classes, 1};
    fenced first = fenced_create(q->dx.count);
    for (run r = {0}; next_run(&r, teams);) {
        tutti_softmax(r.exec, extent, q->x.data, q->labels, q->p.data, q->loss.data);
        tutti_targets_loss(r.exec, extent, q->x.data, &q->targets, q->loss.data);
        tutti_targets_backward(r.exec, extent, q->p.data, &q->targets, scale, q->dx.data);
        for (int i = 0; i < q->n; i++) compare(q, i, scale);
        if (r.first) memcpy(first.data, q->dx.data, q->dx.count * sizeof(float));
        assert_memory_equal(first.data, q->dx.data, q->dx.count * sizeof(float));
        tutti_targets_backward(r.exec, extent, q->p.data, &q->targets, scale, q->p.data);
        assert_memory_equal(q->p.data, q->dx.data, q->dx.count * sizeof(float));
    }
    fenced_destroy(&first);
}

static void targets_are_those_of_the_definition(void **state)
{
    static const double smoothings[] = {0, 0.1, 1};
    tutti_team *const *teams = *state;
    for (int t = 0; t < TABLES; t++)
        for (int how = 0; how < 12; how++) {
            problem q = make(tables[t], smoothings[how / 4]);
            point(&q, how & 1, how & 2);
            check(teams, &q);
            destroy(&q);
        }
}

static void a_sample_counts_what_its_labels_do(void **state)
{
    (void)state;
    const float weights[] = {0.5f, 2, 8}, shares[] = {0.25f, 1};
    const int32_t labels[] = {0, 2}, others[] = {1, 0};
    tutti_targets t = {.labels = labels};
    assert_true(tutti_targets_are_plain(&t));
    assert_true(tutti_target_weight(&t, 1) == 1);
    t.weights = weights;
    assert_false(tutti_targets_are_plain(&t));
    assert_true(tutti_target_weight(&t, 0) == 0.5 && tutti_target_weight(&t, 1) == 8);
    t.others = others, t.shares = shares;
    assert_true(tutti_target_weight(&t, 0) == 0.25 * 0.5 + 0.75 * 2);
    assert_true(tutti_target_weight(&t, 1) == 8);
    t.weights = NULL;
    assert_true(tutti_target_weight(&t, 0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_those_of_the_definition),
        cmocka_unit_test(a_sample_counts_what_its_labels_do),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
