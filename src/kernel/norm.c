#include "kernel/norm.h"

#include <math.h>
#include <string.h>

#include "kernel/ops_kernels.h"
#include "kernel/work.h"

static size_t row_of(int channels)
{
    return TUTTI_BLOCK * tutti_channel_blocks(channels);
}

/* ---- planes ---- */

/* What threads share: planes, sample after sample. */
typedef struct plane_job {
    const tutti_ops_kernels *ops;
    tutti_extent extent;
    tutti_norm_groups groups;
    const double *states;
    const float *rows, *x, *dy, *plus;
    double *leaves;
    float *y;
    bool gate, stream;
} plane_job;

/* One of them: where its pixels and its channels are, and its sample's group. */
typedef struct plane {
    size_t at, channel, group;
    size_t sample;
} plane;

static plane plane_at(const plane_job *job, size_t i)
{
    const size_t blocks = tutti_channel_blocks(job->extent.c), sample = i / blocks;
    return (plane){.at = i * tutti_extent_plane(job->extent),
                   .channel = i % blocks * TUTTI_BLOCK,
                   .group = job->groups.size
                                ? ((size_t)job->groups.first + sample) / (size_t)job->groups.size
                                : 0,
                   .sample = sample};
}

static double *leaf_of(const plane_job *job, const plane *p)
{
    return job->leaves + p->sample * tutti_norm_pair(job->extent.c) + p->channel;
}

void tutti_norm_split_mean(double mean, float *high, float *low)
{
    *high = (float)mean;
    *low = (float)(mean - (double)*high);
    if (!isfinite(*high)) *low = 0;
}

static void moments_of(const plane_job *job, const plane *p)
{
    double *leaf = leaf_of(job, p);
    job->ops->norm_moments(job->extent.pixels, job->x + p->at, leaf, leaf + row_of(job->extent.c));
}

static void sums_of(const plane_job *job, const plane *p)
{
    const size_t row = row_of(job->extent.c);
    const double *mean = job->states + p->group * TUTTI_NORM_STATE * row + p->channel;
    double *leaf = leaf_of(job, p);
    float high[TUTTI_BLOCK], low[TUTTI_BLOCK];
    for (int l = 0; l < TUTTI_BLOCK; l++) tutti_norm_split_mean(mean[l], &high[l], &low[l]);
    job->ops->norm_sums(job->extent.pixels, job->x + p->at, job->dy + p->at, high, low, leaf,
                        leaf + row);
}

static tutti_norm_plane coefficients_of(const plane_job *job, const plane *p)
{
    const size_t row = row_of(job->extent.c);
    const float *rows = job->rows + p->group * TUTTI_NORM_ROWS * row + p->channel;
    return (tutti_norm_plane){.high = rows + TUTTI_NORM_HIGH * row,
                              .low = rows + TUTTI_NORM_LOW * row,
                              .factor = rows + TUTTI_NORM_FACTOR * row,
                              .factor_x = rows + TUTTI_NORM_FACTOR_X * row,
                              .addend = rows + TUTTI_NORM_ADDEND * row};
}

static void forward_of(const plane_job *job, const plane *p)
{
    const tutti_norm_plane by = coefficients_of(job, p);
    job->ops->norm_forward(job->extent.pixels, &by, job->x + p->at,
                           job->plus ? job->plus + p->at : NULL, job->gate, job->y + p->at,
                           job->stream);
}

static void backward_of(const plane_job *job, const plane *p)
{
    const tutti_norm_plane by = coefficients_of(job, p);
    job->ops->norm_backward(job->extent.pixels, &by, job->x + p->at, job->dy + p->at, job->gate,
                            job->y + p->at, job->stream);
}

#define SHARE(name)                                                                        \
    static void name##_share(void *arg, int thread, int threads)                           \
    {                                                                                      \
        const plane_job *job = arg;                                                        \
        const size_t planes = (size_t)job->extent.n * tutti_channel_blocks(job->extent.c); \
        const tutti_range mine = tutti_range_of(planes, threads, thread);                  \
        for (size_t i = mine.begin; i < mine.end; i++) {                                   \
            const plane p = plane_at(job, i);                                              \
            name##_of(job, &p);                                                            \
        }                                                                                  \
    }
SHARE(moments)
SHARE(sums)
SHARE(forward)
SHARE(backward)

static void run(tutti_team *team, tutti_team_job *share, plane_job *job)
{
    const size_t floats = tutti_extent_floats(job->extent);
    if (job->y) job->stream = job->y != job->dy && tutti_streams(job->y, floats);
    tutti_team_run(tutti_team_for(team, floats), share, job);
}

void tutti_norm_moments(tutti_exec exec, tutti_extent extent, const float *x, double *leaves)
{
    plane_job job = {.ops = exec.row->ops, .extent = extent, .x = x, .leaves = leaves};
    run(exec.team, moments_share, &job);
}

void tutti_norm_sums(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                     const double *states, const float *x, const float *dy, double *leaves)
{
    plane_job job = {.ops = exec.row->ops,
                     .extent = extent,
                     .groups = groups,
                     .states = states,
                     .x = x,
                     .dy = dy,
                     .leaves = leaves};
    run(exec.team, sums_share, &job);
}

void tutti_norm_forward(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                        const float *rows, const float *x, const float *plus, bool relu, float *y)
{
    plane_job job = {.ops = exec.row->ops,
                     .extent = extent,
                     .groups = groups,
                     .rows = rows,
                     .x = x,
                     .plus = plus,
                     .y = y,
                     .gate = relu};
    run(exec.team, forward_share, &job);
}

void tutti_norm_backward(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                         const float *rows, const float *x, const float *dy, bool gated, float *dx)
{
    plane_job job = {.ops = exec.row->ops,
                     .extent = extent,
                     .groups = groups,
                     .rows = rows,
                     .x = x,
                     .dy = dy,
                     .y = dx,
                     .gate = gated};
    run(exec.team, backward_share, &job);
}

/* ---- the tree ---- */

/* 16 channels of a pair. */
typedef struct node {
    double count; /* samples below */
    double first[TUTTI_BLOCK], second[TUTTI_BLOCK];
} node;

typedef struct join_job {
    const tutti_norm_tree *tree;
    const tutti_norm_part *parts;
    int count;
    double *pair;
} join_job;

static void add_sums(node *a, const node *b)
{
    for (int l = 0; l < TUTTI_BLOCK; l++) {
        a->first[l] += b->first[l];
        a->second[l] += b->second[l];
    }
}

static void add_moments(node *a, const node *b, double pixels)
{
    const double share = b->count / (a->count + b->count), weight = a->count * share * pixels;
    for (int l = 0; l < TUTTI_BLOCK; l++) {
        const double apart = b->first[l] - a->first[l];
        a->first[l] += apart * share;
        a->second[l] += b->second[l] + apart * apart * weight;
    }
    a->count += b->count;
}

static int samples_below(const tutti_norm_tree *tree, tutti_subtree subtree)
{
    const long begin = (long)subtree.index << subtree.level, end = begin + (1L << subtree.level);
    return (int)((end < tree->leaves ? end : tree->leaves) - begin);
}

static void join_block(const join_job *job, size_t channel)
{
    const tutti_norm_tree *tree = job->tree;
    const size_t row = row_of(tree->channels);
    node nodes[TUTTI_TREE_LEVELS + 1];
    tutti_tree_stack stack;
    tutti_tree_stack_init(&stack, tree->leaves);
    for (int i = 0; i < job->count; i++) {
        const tutti_norm_part *part = &job->parts[i];
        node *top = &nodes[tutti_tree_push(&stack, part->subtree)];
        top->count = samples_below(tree, part->subtree);
        memcpy(top->first, part->pair + channel, sizeof top->first);
        memcpy(top->second, part->pair + row + channel, sizeof top->second);
        while (tutti_tree_join(&stack)) {
            node *below = &nodes[stack.depth - 1];
            if (tree->moments) add_moments(below, below + 1, tree->pixels);
            else add_sums(below, below + 1);
        }
    }
    TUTTI_ASSERT(stack.depth == 1);
    memcpy(job->pair + channel, nodes[0].first, sizeof nodes[0].first);
    memcpy(job->pair + row + channel, nodes[0].second, sizeof nodes[0].second);
}

static void join_share(void *arg, int thread, int threads)
{
    const join_job *job = arg;
    const tutti_range mine =
        tutti_range_of(tutti_channel_blocks(job->tree->channels), threads, thread);
    for (size_t b = mine.begin; b < mine.end; b++) join_block(job, b * TUTTI_BLOCK);
}

void tutti_norm_join(tutti_exec exec, const tutti_norm_tree *tree, const tutti_norm_part *parts,
                     int count, double *pair)
{
    join_job job = {tree, parts, count, pair};
    const size_t doubles = (size_t)count * tutti_norm_pair(tree->channels);
    tutti_team_run(tutti_team_for(exec.team, doubles), join_share, &job);
}

/* ---- coefficients ---- */

static void set_forward(const tutti_norm *norm, size_t c, double mean, double inverse, float *rows)
{
    const size_t row = row_of(norm->channels);
    tutti_norm_split_mean(mean, &rows[TUTTI_NORM_HIGH * row + c], &rows[TUTTI_NORM_LOW * row + c]);
    rows[TUTTI_NORM_FACTOR * row + c] = (float)(tutti_norm_weight(norm->weight, c) * inverse);
    rows[TUTTI_NORM_ADDEND * row + c] = norm->bias ? norm->bias[c] : 0;
}

void tutti_norm_coefficients(const tutti_norm *norm, double values, double *state, float *rows)
{
    const size_t row = row_of(norm->channels);
    for (size_t c = 0; c < row; c++) {
        const double variance = state[TUTTI_NORM_SQUARES * row + c] / values;
        state[TUTTI_NORM_INVERSE * row + c] = 1 / sqrt(variance + norm->eps);
        set_forward(norm, c, state[c], state[TUTTI_NORM_INVERSE * row + c], rows);
    }
}

void tutti_norm_given(const tutti_norm *norm, const float *mean, const float *variance, float *rows)
{
    for (size_t c = 0; c < row_of(norm->channels); c++)
        set_forward(norm, c, (double)mean[c], 1 / sqrt((double)variance[c] + norm->eps), rows);
}

void tutti_norm_back_coefficients(const tutti_norm *norm, double values, const double *state,
                                  const double *sums, float *rows)
{
    const size_t row = row_of(norm->channels);
    for (size_t c = 0; c < row; c++) {
        const double inverse = state[TUTTI_NORM_INVERSE * row + c];
        const double factor = tutti_norm_weight(norm->weight, c) * inverse;
        tutti_norm_split_mean(state[c], &rows[TUTTI_NORM_HIGH * row + c],
                              &rows[TUTTI_NORM_LOW * row + c]);
        rows[TUTTI_NORM_FACTOR * row + c] = (float)factor;
        rows[TUTTI_NORM_ADDEND * row + c] = (float)(-factor * sums[c] / values);
        rows[TUTTI_NORM_FACTOR_X * row + c] =
            (float)(-factor * inverse * inverse * sums[row + c] / values);
    }
}

/* ---- gradients ---- */

/* 16 channels of a gradient. */
typedef struct pair_of_floats {
    float first[TUTTI_BLOCK], second[TUTTI_BLOCK];
} pair_of_floats;

typedef struct gradient_job gradient_job;
typedef void grain_fn(const gradient_job *job, size_t channel, int sample, double *first,
                      double *second);
struct gradient_job {
    grain_fn *add; /* what a sample contributes */
    size_t row;
    tutti_norm_groups groups;
    const double *states, *leaves;
    const tutti_grains *grains;
    float *first, *second;
    int pixels, left; /* of averages: left: samples of the minibatch from the first group on */
    double total;     /* groups of the minibatch */
};

static const double *state_of(const gradient_job *job, int sample, int row, size_t channel)
{
    const size_t group = (size_t)((job->groups.first + sample) / job->groups.size);
    return job->states + (group * TUTTI_NORM_STATE + (size_t)row) * job->row + channel;
}

static void add_gradient(const gradient_job *job, size_t channel, int sample, double *weight,
                         double *bias)
{
    const double *leaf = job->leaves + (size_t)sample * 2 * job->row + channel;
    const double *inverse = job->states ? state_of(job, sample, TUTTI_NORM_INVERSE, channel) : NULL;
    for (size_t l = 0; l < TUTTI_BLOCK; l++) {
        weight[l] += inverse ? leaf[job->row + l] * inverse[l] : leaf[job->row + l];
        bias[l] += leaf[l];
    }
}

/* The first sample of a group stands for it. */
static void add_average(const gradient_job *job, size_t channel, int sample, double *mean,
                        double *variance)
{
    const int at = job->groups.first + sample, left = job->left - at;
    const double *means = state_of(job, sample, TUTTI_NORM_MEAN, channel);
    const double *squares = state_of(job, sample, TUTTI_NORM_SQUARES, channel);
    const double values = (double)(left < job->groups.size ? left : job->groups.size) * job->pixels;
    if (at % job->groups.size) return;
    for (size_t l = 0; l < TUTTI_BLOCK; l++) {
        mean[l] += means[l] / job->total;
        variance[l] += squares[l] / (values - 1) / job->total;
    }
}

static void grain_gradient(const gradient_job *job, size_t channel, int grain, pair_of_floats *out)
{
    double first[TUTTI_BLOCK] = {0}, second[TUTTI_BLOCK] = {0};
    for (int s = job->grains->begin[grain]; s < job->grains->begin[grain + 1]; s++)
        job->add(job, channel, s, first, second);
    for (int l = 0; l < TUTTI_BLOCK; l++) {
        out->first[l] = (float)first[l];
        out->second[l] = (float)second[l];
    }
}

static void add_floats(pair_of_floats *a, const pair_of_floats *b)
{
    for (int l = 0; l < TUTTI_BLOCK; l++) {
        a->first[l] += b->first[l];
        a->second[l] += b->second[l];
    }
}

static void gradient_share(void *arg, int thread, int threads)
{
    const gradient_job *job = arg;
    const tutti_range mine = tutti_range_of(job->row / TUTTI_BLOCK, threads, thread);
    for (size_t b = mine.begin; b < mine.end; b++) {
        pair_of_floats stack[TUTTI_TREE_LEVELS + 1];
        int depth = 0;
        for (int g = 0; g < job->grains->count; g++) {
            grain_gradient(job, b * TUTTI_BLOCK, g, &stack[depth++]);
            for (int joins = tutti_tree_joins(g); joins > 0 && depth > 1; joins--, depth--)
                add_floats(&stack[depth - 2], &stack[depth - 1]);
        }
        memcpy(job->first + b * TUTTI_BLOCK, stack->first, sizeof stack->first);
        memcpy(job->second + b * TUTTI_BLOCK, stack->second, sizeof stack->second);
    }
}

static void run_gradient(tutti_team *team, gradient_job *job)
{
    const size_t samples = (size_t)(job->grains->begin[job->grains->count] - job->grains->begin[0]);
    tutti_team_run(tutti_team_for(team, samples * 2 * job->row), gradient_share, job);
}

void tutti_norm_gradients(tutti_exec exec, int channels, tutti_norm_groups groups,
                          const double *states, const tutti_grains *grains, const double *leaves,
                          float *dw, float *db)
{
    gradient_job job = {.add = add_gradient,
                        .row = row_of(channels),
                        .groups = groups,
                        .states = states,
                        .leaves = leaves,
                        .grains = grains,
                        .first = dw,
                        .second = db};
    run_gradient(exec.team, &job);
}

void tutti_norm_averages(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                         const double *states, int first_group, int batch,
                         const tutti_grains *grains, float *mean, float *variance)
{
    gradient_job job = {.add = add_average,
                        .row = row_of(extent.c),
                        .groups = groups,
                        .states = states,
                        .grains = grains,
                        .first = mean,
                        .second = variance,
                        .pixels = extent.pixels,
                        .left = batch - first_group * groups.size,
                        .total = tutti_ceil_div(batch, groups.size)};
    run_gradient(exec.team, &job);
}
