/* Checkpoints do not know how many ranks wrote them. Parameters and what the optimizer keeps of
 * them are brought into torch's layout piece by piece; of each tensor every rank that holds it
 * writes its share of the rows. The optimizer's states exist only in strips, so the holders of a
 * layer first collect them. */
#include "checkpoint/tensors.h"

#include <string.h>

#include "base/log.h"
#include "base/memory.h"

enum { PIECE_FLOATS = 4 << 20 };

/* Rows that are brought into torch's layout at a time: whole blocks of features. */
static int rows_at_once(const tutti_param *p)
{
    const size_t rows = PIECE_FLOATS / (p->count / (size_t)p->dims[0]) / TUTTI_BLOCK * TUTTI_BLOCK;
    return rows < TUTTI_BLOCK ? TUTTI_BLOCK : rows > (size_t)p->dims[0] ? p->dims[0] : (int)rows;
}

tutti_status tutti_tensors_create(tutti_keeper *k)
{
    const tutti_chosen_optimizer *optimizer = tutti_stepper_optimizer(k->stepper);
    size_t largest = 1;
    k->optimizer = optimizer->is;
    k->states = k->optimizer ? tutti_optimizer_cost_of(optimizer).states : 0;
    for (int i = 0; i < k->net->param_count; i++) {
        const tutti_param *p = &k->net->params[i];
        const size_t piece = (size_t)rows_at_once(p) * (p->count / (size_t)p->dims[0]);
        if (piece > largest) largest = piece;
    }
    TUTTI_TRY(tutti_layouts_create(k));
    return tutti_alloc(&k->scratch, largest, sizeof *k->scratch);
}

void tutti_tensors_destroy(tutti_keeper *k)
{
    for (int i = 0; k->collects && i < k->net->layer_count; i++)
        tutti_exchange_destroy(&k->collects[i]);
    tutti_free(k->collects);
    tutti_free(k->collected);
    tutti_free(k->scratch);
    tutti_snapshot_destroy(&k->snapshot);
    tutti_layouts_destroy(k);
}

/* What a tensor of a file is: a parameter, its average, or a state that the optimizer keeps. */
enum { PARAMETER = -1, AVERAGE = -2 };
typedef struct entry {
    int param, state; /* PARAMETER: the parameter itself; AVERAGE */
} entry;

static tutti_checkpoint_part part_of(entry e)
{
    return e.state == PARAMETER ? TUTTI_PART_MODEL
           : e.state == AVERAGE ? TUTTI_PART_AVERAGE
                                : TUTTI_PART_OPTIMIZER;
}

/* Its number in the layout of its part. */
static int number_of(const tutti_keeper *k, entry e)
{
    return e.state < 0 ? e.param : k->state_at[e.param] + e.state;
}

/* The next piece of the rows, which begin at a block of features. */
static tutti_rows next_rows(const tutti_param *p, int first, int end)
{
    const int most = rows_at_once(p);
    return (tutti_rows){first, end - first > most ? first + most : end};
}

/* ---- out ---- */

/* The rows of a tensor that this rank writes: of those it holds, its share among those that hold
 * the same, in whole blocks. */
static tutti_rows own_rows(const tutti_keeper *k, int param)
{
    const tutti_holding h = tutti_stepper_holding(k->stepper, k->net->params[param].layer);
    const tutti_rows held = tutti_model_slice(k->model, param).rows;
    const int blocks = tutti_ceil_div(held.end - held.first, TUTTI_BLOCK);
    const int end = held.first + TUTTI_BLOCK * tutti_share_begin(blocks, h.holders, h.place + 1);
    return (tutti_rows){held.first + TUTTI_BLOCK * tutti_share_begin(blocks, h.holders, h.place),
                        end < held.end ? end : held.end};
}

/* Where pieces go: into a snapshot, or at once into the files. */
typedef struct target {
    tutti_snapshot *snapshot;
    tutti_checkpoint *files;
} target;

static tutti_status write_tensor(tutti_keeper *k, target to, entry e, const tutti_region *whole,
                                 const float *region)
{
    const tutti_param *p = &k->net->params[e.param];
    const int64_t row = (int64_t)(p->count / (size_t)p->dims[0]);
    const size_t begin = whole->offset, end = begin + whole->count;
    const tutti_rows own = own_rows(k, e.param);
    for (tutti_rows r = {.end = own.first}; r.end < own.end;) {
        r = next_rows(p, r.end, own.end);
        float *values = to.snapshot ? tutti_snapshot_place(to.snapshot, part_of(e), number_of(k, e),
                                                           r.first * row)
                                    : k->scratch;
        tutti_model_export_rows(k->model, e.param, r, begin, end, region, values);
        if (!to.files) continue;
        TUTTI_TRY(tutti_checkpoint_write(to.files, part_of(e), number_of(k, e), r.first * row,
                                         values, (r.end - r.first) * row));
    }
    return TUTTI_OK;
}

/* The layer's parameters, or one state of those that are trained; 'region' is all of it. */
static tutti_status write_layer(tutti_keeper *k, target to, int layer, int state,
                                const float *region)
{
    const tutti_layer *l = &k->net->layers[layer];
    const tutti_region whole = tutti_stepper_holding(k->stepper, layer).region;
    for (int i = l->first_param; i < l->first_param + l->param_count; i++)
        if (state < 0 || k->state_at[i] >= 0)
            TUTTI_TRY(write_tensor(k, to, (entry){i, state}, &whole, region));
    return TUTTI_OK;
}

tutti_status tutti_tensors_create_collects(tutti_keeper *k)
{
    size_t largest = 0;
    if (k->collects || tutti_comm_size(k->comm) == 1) return TUTTI_OK;
    for (int i = 0; i < k->net->layer_count; i++) {
        const size_t count = tutti_stepper_holding(k->stepper, i).region.count;
        if (count > largest) largest = count;
    }
    TUTTI_TRY(tutti_alloc_floats(&k->collected, largest));
    TUTTI_TRY(tutti_alloc(&k->collects, (size_t)k->net->layer_count, sizeof *k->collects));
    for (int i = 0; i < k->net->layer_count; i++) {
        const tutti_holding h = tutti_stepper_holding(k->stepper, i);
        const tutti_exchange_spec spec = {.name = k->net->layers[i].name,
                                          .group = h.across,
                                          .count = h.region.trained,
                                          .whole = k->collected};
        const bool has_strips = k->states || tutti_stepper_has_average(k->stepper);
        if (has_strips && h.region.trained && h.holders > 1)
            TUTTI_TRY(tutti_exchange_create(&k->collects[i], k->comm, &spec));
    }
    return TUTTI_OK;
}

/* Collective among the layer's holders. A state of the whole region. */
static tutti_status collect(tutti_keeper *k, int layer, const float *strip, const float **out)
{
    const tutti_holding h = tutti_stepper_holding(k->stepper, layer);
    *out = strip;
    if (!k->collects || !k->collects[layer]) return TUTTI_OK;
    memcpy(k->collected + h.begin, strip, (h.end - h.begin) * sizeof *strip);
    *out = k->collected;
    return tutti_exchange_run(k->collects[layer]);
}

/* Whoever only has a strip of it goes on collecting after a failure: the others wait for it. */
static tutti_status write_states(tutti_keeper *k, target to, int layer, tutti_status *written)
{
    const tutti_holding h = tutti_stepper_holding(k->stepper, layer);
    for (int i = 0; i < k->states && h.region.trained; i++) {
        const float *state;
        TUTTI_TRY(collect(k, layer, h.state[i], &state));
        if (*written == TUTTI_OK) *written = write_layer(k, to, layer, i, state);
    }
    return TUTTI_OK;
}

/* What is never updated is its own average. */
static tutti_status write_average(tutti_keeper *k, target to, int layer, tutti_status *written)
{
    const tutti_holding h = tutti_stepper_holding(k->stepper, layer);
    const tutti_layer *l = &k->net->layers[layer];
    const float *own = tutti_model_parameters(k->model) + h.region.offset, *average = own;
    if (!tutti_stepper_has_average(k->stepper)) return TUTTI_OK;
    if (h.region.trained) TUTTI_TRY(collect(k, layer, h.average, &average));
    for (int i = l->first_param; i < l->first_param + l->param_count && *written == TUTTI_OK; i++)
        *written = write_tensor(k, to, (entry){i, AVERAGE}, &h.region,
                                k->net->params[i].role == TUTTI_KEPT ? own : average);
    return TUTTI_OK;
}

/* The tensor "step", if this rank writes one; -1: it does not. */
static int step_tensor(const tutti_keeper *k)
{
    if (!k->optimizer || !k->optimizer->counts_steps || tutti_comm_rank(k->comm)) return -1;
    return tutti_safetensors_layout_count(k->layouts[TUTTI_PART_OPTIMIZER]) - 1;
}

static tutti_status write_step(const tutti_keeper *k, target to)
{
    const int tensor = step_tensor(k);
    const float step = (float)tutti_stepper_steps(k->stepper);
    if (tensor < 0) return TUTTI_OK;
    if (to.snapshot) *tutti_snapshot_place(to.snapshot, TUTTI_PART_OPTIMIZER, tensor, 0) = step;
    if (!to.files) return TUTTI_OK;
    return tutti_checkpoint_write(to.files, TUTTI_PART_OPTIMIZER, tensor, 0, &step, 1);
}

/* In the order of the files where one rank has everything and the optimizer one state. */
static tutti_status write_all(tutti_keeper *k, target to)
{
    tutti_status written = TUTTI_OK;
    const float *parameters = tutti_model_parameters(k->model);
    for (int i = 0; i < k->net->layer_count; i++) {
        const tutti_region region = tutti_stepper_holding(k->stepper, i).region;
        if (!region.count) continue;
        if (written == TUTTI_OK)
            written = write_layer(k, to, i, PARAMETER, parameters + region.offset);
        TUTTI_TRY(write_states(k, to, i, &written));
        TUTTI_TRY(write_average(k, to, i, &written));
    }
    return written == TUTTI_OK ? write_step(k, to) : written;
}

tutti_status tutti_tensors_write(tutti_keeper *k, tutti_checkpoint *ck)
{
    TUTTI_TRY(write_all(k, (target){.files = ck}));
    return tutti_checkpoint_flush(ck);
}

tutti_status tutti_tensors_copy(tutti_keeper *k)
{
    return write_all(k, (target){.snapshot = k->snapshot});
}

static void plan_tensor(const tutti_keeper *k, entry e)
{
    const tutti_param *p = &k->net->params[e.param];
    const int64_t row = (int64_t)(p->count / (size_t)p->dims[0]);
    const tutti_rows own = own_rows(k, e.param);
    tutti_snapshot_add(k->snapshot, part_of(e), number_of(k, e), own.first * row,
                       (own.end - own.first) * row);
}

tutti_status tutti_tensors_create_snapshot(tutti_keeper *k)
{
    int counts[TUTTI_PARTS];
    for (int p = 0; p < TUTTI_PARTS; p++)
        counts[p] = k->layouts[p] ? tutti_safetensors_layout_count(k->layouts[p]) : 0;
    if (k->snapshot) return TUTTI_OK;
    TUTTI_TRY(tutti_snapshot_create(&k->snapshot, counts));
    for (int i = 0; i < k->net->param_count; i++) {
        if (!tutti_stepper_holding(k->stepper, k->net->params[i].layer).region.count) continue;
        plan_tensor(k, (entry){i, PARAMETER});
        if (k->layouts[TUTTI_PART_AVERAGE]) plan_tensor(k, (entry){i, AVERAGE});
        for (int s = 0; s < k->states && k->state_at[i] >= 0; s++) plan_tensor(k, (entry){i, s});
    }
    if (step_tensor(k) >= 0)
        tutti_snapshot_add(k->snapshot, TUTTI_PART_OPTIMIZER, step_tensor(k), 0, 1);
    return tutti_snapshot_take_memory(k->snapshot);
}

/* ---- in ---- */

/* Where the tensor is in the file; -1, with a sentence in the log, when it has none of that name or
 * shape. */
static int find_tensor(const tutti_keeper *k, const tutti_safetensors *file, const char *path,
                       entry e)
{
    const tutti_tensor_spec *want =
        tutti_safetensors_layout_tensor(k->layouts[part_of(e)], number_of(k, e));
    const int at = tutti_safetensors_find(file, want->name);
    char have[128], need[128];
    if (at < 0) {
        tutti_warn(k->log, "%s has no tensor '%s'", path, want->name);
        return -1;
    }
    const tutti_tensor_spec *found = &tutti_safetensors_tensor(file, at)->spec;
    tutti_tensor_shape_text(found, have, sizeof have);
    tutti_tensor_shape_text(want, need, sizeof need);
    if (!strcmp(have, need)) return at;
    tutti_warn(k->log, "%s: '%s' is %s, the net needs %s", path, want->name, have, need);
    return -1;
}

/* Reads what this rank holds of a tensor: of a parameter its rows, of a state its strip. */
static tutti_status read_tensor(tutti_keeper *k, const tutti_safetensors *file, int at, entry e)
{
    const bool is_state = e.state != PARAMETER;
    const tutti_param *p = &k->net->params[e.param];
    const int64_t row = (int64_t)(p->count / (size_t)p->dims[0]);
    const tutti_rows held = tutti_model_slice(k->model, e.param).rows;
    const tutti_holding h = tutti_stepper_holding(k->stepper, p->layer);
    const size_t begin = is_state ? h.region.offset + h.begin : 0;
    const size_t end = is_state ? h.region.offset + h.end : tutti_model_parameter_floats(k->model);
    float *strip = e.state == PARAMETER ? tutti_model_parameters(k->model)
                   : e.state == AVERAGE ? h.average
                                        : h.state[e.state];
    for (tutti_rows r = {.end = held.first}; r.end < held.end;) {
        r = next_rows(p, r.end, held.end);
        TUTTI_TRY(
            tutti_safetensors_read(file, at, r.first * row, k->scratch, (r.end - r.first) * row));
        tutti_model_import_rows(k->model, e.param, r, k->scratch, begin, end, strip);
    }
    return TUTTI_OK;
}

tutti_status tutti_tensors_read_parameter(tutti_keeper *k, const tutti_safetensors *file, int at,
                                          int param)
{
    return read_tensor(k, file, at, (entry){param, PARAMETER});
}

static tutti_status read_entry(tutti_keeper *k, const tutti_safetensors *file, const char *path,
                               entry e, int *missing)
{
    const int at = find_tensor(k, file, path, e);
    if (at < 0) ++*missing;
    return at < 0 ? TUTTI_OK : read_tensor(k, file, at, e);
}

tutti_status tutti_tensors_read(tutti_keeper *k, tutti_checkpoint_part part, const char *path,
                                int *missing)
{
    tutti_safetensors *file = NULL;
    TUTTI_TRY(tutti_safetensors_open(&file, path));
    tutti_status s = TUTTI_OK;
    *missing = 0;
    for (int i = 0; s == TUTTI_OK && i < k->net->param_count; i++) {
        const bool has_average = k->net->params[i].role != TUTTI_KEPT;
        if (part == TUTTI_PART_MODEL) s = read_entry(k, file, path, (entry){i, PARAMETER}, missing);
        if (part == TUTTI_PART_AVERAGE && has_average)
            s = read_entry(k, file, path, (entry){i, AVERAGE}, missing);
        for (int state = 0; s == TUTTI_OK && part == TUTTI_PART_OPTIMIZER && state < k->states &&
                            k->state_at[i] >= 0;
             state++)
            s = read_entry(k, file, path, (entry){i, state}, missing);
    }
    tutti_safetensors_close(&file);
    return s;
}
