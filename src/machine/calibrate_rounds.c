/* Which nets are measured with how many samples, in the time there is.
 *
 * The first round tries 1, 4, 16 ... samples a rank, up to the net's own minibatch or as far as
 * memory and the net's share of the time go; the smallest net comes first and leaves what it does
 * not need to the others. Further rounds measure the same points again until the time is up: a
 * machine's moods last for seconds, so two tries far apart see more than two in a row. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "machine/calibrate.h"

enum { GROWTH = 4, MOST_NETS = 256, MOST_POINTS = 16 * MOST_NETS };

static const double first_round_share = 0.5, seconds_a_visit = 0.15;

typedef struct zoo {
    int net_count, point_count;
    tutti_net *nets[MOST_NETS];
    tutti_point points[MOST_POINTS];
} zoo;

/* ---- the nets ---- */

static tutti_status load_net(zoo *z, const char *name, const char *precision)
{
    if (z->net_count == MOST_NETS)
        return tutti_fail(TUTTI_ARGUMENT, "more than %d nets", MOST_NETS);
    tutti_net **net = &z->nets[z->net_count];
    TUTTI_TRY(tutti_net_load(net, name));
    z->net_count++;
    return tutti_net_set_precision(*net, precision);
}

static const char *name_of(const tutti_calibrate_options *o, int i)
{
    if (!o->net_count) return tutti_net_known(i);
    return i < o->net_count ? o->nets[i] : NULL;
}

/* For bf16 in fp32, too: one file serves runs of both. */
static tutti_status load_nets(const tutti_calibrate_options *o, zoo *z)
{
    for (int i = 0; name_of(o, i); i++) {
        TUTTI_TRY(load_net(z, name_of(o, i), o->precision));
        if (tutti_net_rounds(z->nets[z->net_count - 1]))
            TUTTI_TRY(load_net(z, name_of(o, i), tutti_precision_words[1 + TUTTI_IN_FP32]));
    }
    return TUTTI_OK;
}

static int by_flops(const void *a, const void *b)
{
    const uint64_t x = tutti_net_total(*(tutti_net *const *)a).train_flops;
    const uint64_t y = tutti_net_total(*(tutti_net *const *)b).train_flops;
    return (x > y) - (x < y);
}

static tutti_status suggested_share(const tutti_calibration *c, const tutti_net *net, int *share)
{
    int batch;
    TUTTI_TRY(tutti_net_batch_size(net, &batch));
    *share = tutti_ceil_div(batch, c->me.size);
    return TUTTI_OK;
}

static tutti_status fits(const tutti_calibration *c, const tutti_net *net, int samples, bool *out)
{
    tutti_memory memory;
    TUTTI_TRY(tutti_net_memory(net, samples, 0, tutti_team_size(c->me.exec.team), 0, &memory));
    *out = (double)(memory.peak - memory.snapshot) < 0.8 * c->memory_free;
    return TUTTI_OK;
}

/* ---- rounds ---- */

/* What one step of 'samples' samples costs, judged by a point that was measured. */
static double cost_of(const tutti_point *p, int samples)
{
    return p->setup + p->best * samples / p->samples;
}

/* Collective. The rank whose clock is ahead decides for all. */
static tutti_status time_left(tutti_calibration *c, double end, double *left)
{
    double over = tutti_now() - end;
    tutti_calibration_tick(c);
    TUTTI_TRY(tutti_calibration_slowest(c, &over, 1));
    *left = -over;
    return TUTTI_OK;
}

static tutti_status first_round(tutti_calibration *c, zoo *z, const tutti_net *net, double end)
{
    int most;
    tutti_point *last = NULL;
    TUTTI_TRY(suggested_share(c, net, &most));
    for (int n = 1; z->point_count < MOST_POINTS; n = n * GROWTH < most ? n * GROWTH : most) {
        double left;
        bool has_memory;
        TUTTI_TRY(time_left(c, end, &left));
        TUTTI_TRY(fits(c, net, n, &has_memory));
        const bool needed = n <= GROWTH; /* two points make a line */
        if (!has_memory || (!needed && cost_of(last, n) > left)) break;
        tutti_point *p = &z->points[z->point_count++];
        *p = (tutti_point){.net = net, .samples = n, .best = INFINITY};
        TUTTI_TRY(tutti_calibrate_point(c, p, seconds_a_visit));
        last = p;
        if (n == most) break;
    }
    return TUTTI_OK;
}

/* Whatever still fits into the time. */
static tutti_status further_round(tutti_calibration *c, zoo *z, double end, bool *any)
{
    *any = false;
    for (int i = 0; i < z->point_count; i++) {
        double left;
        TUTTI_TRY(time_left(c, end, &left));
        if (cost_of(&z->points[i], z->points[i].samples) > left) continue;
        TUTTI_TRY(tutti_calibrate_point(c, &z->points[i], seconds_a_visit));
        *any = true;
    }
    return TUTTI_OK;
}

static tutti_status run(tutti_calibration *c, zoo *z, double seconds)
{
    const double start = tutti_now(), middle = start + seconds * first_round_share;
    TUTTI_TRY(tutti_comm_agree(c->me.comm, load_nets(c->options, z)));
    qsort(z->nets, (size_t)z->net_count, sizeof *z->nets, by_flops);
    for (int i = 0; i < z->net_count; i++) {
        const double now = tutti_now();
        TUTTI_TRY(first_round(c, z, z->nets[i], now + (middle - now) / (z->net_count - i)));
    }
    for (bool any = true; any;) TUTTI_TRY(further_round(c, z, start + seconds, &any));
    for (int i = 0; i < z->point_count; i++) TUTTI_TRY(tutti_calibration_keep(c, &z->points[i]));
    return TUTTI_OK;
}

tutti_status tutti_calibrate_rounds(tutti_calibration *c, double seconds)
{
    zoo *z = NULL;
    TUTTI_TRY(tutti_comm_agree(c->me.comm, tutti_alloc(&z, 1, sizeof *z)));
    const tutti_status s = run(c, z, seconds);
    for (int i = 0; i < z->point_count; i++) tutti_point_destroy(&z->points[i]);
    for (int i = 0; i < z->net_count; i++) tutti_net_destroy(&z->nets[i]);
    tutti_free(z);
    return s;
}
