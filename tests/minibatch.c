#include "minibatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "nn/parse.h"

float noise(uint32_t sample, uint64_t index)
{
    const tutti_random_key key = {.seed = 99, .purpose = TUTTI_RANDOM_SYNTHETIC, .sample = sample};
    return (float)(2 * tutti_random_uniform(&key, index) - 1);
}

void must(tutti_status s)
{
    if (s) fail_msg("%s", tutti_message());
}

/* Where pixel p of channel c is in a sample as models want it. */
static size_t place_in_sample(const tutti_net *net, int c, int p)
{
    const tutti_shape in = tutti_net_input(net);
    if (tutti_net_input_is_compact(net)) return (size_t)(p * in.c + c);
    return (size_t)((c / TUTTI_BLOCK * in.h * in.w + p) * TUTTI_BLOCK + c % TUTTI_BLOCK);
}

static void fill_samples(batch *b)
{
    const tutti_shape in = tutti_net_input(b->net);
    const size_t stride = tutti_net_input_floats(b->net), count = tutti_shape_count(in);
    must(tutti_alloc(&b->samples, BATCH * stride, sizeof(float)));
    must(tutti_alloc(&b->reference, BATCH * count, sizeof(double)));
    for (int i = 0; i < BATCH; i++)
        for (int c = 0; c < in.c; c++)
            for (int p = 0; p < in.h * in.w; p++) {
                const float v = noise((uint32_t)i, (uint64_t)(c * in.h * in.w + p));
                b->samples[(size_t)i * stride + place_in_sample(b->net, c, p)] = v;
                b->reference[(size_t)i * count + (size_t)(c * in.h * in.w + p)] = (double)v;
            }
}

batch make_batch(const char *text)
{
    return make_batch_of_kinds(text, tutti_kinds);
}

batch make_batch_of_kinds(const char *text, const tutti_kind *const *kinds)
{
    batch b = {.text = text};
    must(tutti_net_parse_kinds(&b.net, text, "t.net", kinds));
    fill_samples(&b);
    for (int i = 0; i < BATCH; i++) b.labels[i] = i % tutti_net_classes(b.net);
    b.options = (tutti_model_options){.caches = {32 << 10, 512 << 10, 8 << 20},
                                      .batch = BATCH,
                                      .grains = GRAINS,
                                      .workers = 1,
                                      .seed = SEED};
    must(tutti_kernels_choose(&b.options.row));
    return b;
}

void free_batch(batch *b)
{
    tutti_free(b->samples);
    tutti_free(b->reference);
    tutti_net_destroy(&b->net);
}

/* Around their first values. */
static tutti_status set_vector(tutti_model *m, int parameter, const tutti_param *p)
{
    const size_t count = p->count;
    float *torch = NULL;
    TUTTI_TRY(tutti_alloc(&torch, count, sizeof(float)));
    for (size_t k = 0; k < count; k++) torch[k] = p->fill.value + 0.1f * noise(1000, k);
    tutti_model_import(m, parameter, torch, tutti_model_parameters(m));
    tutti_free(torch);
    return TUTTI_OK;
}

tutti_status try_model(tutti_model **out, const batch *b, const tutti_model_options *options)
{
    TUTTI_TRY(tutti_model_create(out, b->net, options));
    tutti_model_init(*out, SEED, TUTTI_INIT_AUTO, 0);
    for (int i = 0; i < b->net->param_count; i++)
        if (b->net->params[i].dim_count == 1) TUTTI_TRY(set_vector(*out, i, &b->net->params[i]));
    return TUTTI_OK;
}

tutti_model *make_model(const batch *b, const tutti_model_options *options)
{
    tutti_model *m = NULL;
    must(try_model(&m, b, options));
    return m;
}

void train(tutti_model *m, const batch *b)
{
    const size_t first = (size_t)tutti_model_first_sample(m);
    must(tutti_model_train(m, STEP, b->samples + first * tutti_net_input_floats(b->net),
                           b->labels + first));
}
