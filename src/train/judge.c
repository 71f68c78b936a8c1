#include "train/judge.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/exact.h"

static const tutti_judge judges[] = {
    [TUTTI_TARGET_CLASS] = {"top1", {{"top1", "top-1", true}, {"top5", "top-5", true}}, 0},
    [TUTTI_TARGET_PIXELS] = {"pixel_accuracy",
                             {{"pixel_accuracy", "pixel accuracy", true},
                              {"mean_iou", "mean IoU", true}},
                             1},
    [TUTTI_TARGET_VALUES] = {NULL,
                             {{"mae", "mean error", false},
                              {"rmse", "RMSE", false},
                              {"r2", "R2", false}},
                             TUTTI_DECIDES_LOSS},
    [TUTTI_TARGET_SHARES] = {NULL,
                             {{"accuracy", "accuracy", true}, {"f1", "F1", true}},
                             TUTTI_DECIDES_LOSS},
};

const tutti_judge *tutti_judge_of(const tutti_target *target)
{
    return &judges[target->form];
}

const char *tutti_judge_decider(const tutti_judge *judge)
{
    return judge->decides == TUTTI_DECIDES_LOSS ? "loss" : judge->figures[judge->decides].key;
}

bool tutti_judge_prefers(const tutti_judge *judge, double a, double b)
{
    if (isnan(a)) return false;
    if (isnan(b)) return true;
    return judge->decides == TUTTI_DECIDES_LOSS ? a < b : a > b;
}

double tutti_judge_value(const tutti_judge *judge, const tutti_found *f)
{
    return judge->decides == TUTTI_DECIDES_LOSS ? f->loss : f->figures[judge->decides];
}

char *tutti_judge_text(char out[TUTTI_FINDING_TEXT], const tutti_judge *judge, const tutti_found *f)
{
    size_t used = 0;
    for (int i = 0; i < TUTTI_MOST_FIGURES && judge->figures[i].key; i++) {
        const tutti_figure *figure = &judge->figures[i];
        const char *format = figure->is_share ? "%s %.2f %%, " : "%s %.5g, ";
        const double value = figure->is_share ? 100 * f->figures[i] : f->figures[i];
        used +=
            (size_t)snprintf(out + used, TUTTI_FINDING_TEXT - used, format, figure->name, value);
    }
    snprintf(out + used, TUTTI_FINDING_TEXT - used, "loss %.6g", f->loss);
    return out;
}

/* ---- sums: what all have, then what the form has ---- */

enum {
    SAMPLES,
    ODD, /* losses that are not finite */
    LOSS,
    OWN = LOSS + TUTTI_EXACT_WORDS
};

/* Of classes */
enum { HITS_1 = OWN, HITS_5, CLASS_WORDS };

/* Of values, of each channel: the exact sums of |e|, e^2, t and t^2 of e = answer - t. */
enum { ERRORS, SQUARES, TARGETS, TARGET_SQUARES, SUMS };
enum { CHANNEL_WORDS = SUMS * TUTTI_EXACT_WORDS };

/* Of shares: classes of samples that are and that were said to be, and what of both is right. */
enum { JUDGED = OWN, RIGHT, TRUE, SAID, BOTH, SHARE_WORDS };

static size_t pixels_of(const tutti_target *t)
{
    return (size_t)t->h * (size_t)t->w;
}

size_t tutti_judge_words(const tutti_target *t)
{
    const size_t each = sizeof(tutti_class_count) / sizeof(int64_t);
    switch (t->form) {
    case TUTTI_TARGET_CLASS: return CLASS_WORDS;
    case TUTTI_TARGET_PIXELS: return OWN + (size_t)t->c * each;
    case TUTTI_TARGET_VALUES: return OWN + (size_t)t->c * CHANNEL_WORDS;
    default: return SHARE_WORDS;
    }
}

/* ---- samples ---- */

/* Where channel c of pixel p is. */
static size_t place(const tutti_target *t, int c, size_t p)
{
    return ((size_t)c / 16 * pixels_of(t) + p) * 16 + (size_t)c % 16;
}

static void add_class(const tutti_target *t, const tutti_judged *s, int64_t *sums)
{
    (void)t;
    sums[HITS_1] += s->beaten_by < 1;
    sums[HITS_5] += s->beaten_by < 5;
}

static int class_of_pixel(const tutti_target *t, const float *answer, size_t p)
{
    int best = 0;
    for (int c = 1; c < t->c; c++)
        if (answer[place(t, c, p)] > answer[place(t, best, p)]) best = c;
    return best;
}

static void add_pixels(const tutti_target *t, const tutti_judged *s, int64_t *sums)
{
    tutti_class_count *classes = (tutti_class_count *)(sums + OWN);
    for (size_t p = 0; p < pixels_of(t); p++) {
        const int32_t class = s->classes[p];
        if (class == TUTTI_IGNORED) continue;
        const int answer = class_of_pixel(t, s->answer, p);
        classes[class].support++;
        classes[answer].answered++;
        classes[class].right += class == answer;
    }
}

/* The pixels of a sample one after another, then samples without rounding. */
static void add_channel(const tutti_target *t, const tutti_judged *s, int c, int64_t *sums)
{
    double sum[SUMS] = {0};
    for (size_t p = 0; p < pixels_of(t); p++) {
        const double goal = (double)s->values[place(t, c, p)];
        const double e = (double)s->answer[place(t, c, p)] - goal;
        sum[ERRORS] += fabs(e);
        sum[SQUARES] += e * e;
        sum[TARGETS] += goal;
        sum[TARGET_SQUARES] += goal * goal;
    }
    for (int k = 0; k < SUMS; k++)
        if (isfinite(sum[k])) tutti_exact_add(sums + k * TUTTI_EXACT_WORDS, sum[k]);
}

static void add_values(const tutti_target *t, const tutti_judged *s, int64_t *sums)
{
    for (int c = 0; c < t->c; c++) add_channel(t, s, c, sums + OWN + c * CHANNEL_WORDS);
}

static void add_shares(const tutti_target *t, const tutti_judged *s, int64_t *sums)
{
    for (int c = 0; c < t->c; c++)
        for (size_t p = 0; p < pixels_of(t); p++) {
            const bool is = s->values[place(t, c, p)] >= 0.5f;
            const bool said = s->answer[place(t, c, p)] >= 0.5f;
            sums[JUDGED]++;
            sums[RIGHT] += is == said;
            sums[TRUE] += is;
            sums[SAID] += said;
            sums[BOTH] += is && said;
        }
}

void tutti_judge_sample(const tutti_target *t, const tutti_judged *s, int64_t *sums)
{
    static void (*const add[])(const tutti_target *, const tutti_judged *, int64_t *) = {
        [TUTTI_TARGET_CLASS] = add_class,
        [TUTTI_TARGET_PIXELS] = add_pixels,
        [TUTTI_TARGET_VALUES] = add_values,
        [TUTTI_TARGET_SHARES] = add_shares,
    };
    sums[SAMPLES]++;
    if (isfinite(s->loss)) tutti_exact_add(sums + LOSS, (double)s->loss);
    else sums[ODD]++;
    add[t->form](t, s, sums);
}

int64_t tutti_judge_samples(const int64_t *sums)
{
    return sums[SAMPLES];
}

/* ---- figures ---- */

static double part(double of, double all)
{
    return all > 0 ? of / all : NAN;
}

static void finish_class(const tutti_target *t, const int64_t *sums, tutti_found *f)
{
    (void)t;
    f->figures[0] = part((double)sums[HITS_1], (double)sums[SAMPLES]);
    f->figures[1] = part((double)sums[HITS_5], (double)sums[SAMPLES]);
}

const tutti_class_count *tutti_judge_classes(const int64_t *sums)
{
    return (const tutti_class_count *)(sums + OWN);
}

double tutti_class_iou(const tutti_class_count *c)
{
    return part((double)c->right, (double)(c->support + c->answered - c->right));
}

/* Classes that neither are nor were said to be are left out of the mean. */
static void finish_pixels(const tutti_target *t, const int64_t *sums, tutti_found *f)
{
    const tutti_class_count *classes = tutti_judge_classes(sums);
    double support = 0, right = 0, iou = 0, seen = 0;
    for (int c = 0; c < t->c; c++) {
        const double own = tutti_class_iou(&classes[c]);
        support += (double)classes[c].support;
        right += (double)classes[c].right;
        if (isnan(own)) continue;
        iou += own;
        seen++;
    }
    f->figures[0] = part(right, support);
    f->figures[1] = part(iou, seen);
    f->loss *= part((double)sums[SAMPLES], support); /* a mean over pixels */
}

/* The squares of n values' distances from their mean; 0 where that is no more than rounding of the
 * sums over a sample's pixels. */
static double spread_of(const double sum[SUMS], double n, size_t pixels)
{
    const double spread = sum[TARGET_SQUARES] - sum[TARGETS] * (sum[TARGETS] / n);
    const double rounding = 2 * DBL_EPSILON * ((double)pixels + 1);
    return spread > rounding * sum[TARGET_SQUARES] ? spread : 0;
}

/* Of channels first .. end-1: R2 is 1 less the squares of errors by those of distances from each
 * channel's mean. */
static void figures_of_channels(const tutti_target *t, const int64_t *sums, int first, int end,
                                tutti_found *f)
{
    const double each = (double)sums[SAMPLES] * (double)pixels_of(t);
    double errors = 0, squares = 0, distances = 0;
    for (int c = first; c < end; c++) {
        double sum[SUMS];
        for (int k = 0; k < SUMS; k++)
            sum[k] = tutti_exact_value(sums + OWN + c * CHANNEL_WORDS + k * TUTTI_EXACT_WORDS);
        errors += sum[ERRORS];
        squares += sum[SQUARES];
        distances += spread_of(sum, each, pixels_of(t));
    }
    const double n = sums[ODD] ? NAN : each * (end - first);
    f->figures[0] = part(errors, n);
    f->figures[1] = sqrt(part(squares, n));
    f->figures[2] = sums[ODD] ? NAN : 1 - part(squares, distances);
}

static void finish_values(const tutti_target *t, const int64_t *sums, tutti_found *f)
{
    figures_of_channels(t, sums, 0, t->c, f);
}

static void finish_shares(const tutti_target *t, const int64_t *sums, tutti_found *f)
{
    (void)t;
    f->figures[0] = part((double)sums[RIGHT], (double)sums[JUDGED]);
    f->figures[1] = part(2 * (double)sums[BOTH], (double)(sums[TRUE] + sums[SAID]));
}

tutti_found tutti_judge_finish(const tutti_target *t, const int64_t *sums)
{
    static void (*const finish[])(const tutti_target *, const int64_t *, tutti_found *) = {
        [TUTTI_TARGET_CLASS] = finish_class,
        [TUTTI_TARGET_PIXELS] = finish_pixels,
        [TUTTI_TARGET_VALUES] = finish_values,
        [TUTTI_TARGET_SHARES] = finish_shares,
    };
    tutti_found f = {.figures = {NAN, NAN, NAN}};
    f.loss = sums[ODD] ? INFINITY : part(tutti_exact_value(sums + LOSS), (double)sums[SAMPLES]);
    finish[t->form](t, sums, &f);
    return f;
}

tutti_found tutti_judge_output(const tutti_target *t, const int64_t *sums, int output)
{
    tutti_found f = {.loss = NAN, .figures = {NAN, NAN, NAN}};
    figures_of_channels(t, sums, output, output + 1, &f);
    return f;
}
