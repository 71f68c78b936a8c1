#include "kernel/group_norm.h"

#include <math.h>

#include "kernel/work.h"

typedef struct group_job {
    tutti_extent extent;
    const tutti_group_norm *norm;
    const double *leaves;
    double *states;
    float *rows;
} group_job;

/* One sample: where its pairs, its state and its coefficients are; rows of 'row'. */
typedef struct sample {
    const group_job *job;
    size_t row;
    const double *first, *second;
    double *state;
    float *rows;
} sample;

static sample sample_of(const group_job *job, size_t i)
{
    const size_t row = tutti_norm_pair(job->extent.c) / 2;
    const double *pair = job->leaves + i * 2 * row;
    return (sample){.job = job,
                    .row = row,
                    .first = pair,
                    .second = pair + row,
                    .state = job->states + i * TUTTI_NORM_STATE * row,
                    .rows = job->rows + i * TUTTI_NORM_ROWS * row};
}

static int members_of(const group_job *job)
{
    return job->extent.c / job->norm->groups;
}

static double values_of(const group_job *job)
{
    return (double)members_of(job) * job->extent.pixels;
}

/* What fills up the last block gets zeros. */
static void clear_filling(const sample *s)
{
    for (size_t c = (size_t)s->job->extent.c; c < s->row; c++) {
        for (int k = 0; k < TUTTI_NORM_STATE; k++) s->state[(size_t)k * s->row + c] = 0;
        for (int k = 0; k < TUTTI_NORM_ROWS; k++) s->rows[(size_t)k * s->row + c] = 0;
    }
}

/* ---- forward ---- */

/* Chan, Golub and LeVeque's update, of channels that all have as many values. */
static void join_moments(const sample *s, int first, double *mean, double *squares)
{
    const int members = members_of(s->job);
    *mean = s->first[first];
    *squares = s->second[first];
    for (int k = 1; k < members; k++) {
        const double apart = s->first[first + k] - *mean, share = 1.0 / (k + 1);
        *mean += apart * share;
        *squares += s->second[first + k] + apart * apart * (k * share * s->job->extent.pixels);
    }
}

static void set_group(const sample *s, int first)
{
    double mean, squares;
    join_moments(s, first, &mean, &squares);
    for (int c = first; c < first + members_of(s->job); c++) {
        s->state[TUTTI_NORM_MEAN * s->row + (size_t)c] = mean;
        s->state[TUTTI_NORM_SQUARES * s->row + (size_t)c] = squares;
    }
}

static void forward_share(void *arg, int thread, int threads)
{
    const group_job *job = arg;
    const tutti_group_norm *norm = job->norm;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const sample s = sample_of(job, i);
        clear_filling(&s);
        for (int g = 0; g < norm->groups; g++) set_group(&s, g * members_of(job));
        tutti_norm_coefficients(&(tutti_norm){job->extent.c, norm->eps, norm->weight, norm->bias},
                                values_of(job), s.state, s.rows);
    }
}

static void run(tutti_exec exec, tutti_team_job *share, group_job *job)
{
    const size_t doubles = (size_t)job->extent.n * tutti_norm_pair(job->extent.c);
    tutti_team_run(tutti_team_for(exec.team, doubles), share, job);
}

void tutti_group_norm_coefficients(tutti_exec exec, tutti_extent extent,
                                   const tutti_group_norm *norm, const double *leaves,
                                   double *states, float *rows)
{
    run(exec, forward_share, &(group_job){extent, norm, leaves, states, rows});
}

/* ---- backward ----
 *
 * With g = dy * weight and d = x - mean: dx = inverse * (g - mean of g - d * inverse^2 * mean of
 * g * d). */

static void set_back_group(const sample *s, int first)
{
    const tutti_group_norm *norm = s->job->norm;
    const double inverse = s->state[TUTTI_NORM_INVERSE * s->row + (size_t)first];
    double sum = 0, product = 0;
    for (int c = first; c < first + members_of(s->job); c++) {
        sum += tutti_norm_weight(norm->weight, (size_t)c) * s->first[c];
        product += tutti_norm_weight(norm->weight, (size_t)c) * s->second[c];
    }
    sum *= inverse / values_of(s->job);
    product *= inverse * inverse * inverse / values_of(s->job);
    for (int c = first; c < first + members_of(s->job); c++) {
        const size_t at = (size_t)c;
        const double mean = s->state[TUTTI_NORM_MEAN * s->row + at];
        tutti_norm_split_mean(mean, &s->rows[TUTTI_NORM_HIGH * s->row + at],
                              &s->rows[TUTTI_NORM_LOW * s->row + at]);
        s->rows[TUTTI_NORM_FACTOR * s->row + at] =
            (float)(tutti_norm_weight(norm->weight, at) * inverse);
        s->rows[TUTTI_NORM_ADDEND * s->row + at] = (float)-sum;
        s->rows[TUTTI_NORM_FACTOR_X * s->row + at] = (float)-product;
    }
}

static void backward_share(void *arg, int thread, int threads)
{
    const group_job *job = arg;
    const tutti_range mine = tutti_range_of((size_t)job->extent.n, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++) {
        const sample s = sample_of(job, i);
        clear_filling(&s);
        for (int g = 0; g < job->norm->groups; g++) set_back_group(&s, g * members_of(job));
    }
}

void tutti_group_norm_back_coefficients(tutti_exec exec, tutti_extent extent,
                                        const tutti_group_norm *norm, const double *states,
                                        const double *leaves, float *rows)
{
    group_job job = {extent, norm, leaves, (double *)states, rows};
    run(exec, backward_share, &job);
}
