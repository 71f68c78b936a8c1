/* What losses find: of each target the losses of samples and of grains, and what is right. */
#include <math.h>

#include "base/memory.h"
#include "kernel/ops.h"
#include "nn/unit.h"

static double usual_divisor(const tutti_model *m, const tutti_target *target)
{
    const double pixels = (double)target->h * (double)target->w;
    return target->form == TUTTI_TARGET_PIXELS ? m->options.batch * pixels : m->options.batch;
}

tutti_status tutti_verdicts_init(tutti_model *m)
{
    const size_t targets = (size_t)m->net->target_count, samples = targets * (size_t)m->samples;
    m->judging = (tutti_judging){
        .answer = tutti_net_answer(m->net),
        .targets = {.weights = m->options.class_weights, .smoothing = m->options.smoothing},
        .first_sample = m->first_sample};
    for (size_t t = 0; t < targets; t++)
        m->judging.divisors[t] = usual_divisor(m, &m->net->targets[t]);
    TUTTI_TRY(tutti_alloc(&m->losses, samples, sizeof(float)));
    TUTTI_TRY(tutti_alloc(&m->beaten_by, samples, sizeof(int32_t)));
    TUTTI_TRY(tutti_alloc(&m->counted, samples, sizeof(int32_t)));
    return tutti_alloc(&m->grain_losses, targets * (size_t)m->grain_count, sizeof(double));
}

/* Of the pass's grains. Returns whether all are finite. */
static bool sum_losses(tutti_model *m, int target, const int cuts[2])
{
    const float *losses = m->losses + (size_t)target * (size_t)m->samples;
    double *sums = m->grain_losses + (size_t)target * (size_t)m->grain_count;
    bool finite = true;
    for (int g = cuts[0]; g < cuts[1]; g++) {
        const int begin = tutti_sharing_sample(&m->sharing, g) - m->first_sample;
        const int end = tutti_sharing_sample(&m->sharing, g + 1) - m->first_sample;
        double *loss = &sums[g - m->first_grain];
        *loss = tutti_grain_loss(end - begin, losses + begin);
        finite = finite && isfinite(*loss);
    }
    return finite;
}

bool tutti_verdicts_sum(tutti_model *m, const int cuts[2])
{
    bool finite = true;
    for (int t = 0; t < m->net->target_count; t++) finite = sum_losses(m, t, cuts) && finite;
    return finite;
}

void tutti_model_aim(tutti_model *m, const tutti_goals *goals)
{
    m->goals = goals ? *goals : (tutti_goals){{0}};
}

tutti_judgement tutti_model_verdict(const tutti_model *m, int target)
{
    const size_t at = (size_t)target * (size_t)m->samples;
    return (tutti_judgement){.answers = m->units[m->net->judges[target]].y,
                             .losses = m->losses + at,
                             .beaten_by = m->beaten_by + at,
                             .counted = m->counted + at};
}

const float *tutti_model_losses(const tutti_model *m)
{
    return tutti_model_verdict(m, tutti_net_answer(m->net)).losses;
}

const int32_t *tutti_model_beaten_by(const tutti_model *m)
{
    return tutti_model_verdict(m, tutti_net_answer(m->net)).beaten_by;
}

int tutti_model_grain_losses(const tutti_model *m, int target, int *first, const double **losses)
{
    *first = m->first_grain;
    *losses = m->grain_losses + (size_t)target * (size_t)m->grain_count;
    return m->grain_count;
}
