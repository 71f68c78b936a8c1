#include "train/span.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct {
    const char *word;
    tutti_span_unit unit;
    double factor;
} words[] = {
    {"step", TUTTI_SPAN_STEPS, 1},        {"steps", TUTTI_SPAN_STEPS, 1},
    {"epoch", TUTTI_SPAN_EPOCHS, 1},      {"epochs", TUTTI_SPAN_EPOCHS, 1},
    {"s", TUTTI_SPAN_SECONDS, 1},         {"min", TUTTI_SPAN_SECONDS, 60},
    {"h", TUTTI_SPAN_SECONDS, 60 * 60.0},
};

int64_t tutti_pace_epoch(const tutti_pace *pace, int64_t step)
{
    return step * pace->batch / pace->samples;
}

int64_t tutti_pace_steps(const tutti_pace *pace, double epochs)
{
    const double samples = epochs * (double)pace->samples; /* exact for whole epochs below 2^53 */
    return (int64_t)ceil(samples / (double)pace->batch);
}

static tutti_status bad_span(const char *what, const char *text)
{
    return tutti_fail(TUTTI_ARGUMENT,
                      "%s: '%s' is not a span of time: write 1000steps, 1epoch, 600s, 10min or 2h",
                      what, text);
}

tutti_status tutti_span_parse(tutti_span *out, const char *text, tutti_span_unit bare,
                              const char *what)
{
    char *end = NULL;
    const double count = strtod(text, &end);
    if (end == text || !(count >= 0 && count <= 1e15) || strspn(text, "0123456789.") == 0)
        return bad_span(what, text);

    tutti_span span = {count, bare};
    if (*end) {
        size_t w = 0;
        while (w < sizeof words / sizeof *words && strcmp(end, words[w].word) != 0) w++;
        if (w == sizeof words / sizeof *words) return bad_span(what, text);
        span = (tutti_span){count * words[w].factor, words[w].unit};
    }
    if (span.unit == TUTTI_SPAN_STEPS && span.count != floor(span.count))
        return tutti_fail(TUTTI_ARGUMENT, "%s: '%s' is not a whole number of steps", what, text);
    *out = span;
    return TUTTI_OK;
}

void tutti_span_text(const tutti_span *span, char text[TUTTI_SPAN_TEXT])
{
    static const char *const units[] = {
        [TUTTI_SPAN_STEPS] = "step", [TUTTI_SPAN_EPOCHS] = "epoch", [TUTTI_SPAN_SECONDS] = "s"};
    const bool plural = span->unit != TUTTI_SPAN_SECONDS && span->count != 1;
    char count[TUTTI_REAL_TEXT];
    snprintf(text, TUTTI_SPAN_TEXT, "%s%s%s", tutti_text_of_real(count, span->count),
             units[span->unit], plural ? "s" : "");
}

int64_t tutti_span_steps(const tutti_span *span, const tutti_pace *pace)
{
    TUTTI_ASSERT(span->unit != TUTTI_SPAN_SECONDS);
    return span->unit == TUTTI_SPAN_STEPS ? (int64_t)span->count
                                          : tutti_pace_steps(pace, span->count);
}

/* How many whole spans of epochs are complete after 'step' steps. */
static int64_t spans_complete(const tutti_span *span, const tutti_pace *pace, int64_t step)
{
    int64_t n =
        (int64_t)((double)step * (double)pace->batch / ((double)pace->samples * span->count));
    while (tutti_pace_steps(pace, (double)(n + 1) * span->count) <= step) n++;
    while (n > 0 && tutti_pace_steps(pace, (double)n * span->count) > step) n--;
    return n;
}

bool tutti_rhythm_is_due(const tutti_rhythm *rhythm, const tutti_pace *pace, int64_t step,
                         double now)
{
    const tutti_span *span = &rhythm->every;
    if (span->count <= 0 || step <= 0) return false;
    switch (span->unit) {
    case TUTTI_SPAN_STEPS: return step % (int64_t)span->count == 0;
    case TUTTI_SPAN_SECONDS: return now - rhythm->last >= span->count;
    case TUTTI_SPAN_EPOCHS:
        return spans_complete(span, pace, step) > spans_complete(span, pace, step - 1);
    }
    return false;
}

void tutti_rhythm_mark(tutti_rhythm *rhythm, double now)
{
    rhythm->last = now;
}
