#include <simgrid/engine.h>
#include <simgrid/link.h>
#include <simgrid/plugins/load.h>
#include <xbt/base.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

void sim_links_watch(sim_scenario *s)
{
    s->watched = simgrid_get_clock();
    sg_link_t *links = sg_link_list();
    for (size_t i = 0; i < sg_link_count(); i++) sg_link_load_track(links[i]);
    free(links);
}

void sim_links_find_busiest(sim_scenario *s)
{
    const double seconds = simgrid_get_clock() - s->watched;
    sg_link_t *links = sg_link_list();
    for (size_t i = 0; i < sg_link_count(); i++) {
        const double speed = fmax(sg_link_get_bandwidth(links[i]), s->platform->link);
        const double used = sg_link_get_cum_load(links[i]) / (speed * seconds);
        if (!(used > s->busiest) || strstr(sg_link_get_name(links[i]), "loopback")) continue;
        s->busiest = used;
        snprintf(s->busiest_link, sizeof s->busiest_link, "%s", sg_link_get_name(links[i]));
    }
    free(links);
}

void sim_links_of(sim_rank *r)
{
    static const char *const ways[SIM_WAYS] = {"UP", "DOWN"};
    sg_link_t *links = sg_link_list();
    for (int way = 0; way < SIM_WAYS; way++) {
        char name[64];
        snprintf(name, sizeof name, "net_link_%d_%s", r->number, ways[way]);
        for (size_t i = 0; i < sg_link_count(); i++)
            if (!strcmp(sg_link_get_name(links[i]), name)) r->links[way] = links[i];
    }
    if (r->links[0]) r->speed = sg_link_get_bandwidth(r->links[0]);
    free(links);
}
