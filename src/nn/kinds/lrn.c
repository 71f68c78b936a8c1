/* Local response normalisation across channels. */
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

typedef struct options {
    int size;
    double alpha, beta, k;
} options;

static const options defaults = {.alpha = 1e-4, .beta = 0.75, .k = 1};

static const tutti_key keys[] = {
    {"alpha", TUTTI_KEY_REAL, offsetof(options, alpha), 1e-9, 1e3, false, NULL},
    {"beta", TUTTI_KEY_REAL, offsetof(options, beta), 1e-3, 10, false, NULL},
    {"k", TUTTI_KEY_REAL, offsetof(options, k), 1e-9, 1e3, false, NULL},
    {.name = NULL}};

static tutti_lrn lrn_of(const tutti_call *c)
{
    const options *o = c->options;
    return (tutti_lrn){o->size, (float)o->alpha, (float)o->beta, (float)o->k};
}

static void forward(const tutti_call *c)
{
    const tutti_lrn lrn = lrn_of(c);
    tutti_lrn_forward(c->exec, &lrn, c->out, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    const tutti_lrn lrn = lrn_of(c);
    tutti_lrn_backward(c->exec, &lrn, c->out, c->in->x, c->dy, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_lrn = {
    .word = "lrn",
    .what = "local response normalisation",
    .argument = {"size", TUTTI_KEY_INT, offsetof(options, size), 1, TUTTI_LRN_MAX_SIZE, true, NULL},
    .wants = "a number of channels",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .complete = tutti_complete_same,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_DATA,
    .forward = forward,
    .backward_data = backward_data,
};
