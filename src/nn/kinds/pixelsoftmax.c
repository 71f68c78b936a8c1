/* Softmax with cross-entropy at each pixel: PyTorch's CrossEntropyLoss of [n][classes][h][w], whose
 * mean is over all pixels of the minibatch that count. */
#include <stddef.h>

#include "base/memory.h"
#include "kernel/pixel_softmax.h"
#include "nn/kinds/losses.h"

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    if (layer->in.c > TUTTI_MOST_PIXEL_CLASSES)
        return tutti_fail(TUTTI_SHAPE, "%s: %d classes of a pixel; at most %d are possible",
                          layer->name, layer->in.c, (int)TUTTI_MOST_PIXEL_CLASSES);
    return tutti_loss_complete(net, layer);
}

static size_t scratch(const void *own, int samples)
{
    tutti_extent extent = *(const tutti_extent *)own;
    extent.n = samples;
    return tutti_pixel_softmax_scratch(extent);
}

static void forward(const tutti_call *c)
{
    const tutti_targets targets = tutti_loss_targets(c);
    const tutti_pixels_found found = {tutti_loss_place(c), c->counted, c->beaten_by};
    tutti_pixel_softmax(c->exec, c->out, c->in->x, c->labels ? &targets : NULL, c->scratch, c->y,
                        &found);
    tutti_loss_finish(c, found.losses);
}

/* A minibatch without a pixel that counts has no gradient. */
static void backward_data(const tutti_call *c)
{
    const tutti_targets targets = tutti_loss_targets(c);
    const double divisor = tutti_loss_divisor(c);
    const double scale = divisor > 0 ? tutti_loss_weight(c) / divisor : 0;
    tutti_pixel_softmax_backward(c->exec, c->out, c->y, &targets, scale, c->in->dx);
}

const tutti_kind tutti_kind_pixelsoftmax = {
    .word = "pixelsoftmax",
    .what = "softmax and cross-entropy loss of each pixel",
    .keys = tutti_loss_keys,
    .options_size = sizeof(tutti_plain_loss),
    .defaults = &tutti_loss_defaults,
    .complete = complete,
    .is_loss = true,
    .aims = TUTTI_TARGET_PIXELS,
    .again = TUTTI_AGAIN_Y,
    .create = tutti_value_loss_create,
    .destroy = tutti_value_loss_destroy,
    .scratch = scratch,
    .saved = tutti_loss_saved,
    .forward = forward,
    .backward_data = backward_data,
};
