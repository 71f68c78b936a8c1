#include "kernel/targets.h"

#include "base/memory.h"
#include "kernel/ops.h"
#include "kernel/work.h"

typedef struct targets_job {
    tutti_extent extent;
    const tutti_targets *targets;
    tutti_smoothing smoothing;
    const float *x; /* or p */
    double scale;
    float *loss, *dx;
} targets_job;

/* What a sample's label and the other one's have of the target. */
typedef struct aims {
    int label, other;
    double at_label, at_other;
} aims;

static double weight_of(const tutti_targets *t, int class)
{
    return t->weights ? (double)t->weights[class] : 1;
}

static aims aims_of(const tutti_targets *t, int i, double part)
{
    const double share = t->others ? (double)t->shares[i] : 1;
    const int label = t->labels[i], other = t->others ? t->others[i] : label;
    return (aims){label, other, part * share * weight_of(t, label),
                  part * (1 - share) * weight_of(t, other)};
}

double tutti_target_weight(const tutti_targets *targets, int i)
{
    const aims a = aims_of(targets, i, 1);
    return a.at_label + a.at_other;
}

/* The sum of w[c] * x[c], x all 1 where it is NULL. */
static double weighted_sum(const tutti_targets *t, int classes, const float *x)
{
    double lane[TUTTI_BLOCK] = {0};
    for (int c = 0; c < classes; c++)
        lane[c % TUTTI_BLOCK] += weight_of(t, c) * (x ? (double)x[c] : 1);
    for (int half = TUTTI_BLOCK / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

tutti_smoothing tutti_targets_smoothing(const tutti_targets *t, int classes)
{
    tutti_smoothing s = {.each = t->smoothing / classes};
    if (t->smoothing > 0) s.all = s.each * weighted_sum(t, classes, NULL);
    return s;
}

/* -log p[c] is the label's loss + (x[label] - x[c]). */
float tutti_targets_row_loss(const tutti_targets *t, const tutti_smoothing *smoothing, int classes,
                             int i, const float *x, float loss)
{
    const aims a = aims_of(t, i, 1 - t->smoothing);
    const double all = a.at_label + a.at_other + smoothing->all, own = (double)x[a.label];
    double sum = a.at_label * own + a.at_other * (double)x[a.other];
    if (t->smoothing > 0) sum += smoothing->each * weighted_sum(t, classes, x);
    return (float)(all * (double)loss + (all * own - sum));
}

void tutti_targets_row_backward(const tutti_targets *t, const tutti_smoothing *smoothing,
                                int classes, int i, double scale, const float *p, float *dx)
{
    const aims a = aims_of(t, i, 1 - t->smoothing);
    const float smooth = (float)(scale * smoothing->each);
    const float all = (float)(scale * (a.at_label + a.at_other + smoothing->all));
    for (int c = 0; c < classes; c++)
        dx[c] = all * p[c] - (t->weights ? smooth * t->weights[c] : smooth);
    for (int c = classes; c % TUTTI_BLOCK; c++) dx[c] = 0;
    dx[a.label] -= (float)(scale * a.at_label);
    dx[a.other] -= (float)(scale * a.at_other);
}

static void run(tutti_exec exec, tutti_team_job *share, targets_job *job)
{
    TUTTI_ASSERT(job->extent.pixels == 1);
    job->smoothing = tutti_targets_smoothing(job->targets, job->extent.c);
    tutti_team_run(tutti_team_for(exec.team, tutti_extent_floats(job->extent)), share, job);
}

static void loss_share(void *arg, int thread, int threads)
{
    const targets_job *job = arg;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        job->loss[i] =
            tutti_targets_row_loss(job->targets, &job->smoothing, job->extent.c, (int)i,
                                   job->x + i * tutti_extent_sample(job->extent), job->loss[i]);
}

void tutti_targets_loss(tutti_exec exec, tutti_extent extent, const float *x,
                        const tutti_targets *targets, float *loss)
{
    targets_job job = {.extent = extent, .targets = targets, .x = x, .loss = loss};
    run(exec, loss_share, &job);
}

static void backward_share(void *arg, int thread, int threads)
{
    const targets_job *job = arg;
    const size_t width = tutti_extent_sample(job->extent);
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        tutti_targets_row_backward(job->targets, &job->smoothing, job->extent.c, (int)i, job->scale,
                                   job->x + i * width, job->dx + i * width);
}

void tutti_targets_backward(tutti_exec exec, tutti_extent extent, const float *p,
                            const tutti_targets *targets, double scale, float *dx)
{
    targets_job job = {.extent = extent, .targets = targets, .x = p, .scale = scale, .dx = dx};
    run(exec, backward_share, &job);
}
