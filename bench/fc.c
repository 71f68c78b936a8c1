#include "bench.h"

#include "base/memory.h"
#include "kernel/fc.h"

typedef struct subject {
    const bench_setup *setup;
    bench_pass pass;
    int outputs;
    tutti_fc *fc;
    float *x, *w, *bias, *y;
    void *scratch;
} subject;

static void close_subject(void *self)
{
    subject *s = self;
    tutti_fc_destroy(&s->fc);
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
    const tutti_task task = {.team = setup->team,
                             .scratch = s->scratch,
                             .n = setup->n,
                             .grains = &grains,
                             .outputs = s->outputs};
    switch (s->pass) {
    case BENCH_FORWARD: tutti_fc_forward(s->fc, &task, s->x, s->w, s->bias, true, s->y); break;
    case BENCH_BACKWARD_DATA: tutti_fc_backward_data(s->fc, &task, s->y, s->w, NULL, s->x); break;
    default: tutti_fc_backward_weights(s->fc, &task, s->x, s->y, s->w, s->bias);
    }
}

static tutti_status allocate(subject *s, int in)
{
    const size_t n = (size_t)s->setup->n, out = tutti_round_up((size_t)s->outputs, TUTTI_BLOCK);
    TUTTI_TRY(bench_numbers(&s->x, n * tutti_round_up((size_t)in, TUTTI_BLOCK)));
    TUTTI_TRY(bench_numbers(&s->y, n * out));
    TUTTI_TRY(bench_numbers(&s->w, tutti_fc_weight_count(s->fc)));
    TUTTI_TRY(bench_numbers(&s->bias, out));
    return tutti_alloc(&s->scratch, tutti_fc_scratch(s->fc, s->setup->n), 1);
}

tutti_status bench_fc_open(bench_subject *out, const bench_setup *setup, const tutti_layer *layer,
                           bench_pass pass)
{
    if (!bench_is(layer, "fc") || (pass == BENCH_BACKWARD_DATA && !layer->trains_below))
        return tutti_fail(TUTTI_UNSUPPORTED, "%s has no such pass", layer->name);
    const int in = (int)tutti_shape_floats(layer->in);
    subject *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    s->setup = setup;
    s->pass = pass;
    s->outputs = layer->out.c;
    tutti_status status = tutti_fc_create(&s->fc, in, s->outputs, setup->precision, setup->row,
                                          &setup->caches, setup->threads);
    if (status == TUTTI_OK) status = allocate(s, in);
    if (status != TUTTI_OK) {
        close_subject(s);
        return status;
    }
    *out = (bench_subject){.run = run, .close = close_subject, .self = s};
    tutti_fc_explain(s->fc, setup->n, out->explain, sizeof out->explain);
    return TUTTI_OK;
}
