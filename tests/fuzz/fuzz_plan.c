/* The text of a plan: any bytes give a plan that may be carried out, or a sentence; and a plan
 * written and read again is the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/net.h"
#include "plan/plan.h"

enum { NODES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const tutti_net *net, const tutti_plan *plan)
{
    tutti_plan *again = NULL;
    char *text = NULL;
    for (int i = 0; i < plan->layers; i++)
        if (plan->groups[i] != NODES &&
            !tutti_layer_can_split(&net->layers[i], NODES, plan->groups[i]))
            abort();
    if (tutti_plan_text(&text, plan, net) != TUTTI_OK) abort();
    if (tutti_plan_parse(&again, net, NODES, "again", text) != TUTTI_OK) abort();
    if (memcmp(plan->groups, again->groups, (size_t)plan->layers * sizeof *plan->groups)) abort();
    tutti_plan_destroy(&again);
    tutti_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_net *net = NULL;
    tutti_plan *plan = NULL;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    if (tutti_net_load(&net, "vgg-a") != TUTTI_OK) abort();
    if (tutti_plan_parse(&plan, net, NODES, "fuzz.plan", text) == TUTTI_OK) check(net, plan);
    else if (!*tutti_message()) abort();
    tutti_plan_destroy(&plan);
    tutti_net_destroy(&net);
    free(text);
    return 0;
}
