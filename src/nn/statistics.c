#include "nn/statistics.h"

#include "base/memory.h"

/* ---- who has what ---- */

static int first_sample_of(const tutti_sharing *s, int worker)
{
    return tutti_sharing_sample(s, tutti_share_begin(s->grains, s->workers, worker));
}

static int size_of(int batch, int group)
{
    return group && group < batch ? group : batch;
}

int tutti_statistics_members(const tutti_sharing *s, int group)
{
    const int size = size_of(s->batch, group);
    for (int members = 1; members < s->workers; members++) {
        int w = members;
        if (s->workers % members) continue;
        while (w < s->workers && first_sample_of(s, w) % size == 0) w += members;
        if (w >= s->workers) return members;
    }
    return s->workers;
}

tutti_status tutti_statistics_check(const tutti_layer *layer, int batch, int group)
{
    const int size = size_of(batch, group), rest = batch % size, least = rest ? rest : size;
    if (least * layer->out.h * layer->out.w > 1) return TUTTI_OK;
    return tutti_fail(
        TUTTI_ARGUMENT,
        "%s: a statistics group of a minibatch of %d has one sample of one pixel, so "
        "its variance is nothing; use another group= (--bn-group) than %d, or another "
        "minibatch",
        layer->name, batch, size);
}

int tutti_statistics_samples(const tutti_statistics *s, int group)
{
    const int left = s->batch - (s->first_group + group) * s->size;
    return left < s->size ? left : s->size;
}

tutti_norm_groups tutti_statistics_groups(const tutti_statistics *s)
{
    return (tutti_norm_groups){s->first_sample - s->first_group * s->size, s->size};
}

/* ---- roots ---- */

/* Samples of a worker. */
typedef struct run {
    int begin, end;
} run;

static run run_of(const tutti_sharing *s, int worker)
{
    return (run){first_sample_of(s, worker), first_sample_of(s, worker + 1)};
}

/* What a run has of a group; empty if nothing. */
static run part_of(const tutti_statistics *s, run r, int group)
{
    const int begin = (s->first_group + group) * s->size;
    const int end = begin + tutti_statistics_samples(s, group);
    return (run){r.begin > begin ? r.begin : begin, r.end < end ? r.end : end};
}

static tutti_status add_roots(tutti_statistics *s, int *room, int group, run part, int slot)
{
    const int begin = (s->first_group + group) * s->size;
    const int leaves = tutti_statistics_samples(s, group);
    tutti_subtree found[TUTTI_TREE_MAX_ROOTS];
    const int count = tutti_tree_roots(found, leaves, part.begin - begin, part.end - begin);
    for (int i = 0; i < count; i++) {
        const int end =
            i + 1 < count ? begin + (found[i + 1].index << found[i + 1].level) : part.end;
        TUTTI_TRY(tutti_grow(&s->roots, room, s->root_count, sizeof *s->roots));
        s->roots[s->root_count++] =
            (tutti_statistics_root){group, found[i], part.begin, end, slot++};
        part.begin = end;
    }
    return TUTTI_OK;
}

static int root_count_of(int leaves, int first, int end)
{
    tutti_subtree found[TUTTI_TREE_MAX_ROOTS];
    return tutti_tree_roots(found, leaves, first, end);
}

/* Roots that a run measures of a group that it has only a part of: of its first, or its last. */
static int shared_roots(const tutti_statistics *s, run r, int group)
{
    const int begin = group * s->size, left = s->batch - begin;
    const int leaves = left < s->size ? left : s->size, end = begin + leaves;
    if (r.begin <= begin && r.end >= end) return 0;
    return root_count_of(leaves, (r.begin > begin ? r.begin : begin) - begin,
                         (r.end < end ? r.end : end) - begin);
}

/* Of its first group and of its last. */
static int all_shared_roots(const tutti_statistics *s, run r)
{
    const int first = r.begin / s->size, last = (r.end - 1) / s->size;
    return shared_roots(s, r, first) + (last > first ? shared_roots(s, r, last) : 0);
}

size_t tutti_statistics_bytes(const tutti_layer *layer, const tutti_sharing *sharing, int group)
{
    const tutti_statistics s = {.batch = sharing->batch, .size = size_of(sharing->batch, group)};
    const int members = tutti_statistics_members(sharing, group);
    int most = 0;
    for (int w = 0; w < sharing->workers; w++) {
        const int roots = all_shared_roots(&s, run_of(sharing, w));
        if (roots > most) most = roots;
    }
    return (size_t)(members - 1) * (size_t)most * tutti_norm_pair(layer->out.c) * sizeof(double);
}

/* The slots that members fill: of each, those of its first group, then those of its last. */
static void set_cuts(tutti_statistics *s, const tutti_sharing *sharing, int first_member)
{
    for (int m = 0; m < s->members; m++)
        s->cuts[m + 1] = s->cuts[m] + all_shared_roots(s, run_of(sharing, first_member + m));
}

static int slot_of(const tutti_statistics *s, run r, int member, int group)
{
    const int first = r.begin / s->size;
    return s->cuts[member] + (s->first_group + group > first ? shared_roots(s, r, first) : 0);
}

static tutti_status add_group(tutti_statistics *s, const tutti_sharing *sharing, int first_member,
                              int group, int *room)
{
    const run own = {s->first_sample, s->first_sample + s->samples};
    const run part = part_of(s, own, group);
    if (part.end - part.begin == tutti_statistics_samples(s, group))
        return add_roots(s, room, group, part, s->slot_count++);
    for (int m = 0; m < s->members; m++) {
        const run r = run_of(sharing, first_member + m), theirs = part_of(s, r, group);
        if (theirs.begin < theirs.end)
            TUTTI_TRY(add_roots(s, room, group, theirs, slot_of(s, r, m, group)));
    }
    return TUTTI_OK;
}

static tutti_status fill(tutti_statistics *s, const tutti_sharing *sharing, int group, run own)
{
    int room = 0;
    s->batch = sharing->batch;
    s->size = size_of(sharing->batch, group);
    s->first_sample = own.begin;
    s->samples = own.end - own.begin;
    s->first_group = own.begin / s->size;
    s->group_count = (own.end - 1) / s->size + 1 - s->first_group;
    s->group_total = tutti_ceil_div(s->batch, s->size);
    s->members = tutti_statistics_members(sharing, group);
    const int first_member = sharing->worker / s->members * s->members;
    TUTTI_TRY(tutti_alloc(&s->cuts, (size_t)s->members + 1, sizeof *s->cuts));
    set_cuts(s, sharing, first_member);
    s->slot_count = s->cuts[s->members];
    for (int g = 0; g < s->group_count; g++)
        TUTTI_TRY(add_group(s, sharing, first_member, g, &room));
    const size_t most = (size_t)(s->root_count > s->samples ? s->root_count : s->samples);
    return tutti_alloc(&s->parts, most, sizeof *s->parts);
}

tutti_status tutti_statistics_create(tutti_statistics **out, const tutti_sharing *sharing,
                                     int group, int begin, int end)
{
    tutti_statistics *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    const tutti_status status = fill(s, sharing, group, (run){begin, end});
    if (status == TUTTI_OK) *out = s;
    else tutti_statistics_destroy(&s);
    return status;
}

void tutti_statistics_destroy(tutti_statistics **statistics)
{
    tutti_statistics *s = *statistics;
    if (!s) return;
    tutti_free(s->roots);
    tutti_free(s->cuts);
    tutti_free(s->parts);
    tutti_free(s);
    *statistics = NULL;
}

/* ---- joining ---- */

static tutti_norm_tree tree_of(const tutti_statistics *s, tutti_extent extent, bool moments,
                               int group)
{
    return (tutti_norm_tree){tutti_statistics_samples(s, group), extent.pixels, extent.c, moments};
}

void tutti_statistics_measure(const tutti_statistics *s, tutti_exec exec, tutti_extent extent,
                              bool moments, const double *leaves, double *sums)
{
    const size_t pair = tutti_norm_pair(extent.c);
    for (int i = 0; i < s->root_count; i++) {
        const tutti_statistics_root *root = &s->roots[i];
        const int begin = (s->first_group + root->group) * s->size;
        if (root->first < s->first_sample || root->end > s->first_sample + s->samples) continue;
        for (int k = root->first; k < root->end; k++)
            s->parts[k - root->first] =
                (tutti_norm_part){{0, k - begin}, leaves + (size_t)(k - s->first_sample) * pair};
        const tutti_norm_tree tree = tree_of(s, extent, moments, root->group);
        tutti_norm_join(exec, &tree, s->parts, root->end - root->first,
                        sums + (size_t)root->slot * pair);
    }
}

void tutti_statistics_join(const tutti_statistics *s, tutti_exec exec, tutti_extent extent,
                           bool moments, int group, const double *sums, double *pair)
{
    const tutti_norm_tree tree = tree_of(s, extent, moments, group);
    int count = 0;
    for (int i = 0; i < s->root_count; i++)
        if (s->roots[i].group == group)
            s->parts[count++] = (tutti_norm_part){
                s->roots[i].subtree, sums + (size_t)s->roots[i].slot * tutti_norm_pair(extent.c)};
    tutti_norm_join(exec, &tree, s->parts, count, pair);
}
