#include "watch/runs.h"

#include <stdio.h>

#include "checkpoint/files.h"
#include "watch/parts.h"

/* The latest first. What is there may be anything. */
static void open_earlier(tutti_runs *r, const char *run)
{
    char path[TUTTI_PATH_BYTES];
    int last = 0;
    for (int i = 1; i < 1000; i++) {
        struct stat info;
        snprintf(path, sizeof path, i > 1 ? "%s.old.%d" : "%s.old", run, i);
        if (stat(path, &info)) break;
        last = i;
    }
    for (int i = last; i > 0 && r->earlier_count < TUTTI_MOST_EARLIER; i--) {
        snprintf(path, sizeof path, i > 1 ? "%s.old.%d" : "%s.old", run, i);
        if (tutti_feed_open(&r->earlier[r->earlier_count], path) == TUTTI_OK) r->earlier_count++;
    }
}

tutti_status tutti_runs_open(tutti_runs *out, const char *const *runs, int count)
{
    tutti_status s = TUTTI_OK;
    *out = (tutti_runs){0};
    if (count > TUTTI_MOST_RUNS)
        return tutti_fail(TUTTI_ARGUMENT, "%d runs are more than the %d that fit on a page", count,
                          TUTTI_MOST_RUNS);
    for (int i = 0; s == TUTTI_OK && i < count; i++) {
        s = tutti_feed_open(&out->feeds[i], runs[i]);
        if (s == TUTTI_OK) out->count++;
    }
    if (s != TUTTI_OK) tutti_runs_close(out);
    else if (count == 1) open_earlier(out, runs[0]);
    return s;
}

void tutti_runs_close(tutti_runs *r)
{
    for (int i = 0; i < r->count; i++) tutti_feed_close(&r->feeds[i]);
    for (int i = 0; i < r->earlier_count; i++) tutti_feed_close(&r->earlier[i]);
    *r = (tutti_runs){0};
}

tutti_status tutti_runs_read(tutti_runs *r, size_t most, bool *changed)
{
    bool one = false;
    *changed = false;
    for (int i = 0; i < r->count; i++) {
        TUTTI_TRY(tutti_feed_read(r->feeds[i], most, &one));
        *changed |= one;
    }
    for (int i = 0; i < r->earlier_count; i++) {
        TUTTI_TRY(tutti_feed_read(r->earlier[i], most, &one));
        *changed |= one;
    }
    return TUTTI_OK;
}

static void put_feeds(tutti_string *out, const char *key, tutti_feed *const *feeds, int count,
                      bool brief)
{
    tutti_json_key(out, key);
    tutti_string_append(out, "[", 1);
    for (int i = 0; i < count; i++) {
        if (i) tutti_string_append(out, ",\n", 2);
        tutti_feed_json(feeds[i], brief, out);
    }
    tutti_string_append(out, "]", 1);
}

void tutti_runs_json(const tutti_runs *r, int64_t generation, tutti_string *out)
{
    tutti_string_append(out, "{", 1);
    tutti_json_field_string(out, "kind", "runs");
    tutti_json_field_int(out, "live", generation > 0);
    tutti_json_field_int(out, "generation", generation);
    tutti_json_field_real(out, "at", tutti_feed_time(), 14);
    put_feeds(out, "runs", r->feeds, r->count, false);
    put_feeds(out, "earlier", r->earlier, r->earlier_count, true);
    tutti_string_append(out, "}\n", 2);
}
