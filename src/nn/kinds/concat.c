/* Channels of several inputs, one after another. */
#include "base/memory.h"
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

/* The inputs as the kernel wants them, one array for each thing. */
typedef struct lists {
    int *c;
    const float **x, **gate;
    float **dx;
} lists;

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    const tutti_shape a = layer->out = layer->in;
    for (int i = 1; i < layer->input_count; i++) {
        const tutti_shape b = tutti_layer_input_shape(net, layer, i);
        if (b.h != a.h || b.w != a.w)
            return tutti_fail(TUTTI_SHAPE,
                              "%s: %s is %dx%dx%d and %s is %dx%dx%d; height and width must be "
                              "equal",
                              layer->name, tutti_layer_input_name(net, layer, 0), a.c, a.h, a.w,
                              tutti_layer_input_name(net, layer, i), b.c, b.h, b.w);
        layer->out.c += b.c;
    }
    return TUTTI_OK;
}

static void destroy(void *own)
{
    lists *l = own;
    tutti_free(l->c);
    tutti_free(l->x);
    tutti_free(l->gate);
    tutti_free(l->dx);
    tutti_free(l);
}

static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    const size_t count = (size_t)layer->input_count;
    lists *l = NULL;
    tutti_status s = tutti_alloc(&l, 1, sizeof *l);
    (void)setup;
    *own = l;
    if (s == TUTTI_OK) s = tutti_alloc(&l->c, count, sizeof *l->c);
    if (s == TUTTI_OK) s = tutti_alloc(&l->x, count, sizeof *l->x);
    if (s == TUTTI_OK) s = tutti_alloc(&l->gate, count, sizeof *l->gate);
    if (s == TUTTI_OK) s = tutti_alloc(&l->dx, count, sizeof *l->dx);
    return s;
}

static tutti_concat_shape fill(const tutti_call *c, const lists *l)
{
    for (int k = 0; k < c->layer->input_count; k++) {
        l->c[k] = c->in[k].shape.c;
        l->x[k] = c->in[k].x;
        l->gate[k] = c->in[k].gate;
        l->dx[k] = c->in[k].dx;
    }
    return (tutti_concat_shape){c->out.n, c->out.pixels, c->layer->input_count, l->c};
}

static void forward(const tutti_call *c)
{
    const lists *l = c->own;
    const tutti_concat_shape shape = fill(c, l);
    tutti_concat(c->exec, &shape, l->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    const lists *l = c->own;
    const tutti_concat_shape shape = fill(c, l);
    tutti_concat_backward(c->exec, &shape, c->dy, l->gate, l->dx);
}

const tutti_kind tutti_kind_concat = {
    .word = "concat",
    .what = "channels one after another",
    .names_inputs = true,
    .takes_activation = true,
    .complete = complete,
    .takes_gate = true,
    .create = create,
    .destroy = destroy,
    .forward = forward,
    .backward_data = backward_data,
};
