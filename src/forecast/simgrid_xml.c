/* Each topology says what SimGrid's <cluster> needs for it: a shape for at least N hosts, and how
 * many links a message crosses on its way, among which the platform's latency is divided.
 *
 *   star        a switch without limits of its own: a cable up and a cable down for each host
 *   fat-tree    leaf switches of 16 hosts, as many cables up as down: full bisection
 *   dragonfly   as in a Cray XC: 4 hosts a router, 16 routers a chassis, 6 chassis a group; all
 *               routers of a chassis, and those of equal place in a group, are joined; SimGrid
 *               routes minimally, one bundle of cables joins two groups
 *   torus       three dimensions, about equal
 *
 * Cables are full duplex; a platform that cannot send and receive at once has slower ones. */
#include "forecast/simgrid_xml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    LEAF = 16,
    ROUTER = 4,
    CHASSIS = 16 * ROUTER,
    GROUP = 6 * CHASSIS,
    GROUP_CABLES = 96 /* between two groups: one for each router of a group */
};

typedef struct shape {
    char topology[16], parameters[64];
    int hosts, crossings;
} shape;

static void star(shape *s, int nodes)
{
    *s = (shape){"", "", nodes, 2};
}

static void fat_tree(shape *s, int nodes)
{
    const int leaves = tutti_ceil_div(nodes, LEAF);
    if (leaves == 1) {
        star(s, nodes);
        return;
    }
    *s = (shape){"FAT_TREE", "", leaves * LEAF, 4};
    snprintf(s->parameters, sizeof s->parameters, "2;%d,%d;1,%d;1,1", LEAF, leaves, LEAF);
}

static void dragonfly(shape *s, int nodes)
{
    const int groups = tutti_ceil_div(nodes, GROUP);
    *s = (shape){"DRAGONFLY", "", groups * GROUP, 3};
    snprintf(s->parameters, sizeof s->parameters, "%d,%d;6,3;16,1;%d", groups, GROUP_CABLES,
             ROUTER);
}

/* SimGrid takes no dimension of one host. */
static void torus(shape *s, int nodes)
{
    const int x = (int)ceil(cbrt(nodes) - 1e-9);
    const int y = (int)ceil(sqrt((double)nodes / x) - 1e-9);
    const int z = tutti_ceil_div(nodes, x * y);
    if (x < 2) {
        star(s, nodes);
        return;
    }
    *s = (shape){"TORUS", "", x * y * z, (x + y + z) / 4 + 1};
    snprintf(s->parameters, sizeof s->parameters, z > 1 ? "%d,%d,%d" : "%d,%d", x, y, z);
}

static const struct {
    const char *name;
    void (*fit)(shape *s, int nodes);
} topologies[] = {
    {"star", star}, {"fat-tree", fat_tree}, {"dragonfly", dragonfly}, {"torus", torus}};

static const char head[] = "<?xml version='1.0'?>\n"
                           "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                           "<platform version=\"4.1\">\n";

tutti_status tutti_simgrid_xml_network(tutti_string *out, const tutti_platform *p, int nodes)
{
    const char *name = *p->topology ? p->topology : "star";
    shape s = {.hosts = 0};
    for (size_t i = 0; i < sizeof topologies / sizeof *topologies; i++)
        if (!strcmp(topologies[i].name, name)) topologies[i].fit(&s, nodes);
    if (!s.hosts)
        return tutti_fail(TUTTI_ARGUMENT,
                          "platform %s: the topology '%s' cannot be simulated: star, fat-tree, "
                          "dragonfly and torus can",
                          p->name, name);
    if (nodes > 1 && !(p->link > 0))
        return tutti_fail(TUTTI_ARGUMENT,
                          "platform %s has no link: give it a line 'link', or calibrate it with "
                          "at least two ranks",
                          p->name);
    tutti_string_printf(out,
                        "%s<zone id=\"world\" routing=\"Full\">\n"
                        "<cluster id=\"net\" prefix=\"node-\" suffix=\"\" radical=\"0-%d\" "
                        "speed=\"1Gf\" bw=\"%.9gBps\" lat=\"%.9gs\" sharing_policy=\"SPLITDUPLEX\" "
                        "loopback_bw=\"200MBps\" loopback_lat=\"0\"",
                        head, s.hosts - 1, p->link > 0 ? p->link / (2 - p->overlap) : 1e9,
                        p->latency / s.crossings);
    if (*s.topology)
        tutti_string_printf(out, " topology=\"%s\" topo_parameters=\"%s\"", s.topology,
                            s.parameters);
    tutti_string_printf(out, "/>\n</zone>\n</platform>\n");
    return tutti_string_status(out);
}

void tutti_simgrid_xml_ranks(tutti_string *out, int nodes)
{
    tutti_string_printf(out, "%s", head);
    for (int i = 0; i < nodes; i++)
        tutti_string_printf(out,
                            "<actor host=\"node-%d\" function=\"tutti\">"
                            "<prop id=\"instance_id\" value=\"tutti\"/>"
                            "<prop id=\"rank\" value=\"%d\"/></actor>\n",
                            i, i);
    tutti_string_printf(out, "</platform>\n");
}
