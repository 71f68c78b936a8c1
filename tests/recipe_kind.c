/* A kind of layer written as doc/ARCHITECTURE.md says: y = x + bias, channel by channel. It
 * also keeps a number for each channel that is not trained. */
#include "base/tree.h"
#include "nn/kinds/kind.h"
#include "recipes.h"

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    const int c = layer->in.c;
    tutti_param param = {.dim_count = 1, .dims = {c}, .layout = {c, 1, 1, 1, true}};
    layer->out = layer->in;
    param.fill = (tutti_fill){TUTTI_INIT_CONSTANT, 0};
    TUTTI_TRY(tutti_layer_add_param(net, "bias", &param));
    param.role = TUTTI_KEPT;
    param.fill.value = 7;
    return tutti_layer_add_param(net, "kept", &param);
}

static size_t at(const tutti_call *c, int n, int channel, int pixel)
{
    const int block = channel / TUTTI_BLOCK, lane = channel % TUTTI_BLOCK;
    return (size_t)n * tutti_extent_sample(c->out) +
           (size_t)(block * c->out.pixels + pixel) * TUTTI_BLOCK + (size_t)lane;
}

static void forward(const tutti_call *c)
{
    for (size_t i = 0; i < c->count; i++) c->y[i] = c->in->x[i];
    for (int n = 0; n < c->out.n; n++)
        for (int k = 0; k < c->out.c; k++)
            for (int p = 0; p < c->out.pixels; p++)
                c->y[at(c, n, k, p)] = c->in->x[at(c, n, k, p)] + c->param[0][k];
}

static float grain_sum(const tutti_call *c, int grain, int channel)
{
    float sum = 0;
    for (int n = c->grains->begin[grain]; n < c->grains->begin[grain + 1]; n++)
        for (int p = 0; p < c->out.pixels; p++) sum += c->dy[at(c, n, channel, p)];
    return sum;
}

/* A chain within a grain, the tree over grains. */
static void backward_parameters(const tutti_call *c)
{
    for (int k = 0; k < c->out.c; k++) {
        float stack[TUTTI_TREE_LEVELS] = {0};
        int depth = 0;
        for (int g = 0; g < c->grains->count; g++) {
            stack[depth++] = grain_sum(c, g, k);
            for (int joins = tutti_tree_joins(g); joins; joins--, depth--)
                stack[depth - 2] += stack[depth - 1];
        }
        c->gradient[0][k] = stack[0];
    }
}

static void backward_data(const tutti_call *c)
{
    for (size_t i = 0; i < c->count; i++) c->in->dx[i] = c->dy[i];
}

const tutti_kind recipe_kind = {
    .word = "offset",
    .what = "adds a number to each channel",
    .takes_activation = true,
    .complete = complete,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
