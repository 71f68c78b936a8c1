/* The product of two inputs of equal shape, or where one of them has a single pixel, of each
 * channel of the other with that (squeeze-and-excitation). */
#include "kernel/elementwise.h"
#include "kernel/ops.h"
#include "kernel/planes.h"
#include "nn/kinds/kind.h"

/* Which input has the pixels, 'image', and which the factors. */
typedef struct roles {
    const tutti_input *image, *factor;
    bool spread; /* one factor for all pixels of a channel */
} roles;

static bool is_larger(tutti_shape a, tutti_shape b)
{
    return a.h * a.w > b.h * b.w;
}

static roles roles_of(const tutti_call *c)
{
    const bool second = is_larger(c->in[1].shape, c->in[0].shape);
    const roles r = {.image = &c->in[second], .factor = &c->in[!second]};
    return (roles){r.image, r.factor, is_larger(r.image->shape, r.factor->shape)};
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    const tutti_shape a = layer->in, b = tutti_layer_input_shape(net, layer, 1);
    const bool equal = a.h == b.h && a.w == b.w, spread = a.h * a.w == 1 || b.h * b.w == 1;
    if (layer->input_count != 2)
        return tutti_fail(TUTTI_PARSE, "%s: mul has two inputs, not %d", layer->name,
                          layer->input_count);
    if (a.c != b.c || (!equal && !spread))
        return tutti_fail(TUTTI_SHAPE,
                          "%s: %s is %dx%dx%d and %s is %dx%dx%d; they must be equal, or one of "
                          "them %dx1x1",
                          layer->name, tutti_layer_input_name(net, layer, 0), a.c, a.h, a.w,
                          tutti_layer_input_name(net, layer, 1), b.c, b.h, b.w, a.c);
    layer->out = is_larger(b, a) ? b : a;
    return TUTTI_OK;
}

static tutti_factors factors_of(const tutti_call *c, const tutti_input *factor)
{
    return (tutti_factors){factor->x, tutti_channel_blocks(c->out.c) * TUTTI_BLOCK, TUTTI_BLOCK};
}

/* y = a * b, element by element */
static void multiply(const tutti_call *c, const float *a, const float *b, const float *mask,
                     float *y)
{
    const tutti_elementwise job = {.a = a, .b = b, .mask = mask, .y = y};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->mul, &job, c->count);
}

static void forward(const tutti_call *c)
{
    const roles r = roles_of(c);
    if (r.spread)
        tutti_scale_planes(c->exec, c->out, factors_of(c, r.factor), r.image->x, NULL, c->y);
    else multiply(c, r.image->x, r.factor->x, NULL, c->y);
}

/* dy times the image, added up over pixels. */
static void factor_gradient(const tutti_call *c, const roles *r)
{
    const tutti_input *f = r->factor;
    const size_t count = (size_t)c->out.n * tutti_channel_blocks(c->out.c) * TUTTI_BLOCK;
    tutti_dot_planes(c->exec, c->out, c->dy, r->image->x, f->dx);
    if (f->gate) tutti_relu_backward(c->exec, count, f->dx, f->gate, f->dx);
}

static void backward_data(const tutti_call *c)
{
    const roles r = roles_of(c);
    const tutti_input *i = r.image, *f = r.factor;
    if (i->dx && r.spread)
        tutti_scale_planes(c->exec, c->out, factors_of(c, f), c->dy, i->gate, i->dx);
    if (i->dx && !r.spread) multiply(c, c->dy, f->x, i->gate, i->dx);
    if (f->dx && r.spread) factor_gradient(c, &r);
    if (f->dx && !r.spread) multiply(c, c->dy, i->x, f->gate, f->dx);
}

const tutti_kind tutti_kind_mul = {
    .word = "mul",
    .what = "product of two inputs",
    .names_inputs = true,
    .takes_activation = true,
    .complete = complete,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_DATA,
    .forward = forward,
    .backward_data = backward_data,
};
