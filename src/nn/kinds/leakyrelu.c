/* x where it is positive, else slope * x. */
#include "kernel/elementwise.h"
#include "nn/kinds/kind.h"

typedef struct options {
    double slope;
} options;

static const options defaults = {0.01};

static const tutti_key keys[] = {
    {"slope", TUTTI_KEY_REAL, offsetof(options, slope), 1e-9, 1, false, NULL}, {.name = NULL}};

static void run(const tutti_call *c, tutti_elementwise_fn *kernel, tutti_elementwise job)
{
    job.factor = (float)((const options *)c->options)->slope;
    tutti_elementwise_run(c->exec.team, kernel, &job, c->count);
}

static void forward(const tutti_call *c)
{
    run(c, c->exec.row->ops->leaky, (tutti_elementwise){.a = c->in->x, .y = c->y});
}

static void backward_data(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->dy, .b = c->y, .mask = c->in->gate, .y = c->in->dx};
    run(c, c->exec.row->ops->leaky_backward, job);
}

const tutti_kind tutti_kind_leakyrelu = {
    .word = "leakyrelu",
    .what = "x, or slope * x below 0",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .is_activation = true,
    .complete = tutti_complete_same,
    .init = TUTTI_INIT_HE,
    .in_place = true,
    .keeps_sign = true,
    .follows = true,
    .takes_gate = true,
    .again = TUTTI_AGAIN_Y,
    .forward = forward,
    .backward_data = backward_data,
};
