#include "train/session.h"

#include <string.h>

#include "base/memory.h"

bool tutti_session_is_split(const tutti_session *s)
{
    return tutti_model_move_count(tutti_stepper_model(s->run.stepper)) > 0;
}

/* Where a forward pass leaves what it finds. */
typedef struct finding {
    float *outputs, *losses;
} finding;

static void take_found(const tutti_session *s, int first, int count, const finding *to)
{
    const tutti_model *model = tutti_stepper_model(s->run.stepper);
    const size_t classes = (size_t)tutti_net_classes(s->run.net);
    const size_t row = tutti_round_up(classes, TUTTI_BLOCK), at = (size_t)first;
    const float *p = tutti_model_probabilities(model);
    for (size_t i = 0; to->outputs && i < (size_t)count; i++)
        memcpy(to->outputs + (at + i) * classes, p + i * row, classes * sizeof *p);
    if (to->losses)
        memcpy(to->losses + at, tutti_model_losses(model), (size_t)count * sizeof(float));
}

static tutti_status forward(tutti_session *s, const char *samples, const int32_t *labels, int count,
                            const finding *to)
{
    tutti_model *model = tutti_stepper_model(s->run.stepper);
    const int most = tutti_model_most_samples(model);
    const size_t bytes = tutti_data_own_bytes(s->run.data);
    for (int first = 0; first < count; first += most) {
        const int n = count - first < most ? count - first : most;
        const float *placed = NULL;
        TUTTI_TRY(tutti_session_place(s, samples + (size_t)first * bytes, n, &placed));
        s->piece_first = first;
        TUTTI_TRY(tutti_model_evaluate(model, n, placed, labels ? labels + first : NULL));
        take_found(s, first, n, to);
    }
    return TUTTI_OK;
}

tutti_status tutti_session_forward(tutti_session *s, const void *samples, const int32_t *labels,
                                   int count, float *outputs, float *losses)
{
    const float *placed = NULL;
    const finding to = {outputs, losses};
    if (count < 0) return tutti_fail(TUTTI_ARGUMENT, "a forward pass over %d samples", count);
    if (losses && !labels && !s->own_loss)
        return tutti_fail(TUTTI_ARGUMENT, "there are no losses without labels");
    TUTTI_TRY(tutti_session_place(s, samples, 0, &placed)); /* may samples be handed over at all? */
    TUTTI_TRY(tutti_session_check_labels(s, labels, count));
    if (count && !samples) return tutti_fail(TUTTI_ARGUMENT, "samples are NULL");
    TUTTI_TRY(tutti_session_settle(s, NULL));
    return tutti_run_fatal(&s->run, forward(s, samples, labels, count, &to));
}

tutti_status tutti_session_evaluate(tutti_session *s, tutti_split split, tutti_session_score *score)
{
    tutti_evaluation e;
    if (split < 0 || split >= TUTTI_SPLITS || !tutti_data_count(s->run.data, split))
        return tutti_fail(TUTTI_ARGUMENT, "this session's data set has no samples to evaluate");
    TUTTI_TRY(tutti_session_settle(s, NULL));
    TUTTI_TRY(tutti_run_evaluate(&s->run, split, &e, NULL));
    s->run.score.last = e.findings[tutti_net_answer(s->run.net)];
    *score = (tutti_session_score){e.samples, e.loss, e.top1, e.top5};
    return TUTTI_OK;
}
