/* How long things take on a platform: measured times where there are some, else the described
 * rates. A measured time has a fixed part (weights, latency) and one that grows with the samples or
 * bytes: so between two measurements and beyond them it follows the line through the two. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/kinds/kind.h"
#include "plan/platform.h"

enum { FLOAT_BYTES = 4 };

/* ---- computing ---- */

void tutti_platform_key(const tutti_layer *l, int outputs, char key[TUTTI_LAYER_KEY])
{
    char work[32] = "1x1/1";
    if (l->kind->work) l->kind->work(l, work);
    snprintf(key, TUTTI_LAYER_KEY, "%s %dx%dx%d %dx%dx%d %s", l->kind->word, l->in.c, l->in.h,
             l->in.w, outputs, l->out.h, l->out.w, work);
}

/* Along the straight line between two points on logarithmic scales. */
static double mix(double x0, double y0, double x1, double y1, double x)
{
    if (x1 <= x0) return y0;
    const double f = (log(x) - log(x0)) / (log(x1) - log(x0));
    return exp(log(y0) * (1 - f) + log(y1) * f);
}

/* The measurement of 'key' with the most samples below 'limit', or the fewest from it on. */
static const tutti_layer_rate *next_to(const tutti_platform *p, const char *key, double limit,
                                       bool above)
{
    const tutti_layer_rate *best = NULL;
    for (int i = 0; i < p->layer_count; i++) {
        const tutti_layer_rate *r = &p->layers[i];
        if (strcmp(r->key, key) || (r->samples >= limit) != above) continue;
        if (!best || (r->samples < best->samples) == above) best = r;
    }
    return best;
}

/* Two measurements around 'samples', else the two nearest (or the only one twice); false if there
 * is none. */
static bool around(const tutti_platform *p, const char *key, double samples,
                   const tutti_layer_rate **a, const tutti_layer_rate **b)
{
    *a = next_to(p, key, samples, false);
    *b = next_to(p, key, samples, true);
    if (!*a && !*b) return false;
    if (!*a) *a = next_to(p, key, nextafter((*b)->samples, INFINITY), true);
    if (!*b) *b = next_to(p, key, (*a)->samples, false);
    if (!*a) *a = *b;
    if (!*b) *b = *a;
    return true;
}

/* Along the line through two measurements, but never less than the smaller time, which shrinks in
 * proportion below both of them; from one alone, in proportion. */
static double along(double x0, double y0, double x1, double y1, double x)
{
    if (x0 == x1) return y0 * x / x0;
    return fmax(y0 + (y1 - y0) * (x - x0) / (x1 - x0), fmin(y0, y1) * fmin(x / fmin(x0, x1), 1));
}

static bool measured_key(const tutti_platform *p, const char *key, double samples,
                         tutti_pass_seconds *out)
{
    const tutti_layer_rate *a, *b;
    if (!around(p, key, samples, &a, &b)) return false;
    const double n0 = a->samples, n1 = b->samples;
    out->forward = along(n0, a->seconds.forward, n1, b->seconds.forward, samples);
    out->weights = along(n0, a->seconds.weights, n1, b->seconds.weights, samples);
    out->data = along(n0, a->seconds.data, n1, b->seconds.data, samples);
    return true;
}

/* A part of a layer's outputs that was not measured costs its share of the whole layer. */
static bool measured(const tutti_platform *p, const tutti_layer *l, double samples, int outputs,
                     tutti_pass_seconds *out)
{
    char key[TUTTI_LAYER_KEY];
    double share = 1;
    tutti_platform_key(l, outputs, key);
    if (!measured_key(p, key, samples, out)) {
        tutti_platform_key(l, l->out.c, key);
        if (!measured_key(p, key, samples, out)) return false;
        share = (double)outputs / l->out.c;
    }
    *out = (tutti_pass_seconds){out->forward * share, out->weights * share, out->data * share};
    return true;
}

void tutti_platform_input_key(const tutti_net *net, char key[TUTTI_LAYER_KEY])
{
    const tutti_shape s = net->input;
    snprintf(key, TUTTI_LAYER_KEY, "input %dx%dx%d %dx%dx%d 1x1/1", s.c, s.h, s.w, s.c, s.h, s.w);
}

double tutti_platform_input(const tutti_platform *p, const tutti_net *net, double samples)
{
    char key[TUTTI_LAYER_KEY];
    tutti_pass_seconds s;
    tutti_platform_input_key(net, key);
    return measured_key(p, key, samples, &s) ? s.forward : 0;
}

static double fraction_of(const tutti_platform *p, tutti_rate_kind kind, double samples)
{
    const tutti_rate *below = NULL, *above = NULL;
    for (int i = 0; i < p->rate_count; i++) {
        const tutti_rate *r = &p->rates[i];
        if (r->kind != kind) continue;
        if (r->samples <= samples && (!below || r->samples > below->samples)) below = r;
        if (r->samples >= samples && (!above || r->samples < above->samples)) above = r;
    }
    if (!below && !above)
        return kind == TUTTI_RATE_CONV ? 0.6 : fraction_of(p, TUTTI_RATE_CONV, samples);
    if (!below) return above->fraction;
    if (!above) return below->fraction;
    return mix(below->samples, below->fraction, above->samples, above->fraction, samples);
}

/* Layers that only move data: once in, once out; those with statistics read x and dy once more. */
static tutti_pass_seconds streaming(const tutti_platform *p, const tutti_layer *l, double samples)
{
    const double floats = (double)tutti_shape_floats(l->in) + (double)tutti_shape_floats(l->out);
    const double pass = FLOAT_BYTES * floats * samples / p->memory_bandwidth;
    const double again = tutti_layer_measures(l) ? pass : 0;
    return (tutti_pass_seconds){pass + again / 2, again, pass + again / 2};
}

static bool reads_input(const tutti_layer *l)
{
    return l->from[0] == TUTTI_NET_INPUT;
}

/* Whose fraction of the peak a layer reaches; a convolution of the net's input has its own. */
static tutti_rate_kind rate_kind(const tutti_layer *l)
{
    int kind = TUTTI_RATE_KINDS - 1;
    while (kind && strcmp(tutti_rate_words[kind], l->kind->rate)) kind--;
    return kind == TUTTI_RATE_CONV && reads_input(l) ? TUTTI_RATE_FIRST : (tutti_rate_kind)kind;
}

static tutti_pass_seconds described(const tutti_platform *p, const tutti_net *net, int layer,
                                    double samples, int outputs)
{
    const tutti_layer *l = &net->layers[layer];
    if (!l->kind->rate) return streaming(p, l, samples);
    const double share = (double)outputs / l->out.c;
    const tutti_rate_kind kind = rate_kind(l);
    const double flops = 2.0 * (double)l->macs * samples * share;
    const double weights = FLOAT_BYTES * (double)net->params[l->first_param].stored * share;
    const double seconds =
        fmax(flops / (p->peak * fraction_of(p, kind, samples)), weights / p->memory_bandwidth);
    return (tutti_pass_seconds){seconds, seconds, seconds};
}

/* The factor that makes the whole net as fast on one node as was measured. */
static double scale_of(const tutti_platform *p, const tutti_net *net)
{
    for (int i = 0; i < p->net_count; i++) {
        const tutti_net_rate *r = &p->nets[i];
        if (strcmp(r->name, net->name)) continue;
        double seconds = 0;
        for (int l = 0; l < net->layer_count; l++) {
            const tutti_pass_seconds s = described(p, net, l, r->batch, net->layers[l].out.c);
            seconds += s.forward + s.weights + (reads_input(&net->layers[l]) ? 0 : s.data);
        }
        const double update =
            tutti_platform_update(p, (double)net->param_floats, TUTTI_MEASURED_ACCESSES);
        return (r->batch / r->samples_per_s - update) / seconds;
    }
    return 1;
}

tutti_pass_seconds tutti_platform_layer(const tutti_platform *p, const tutti_net *net, int layer,
                                        double samples, int outputs)
{
    const tutti_layer *l = &net->layers[layer];
    tutti_pass_seconds s;
    double scale = 1;
    if (!measured(p, l, samples, outputs, &s)) {
        s = described(p, net, layer, samples, outputs);
        scale = scale_of(p, net);
    }
    return (tutti_pass_seconds){s.forward * scale, l->frozen ? 0 : s.weights * scale,
                                l->trains_below ? s.data * scale : 0};
}

/* Memory decides, and the gradient is read too. */
double tutti_platform_update(const tutti_platform *p, double count, int accesses)
{
    const double more = (accesses + 1.0) / (TUTTI_MEASURED_ACCESSES + 1);
    if (p->update > 0) return count * (p->update * more);
    return count * ((accesses + 1) * FLOAT_BYTES / p->memory_bandwidth);
}

/* ---- communicating ---- */

/* (ranks-1)/ranks of the bytes leave every node and as many come in; the start-up of messages adds
 * up with the logarithm of the ranks. */
static double described_exchange(const tutti_platform *p, double ranks, double bytes)
{
    if (ranks <= 1 || bytes <= 0) return 0;
    const double wire = bytes * (ranks - 1) / ranks * (2 - p->overlap) / p->link;
    return wire + ceil(log2(ranks)) * p->latency;
}

static double measured_exchange(const tutti_platform *p, double ranks, double bytes, bool reduce)
{
    const tutti_exchange_rate *below = NULL, *above = NULL, *last = NULL;
    for (int i = 0; i < p->exchange_count; i++) {
        const tutti_exchange_rate *r = &p->exchanges[i];
        if (r->ranks != ranks) continue;
        if (r->bytes <= bytes && (!below || r->bytes > below->bytes)) {
            last = below;
            below = r;
        }
        if (r->bytes > bytes && (!above || r->bytes < above->bytes)) above = r;
    }
    if (!below && !above) return -1;
    if (!below) return reduce ? above->reduce : above->broadcast;
    const tutti_exchange_rate *other = above ? above : last ? last : below;
    const double t0 = reduce ? below->reduce : below->broadcast;
    const double t1 = reduce ? other->reduce : other->broadcast;
    return along(below->bytes, t0, other->bytes, t1, bytes);
}

double tutti_platform_reduce(const tutti_platform *p, double ranks, double bytes)
{
    const double seconds = bytes > 0 ? measured_exchange(p, ranks, bytes, true) : 0;
    return seconds >= 0 ? seconds : described_exchange(p, ranks, bytes);
}

double tutti_platform_broadcast(const tutti_platform *p, double ranks, double bytes)
{
    const double seconds = bytes > 0 ? measured_exchange(p, ranks, bytes, false) : 0;
    return seconds >= 0 ? seconds : described_exchange(p, ranks, bytes);
}

double tutti_platform_move(const tutti_platform *p, double ranks, double bytes)
{
    return tutti_platform_broadcast(p, ranks, ranks > 1 ? bytes * ranks / (ranks - 1) : 0);
}
