#include "forecast/page.h"

#include <string.h>

#include "format/file.h"
#include "format/json.h"
#include "watch/net_json.h"
#include "watch/page.h"

enum { DIGITS = 6 };

tutti_status tutti_forecast_page_check(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (!path) return TUTTI_OK;
    if (!dot || (strcmp(dot, ".html") != 0 && strcmp(dot, ".htm") != 0))
        return tutti_fail(TUTTI_ARGUMENT, "--html %s: a page's name ends in .html", path);
    return tutti_file_check_place(path);
}

static void put_simulated(tutti_string *s, const tutti_simulated *r)
{
    tutti_json_field_real(s, "simulated_step_s", r->step_s, DIGITS);
    tutti_json_field_real(s, "simulated_speedup", r->speedup, DIGITS);
    tutti_json_field_string(s, "busiest_link", r->busiest_link);
    tutti_json_field_real(s, "busiest_share", r->busiest, DIGITS);
}

static void put_row(tutti_string *s, const tutti_planner_row *r, const tutti_simulated *simulated)
{
    tutti_string_append(s, "{", 1);
    tutti_json_field_int(s, "nodes", r->nodes);
    tutti_json_field_real(s, "step_s", r->prediction->step_s, DIGITS);
    tutti_json_field_real(s, "speedup", r->speedup, DIGITS);
    tutti_json_field_real(s, "efficiency", r->efficiency, DIGITS);
    tutti_json_field_real(s, "compute_s", r->prediction->compute_s, DIGITS);
    tutti_json_field_real(s, "exposed_s", r->prediction->exposed_s, DIGITS);
    tutti_json_field_real(s, "paper_speedup", r->paper_speedup, DIGITS);
    tutti_json_field_real(s, "epoch_s", r->epoch_s, DIGITS);
    tutti_json_field_real(s, "node_hours", r->node_hours, DIGITS);
    tutti_json_field_real(s, "memory_bytes", r->prediction->memory, DIGITS);
    if (simulated) put_simulated(s, simulated);
    tutti_json_key(s, "layers");
    tutti_prediction_json(s, r->plan, r->prediction);
    tutti_string_append(s, "}", 1);
}

static void put_rows(tutti_string *s, const tutti_planner *p, const tutti_simulation *simulation)
{
    tutti_json_key(s, "rows");
    tutti_string_append(s, "[", 1);
    for (int i = 0; i < p->count; i++) {
        if (i) tutti_string_append(s, ",\n", 2);
        put_row(s, &p->rows[i], simulation ? &simulation->rows[i] : NULL);
    }
    tutti_string_append(s, "]", 1);
}

tutti_status tutti_forecast_page_save(const tutti_planner *p, const tutti_simulation *simulation,
                                      const char *path)
{
    tutti_string s = {0};
    const tutti_platform *platform = p->platform;
    tutti_string_append(&s, "{", 1);
    tutti_json_field_string(&s, "kind", "plan");
    tutti_json_field_string(&s, "net", p->net->name);
    tutti_json_field_string(&s, "platform", platform->name);
    tutti_json_field_string(&s, "title", *platform->title ? platform->title : platform->name);
    tutti_json_field_int(&s, "batch", p->batch);
    tutti_json_field_int(&s, "simulated", simulation != NULL);
    if (platform->memory > 0) tutti_json_field_real(&s, "node_memory", platform->memory, DIGITS);
    tutti_json_key(&s, "layers");
    tutti_net_json(&s, p->net, p->rows[p->count - 1].plan, NULL);
    put_rows(&s, p, simulation);
    tutti_string_append(&s, "}\n", 2);
    const tutti_status status = tutti_page_save(path, &s);
    tutti_string_deinit(&s);
    return status;
}
