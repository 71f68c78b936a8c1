#include "watch/showing.h"

#include "base/clock.h"
#include "base/memory.h"
#include "watch/page.h"
#include "watch/prometheus.h"

enum { PIECE = 1 << 20 }; /* bytes of a file at a time */

static const double SHORTEST = 1, LONGEST = 10; /* seconds from one look to the next */
static const double BUDGET = 0.25;              /* seconds of one look */

struct tutti_showing {
    tutti_runs runs;
    int64_t generation;
    double looked, changed; /* moments */
};

tutti_status tutti_showing_create(tutti_showing **out, const char *const *runs, int count)
{
    tutti_showing *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    s->generation = 1;
    const tutti_status status = tutti_runs_open(&s->runs, runs, count);
    if (status != TUTTI_OK) tutti_showing_destroy(&s);
    *out = s;
    return status;
}

void tutti_showing_destroy(tutti_showing **showing)
{
    if (!*showing) return;
    tutti_runs_close(&(*showing)->runs);
    tutti_free(*showing);
    *showing = NULL;
}

tutti_status tutti_showing_read_all(tutti_showing *s)
{
    bool more = true;
    while (more) TUTTI_TRY(tutti_runs_read(&s->runs, PIECE, &more));
    return TUTTI_OK;
}

tutti_status tutti_showing_refresh(tutti_showing *s)
{
    const double now = tutti_now();
    bool more = true, any = false;
    if (now - s->looked < SHORTEST) return TUTTI_OK;
    while (more && tutti_now() - now < BUDGET) {
        TUTTI_TRY(tutti_runs_read(&s->runs, PIECE, &more));
        any |= more;
    }
    s->looked = tutti_now();
    if (!any && now - s->changed < LONGEST) return TUTTI_OK;
    s->changed = now;
    s->generation++;
    return TUTTI_OK;
}

int64_t tutti_showing_generation(const tutti_showing *s)
{
    return s->generation;
}

static tutti_status write_runs(const tutti_showing *s, bool page, tutti_string *out)
{
    tutti_string json = {0};
    tutti_runs_json(&s->runs, s->generation, &json);
    tutti_status status = tutti_string_status(&json);
    if (status == TUTTI_OK && page) tutti_page_write(out, json.data, json.length);
    else if (status == TUTTI_OK) tutti_string_append(out, json.data, json.length);
    tutti_string_deinit(&json);
    return status == TUTTI_OK ? tutti_string_status(out) : status;
}

tutti_status tutti_showing_write(const tutti_showing *s, tutti_answer answer, tutti_string *out)
{
    if (answer != TUTTI_ANSWER_METRICS) return write_runs(s, answer == TUTTI_ANSWER_PAGE, out);
    tutti_prometheus(&s->runs, out);
    return tutti_string_status(out);
}
