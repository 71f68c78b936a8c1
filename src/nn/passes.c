#include "nn/passes.h"

#include "base/memory.h"
#include "nn/kinds/kind.h"

/* ---- where a share may be cut ---- */

/* What keeps samples together. */
typedef struct ties {
    int whole;                /* a cut is at a multiple of that many samples; 0: nowhere */
    const tutti_layer *layer; /* whose groups these are, the largest; NULL: none */
    int members;              /* workers that share some of its groups */
} ties;

static int least_common_multiple(int a, int b, int most)
{
    int x = a, y = b;
    while (y) {
        const int rest = x % y;
        x = y;
        y = rest;
    }
    const long long multiple = (long long)a / x * b;
    return multiple < most ? (int)multiple : most;
}

static ties find_ties(const tutti_net *net, const tutti_sharing *sharing)
{
    ties t = {.whole = 1, .members = 1};
    int largest = 0;
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer *layer = &net->layers[i];
        if (!tutti_layer_measures(layer)) continue;
        const int group = layer->kind->group(layer);
        const int size = group && group < sharing->batch ? group : sharing->batch;
        const int members = tutti_statistics_members(sharing, group);
        if (size > largest) t.layer = layer;
        if (size > largest) largest = size;
        if (members > t.members) t.members = members;
        t.whole = least_common_multiple(t.whole, size, sharing->batch);
    }
    if (t.members > 1) t.whole = 0;
    return t;
}

static int grain_of(const tutti_sharing *s, int worker)
{
    return tutti_share_begin(s->grains, s->workers, worker);
}

static bool may_cut(const tutti_sharing *s, const ties *t, int grain)
{
    return t->whole && tutti_sharing_sample(s, grain) % t->whole == 0;
}

/* The end of the shortest piece that begins with a grain. */
static int end_of_piece(const tutti_sharing *s, const ties *t, int grain, int end)
{
    grain++;
    while (grain < end && !may_cut(s, t, grain)) grain++;
    return grain;
}

static int largest_piece(const tutti_sharing *s, const ties *t)
{
    int most = 0;
    for (int w = 0; w < s->workers; w++) {
        const int end = grain_of(s, w + 1);
        for (int g = grain_of(s, w), next; g < end; g = next) {
            next = end_of_piece(s, t, g, end);
            const int samples = tutti_sharing_sample(s, next) - tutti_sharing_sample(s, g);
            if (samples > most) most = samples;
        }
    }
    return most;
}

int tutti_passes_least(const tutti_net *net, const tutti_sharing *sharing)
{
    const ties t = find_ties(net, sharing);
    return largest_piece(sharing, &t);
}

/* ---- cutting it ---- */

/* As many pieces as fit. */
static int end_of_pass(const tutti_sharing *s, const ties *t, int grain, int end, int most)
{
    const int begin = tutti_sharing_sample(s, grain);
    int at = end_of_piece(s, t, grain, end);
    while (at < end) {
        const int next = end_of_piece(s, t, at, end);
        if (tutti_sharing_sample(s, next) - begin > most) break;
        at = next;
    }
    return at;
}

static int passes_of(const tutti_sharing *s, const ties *t, int worker, int most)
{
    const int end = grain_of(s, worker + 1);
    int count = 0;
    for (int g = grain_of(s, worker); g < end; g = end_of_pass(s, t, g, end, most)) count++;
    return count;
}

static void cut(const tutti_sharing *s, const ties *t, int worker, int most, int count, int *cuts)
{
    const int end = grain_of(s, worker + 1), empty = count - passes_of(s, t, worker, most);
    int grain = grain_of(s, worker);
    for (int p = 0; p < count; p++) {
        cuts[p] = grain;
        if (p >= empty) grain = end_of_pass(s, t, grain, end, most);
    }
    cuts[count] = end;
}

static tutti_status refuse(const tutti_sharing *s, const ties *t, int most, int least)
{
    if (t->members > 1)
        return tutti_fail(
            TUTTI_ARGUMENT,
            "--micro-batch %d: ranks share statistics groups of %s, so each must take "
            "its samples in one pass, up to %d; use --micro-batch %d, or more ranks",
            most, t->layer->name, least, least);
    if (t->layer)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--micro-batch %d: %s normalises its samples in groups, and a pass must "
                          "have whole ones; the smallest that works is --micro-batch %d",
                          most, t->layer->name, least);
    return tutti_fail(TUTTI_ARGUMENT,
                      "--micro-batch %d: a minibatch of %d has %d grains, and a pass must have "
                      "whole ones; the smallest that works is --micro-batch %d",
                      most, s->batch, s->grains, least);
}

tutti_status tutti_passes_init(tutti_passes *out, const tutti_net *net,
                               const tutti_sharing *sharing, bool grouped, int most)
{
    ties t = {.whole = 1, .members = 1};
    tutti_passes passes = {.count = 1};
    if (!most || most > sharing->batch) most = sharing->batch;
    if (grouped && most < sharing->batch) t = find_ties(net, sharing);
    const int least = most < sharing->batch ? largest_piece(sharing, &t) : 0;
    if (least > most) return refuse(sharing, &t, most, least);
    for (int w = 0; w < sharing->workers && most < sharing->batch; w++) {
        const int count = passes_of(sharing, &t, w, most);
        if (count > passes.count) passes.count = count;
    }
    const size_t stride = (size_t)passes.count + 1;
    TUTTI_TRY(tutti_alloc(&passes.cuts, (size_t)sharing->workers * stride, sizeof *passes.cuts));
    for (int w = 0; w < sharing->workers; w++)
        cut(sharing, &t, w, most, passes.count, passes.cuts + (size_t)w * stride);
    *out = passes;
    return TUTTI_OK;
}

void tutti_passes_deinit(tutti_passes *passes)
{
    tutti_free(passes->cuts);
    *passes = (tutti_passes){0};
}

/* ---- looking ---- */

const int *tutti_passes_of(const tutti_passes *passes, int worker)
{
    return passes->cuts + (size_t)worker * ((size_t)passes->count + 1);
}

int tutti_passes_largest(const tutti_passes *passes, const tutti_sharing *sharing, int worker)
{
    const int *cuts = tutti_passes_of(passes, worker);
    int most = 0;
    for (int p = 0; p < passes->count; p++) {
        const int samples =
            tutti_sharing_sample(sharing, cuts[p + 1]) - tutti_sharing_sample(sharing, cuts[p]);
        if (samples > most) most = samples;
    }
    return most;
}
