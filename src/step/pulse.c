/* What ranks tell each other about a step.
 *
 * The loss is a sum over all ranks, and a signal to one rank concerns all. Asking at every step
 * would make every step wait; so each rank says what it has to say in a few doubles that travel
 * behind the next step's computing, and all ranks hear the same news one step late. Decisions
 * (stop, checkpoint, diverged) are taken on the news alone, hence by all ranks alike. */
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "step/parts.h"

enum {
    HITS,
    JUDGED,
    ASKED,
    DATA_WAIT,
    EXPOSED,
    COMPUTE,
    WAITING,
    MEMORY,
    NONFINITE_KIND,
    NONFINITE_LAYER,
    NONFINITE_SAMPLE,
    LOSSES
}; /* doubles of a rank's strip */

struct tutti_pulse {
    tutti_gather gather;
    int64_t sent; /* steps done when the pulse under way was sent; 0: none is */
    double norm;  /* of that step, the same on all ranks: they need not travel */
    double divisors[TUTTI_MOST_TARGETS];
    double computed;
    tutti_rank_times *ranks; /* of the step whose news was read last */
};

tutti_status tutti_pulse_create(tutti_stepper *s)
{
    tutti_pulse *p = NULL;
    TUTTI_TRY(tutti_alloc(&p, 1, sizeof *p));
    s->pulse = p;
    TUTTI_TRY(tutti_alloc(&p->ranks, (size_t)s->size, sizeof *p->ranks));
    return tutti_gather_create(&p->gather, s, "pulse",
                               LOSSES + s->options.net->target_count * tutti_gather_roots_most(s));
}

void tutti_pulse_destroy(tutti_pulse **pulse)
{
    tutti_pulse *p = *pulse;
    if (!p) return;
    tutti_gather_destroy(&p->gather);
    tutti_free(p->ranks);
    tutti_free(p);
    *pulse = NULL;
}

/* Where a rank's strip has the losses of a target. */
static int losses_of(const tutti_stepper *s, int target)
{
    return LOSSES + target * tutti_gather_roots_most(s);
}

static bool is_finite_strip(const tutti_stepper *s, int rank)
{
    const double *strip = tutti_gather_of(&s->pulse->gather, rank);
    const int roots = tutti_exchange_roots(s->options.grains, s->size, rank);
    for (int t = 0; t < s->options.net->target_count; t++)
        for (int i = 0; i < roots; i++)
            if (!isfinite(strip[losses_of(s, t) + i])) return false;
    return true;
}

/* A minibatch without a pixel that counts has no loss. */
static double loss_of(const tutti_stepper *s)
{
    const tutti_pulse *p = s->pulse;
    double loss = 0;
    for (int t = 0; t < s->options.net->target_count; t++) {
        const double sum = tutti_gather_join_roots(s, &p->gather, losses_of(s, t));
        if (p->divisors[t] > 0) loss += sum / p->divisors[t];
    }
    return loss;
}

static void read_news(const tutti_stepper *s, tutti_news *news)
{
    const tutti_pulse *p = s->pulse;
    double longest = -1;
    *news = (tutti_news){.step = p->sent,
                         .loss = loss_of(s),
                         .norm = p->norm,
                         .ranks = p->ranks,
                         .diverged_rank = -1};
    for (int r = 0; r < s->size; r++) {
        const double *strip = tutti_gather_of(&p->gather, r);
        p->ranks[r] = (tutti_rank_times){.compute = strip[COMPUTE],
                                         .exposed = strip[EXPOSED],
                                         .waiting = strip[WAITING],
                                         .data = strip[DATA_WAIT],
                                         .memory = strip[MEMORY]};
        news->hits += (int64_t)strip[HITS];
        news->judged += (int64_t)strip[JUDGED];
        news->asked |= (unsigned)strip[ASKED];
        news->data_wait = fmax(news->data_wait, strip[DATA_WAIT]);
        news->exposed = fmax(news->exposed, strip[EXPOSED]);
        if (strip[COMPUTE] > longest) {
            longest = strip[COMPUTE];
            news->slowest = r;
        }
        if (news->diverged_rank >= 0 || is_finite_strip(s, r)) continue;
        news->diverged_rank = r;
        news->nonfinite =
            (tutti_nonfinite){(tutti_nonfinite_kind)strip[NONFINITE_KIND],
                              (int)strip[NONFINITE_LAYER], (int)strip[NONFINITE_SAMPLE]};
    }
}

tutti_status tutti_pulse_flush(tutti_stepper *s, tutti_news *news)
{
    tutti_pulse *p = s->pulse;
    *news = (tutti_news){0};
    if (!p || !p->sent) return TUTTI_OK;
    if (p->gather.exchange) TUTTI_TRY(tutti_exchange_wait(p->gather.exchange));
    read_news(s, news);
    p->sent = 0;
    return TUTTI_OK;
}

/* By the net's answer. */
static void count_hits(const tutti_stepper *s, double *hits, double *judged)
{
    const int answer = tutti_net_answer(s->options.net), samples = tutti_model_samples(s->model);
    const tutti_target *target = &s->options.net->targets[answer];
    const tutti_judgement v = tutti_model_verdict(s->model, answer);
    const bool pixels = target->form == TUTTI_TARGET_PIXELS;
    *hits = *judged = 0;
    for (int i = 0; i < samples && !tutti_target_is_values(target); i++) {
        *hits += pixels ? v.counted[i] - v.beaten_by[i] : v.beaten_by[i] == 0;
        *judged += pixels ? v.counted[i] : 1;
    }
}

static void put_losses(const tutti_stepper *s, double *own)
{
    for (int t = 0; t < s->options.net->target_count; t++) {
        const double *losses;
        int first;
        tutti_model_grain_losses(s->model, t, &first, &losses);
        tutti_gather_put_roots(s, losses, own + losses_of(s, t));
    }
}

/* Bytes that this process has had in memory at most. */
static double memory_at_most(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

tutti_status tutti_pulse_beat(tutti_stepper *s, tutti_note mine, tutti_news *news)
{
    tutti_pulse *p = s->pulse;
    const double begin = tutti_now();
    TUTTI_TRY(tutti_pulse_flush(s, news));
    const double waited = tutti_now() - begin;
    double *own = tutti_gather_of(&p->gather, s->rank);
    const tutti_nonfinite odd = tutti_model_nonfinite(s->model);
    count_hits(s, &own[HITS], &own[JUDGED]);
    own[ASKED] = mine.asked;
    own[DATA_WAIT] = mine.data_wait;
    own[EXPOSED] = s->exposed;
    own[COMPUTE] = s->computed - p->computed;
    own[WAITING] = waited;
    own[MEMORY] = memory_at_most();
    own[NONFINITE_KIND] = odd.kind;
    own[NONFINITE_LAYER] = odd.layer;
    own[NONFINITE_SAMPLE] = odd.sample;
    put_losses(s, own);
    p->computed = s->computed;
    p->norm = s->norm;
    memcpy(p->divisors, s->loss_divisors, sizeof p->divisors);
    p->sent = s->step;
    if (p->gather.exchange) tutti_exchange_start(p->gather.exchange);
    return TUTTI_OK;
}
