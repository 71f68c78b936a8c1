#include "bench.h"

#include "base/memory.h"

typedef struct subject {
    const bench_setup *setup;
    bench_pass pass;
    tutti_conv *conv;
    float *x, *w, *bias, *y;
    void *scratch;
} subject;

static void close_subject(void *self)
{
    subject *s = self;
    tutti_conv_destroy(&s->conv);
    tutti_free(s->x);
    tutti_free(s->w);
    tutti_free(s->bias);
    tutti_free(s->y);
    tutti_free(s->scratch);
    tutti_free(s);
}

static void run(void *self)
{
    const subject *s = self;
    const bench_setup *setup = s->setup;
    const tutti_grains grains = {setup->grains, setup->grain_begin};
    const tutti_task task = {
        .team = setup->team, .scratch = s->scratch, .n = setup->n, .grains = &grains};
    switch (s->pass) {
    case BENCH_FORWARD: tutti_conv_forward(s->conv, &task, s->x, s->w, s->bias, true, s->y); break;
    case BENCH_BACKWARD_DATA:
        tutti_conv_backward_data(s->conv, &task, s->y, s->w, NULL, s->x);
        break;
    default: tutti_conv_backward_weights(s->conv, &task, s->x, s->y, s->w, s->bias);
    }
}

static tutti_status allocate(subject *s, const tutti_layer *layer)
{
    const size_t n = (size_t)s->setup->n, pixels = (size_t)layer->in.h * (size_t)layer->in.w;
    const size_t x = layer->form == TUTTI_FORM_COMPACT ? pixels * (size_t)layer->in.c
                                                       : tutti_shape_floats(layer->in);
    TUTTI_TRY(bench_numbers(&s->x, n * x));
    TUTTI_TRY(bench_numbers(&s->y, n * tutti_shape_floats(layer->out)));
    TUTTI_TRY(bench_numbers(&s->w, tutti_conv_weight_count(s->conv)));
    TUTTI_TRY(bench_numbers(&s->bias, tutti_conv_bias_count(s->conv)));
    return tutti_alloc(&s->scratch, tutti_conv_scratch(s->conv), 1);
}

tutti_status bench_conv_open(bench_subject *out, const bench_setup *setup, const tutti_layer *layer,
                             bench_pass pass)
{
    if (!bench_is(layer, "conv") || (pass == BENCH_BACKWARD_DATA && !layer->trains_below))
        return tutti_fail(TUTTI_UNSUPPORTED, "%s has no such pass", layer->name);
    subject *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    s->setup = setup;
    s->pass = pass;
    tutti_conv_shape shape = tutti_conv_layer_shape(layer);
    if (tutti_conv_may(&shape, setup->algorithm)) shape.algorithm = setup->algorithm;
    shape.precision = setup->precision;
    tutti_status status =
        tutti_conv_create(&s->conv, &shape, setup->row, &setup->caches, setup->n, setup->threads);
    if (status == TUTTI_OK) status = allocate(s, layer);
    if (status != TUTTI_OK) {
        close_subject(s);
        return status;
    }
    *out = (bench_subject){.run = run, .close = close_subject, .self = s};
    tutti_conv_explain(s->conv, out->explain, sizeof out->explain);
    return TUTTI_OK;
}
