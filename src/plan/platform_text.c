/* A platform as text, in the form that platform.c reads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "plan/platform.h"

static void write_node(FILE *out, const tutti_platform *p)
{
    if (*p->title) fprintf(out, "title \"%s\"\n", p->title);
    if (*p->machine)
        fprintf(out, "machine \"%s\" threads=%d ranks=%d\n", p->machine, p->threads, p->ranks);
    fprintf(out, "nodes %g\n", p->nodes);
    fprintf(out, "peak %.6gGF\n", p->peak * 1e-9);
    if (p->memory > 0) fprintf(out, "memory %.6gGB\n", p->memory * 1e-9);
    fprintf(out, "memory-bandwidth %.6gGB/s\n", p->memory_bandwidth * 1e-9);
    if (p->link > 0)
        fprintf(out, "link %.6gGB/s latency=%.6gus overlap=%g\n", p->link * 1e-9, p->latency * 1e6,
                p->overlap);
    if (p->steals > 0) fprintf(out, "steals %.4g beside=%.4g\n", p->steals, fmax(p->beside, 1));
    if (p->meeting > 0) fprintf(out, "meeting %.4gus\n", p->meeting * 1e6);
    fprintf(out, "topology %s\n", p->topology);
    if (p->update > 0) fprintf(out, "update %.6g\n", p->update);
    if (p->common > 0) fprintf(out, "common %.6g\n", p->common);
}

static void write_rates(FILE *out, const tutti_platform *p)
{
    for (int i = 0; i < p->rate_count; i++)
        fprintf(out, "rate %s %g %.6g\n", tutti_rate_words[p->rates[i].kind], p->rates[i].samples,
                p->rates[i].fraction);
    for (int i = 0; i < p->net_count; i++)
        fprintf(out, "net %s %.6g %g\n", p->nets[i].name, p->nets[i].samples_per_s,
                p->nets[i].batch);
    for (int i = 0; i < p->layer_count; i++) {
        const tutti_layer_rate *r = &p->layers[i];
        fprintf(out, "layer %s %g %.6g %.6g %.6g\n", r->key, r->samples, r->seconds.forward,
                r->seconds.weights, r->seconds.data);
    }
    for (int i = 0; i < p->exchange_count; i++) {
        const tutti_exchange_rate *r = &p->exchanges[i];
        fprintf(out, "exchange %g %.0f %.6g %.6g\n", r->ranks, r->bytes, r->reduce, r->broadcast);
    }
}

tutti_status tutti_platform_text(char **out, const tutti_platform *platform, const char *remark)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory) return tutti_fail(TUTTI_MEMORY, "not enough memory for a platform's text");
    if (remark) fprintf(memory, "# %s\n", remark);
    write_node(memory, platform);
    write_rates(memory, platform);
    const tutti_status s =
        fclose(memory) ? tutti_fail(TUTTI_MEMORY, "not enough memory for a platform's text")
                       : tutti_text_with_head(out, "platform", TUTTI_PLATFORM_VERSION, text);
    free(text);
    return s;
}
