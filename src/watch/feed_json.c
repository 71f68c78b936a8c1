/* A run for the page. */
#include "watch/parts.h"

#include <math.h>

enum { DIGITS = 6 };

static void put_standing(tutti_string *out, const tutti_outlook *s)
{
    tutti_json_field_string(out, "state", tutti_run_state_word(s->state));
    tutti_json_field_string(out, "why", s->why);
    tutti_json_field_int(out, "done", s->step);
    tutti_json_field_int(out, "steps", s->steps);
    tutti_json_field_real(out, "step_s", s->step_s, DIGITS);
    tutti_json_field_real(out, "samples_per_s", s->samples_per_s, DIGITS);
    tutti_json_field_real(out, "left_s", s->left_s, DIGITS);
    tutti_json_field_real(out, "silent_s", s->silent_s, DIGITS);
}

static void put_evaluations(tutti_string *out, const tutti_feed *f)
{
    tutti_json_key(out, "evaluations");
    tutti_string_append(out, "[", 1);
    for (int i = 0; i < f->evaluation_count; i++) {
        const tutti_evaluated *e = &f->evaluations[i];
        tutti_string_append(out, i ? ",{" : "{", i ? 2 : 1);
        tutti_json_field_int(out, "step", e->step);
        tutti_json_field_real(out, "epoch", e->epoch, DIGITS);
        tutti_json_field_string(out, "split", e->split);
        tutti_json_field_real(out, "loss", e->loss, DIGITS);
        for (int k = 0; k < TUTTI_FIGURES; k++)
            if (isfinite(e->figures[k]))
                tutti_json_field_real(out, tutti_figure_columns[k], e->figures[k], DIGITS);
        tutti_string_append(out, "}", 1);
    }
    tutti_string_append(out, "]", 1);
}

static void put_layers(tutti_string *out, const tutti_feed *f)
{
    tutti_json_key(out, "measured");
    tutti_string_append(out, "[", 1);
    for (int i = 0; i < f->layer_count; i++) {
        const tutti_measured *m = &f->layers[i];
        tutti_string_append(out, i ? ",{" : "{", i ? 2 : 1);
        tutti_json_field_string(out, "name", m->name);
        tutti_json_field_real(out, "forward", m->forward, 4);
        tutti_json_field_real(out, "weights", m->weights, 4);
        tutti_json_field_real(out, "data", m->data, 4);
        tutti_json_field_real(out, "comm", m->comm, 4);
        tutti_json_field_real(out, "exposed", m->exposed, 4);
        tutti_json_field_real(out, "bytes", m->bytes, 9);
        tutti_string_append(out, "}", 1);
    }
    tutti_string_append(out, "]", 1);
}

static void put_checkpoints(tutti_string *out, const tutti_feed *f)
{
    tutti_saved saved[TUTTI_MOST_CHECKPOINTS];
    const int count = tutti_feed_checkpoints(f, saved);
    tutti_json_key(out, "checkpoints");
    tutti_string_append(out, "[", 1);
    for (int i = 0; i < count; i++)
        tutti_string_printf(out, "%s[%lld,\"%s\"]", i ? "," : "", (long long)saved[i].step,
                            saved[i].hash);
    tutti_string_append(out, "]", 1);
}

static void put_ranks(tutti_string *out, const tutti_feed *f)
{
    tutti_json_key(out, "ranks");
    if (tutti_ranks_count(f->ranks)) tutti_ranks_json(out, f->ranks);
    else tutti_string_printf(out, "null");
}

void tutti_feed_json(const tutti_feed *f, bool brief, tutti_string *out)
{
    tutti_outlook standing;
    tutti_feed_stand(f, &standing);
    tutti_string_append(out, "{", 1);
    tutti_json_field_string(out, "name", f->run);
    put_standing(out, &standing);
    tutti_json_key(out, "train");
    tutti_series_json(out, &f->series);
    put_evaluations(out, f);
    tutti_json_field_int(out, "odd_losses", f->series.odd);
    tutti_json_field_int(out, "odd_step", f->series.first_odd);
    tutti_json_field_int(out, "damaged",
                         f->metrics.damaged + f->ranks_file.damaged + f->events_file.damaged);
    if (!brief) {
        put_layers(out, f);
        put_ranks(out, f);
        put_checkpoints(out, f);
        tutti_diary_json(out, &f->events);
    }
    tutti_string_append(out, "}", 1);
}
