#include "watch/prometheus.h"

#include <math.h>

typedef struct gauge {
    const char *name, *help;
    double (*value)(const tutti_outlook *s);
} gauge;

static double state(const tutti_outlook *s)
{
    return tutti_run_state_exit_code(s->state);
}

static double step(const tutti_outlook *s)
{
    return (double)s->step;
}

static double steps(const tutti_outlook *s)
{
    return s->steps ? (double)s->steps : NAN;
}

static double loss(const tutti_outlook *s)
{
    return s->loss;
}

static double top1(const tutti_outlook *s)
{
    return s->top1;
}

static double best(const tutti_outlook *s)
{
    return s->best_top1;
}

static double rate(const tutti_outlook *s)
{
    return s->samples_per_s;
}

static double step_seconds(const tutti_outlook *s)
{
    return s->step_s;
}

static double left(const tutti_outlook *s)
{
    return s->left_s;
}

static double silent(const tutti_outlook *s)
{
    return s->silent_s;
}

static double slowest(const tutti_outlook *s)
{
    return s->slow.rank >= 0 ? s->slow.rank : NAN;
}

static double cost(const tutti_outlook *s)
{
    return s->slow.rank >= 0 ? s->slow.cost : NAN;
}

static const gauge gauges[] = {
    {"tutti_run_state", "0 done, 10 running, 11 stalled, 12 failed", state},
    {"tutti_step", "steps done", step},
    {"tutti_steps", "steps of the whole run", steps},
    {"tutti_loss", "training loss, smoothed", loss},
    {"tutti_top1", "training accuracy, smoothed, 0 to 1", top1},
    {"tutti_best_top1", "best accuracy of an evaluation, 0 to 1", best},
    {"tutti_samples_per_second", "of late", rate},
    {"tutti_step_seconds", "seconds of a step, of late", step_seconds},
    {"tutti_left_seconds", "seconds that the steps left will take", left},
    {"tutti_silent_seconds", "seconds since the run's files have changed", silent},
    {"tutti_slowest_rank", "the rank that others have waited for longest", slowest},
    {"tutti_slowest_rank_cost", "of the time of all steps, what its lags are", cost},
};

/* Backslashes, quotes and newlines are escaped, as the format asks. */
static void put_label(tutti_string *out, const char *text)
{
    tutti_string utf8 = {0};
    tutti_string_utf8(&utf8, text);
    for (size_t i = 0; i < utf8.length; i++) {
        const char c = utf8.data[i];
        if (c == '\n') tutti_string_append(out, "\\n", 2);
        else if (c == '\\' || c == '"') tutti_string_printf(out, "\\%c", c);
        else tutti_string_append(out, &c, 1);
    }
    tutti_string_deinit(&utf8);
}

static void put_value(tutti_string *out, const gauge *g, const tutti_feed *feed, double value)
{
    if (!isfinite(value)) return;
    tutti_string_printf(out, "%s{run=\"", g->name);
    put_label(out, tutti_feed_name(feed));
    tutti_string_printf(out, "\"} %.9g\n", value);
}

void tutti_prometheus(const tutti_runs *runs, tutti_string *out)
{
    tutti_outlook standing[TUTTI_MOST_RUNS];
    for (int i = 0; i < runs->count; i++) tutti_feed_stand(runs->feeds[i], &standing[i]);
    for (size_t g = 0; g < sizeof gauges / sizeof *gauges; g++) {
        tutti_string_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", gauges[g].name, gauges[g].help,
                            gauges[g].name);
        for (int i = 0; i < runs->count; i++)
            put_value(out, &gauges[g], runs->feeds[i], gauges[g].value(&standing[i]));
    }
}
