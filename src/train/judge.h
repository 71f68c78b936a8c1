/* What an evaluation finds, by the form of a target (base/target.h): which figures there are, what
 * they are called, and which of them decides that a checkpoint is the best. Everything that is
 * counted or added up is an integer, sums of reals as in base/exact.h: so that ranks just add
 * theirs. */
#ifndef TUTTI_TRAIN_JUDGE_H
#define TUTTI_TRAIN_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/target.h"

enum { TUTTI_MOST_FIGURES = 3, TUTTI_DECIDES_LOSS = -1 };

typedef struct tutti_figure {
    const char *key;  /* "top1": in metrics.jsonl and JSON */
    const char *name; /* "top-1" */
    bool is_share;    /* shown in percent */
} tutti_figure;

typedef struct tutti_judge {
    const char *step_figure;                  /* of a step of training; NULL: none */
    tutti_figure figures[TUTTI_MOST_FIGURES]; /* until one without a key */
    int decides; /* which of them, the higher the better; or the loss, the lower */
} tutti_judge;

const tutti_judge *tutti_judge_of(const tutti_target *target);

/* "top1", "loss": what decides; and is a better than b, which may be NaN: nothing so far? */
const char *tutti_judge_decider(const tutti_judge *judge);
bool tutti_judge_prefers(const tutti_judge *judge, double a, double b);

/* What a sample got and what it should have got. */
typedef struct tutti_judged {
    float loss;
    int beaten_by;
    const float *answer;    /* as outputs lie */
    const int32_t *classes; /* the label, or those of its pixels */
    const float *values;    /* of values */
} tutti_judged;

/* Words of the sums of one target. */
size_t tutti_judge_words(const tutti_target *target);

void tutti_judge_sample(const tutti_target *target, const tutti_judged *sample, int64_t *sums);

typedef struct tutti_found {
    double loss;
    double figures[TUTTI_MOST_FIGURES];
} tutti_found;

int64_t tutti_judge_samples(const int64_t *sums); /* that were judged */

/* From the sums of all samples. */
tutti_found tutti_judge_finish(const tutti_target *target, const int64_t *sums);

/* By which such a finding is judged. */
double tutti_judge_value(const tutti_judge *judge, const tutti_found *finding);

/* "top-1 88.61 %, top-5 99.20 %, loss 0.3127"; returns 'out'. */
enum { TUTTI_FINDING_TEXT = 160 };
char *tutti_judge_text(char out[TUTTI_FINDING_TEXT], const tutti_judge *judge,
                       const tutti_found *finding);

/* ---- class by class, output by output ---- */

/* Of one class: samples or pixels that are of it, that were taken for it, and both. */
typedef struct tutti_class_count {
    int64_t support, answered, right;
} tutti_class_count;

/* Of pixels: in the sums, [classes]. */
const tutti_class_count *tutti_judge_classes(const int64_t *sums);

/* right / (support + answered - right); NaN where there are neither. */
double tutti_class_iou(const tutti_class_count *count);

/* Of values: the figures of one output, of all its pixels. */
tutti_found tutti_judge_output(const tutti_target *target, const int64_t *sums, int output);

#endif
