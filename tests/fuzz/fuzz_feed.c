/* The files of a run as somebody who looks on reads them: any bytes in metrics.jsonl, ranks.jsonl
 * and events.jsonl, or any fields in lines with a right sum, give a page whose data are JSON. */
#define _GNU_SOURCE
#include "in_memory.h"

#include <jansson.h>

#include "format/metrics_row.h"
#include "watch/feed.h"

static int metrics, ranks, events;

static void make_run(void)
{
    metrics = make_file("metrics.jsonl");
    ranks = make_file("ranks.jsonl");
    events = make_file("events.jsonl");
}

static void look(void)
{
    tutti_feed *feed = NULL;
    tutti_string out = {0};
    bool more = true;
    if (tutti_feed_open(&feed, folder.path)) abort();
    while (more)
        if (tutti_feed_read(feed, 1 << 20, &more)) abort();
    tutti_feed_json(feed, false, &out);
    json_t *json = json_loadb(out.data, out.length, 0, NULL);
    if (!json) abort();
    json_decref(json);
    tutti_string_deinit(&out);
    tutti_feed_close(&feed);
}

static void seal(int fd, const char *phase, const char *fields)
{
    tutti_string line = {0};
    for (int i = 1; i < 4; i++) tutti_metrics_fields_json(&line, i * i, phase, fields);
    set_content(fd, line.data, line.length);
    tutti_string_deinit(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const phases[] = {"train", "test", "layer", "val"};
    char *text = malloc(size + 1);
    if (!metrics) make_run();
    memcpy(text, data, size);
    text[size] = 0;
    if (size && *data == '{') {
        set_content(metrics, data, size);
        set_content(ranks, data, size);
        set_content(events, data, size);
    } else {
        seal(metrics, phases[size % 4], text);
        seal(ranks, "ranks", text);
        seal(events, "event", text);
    }
    look();
    free(text);
    return 0;
}
