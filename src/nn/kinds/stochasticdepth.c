/* In training leaves out a share of the samples, whole ones, and scales the rest: of a residual
 * branch only the shortcut is left (Huang et al., "Deep networks with stochastic depth", 2016).
 * Nothing is kept: the backward pass draws the same numbers again. */
#include "base/memory.h"
#include "base/random.h"
#include "kernel/ops.h"
#include "kernel/planes.h"
#include "nn/kinds/kind.h"

typedef struct options {
    double rate;
} options;

static const options defaults = {0};

static void still(tutti_layer *layer)
{
    ((options *)layer->options)->rate = 0;
}

/* Room for 16 factors of each sample. */
static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    float *factors = NULL;
    (void)layer;
    TUTTI_TRY(tutti_alloc_floats(&factors, (size_t)setup->samples * TUTTI_BLOCK));
    *own = factors;
    return TUTTI_OK;
}

static void destroy(void *own)
{
    tutti_free(own);
}

/* A sample is left out where its number, uniform in [0, 1), is below the rate. */
static tutti_factors draw(const tutti_call *c)
{
    const double rate = ((const options *)c->options)->rate;
    float *factors = c->own;
    for (int n = 0; n < c->out.n; n++) {
        const tutti_random_key key = {.seed = c->seed,
                                      .purpose = TUTTI_RANDOM_DROPOUT,
                                      .layer = (uint32_t)c->number,
                                      .when = c->step,
                                      .sample = (uint32_t)(c->first_sample + n)};
        const bool stays = tutti_random_uniform(&key, 0) >= rate;
        for (int l = 0; l < TUTTI_BLOCK; l++)
            factors[n * TUTTI_BLOCK + l] = stays ? (float)(1 / (1 - rate)) : 0;
    }
    return (tutti_factors){factors, TUTTI_BLOCK, 0};
}

static void forward(const tutti_call *c)
{
    if (c->training) tutti_scale_planes(c->exec, c->out, draw(c), c->in->x, NULL, c->y);
    else if (c->y != c->in->x) tutti_scale(c->exec, c->count, 1, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    tutti_scale_planes(c->exec, c->out, draw(c), c->dy, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_stochasticdepth = {
    .word = "stochasticdepth",
    .what = "leaves out a share of the samples",
    .argument = {"rate", TUTTI_KEY_REAL, offsetof(options, rate), 0, 0.999, true, NULL},
    .wants = "a rate from 0 to 1",
    .options_size = sizeof(options),
    .defaults = &defaults,
    .complete = tutti_complete_same,
    .still = still,
    .in_place = true,
    .keeps_sign = true,
    .follows = true,
    .takes_gate = true,
    .create = create,
    .destroy = destroy,
    .forward = forward,
    .backward_data = backward_data,
};
