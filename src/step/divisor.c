/* With class weights the loss of a minibatch is the sum of its samples' losses divided by the sum
 * of their weights. That sum runs over all ranks, grain by grain in the order of the tree, and the
 * backward pass needs it; labels are known before the forward pass, behind which it travels. */
#include "base/memory.h"
#include "step/parts.h"

struct tutti_divisor {
    tutti_gather gather;
    double *grains; /* the weights of this rank's, added up */
    bool under_way;
};

tutti_status tutti_divisor_create(tutti_stepper *s)
{
    s->loss_divisor = s->options.batch;
    if (!s->options.class_weights || s->options.stand_in) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&s->divisor, 1, sizeof *s->divisor));
    TUTTI_TRY(tutti_alloc(&s->divisor->grains, (size_t)s->options.grains, sizeof(double)));
    return tutti_gather_create(&s->divisor->gather, s, "weights", tutti_gather_roots_most(s));
}

void tutti_divisor_destroy(tutti_divisor **divisor)
{
    if (!*divisor) return;
    tutti_gather_destroy(&(*divisor)->gather);
    tutti_free((*divisor)->grains);
    tutti_free(*divisor);
    *divisor = NULL;
}

static void weigh_grains(const tutti_stepper *s, const tutti_targets *targets)
{
    const tutti_stepper_options *o = &s->options;
    const int first = tutti_share_begin(o->grains, s->size, s->rank);
    const int end = tutti_share_begin(o->grains, s->size, s->rank + 1);
    const int begin = tutti_share_begin(o->batch, o->grains, first);
    for (int g = first; g < end; g++) {
        double sum = 0;
        for (int i = tutti_share_begin(o->batch, o->grains, g);
             i < tutti_share_begin(o->batch, o->grains, g + 1); i++)
            sum += tutti_target_weight(targets, i - begin);
        s->divisor->grains[g - first] = sum;
    }
}

void tutti_divisor_start(tutti_stepper *s, const tutti_samples *samples)
{
    tutti_divisor *d = s->divisor;
    if (!d) return;
    const tutti_targets targets = {.labels = samples->labels,
                                   .others = samples->others,
                                   .shares = samples->shares,
                                   .weights = s->options.class_weights};
    weigh_grains(s, &targets);
    tutti_gather_put_roots(s, d->grains, tutti_gather_of(&d->gather, s->rank));
    if (d->gather.exchange) tutti_exchange_start(d->gather.exchange);
    d->under_way = true;
}

tutti_status tutti_divisor_wait(void *stepper, double *divisor)
{
    tutti_stepper *s = stepper;
    tutti_divisor *d = s->divisor;
    if (d && d->under_way) {
        if (d->gather.exchange) TUTTI_TRY(tutti_exchange_wait(d->gather.exchange));
        s->loss_divisor = tutti_gather_join_roots(s, &d->gather, 0);
        d->under_way = false;
    }
    *divisor = s->loss_divisor;
    return TUTTI_OK;
}
