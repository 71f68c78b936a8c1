/* The sum of inputs of equal shapes. */
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    const tutti_shape a = layer->out = layer->in;
    for (int i = 1; i < layer->input_count; i++) {
        const tutti_shape b = tutti_layer_input_shape(net, layer, i);
        if (b.c != a.c || b.h != a.h || b.w != a.w)
            return tutti_fail(TUTTI_SHAPE,
                              "%s: %s is %dx%dx%d and %s is %dx%dx%d; they must be equal",
                              layer->name, tutti_layer_input_name(net, layer, 0), a.c, a.h, a.w,
                              tutti_layer_input_name(net, layer, i), b.c, b.h, b.w);
    }
    return TUTTI_OK;
}

static void forward(const tutti_call *c)
{
    const int last = c->layer->input_count - 1;
    const float *sum = c->in[0].x;
    for (int k = 1; k <= last; k++, sum = c->y)
        tutti_add(c->exec, c->count, sum, c->in[k].x, c->relu && k == last, c->y);
}

static void backward_data(const tutti_call *c)
{
    for (int k = 0; k < c->layer->input_count; k++) {
        const tutti_input *in = &c->in[k];
        if (!in->dx) continue;
        if (in->gate) tutti_relu_backward(c->exec, c->count, c->dy, in->gate, in->dx);
        else if (in->dx != c->dy) tutti_scale(c->exec, c->count, 1, c->dy, in->dx);
    }
}

const tutti_kind tutti_kind_add = {
    .word = "add",
    .what = "sum of equal shapes",
    .names_inputs = true,
    .takes_activation = true,
    .complete = complete,
    .fuses_gate = true,
    .takes_gate = true,
    .is_sum = true,
    .forward = forward,
    .backward_data = backward_data,
};
