/* oneDNN as the opponent: its own best layouts (format any; an image stays NCHW), the direct
 * algorithm or what it chooses, with the weights already in the form it wants: for Winograd's
 * algorithm they are transformed, which training would have to do in every step. */
#include "bench.h"

#include "base/memory.h"

#ifndef BENCH_ONEDNN

bool bench_onednn_present(void)
{
    return false;
}

tutti_status bench_onednn_open(bench_subject *out, const bench_setup *setup,
                               const tutti_layer *layer, bench_pass pass)
{
    (void)out, (void)setup, (void)layer, (void)pass;
    return tutti_fail(TUTTI_UNSUPPORTED, "this program was built without oneDNN");
}

#else

#include <dnnl.h>

enum { ARGS = 4 };

typedef struct subject {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t forward, desc;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ARGS];
    int arg_count;
} subject;

bool bench_onednn_present(void)
{
    return true;
}

static void close_subject(void *self)
{
    subject *s = self;
    for (int i = 0; i < s->arg_count; i++) dnnl_memory_destroy(s->args[i].memory);
    if (s->primitive) dnnl_primitive_destroy(s->primitive);
    if (s->desc) dnnl_primitive_desc_destroy(s->desc);
    if (s->forward) dnnl_primitive_desc_destroy(s->forward);
    if (s->stream) dnnl_stream_destroy(s->stream);
    if (s->engine) dnnl_engine_destroy(s->engine);
    tutti_free(s);
}

static void run(void *self)
{
    const subject *s = self;
    dnnl_primitive_execute(s->primitive, s->stream, s->arg_count, s->args);
    dnnl_stream_wait(s->stream);
}

#define TRY_DNNL(call)                                                                   \
    do {                                                                                 \
        const dnnl_status_t status_ = (call);                                            \
        if (status_ != dnnl_success)                                                     \
            return tutti_fail(TUTTI_UNSUPPORTED, "oneDNN: %s: %d", #call, (int)status_); \
    } while (0)

/* Descriptors of x, w, bias and y. */
typedef struct memories {
    dnnl_memory_desc_t x, w, bias, y;
} memories;

/* Of all but biases. */
static dnnl_data_type_t type_of(const bench_setup *setup)
{
    return setup->precision == TUTTI_IN_BF16 ? dnnl_bf16 : dnnl_f32;
}

static tutti_status any_layout(dnnl_memory_desc_t *md, const bench_setup *setup, int count,
                               const dnnl_dims_t dims)
{
    TRY_DNNL(dnnl_memory_desc_init_by_tag(md, count, dims, type_of(setup), dnnl_format_tag_any));
    return TUTTI_OK;
}

static tutti_status describe_memories(memories *m, const tutti_layer *layer,
                                      const bench_setup *setup)
{
    const int n = setup->n;
    const dnnl_dims_t bias = {layer->out.c};
    TRY_DNNL(dnnl_memory_desc_init_by_tag(&m->bias, 1, bias, dnnl_f32, dnnl_a));
    if (bench_is(layer, "fc")) {
        const int in = (int)tutti_shape_count(layer->in);
        TUTTI_TRY(any_layout(&m->x, setup, 2, (dnnl_dims_t){n, in}));
        TUTTI_TRY(any_layout(&m->w, setup, 2, (dnnl_dims_t){layer->out.c, in}));
        return any_layout(&m->y, setup, 2, (dnnl_dims_t){n, layer->out.c});
    }
    const tutti_conv_shape shape = tutti_conv_layer_shape(layer), *c = &shape;
    const int g = c->groups;
    const dnnl_dims_t x = {n, c->c, c->h, c->w}, y = {n, c->k, layer->out.h, layer->out.w};
    if (g > 1)
        TUTTI_TRY(any_layout(&m->w, setup, 5, (dnnl_dims_t){g, c->k / g, c->c / g, c->r, c->s}));
    else TUTTI_TRY(any_layout(&m->w, setup, 4, (dnnl_dims_t){c->k, c->c, c->r, c->s}));
    TUTTI_TRY(any_layout(&m->y, setup, 4, y));
    TUTTI_TRY(any_layout(&m->x, setup, 4, x));
    if (c->compact) TRY_DNNL(dnnl_memory_desc_init_by_tag(&m->x, 4, x, type_of(setup), dnnl_nchw));
    return TUTTI_OK;
}

/* Forward as the nets use it, with a ReLU at the end. */
static tutti_status create_forward(dnnl_primitive_desc_t *out, const_dnnl_op_desc_t d,
                                   dnnl_engine_t engine)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    TRY_DNNL(dnnl_primitive_attr_create(&attr));
    TRY_DNNL(dnnl_post_ops_create(&ops));
    TRY_DNNL(dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0));
    TRY_DNNL(dnnl_primitive_attr_set_post_ops(attr, ops));
    TRY_DNNL(dnnl_primitive_desc_create(out, d, attr, engine, NULL));
    TRY_DNNL(dnnl_post_ops_destroy(ops));
    TRY_DNNL(dnnl_primitive_attr_destroy(attr));
    return TUTTI_OK;
}

static tutti_status describe_conv(subject *s, const tutti_layer *layer, bench_pass pass,
                                  const memories *m, dnnl_alg_kind_t kind)
{
    const tutti_conv_shape shape = tutti_conv_layer_shape(layer), *c = &shape;
    const dnnl_dims_t stride = {c->stride_h, c->stride_w};
    const dnnl_dims_t dilation = {c->dilation_h - 1, c->dilation_w - 1};
    const dnnl_dims_t left = {c->pad_top, c->pad_left}, right = {c->pad_bottom, c->pad_right};
    dnnl_convolution_desc_t d;
    TRY_DNNL(dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, kind, &m->x,
                                                        &m->w, &m->bias, &m->y, stride, dilation,
                                                        left, right));
    TRY_DNNL(dnnl_primitive_desc_create(&s->forward, &d, NULL, s->engine, NULL));
    if (pass == BENCH_FORWARD) return create_forward(&s->desc, &d, s->engine);
    if (pass == BENCH_BACKWARD_DATA)
        TRY_DNNL(dnnl_dilated_convolution_backward_data_desc_init(&d, kind, &m->x, &m->w, &m->y,
                                                                  stride, dilation, left, right));
    if (pass == BENCH_BACKWARD_WEIGHTS)
        TRY_DNNL(dnnl_dilated_convolution_backward_weights_desc_init(
            &d, kind, &m->x, &m->w, &m->bias, &m->y, stride, dilation, left, right));
    TRY_DNNL(dnnl_primitive_desc_create(&s->desc, &d, NULL, s->engine, s->forward));
    return TUTTI_OK;
}

static tutti_status describe_fc(subject *s, bench_pass pass, const memories *m)
{
    dnnl_inner_product_desc_t d;
    TRY_DNNL(dnnl_inner_product_forward_desc_init(&d, dnnl_forward_training, &m->x, &m->w, &m->bias,
                                                  &m->y));
    TRY_DNNL(dnnl_primitive_desc_create(&s->forward, &d, NULL, s->engine, NULL));
    if (pass == BENCH_FORWARD) return create_forward(&s->desc, &d, s->engine);
    if (pass == BENCH_BACKWARD_DATA)
        TRY_DNNL(dnnl_inner_product_backward_data_desc_init(&d, &m->x, &m->w, &m->y));
    if (pass == BENCH_BACKWARD_WEIGHTS)
        TRY_DNNL(dnnl_inner_product_backward_weights_desc_init(&d, &m->x, &m->w, &m->bias, &m->y));
    TRY_DNNL(dnnl_primitive_desc_create(&s->desc, &d, NULL, s->engine, s->forward));
    return TUTTI_OK;
}

/* Of floats, or of their upper halves. */
static void fill(char *to, size_t bytes, bool halves)
{
    const size_t size = halves ? 2 : 4;
    for (size_t i = 0; i < bytes / size; i++) {
        const float number = (float)(i % 17) * 0.01f - 0.08f;
        memcpy(to + i * size, (const char *)&number + 4 - size, size);
    }
}

static tutti_status add_memory(subject *s, int arg)
{
    const dnnl_memory_desc_t *md =
        dnnl_primitive_desc_query_md(s->desc, dnnl_query_exec_arg_md, arg);
    dnnl_exec_arg_t *to = &s->args[s->arg_count];
    void *data = NULL;
    TRY_DNNL(dnnl_memory_create(&to->memory, md, s->engine, DNNL_MEMORY_ALLOCATE));
    to->arg = arg;
    s->arg_count++;
    TRY_DNNL(dnnl_memory_get_data_handle(to->memory, &data));
    fill(data, dnnl_memory_desc_get_size(md), md->data_type == dnnl_bf16);
    return TUTTI_OK;
}

static tutti_status prepare(subject *s, const tutti_layer *layer, bench_pass pass,
                            const bench_setup *setup)
{
    static const int args[BENCH_PASSES][ARGS] = {
        {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
        {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
        {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS},
    };
    const dnnl_alg_kind_t kind = setup->any_way ? dnnl_convolution_auto : dnnl_convolution_direct;
    memories m;
    TRY_DNNL(dnnl_engine_create(&s->engine, dnnl_cpu, 0));
    TRY_DNNL(dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags));
    TUTTI_TRY(describe_memories(&m, layer, setup));
    if (bench_is(layer, "fc")) TUTTI_TRY(describe_fc(s, pass, &m));
    else TUTTI_TRY(describe_conv(s, layer, pass, &m, kind));
    TRY_DNNL(dnnl_primitive_create(&s->primitive, s->desc));
    for (int i = 0; i < ARGS && args[pass][i]; i++) TUTTI_TRY(add_memory(s, args[pass][i]));
    return TUTTI_OK;
}

tutti_status bench_onednn_open(bench_subject *out, const bench_setup *setup,
                               const tutti_layer *layer, bench_pass pass)
{
    subject *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    const tutti_status status = prepare(s, layer, pass, setup);
    if (status != TUTTI_OK) {
        close_subject(s);
        return status;
    }
    *out = (bench_subject){.run = run, .close = close_subject, .self = s};
    return TUTTI_OK;
}

#endif
