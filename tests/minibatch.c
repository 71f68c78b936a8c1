#include "minibatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "made_targets.h"
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

/* ---- targets ---- */

static void fill_target(const tutti_target *t, int target, int place, void *out)
{
    const int pixels = t->h * t->w;
    float *values = out;
    int32_t *classes = out;
    if (!tutti_target_is_values(t)) {
        const int count = t->form == TUTTI_TARGET_PIXELS ? pixels : 1;
        for (int p = 0; p < count; p++) classes[p] = made_class(place, target, p, t->c, pixels);
        return;
    }
    for (int c = 0; c < t->c; c++)
        for (int p = 0; p < pixels; p++)
            values[(c / TUTTI_BLOCK * pixels + p) * TUTTI_BLOCK + c % TUTTI_BLOCK] =
                (float)(t->form == TUTTI_TARGET_SHARES ? made_share(place, target, c, p)
                                                       : made_value(place, target, c, p));
}

static void fill_targets(batch *b)
{
    for (int t = 0; t < b->net->target_count; t++) {
        const size_t bytes = tutti_target_words(&b->net->targets[t]) * sizeof(float);
        char *at = NULL;
        must(tutti_alloc(&at, BATCH, bytes));
        b->targets[t] = at;
        for (int i = 0; i < BATCH; i++, at += bytes) fill_target(&b->net->targets[t], t, i, at);
    }
    if (b->net->targets[tutti_net_answer(b->net)].form == TUTTI_TARGET_CLASS)
        memcpy(b->labels, b->targets[tutti_net_answer(b->net)], sizeof b->labels);
}

void aim(tutti_model *m, const batch *b, size_t first)
{
    tutti_goals goals = {{0}};
    for (int t = 0; t < b->net->target_count; t++)
        goals.of[t] = (const char *)b->targets[t] +
                      first * tutti_target_words(&b->net->targets[t]) * sizeof(float);
    tutti_model_aim(m, &goals);
}

size_t answer_floats(const batch *b)
{
    return tutti_shape_floats(b->net->layers[b->net->layer_count - 1].out);
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
    fill_targets(&b);
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
    for (int t = 0; t < TUTTI_MOST_TARGETS; t++) tutti_free(b->targets[t]);
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
    aim(m, b, first);
    must(tutti_model_train(m, STEP, b->samples + first * tutti_net_input_floats(b->net),
                           b->labels + first));
}
