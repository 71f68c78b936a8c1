/* What ranks tell each other about a step.
 *
 * The loss is a sum over all ranks, and a signal to one rank concerns all. Asking at every step
 * would make every step wait; so each rank says what it has to say in a few doubles that travel
 * behind the next step's computing, and all ranks hear the same news one step late. Decisions
 * (stop, checkpoint, diverged) are taken on the news alone, hence by all ranks alike. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "step/parts.h"

enum {
    HITS,
    ASKED,
    DATA_WAIT,
    EXPOSED,
    COMPUTE,
    NONFINITE_KIND,
    NONFINITE_LAYER,
    NONFINITE_SAMPLE,
    LOSSES
}; /* doubles of a rank's strip */
enum { DOUBLES_PER_UNIT = TUTTI_STRIP_UNIT / 2 };

struct tutti_pulse {
    tutti_exchange *exchange; /* NULL with one rank */
    double *all;              /* [rank][stride] */
    size_t *cuts;
    size_t stride; /* doubles of a rank */
    int64_t sent;  /* steps done when the pulse under way was sent; 0: none is */
    double norm;   /* of that step, the same on all ranks: it need not travel */
    double computed;
};

tutti_status tutti_pulse_create(tutti_session *s)
{
    tutti_pulse *p = NULL;
    TUTTI_TRY(tutti_alloc(&p, 1, sizeof *p));
    s->pulse = p;
    int most = 0;
    for (int r = 0; r < s->size; r++) {
        const int roots = tutti_exchange_roots(s->options.grains, s->size, r);
        if (roots > most) most = roots;
    }
    p->stride = tutti_round_up((size_t)(LOSSES + most), DOUBLES_PER_UNIT);
    TUTTI_TRY(tutti_alloc(&p->all, (size_t)s->size * p->stride, sizeof *p->all));
    if (s->size == 1) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&p->cuts, (size_t)s->size + 1, sizeof *p->cuts));
    for (int r = 0; r <= s->size; r++) p->cuts[r] = (size_t)r * p->stride * 2;
    const tutti_exchange_spec spec = {
        .name = "pulse",
        .priority = -1, /* tiny; never behind a layer */
        .count = p->cuts[s->size],
        .cuts = p->cuts,
        .whole = (float *)p->all,
    };
    return tutti_exchange_create(&p->exchange, s->options.comm, &spec);
}

void tutti_pulse_destroy(tutti_pulse **pulse)
{
    tutti_pulse *p = *pulse;
    if (!p) return;
    tutti_exchange_destroy(&p->exchange);
    tutti_free(p->all);
    tutti_free(p->cuts);
    tutti_free(p);
    *pulse = NULL;
}

/* The roots of this rank's run of grains, each the sum of its grains' losses. */
static void add_own_losses(const tutti_session *s, double *out)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const double *loss;
    int first;
    const int grains = tutti_model_grain_losses(s->model, &first, &loss);
    const int count = tutti_tree_roots(roots, s->options.grains, first, first + grains);
    for (int i = 0, at = 0; i < count; i++) {
        tutti_sum sum;
        tutti_sum_init(&sum, 1 << roots[i].level);
        for (int g = 0; g < 1 << roots[i].level; g++)
            tutti_sum_add(&sum, (tutti_subtree){0, g}, loss[at++]);
        out[i] = tutti_sum_value(&sum);
    }
}

static double joined_loss(const tutti_session *s)
{
    tutti_sum sum;
    tutti_sum_init(&sum, s->options.grains);
    for (int r = 0; r < s->size; r++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int count = tutti_tree_roots(roots, s->options.grains,
                                           tutti_share_begin(s->options.grains, s->size, r),
                                           tutti_share_begin(s->options.grains, s->size, r + 1));
        const double *own = s->pulse->all + (size_t)r * s->pulse->stride + LOSSES;
        for (int i = 0; i < count; i++) tutti_sum_add(&sum, roots[i], own[i]);
    }
    return tutti_sum_value(&sum) / s->options.batch;
}

static bool is_finite_strip(const tutti_session *s, const double *strip)
{
    const int roots = tutti_exchange_roots(
        s->options.grains, s->size, (int)((size_t)(strip - s->pulse->all) / s->pulse->stride));
    for (int i = 0; i < roots; i++)
        if (!isfinite(strip[LOSSES + i])) return false;
    return true;
}

static void read_news(const tutti_session *s, tutti_news *news)
{
    const tutti_pulse *p = s->pulse;
    double longest = -1;
    *news =
        (tutti_news){.step = p->sent, .loss = joined_loss(s), .norm = p->norm, .diverged_rank = -1};
    for (int r = 0; r < s->size; r++) {
        const double *strip = p->all + (size_t)r * p->stride;
        news->hits += (int64_t)strip[HITS];
        news->asked |= (unsigned)strip[ASKED];
        news->data_wait = fmax(news->data_wait, strip[DATA_WAIT]);
        news->exposed = fmax(news->exposed, strip[EXPOSED]);
        if (strip[COMPUTE] > longest) {
            longest = strip[COMPUTE];
            news->slowest = r;
        }
        if (news->diverged_rank >= 0 || is_finite_strip(s, strip)) continue;
        news->diverged_rank = r;
        news->nonfinite =
            (tutti_nonfinite){(tutti_nonfinite_kind)strip[NONFINITE_KIND],
                              (int)strip[NONFINITE_LAYER], (int)strip[NONFINITE_SAMPLE]};
    }
}

tutti_status tutti_pulse_flush(tutti_session *s, tutti_news *news)
{
    tutti_pulse *p = s->pulse;
    *news = (tutti_news){0};
    if (!p || !p->sent) return TUTTI_OK;
    if (p->exchange) TUTTI_TRY(tutti_exchange_wait(p->exchange));
    read_news(s, news);
    p->sent = 0;
    return TUTTI_OK;
}

static int64_t count_hits(const tutti_model *model)
{
    const int32_t *beaten_by = tutti_model_beaten_by(model);
    int64_t hits = 0;
    for (int i = 0; i < tutti_model_samples(model); i++) hits += beaten_by[i] == 0;
    return hits;
}

tutti_status tutti_pulse_beat(tutti_session *s, tutti_note mine, tutti_news *news)
{
    tutti_pulse *p = s->pulse;
    TUTTI_TRY(tutti_pulse_flush(s, news));
    double *own = p->all + (size_t)s->rank * p->stride;
    const tutti_nonfinite odd = tutti_model_nonfinite(s->model);
    own[HITS] = (double)count_hits(s->model);
    own[ASKED] = mine.asked;
    own[DATA_WAIT] = mine.data_wait;
    own[EXPOSED] = s->exposed;
    own[COMPUTE] = s->computed - p->computed;
    own[NONFINITE_KIND] = odd.kind;
    own[NONFINITE_LAYER] = odd.layer;
    own[NONFINITE_SAMPLE] = odd.sample;
    add_own_losses(s, own + LOSSES);
    p->computed = s->computed;
    p->norm = s->norm;
    p->sent = s->step;
    if (p->exchange) tutti_exchange_start(p->exchange);
    return TUTTI_OK;
}
