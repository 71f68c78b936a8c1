/* What the loss of a minibatch is divided by where that is not the number of its samples: with
 * class weights the sum of the weights of its labels; of pixels the sum over those that count.
 * These sums run over all ranks, grain by grain in the order of the tree, and the backward pass
 * needs them; labels are known before the forward pass, behind which they travel. */
#include "base/memory.h"
#include "step/parts.h"

struct tutti_divisor {
    tutti_gather gather; /* [targets][roots] */
    double *grains;      /* the weights of this rank's, added up */
    bool under_way;
};

static const tutti_target *target_of(const tutti_stepper *s, int target)
{
    return &s->options.net->targets[target];
}

/* Class weights are of the net's answer. */
static const float *weights_of(const tutti_stepper *s, int target)
{
    return target == tutti_net_answer(s->options.net) ? s->options.class_weights : NULL;
}

static bool is_summed(const tutti_stepper *s, int target)
{
    return target_of(s, target)->form == TUTTI_TARGET_PIXELS || weights_of(s, target);
}

static bool is_any_summed(const tutti_stepper *s)
{
    bool any = false;
    for (int t = 0; t < s->options.net->target_count; t++) any = any || is_summed(s, t);
    return any;
}

tutti_status tutti_divisor_create(tutti_stepper *s)
{
    const int targets = s->options.net->target_count;
    for (int t = 0; t < TUTTI_MOST_TARGETS; t++) s->loss_divisors[t] = s->options.batch;
    if (!is_any_summed(s) || s->options.stand_in) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&s->divisor, 1, sizeof *s->divisor));
    TUTTI_TRY(tutti_alloc(&s->divisor->grains, (size_t)s->options.grains, sizeof(double)));
    return tutti_gather_create(&s->divisor->gather, s, "weights",
                               targets * tutti_gather_roots_most(s));
}

void tutti_divisor_destroy(tutti_divisor **divisor)
{
    if (!*divisor) return;
    tutti_gather_destroy(&(*divisor)->gather);
    tutti_free((*divisor)->grains);
    tutti_free(*divisor);
    *divisor = NULL;
}

static double weight_of_pixels(const int32_t *labels, size_t count, const float *weights)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (labels[i] != TUTTI_IGNORED) sum += weights ? (double)weights[labels[i]] : 1;
    return sum;
}

/* Of samples begin .. end-1 of this rank. */
static double weight_of_samples(const tutti_stepper *s, int target, const tutti_samples *samples,
                                int begin, int end)
{
    const int32_t *own = samples->goals.of[target], *labels = own ? own : samples->labels;
    const size_t words = tutti_target_words(target_of(s, target));
    const tutti_targets targets = {.labels = labels,
                                   .others = samples->others,
                                   .shares = samples->shares,
                                   .weights = weights_of(s, target)};
    double sum = 0;
    if (target_of(s, target)->form == TUTTI_TARGET_PIXELS)
        return weight_of_pixels(labels + (size_t)begin * words, (size_t)(end - begin) * words,
                                targets.weights);
    for (int i = begin; i < end; i++) sum += tutti_target_weight(&targets, i);
    return sum;
}

static void weigh_grains(const tutti_stepper *s, int target, const tutti_samples *samples)
{
    const tutti_stepper_options *o = &s->options;
    const int first = tutti_share_begin(o->grains, s->size, s->rank);
    const int end = tutti_share_begin(o->grains, s->size, s->rank + 1);
    const int begin = tutti_share_begin(o->batch, o->grains, first);
    for (int g = first; g < end; g++)
        s->divisor->grains[g - first] =
            weight_of_samples(s, target, samples, tutti_share_begin(o->batch, o->grains, g) - begin,
                              tutti_share_begin(o->batch, o->grains, g + 1) - begin);
}

void tutti_divisor_start(tutti_stepper *s, const tutti_samples *samples)
{
    tutti_divisor *d = s->divisor;
    if (!d) return;
    double *own = tutti_gather_of(&d->gather, s->rank);
    for (int t = 0; t < s->options.net->target_count; t++) {
        if (!is_summed(s, t)) continue;
        weigh_grains(s, t, samples);
        tutti_gather_put_roots(s, d->grains, own + t * tutti_gather_roots_most(s));
    }
    if (d->gather.exchange) tutti_exchange_start(d->gather.exchange);
    d->under_way = true;
}

tutti_status tutti_divisor_wait(void *stepper, double divisors[TUTTI_MOST_TARGETS])
{
    tutti_stepper *s = stepper;
    tutti_divisor *d = s->divisor;
    const int roots = tutti_gather_roots_most(s);
    if (d && d->under_way) {
        if (d->gather.exchange) TUTTI_TRY(tutti_exchange_wait(d->gather.exchange));
        for (int t = 0; t < s->options.net->target_count; t++)
            if (is_summed(s, t))
                s->loss_divisors[t] = tutti_gather_join_roots(s, &d->gather, t * roots);
        d->under_way = false;
    }
    for (int t = 0; t < TUTTI_MOST_TARGETS; t++) divisors[t] = s->loss_divisors[t];
    return TUTTI_OK;
}
