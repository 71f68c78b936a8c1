#include "plan/plan.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

tutti_status tutti_plan_create(tutti_plan **out, const tutti_net *net, int nodes)
{
    tutti_plan *plan = NULL;
    TUTTI_TRY(
        tutti_alloc(&plan, 1, sizeof *plan + sizeof *plan->groups * (size_t)net->layer_count));
    plan->nodes = nodes;
    plan->layers = net->layer_count;
    for (int i = 0; i < plan->layers; i++) plan->groups[i] = nodes;
    *out = plan;
    return TUTTI_OK;
}

void tutti_plan_destroy(tutti_plan **plan)
{
    tutti_free(*plan);
    *plan = NULL;
}

void tutti_plan_set_model(tutti_plan *plan, const tutti_net *net)
{
    for (int i = 0; i < plan->layers; i++)
        if (tutti_layer_can_split(&net->layers[i], plan->nodes, 1)) plan->groups[i] = 1;
}

const char *tutti_plan_split(const tutti_plan *plan, int layer)
{
    const int groups = plan->groups[layer];
    return groups == plan->nodes ? "data" : groups == 1 ? "model" : "hybrid";
}

/* ---- text ---- */

enum { VERSION = 1 };

static tutti_status read_split(tutti_text *text, int nodes, int *groups)
{
    static const char *const splits[] = {"data", "model", "hybrid", NULL};
    static const tutti_key keys[] = {{"groups", TUTTI_KEY_INT, 0, 1, 1 << 24, true, NULL},
                                     {.name = NULL}};
    tutti_word split;
    TUTTI_TRY(tutti_text_need(text, &split, "data, model or hybrid"));
    switch (tutti_word_among(split, splits)) {
    case 0: *groups = nodes; break;
    case 1: *groups = 1; break;
    case 2: return tutti_text_keys(text, keys, groups);
    default: return tutti_text_fail(text, split, "a layer is split data, model or hybrid groups=G");
    }
    return tutti_text_end_of_line(text);
}

/* 'lines' has the line of each layer, 0 for those that had none yet. */
static tutti_status read_line(tutti_text *text, const tutti_net *net, tutti_plan *plan, int *lines)
{
    char name[128];
    const tutti_word word = tutti_text_next(text);
    snprintf(name, sizeof name, "%.*s", word.length, word.start);
    const int layer = tutti_net_find_layer(net, name);
    if (layer < 0) return tutti_text_fail(text, word, "%s has no layer '%s'", net->name, name);
    if (lines[layer])
        return tutti_text_fail(text, word, "line %d is about %s already", lines[layer], name);
    lines[layer] = word.line;
    int groups;
    TUTTI_TRY(read_split(text, plan->nodes, &groups));
    if (tutti_layer_check_split(&net->layers[layer], plan->nodes, groups) != TUTTI_OK)
        return tutti_text_fail(text, word, "%s", tutti_message());
    plan->groups[layer] = groups;
    return TUTTI_OK;
}

/* Takes the text. */
static tutti_status read_plan(tutti_plan **out, const tutti_net *net, int nodes, tutti_text *text)
{
    tutti_plan *plan = NULL;
    int *lines = NULL;
    tutti_status s = tutti_plan_create(&plan, net, nodes);
    if (s == TUTTI_OK) s = tutti_alloc(&lines, (size_t)net->layer_count, sizeof *lines);
    if (s == TUTTI_OK) s = tutti_text_begin(text, "plan", VERSION);
    while (s == TUTTI_OK && tutti_text_next_line(text)) s = read_line(text, net, plan, lines);
    if (s == TUTTI_OK) *out = plan;
    else tutti_plan_destroy(&plan);
    tutti_free(lines);
    tutti_text_destroy(&text);
    return s;
}

tutti_status tutti_plan_read(tutti_plan **out, const tutti_net *net, int nodes, const char *path)
{
    tutti_text *text = NULL;
    TUTTI_TRY(tutti_text_open(&text, path));
    return read_plan(out, net, nodes, text);
}

tutti_status tutti_plan_parse(tutti_plan **out, const tutti_net *net, int nodes, const char *name,
                              const char *content)
{
    tutti_text *text = NULL;
    TUTTI_TRY(tutti_text_create(&text, name, content));
    return read_plan(out, net, nodes, text);
}

tutti_status tutti_plan_named(tutti_plan **out, const tutti_net *net, int nodes, const char *name)
{
    const bool splits = !strcmp(name, "model");
    const bool is_file = !splits && strcmp(name, "data");
    if (is_file && !tutti_text_is_path(name, ".plan") && access(name, F_OK))
        return tutti_fail(TUTTI_ARGUMENT,
                          "--plan: '%s' is not auto, data, model or a file (tutti plan --save)",
                          name);
    if (is_file) return tutti_plan_read(out, net, nodes, name);
    TUTTI_TRY(tutti_plan_create(out, net, nodes));
    if (splits) tutti_plan_set_model(*out, net);
    return TUTTI_OK;
}

tutti_status tutti_plan_text(char **out, const tutti_plan *plan, const tutti_net *net)
{
    enum { LINE = 192 };
    char *text = NULL;
    TUTTI_TRY(tutti_alloc(&text, (size_t)plan->layers + 1, LINE));
    size_t used = 0;
    for (int i = 0; i < plan->layers; i++) {
        if (!tutti_layer_learns(net, &net->layers[i])) continue;
        const char *split = tutti_plan_split(plan, i);
        used += (size_t)sprintf(text + used, "%.100s %s", net->layers[i].name, split);
        if (!strcmp(split, "hybrid"))
            used += (size_t)sprintf(text + used, " groups=%d", plan->groups[i]);
        used += (size_t)sprintf(text + used, "\n");
    }
    const tutti_status s = tutti_text_with_head(out, "plan", VERSION, text);
    tutti_free(text);
    return s;
}
