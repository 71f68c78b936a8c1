/* Images of another size: torch's Upsample, by the nearest pixel or bilinear. */
#include "kernel/upsample.h"

#include "nn/kinds/kind.h"

enum { NEAREST, BILINEAR };

typedef struct options {
    int scale[2], size[2]; /* 0: as the other says */
    int mode;
    bool align_corners;
} options;

static const options defaults = {.mode = NEAREST};

static const char *const modes[] = {"nearest", "bilinear", NULL};

// clang-format off
static const tutti_key keys[] = {
    {"scale", TUTTI_KEY_PAIR, offsetof(options, scale), 1, 4096, false, NULL},
    {"size", TUTTI_KEY_PAIR, offsetof(options, size), 1, 1 << 20, false, NULL},
    {"mode", TUTTI_KEY_CHOICE, offsetof(options, mode), 0, 0, false, modes},
    {"align-corners", TUTTI_KEY_BOOL, offsetof(options, align_corners), 0, 0, false, NULL},
    {.name = NULL}};
// clang-format on

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    options *o = layer->options;
    (void)net;
    if (!o->scale[0] == !o->size[0])
        return tutti_fail(TUTTI_PARSE,
                          "%s needs scale=N (or HxW), how many times larger, or size=HxW, one of "
                          "them",
                          layer->name);
    if (o->align_corners && o->mode != BILINEAR)
        return tutti_fail(TUTTI_PARSE, "%s: align-corners is for mode=bilinear: give that, too",
                          layer->name);
    layer->out = layer->in;
    for (int i = 0; i < 2; i++) {
        int *side = i ? &layer->out.w : &layer->out.h;
        if (o->scale[0] && *side > (1 << 20) / o->scale[i])
            return tutti_fail(TUTTI_SHAPE, "%s: %d times %d pixels are too many", layer->name,
                              o->scale[i], *side);
        *side = o->scale[0] ? *side * o->scale[i] : o->size[i];
    }
    /* sizes say it all: nets have a hash */
    o->scale[0] = o->scale[1] = 0;
    o->size[0] = layer->out.h, o->size[1] = layer->out.w;
    return TUTTI_OK;
}

static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    const options *o = layer->options;
    const tutti_upsample_shape shape = {.c = layer->in.c,
                                        .h = layer->in.h,
                                        .w = layer->in.w,
                                        .out_h = layer->out.h,
                                        .out_w = layer->out.w,
                                        .bilinear = o->mode == BILINEAR,
                                        .align_corners = o->align_corners};
    tutti_upsample *upsample = NULL;
    (void)setup;
    TUTTI_TRY(tutti_upsample_create(&upsample, &shape));
    *own = upsample;
    return TUTTI_OK;
}

static void destroy(void *own)
{
    tutti_upsample *upsample = own;
    tutti_upsample_destroy(&upsample);
}

static void forward(const tutti_call *c)
{
    tutti_upsample_forward(c->exec, c->own, c->out.n, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    tutti_upsample_backward(c->exec, c->own, c->out.n, c->dy, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_upsample = {
    .word = "upsample",
    .what = "an image of another size",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .complete = complete,
    .takes_gate = true,
    .create = create,
    .destroy = destroy,
    .forward = forward,
    .backward_data = backward_data,
};
