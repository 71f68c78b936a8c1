/* What an update in common memory takes: the sum of all ranks' gradients, and SGD with momentum on
 * the strip of each. */
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "machine/calibrate.h"

enum { BYTES = 64 << 20, TRIES = 15 };

typedef struct strip {
    const tutti_calibration *c;
    float *whole, *momentum;
    size_t begin;
} strip;

static void update(void *user, const float *a, const float *b, size_t begin, size_t end)
{
    const strip *s = user;
    const tutti_sgd sgd = {.lr = 0, .momentum = 0.9f, .gradient_scale = 1};
    const tutti_update update = {
        .count = end - begin,
        .a = a,
        .b = b,
        .w = s->whole + begin,
        .state = {s->momentum + (begin - s->begin)},
    };
    tutti_sgd_step((tutti_exec){s->c->me.exec.row, NULL}, &sgd, &update);
}

static tutti_status create(tutti_calibration *c, tutti_common *common, strip *s,
                           tutti_exchange **out)
{
    float *const partials[] = {tutti_common_own(common)};
    const tutti_exchange_spec spec = {.name = "calibrate",
                                      .count = BYTES / sizeof(float),
                                      .leaves = c->me.size,
                                      .partials = partials,
                                      .update = update,
                                      .user = s,
                                      .whole = s->whole,
                                      .common = common,
                                      .team = c->me.exec.team};
    size_t end;
    TUTTI_TRY(tutti_exchange_create(out, c->me.comm, &spec));
    tutti_exchange_strip(*out, &s->begin, &end);
    return tutti_alloc(&s->momentum, end - s->begin, sizeof *s->momentum);
}

static tutti_status measure(tutti_calibration *c, tutti_exchange *x)
{
    double took[TRIES];
    for (int i = 0; i < TRIES; i++) {
        TUTTI_TRY(tutti_comm_barrier(c->me.comm));
        const double start = tutti_now();
        TUTTI_TRY(tutti_exchange_run(x));
        took[i] = tutti_now() - start;
        TUTTI_TRY(tutti_calibration_slowest(c, &took[i], 1));
    }
    const double own = (double)(BYTES / sizeof(float)) / c->me.size;
    c->platform->common = tutti_calibration_median(took, TRIES) / own;
    tutti_calibration_say(c, "  parameters in common memory: %.2f ns each to add and update",
                          c->platform->common * 1e9);
    return TUTTI_OK;
}

tutti_status tutti_calibrate_common(tutti_calibration *c)
{
    tutti_common *common = NULL;
    tutti_exchange *x = NULL;
    if (c->memory_free < 8.0 * BYTES) return TUTTI_OK; /* the same on all ranks */
    TUTTI_TRY(tutti_common_create(&common, c->me.comm, BYTES, BYTES));
    if (!common) return TUTTI_OK;
    strip s = {.c = c, .whole = tutti_common_whole(common)};
    tutti_status status = tutti_comm_agree(c->me.comm, create(c, common, &s, &x));
    if (status == TUTTI_OK) status = measure(c, x);
    tutti_exchange_destroy(&x);
    tutti_free(s.momentum);
    return status;
}
