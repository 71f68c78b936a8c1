/* Backward-weights of fully connected layers; see fc.c. */
#include <stdint.h>
#include <string.h>

#include "kernel/fc_parts.h"

enum {
    INPUTS = 1024,    /* of a run, at most, ... */
    FAR_INPUTS = 192, /* ... and when partial sums wait for other samples */
};

/* Floats of one thread's partial sums that wait for other runs; there are at most n runs. */
static size_t far_floats(const tutti_fc *fc, int n)
{
    return (size_t)FAR_INPUTS * fc->kernels->weights_blocks * TUTTI_BLOCK *
           (tutti_tree_height(n) + 1);
}

size_t tutti_fc_weights_scratch(const tutti_fc *fc, int n)
{
    tutti_arena arena = {0};
    tutti_fc_take(&arena, (size_t)n * fc->in);
    tutti_fc_take(&arena, (size_t)n * fc->out);
    tutti_fc_take(&arena, (size_t)TUTTI_FC_NEAR_STACK * fc->threads);
    tutti_fc_take(&arena, far_floats(fc, n) * fc->threads);
    return arena.used;
}

/* How the samples are cut so that a run of them stays in the first-level cache: into subtrees of
 * 'grains' grains (a power of two), or a grain of many samples into pieces. Grains of few samples
 * need no cutting: the kernel sweeps. */
typedef struct run_plan {
    int grains, runs;
    int piece; /* samples at a time */
    bool sweep;
} run_plan;

static bool all_few(const tutti_grains *grains, int few)
{
    for (int g = 0; g < grains->count; g++) {
        const int samples = grains->begin[g + 1] - grains->begin[g];
        if (samples < 1 || samples > few) return false;
    }
    return true;
}

static run_plan plan_runs(const tutti_fc *fc, const tutti_grains *grains, int n)
{
    const int columns = fc->kernels->weights_blocks * TUTTI_BLOCK;
    const int room = (int)(fc->caches.l1 / 2 / sizeof(float)) / columns;
    const int per_grain = tutti_ceil_div(n < 1 ? 1 : n, grains->count);
    if (all_few(grains, fc->kernels->few_samples))
        return (run_plan){.grains = grains->count, .runs = 1, .piece = n, .sweep = true};
    run_plan plan = {.grains = 1, .piece = n};
    while (plan.grains < grains->count && 2 * plan.grains * per_grain <= room) plan.grains *= 2;
    if (per_grain > room) plan.piece = room < 32 ? 32 : room;
    plan.runs = tutti_ceil_div(grains->count, plan.grains);
    return plan;
}

typedef struct weights_pass {
    const tutti_fc *fc;
    const tutti_grains *grains;
    run_plan plan;
    int n, outputs, inputs; /* inputs: of a run */
    const float *x, *dy;    /* from the first grain's first sample on */
    float *dw, *db;
    float *x_packed, *dy_packed, *near, *far;
    size_t far_floats;
    bool stream;
} weights_pass;

static void weights_pack_share(void *arg, int thread, int threads)
{
    const weights_pass *pass = arg;
    const size_t block = (size_t)pass->n * TUTTI_BLOCK;
    const int i = tutti_share_begin(tutti_fc_blocks(pass->fc->in), threads, thread);
    const int i_end = tutti_share_begin(tutti_fc_blocks(pass->fc->in), threads, thread + 1);
    const int o = tutti_share_begin(tutti_fc_blocks(pass->outputs), threads, thread);
    const int o_end = tutti_share_begin(tutti_fc_blocks(pass->outputs), threads, thread + 1);
    pass->fc->kernels->pack(pass->n, (i_end - i) * TUTTI_BLOCK, pass->x + i * TUTTI_BLOCK,
                            (size_t)pass->fc->in, pass->x_packed + i * block, block);
    pass->fc->kernels->pack(pass->n, (o_end - o) * TUTTI_BLOCK, pass->dy + o * TUTTI_BLOCK,
                            (size_t)pass->outputs, pass->dy_packed + o * block, block);
}

/* Adds the run's samples to a job that lacks only them: one grain in pieces, or several. */
static void weights_run(const weights_pass *pass, tutti_fc_weights_job *job)
{
    const run_plan *plan = &pass->plan;
    const int first = job->run * plan->grains, *grain = pass->grains->begin + first;
    const float *x = job->x, *dy = job->dy;
    job->grains = tutti_fc_least(plan->grains, pass->grains->count - first);
    const int end = grain[job->grains] - pass->grains->begin[0];
    int sample = grain[0] - pass->grains->begin[0];
    do {
        const int piece_end = job->grains > 1 ? end : tutti_fc_least(sample + plan->piece, end);
        const int piece[2] = {sample, piece_end};
        job->first = sample == grain[0] - pass->grains->begin[0];
        job->last = piece_end == end;
        job->begin = job->grains > 1 ? grain : piece;
        job->x = x + (size_t)sample * TUTTI_BLOCK;
        job->dy = dy + (size_t)sample * TUTTI_BLOCK;
        pass->fc->kernels->weights(job);
        sample = piece_end;
    } while (sample < end);
    job->x = x;
    job->dy = dy;
}

/* A panel of outputs for inputs 'input' .. 'input_end'-1, run after run. */
static void weights_panel(const weights_pass *pass, int block, int block_end, int input,
                          int input_end, int thread)
{
    const size_t packed = (size_t)pass->n * TUTTI_BLOCK;
    tutti_fc_weights_job job = {
        .inputs = input_end - input,
        .blocks = block_end - block,
        .runs = pass->plan.runs,
        .sweep = pass->plan.sweep,
        .x = pass->x_packed + (size_t)input * pass->n,
        .x_block = packed,
        .dy = pass->dy_packed + block * packed,
        .dy_block = packed,
        .near = pass->near + (size_t)thread * TUTTI_FC_NEAR_STACK,
        .far = pass->far + (size_t)thread * pass->far_floats,
        .levels = tutti_tree_height(pass->plan.runs) + 1,
        .dw = pass->dw + ((size_t)block * pass->fc->in + input) * TUTTI_BLOCK,
        .dw_block = (size_t)pass->fc->in * TUTTI_BLOCK,
        .stream = pass->stream,
    };
    for (job.run = 0; job.run < job.runs; job.run++) weights_run(pass, &job);
}

static void weights_bias(const weights_pass *pass, const tutti_fc_part *part, int thread)
{
    const size_t packed = (size_t)pass->n * TUTTI_BLOCK;
    const tutti_fc_weights_job job = {
        .blocks = part->a_end - part->a,
        .grains = pass->grains->count,
        .begin = pass->grains->begin,
        .first = true,
        .dy = pass->dy_packed + part->a * packed,
        .dy_block = packed,
        .near = pass->near + (size_t)thread * TUTTI_FC_NEAR_STACK,
    };
    pass->fc->kernels->bias(&job, pass->db + part->a * TUTTI_BLOCK);
}

static void weights_share(void *arg, int thread, int threads)
{
    const weights_pass *pass = arg;
    const tutti_fc *fc = pass->fc;
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_fc_blocks(pass->outputs), tutti_fc_blocks(fc->in), thread, threads);
    const int blocks = part.a_end - part.a, end = part.b_end * TUTTI_BLOCK;
    const int panels = tutti_ceil_div(blocks, fc->kernels->weights_blocks);
    for (int i = part.b * TUTTI_BLOCK; i < end; i += pass->inputs)
        for (int p = 0; p < panels; p++)
            weights_panel(pass, part.a + tutti_share_begin(blocks, panels, p),
                          part.a + tutti_share_begin(blocks, panels, p + 1), i,
                          tutti_fc_least(i + pass->inputs, end), thread);
    if (pass->db && part.b == 0 && blocks > 0) weights_bias(pass, &part, thread);
}

void tutti_fc_backward_weights(const tutti_fc *fc, const tutti_task *task, const float *x,
                               const float *dy, float *dw, float *db)
{
    if (fc->bf16 && task->grains->count) {
        tutti_fc_bf16_backward_weights(fc, task, x, dy, dw, db);
        return;
    }
    TUTTI_ASSERT(tutti_team_size(task->team) <= fc->threads);
    const tutti_grains *grains = task->grains;
    const int outputs = tutti_fc_filled(task->outputs);
    const size_t count = (size_t)outputs * fc->in;
    if (grains->count == 0) {
        memset(dw, 0, count * sizeof *dw);
        if (db) memset(db, 0, (size_t)outputs * sizeof *db);
        return;
    }
    const int first = grains->begin[0], n = grains->begin[grains->count] - first;
    tutti_arena arena = {.base = task->scratch, .bytes = tutti_fc_scratch(fc, n)};
    weights_pass pass = {
        .fc = fc,
        .grains = grains,
        .plan = plan_runs(fc, grains, n),
        .n = n,
        .outputs = outputs,
        .x = x + (size_t)first * fc->in,
        .dy = dy + (size_t)first * outputs,
        .dw = dw,
        .db = db,
        .x_packed = tutti_fc_take(&arena, (size_t)n * fc->in),
        .dy_packed = tutti_fc_take(&arena, (size_t)n * fc->out),
        .near = tutti_fc_take(&arena, (size_t)TUTTI_FC_NEAR_STACK * fc->threads),
        .far = tutti_fc_take(&arena, far_floats(fc, n) * fc->threads),
        .far_floats = far_floats(fc, n),
        .stream = tutti_fc_beyond_caches(fc, count) && (uintptr_t)dw % TUTTI_CACHE_LINE == 0,
    };
    const bool alone = pass.plan.runs == 1 && pass.plan.piece >= n;
    pass.inputs = alone && !pass.plan.sweep ? INPUTS : FAR_INPUTS;
    tutti_team_run(task->team, weights_pack_share, &pass);
    tutti_team_run(task->team, weights_share, &pass);
}
