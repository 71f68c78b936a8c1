/* A run in one line, for terminals and scripts. */
#include <math.h>

#include "format/human.h"
#include "watch/feed.h"

enum { PIECE = 16 << 20, SPARKS = 16, DIGITS = 6 };

/* ---- for people ---- */

/* The course of the loss, from the steps that there are: eight heights between its extremes. */
static void print_sparks(const tutti_series *series, FILE *out)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const int64_t last = (series->last + series->width - 1) / series->width;
    double values[SPARKS], least = INFINITY, most = -INFINITY;
    for (int i = 0; i < SPARKS; i++) {
        values[i] = tutti_series_mean(series, (int)(i * last / SPARKS), TUTTI_SERIES_loss);
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    if (!(most > least) || last < 2) return;
    fprintf(out, " ");
    for (int i = 0; i < SPARKS; i++)
        if (isfinite(values[i]))
            fputs(blocks[(int)((values[i] - least) / (most - least) * 7.99)], out);
}

static void print_step(const tutti_outlook *s, FILE *out)
{
    fprintf(out, "step %lld", (long long)s->step);
    if (s->steps)
        fprintf(out, "/%lld (%.0f %%)", (long long)s->steps,
                100 * (double)s->step / (double)s->steps);
}

static void print_line(const tutti_feed *feed, const tutti_outlook *s, bool spark, FILE *out)
{
    char left[32];
    fprintf(out, "%s: %s, ", tutti_feed_name(feed), tutti_run_state_word(s->state));
    print_step(s, out);
    if (isfinite(s->loss)) fprintf(out, " | loss %.4f", s->loss);
    if (isfinite(s->loss) && spark) print_sparks(tutti_feed_series(feed), out);
    if (isfinite(s->best) && s->best_is_share)
        fprintf(out, " | best %s %s %.2f %%", s->best_split, s->best_figure, 100 * s->best);
    else if (isfinite(s->best))
        fprintf(out, " | best %s %s %.6g", s->best_split, s->best_figure, s->best);
    if (isfinite(s->samples_per_s)) fprintf(out, " | %.0f samples/s", s->samples_per_s);
    if (isfinite(s->left_s)) fprintf(out, " | ETA %s", tutti_format_time(left, s->left_s));
    if (s->slow.rank >= 0 && s->slow.kind != TUTTI_PACE_EVEN)
        fprintf(out, " | rank %d is slow (%s, %.0f %%)", s->slow.rank,
                tutti_pace_name(s->slow.kind), 100 * s->slow.cost);
    if (*s->why) fprintf(out, " | %s", s->why);
    fputc('\n', out);
}

/* ---- for programs ---- */

static void put_standing(tutti_string *t, const tutti_outlook *s)
{
    tutti_json_field_string(t, "state", tutti_run_state_word(s->state));
    tutti_json_field_string(t, "why", s->why);
    tutti_json_field_int(t, "step", s->step);
    tutti_json_field_int(t, "steps", s->steps);
    tutti_json_field_real(t, "loss", s->loss, DIGITS);
    tutti_json_field_real(t, "top1", s->top1, DIGITS);
    tutti_json_field_real(t, "best_top1", s->best_top1, DIGITS);
    if (isfinite(s->best)) tutti_json_field_string(t, "best_figure", s->best_figure);
    if (isfinite(s->best)) tutti_json_field_real(t, "best", s->best, DIGITS);
    tutti_json_field_real(t, "step_s", s->step_s, DIGITS);
    tutti_json_field_real(t, "samples_per_s", s->samples_per_s, DIGITS);
    tutti_json_field_real(t, "eta_s", s->left_s, DIGITS);
    tutti_json_field_real(t, "silent_s", s->silent_s, DIGITS);
    if (s->slow.rank < 0) return;
    tutti_json_field_int(t, "slowest_rank", s->slow.rank);
    tutti_json_field_string(t, "slow", tutti_pace_name(s->slow.kind));
    tutti_json_field_real(t, "slow_cost", s->slow.cost, DIGITS);
}

static tutti_status print_json(const tutti_feed *feed, const tutti_outlook *s, FILE *out)
{
    tutti_string t = {0};
    tutti_string_append(&t, "{", 1);
    tutti_json_field_string(&t, "run", tutti_feed_name(feed));
    put_standing(&t, s);
    tutti_string_append(&t, "}\n", 2);
    const tutti_status status = tutti_string_status(&t);
    if (status == TUTTI_OK) fputs(t.data, out);
    tutti_string_deinit(&t);
    return status;
}

tutti_status tutti_run_status(const char *run, bool json, bool spark, FILE *out,
                              tutti_run_state *state)
{
    tutti_feed *feed = NULL;
    tutti_outlook standing;
    bool more = true;
    TUTTI_TRY(tutti_feed_open(&feed, run));
    tutti_status s = TUTTI_OK;
    while (s == TUTTI_OK && more) s = tutti_feed_read(feed, PIECE, &more);
    if (s == TUTTI_OK) {
        tutti_feed_stand(feed, &standing);
        *state = standing.state;
        if (json) s = print_json(feed, &standing, out);
        else print_line(feed, &standing, spark, out);
    }
    tutti_feed_close(&feed);
    return s;
}
