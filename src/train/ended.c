/* How a run ended, for those who look on: its last table of confusions, its last word, its page. */
#include "train/run.h"

#include <stdio.h>

#include <tutti/watch.h>

#include "base/log.h"
#include "format/json.h"

enum { MOST_CLASSES = 100 };

static void put_counts(tutti_string *s, const int64_t *counts, int classes)
{
    tutti_json_key(s, "counts");
    tutti_string_append(s, "[", 1);
    for (int64_t i = 0; i < (int64_t)classes * classes; i++)
        tutti_string_printf(s, i ? ",%lld" : "%lld", (long long)counts[i]);
    tutti_string_append(s, "]", 1);
}

void tutti_run_write_confusion(tutti_run *run, const char *phase, const tutti_tables *tables)
{
    tutti_string s = {0};
    const int classes = tutti_run_classes(run), outputs = tutti_net_classes(run->net);
    if (!tables->confusion || outputs > MOST_CLASSES || run->me.rank) return;
    tutti_string_printf(&s, "\"split\":\"%s\",\"outputs\":%d,\"classes\":[", phase, outputs);
    for (int i = 0; i < classes; i++) {
        if (i) tutti_string_append(&s, ",", 1);
        tutti_json_string(&s, tutti_run_class_name(run, i));
    }
    tutti_string_append(&s, "]", 1);
    put_counts(&s, tables->confusion, outputs);
    if (!tutti_string_status(&s))
        tutti_chronicle_event(run->chronicle, tutti_stepper_steps(run->stepper), "confusion",
                              "which class is taken for which", s.data);
    tutti_string_deinit(&s);
}

static void write_report(const tutti_run *run)
{
    char path[TUTTI_PATH_BYTES];
    snprintf(path, sizeof path, "%s/report.html", run->options->run);
    if (tutti_report_write(&run->options->run, 1, path) != TUTTI_OK)
        tutti_info(&run->log, "there is no page of this run: %s", tutti_message());
}

void tutti_run_write_end(tutti_run *run, tutti_status status)
{
    char fields[96], sentence[1024];
    if (!run->metrics || run->me.rank) return;
    snprintf(sentence, sizeof sentence, "%s", status == TUTTI_OK ? "done" : tutti_message());
    snprintf(fields, sizeof fields, "\"status\":\"%s\",\"code\":%d", tutti_status_name(status),
             tutti_status_exit_code(status));
    tutti_chronicle_event(run->chronicle, tutti_stepper_steps(run->stepper), "ended", sentence,
                          fields);
    tutti_chronicle_close(run->chronicle);
    write_report(run);
    if (status != TUTTI_OK) tutti_fail(status, "%s", sentence);
}
