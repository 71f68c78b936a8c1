/* Checkpoints do not know how many ranks wrote them. Parameters and momentum are brought into
 * torch's layout piece by piece; of each tensor every rank that holds it writes its share of the
 * rows. Momentum exists only in strips, so the holders of a layer first collect it. */
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
    tutti_tensor_spec *specs = NULL;
    size_t largest = 0;
    TUTTI_TRY(tutti_alloc(&specs, (size_t)k->net->param_count + 1, sizeof *specs));
    for (int i = 0; i < k->net->param_count; i++) {
        const tutti_param *p = &k->net->params[i];
        const size_t piece = (size_t)rows_at_once(p) * (p->count / (size_t)p->dims[0]);
        specs[i] = (tutti_tensor_spec){.name = p->name, .dims = p->dim_count};
        for (int d = 0; d < p->dim_count; d++) specs[i].shape[d] = p->dims[d];
        if (piece > largest) largest = piece;
    }
    tutti_status s = tutti_safetensors_layout_create(&k->layout, specs, k->net->param_count);
    if (s == TUTTI_OK) s = tutti_alloc(&k->scratch, largest, sizeof *k->scratch);
    tutti_free(specs);
    return s;
}

void tutti_tensors_destroy(tutti_keeper *k)
{
    for (int i = 0; k->collects && i < k->net->layer_count; i++)
        tutti_exchange_destroy(&k->collects[i]);
    tutti_free(k->collects);
    tutti_free(k->collected);
    tutti_free(k->scratch);
    tutti_safetensors_layout_destroy(&k->layout);
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
    const tutti_holding h = tutti_session_holding(k->session, k->net->params[param].layer);
    const tutti_rows held = tutti_model_slice(k->model, param).rows;
    const int blocks = tutti_ceil_div(held.end - held.first, TUTTI_BLOCK);
    const int end = held.first + TUTTI_BLOCK * tutti_share_begin(blocks, h.holders, h.place + 1);
    return (tutti_rows){held.first + TUTTI_BLOCK * tutti_share_begin(blocks, h.holders, h.place),
                        end < held.end ? end : held.end};
}

static tutti_status write_tensor(tutti_keeper *k, tutti_checkpoint *ck, tutti_checkpoint_part part,
                                 const tutti_region *whole, int param, const float *region)
{
    const tutti_param *p = &k->net->params[param];
    const int64_t row = (int64_t)(p->count / (size_t)p->dims[0]);
    const size_t begin = whole->offset, end = begin + whole->count;
    const tutti_rows own = own_rows(k, param);
    for (tutti_rows r = {.end = own.first}; r.end < own.end;) {
        r = next_rows(p, r.end, own.end);
        tutti_model_export_rows(k->model, param, r, begin, end, region, k->scratch);
        TUTTI_TRY(tutti_checkpoint_write(ck, part, param, r.first * row, k->scratch,
                                         (r.end - r.first) * row));
    }
    return TUTTI_OK;
}

static tutti_status write_layer(tutti_keeper *k, tutti_checkpoint *ck, tutti_checkpoint_part part,
                                int layer, const float *region)
{
    const tutti_layer *l = &k->net->layers[layer];
    const tutti_region whole = tutti_session_holding(k->session, layer).region;
    for (int i = 0; i < l->param_count; i++)
        TUTTI_TRY(write_tensor(k, ck, part, &whole, l->first_param + i, region));
    return TUTTI_OK;
}

tutti_status tutti_tensors_create_collects(tutti_keeper *k)
{
    size_t largest = 0;
    if (k->collects || tutti_comm_size(k->comm) == 1) return TUTTI_OK;
    for (int i = 0; i < k->net->layer_count; i++) {
        const size_t count = tutti_session_holding(k->session, i).region.count;
        if (count > largest) largest = count;
    }
    TUTTI_TRY(tutti_alloc_floats(&k->collected, largest));
    TUTTI_TRY(tutti_alloc(&k->collects, (size_t)k->net->layer_count, sizeof *k->collects));
    for (int i = 0; i < k->net->layer_count; i++) {
        const tutti_holding h = tutti_session_holding(k->session, i);
        const tutti_exchange_spec spec = {.name = k->net->layers[i].name,
                                          .group = h.across,
                                          .count = h.region.count,
                                          .whole = k->collected};
        if (h.state[0] && h.holders > 1)
            TUTTI_TRY(tutti_exchange_create(&k->collects[i], k->comm, &spec));
    }
    return TUTTI_OK;
}

/* Collective among the layer's holders. The momentum of the whole region. */
static tutti_status collect_momentum(tutti_keeper *k, int layer, const tutti_holding *h,
                                     const float **out)
{
    *out = h->state[0];
    if (!k->collects || !k->collects[layer]) return TUTTI_OK;
    memcpy(k->collected + h->begin, h->state[0], (h->end - h->begin) * sizeof *h->state[0]);
    *out = k->collected;
    return tutti_exchange_run(k->collects[layer]);
}

/* A failure to write on one rank must not keep the others waiting: everybody goes on collecting
 * and the first failure is the result. */
tutti_status tutti_tensors_write(tutti_keeper *k, tutti_checkpoint *ck)
{
    tutti_status written = TUTTI_OK;
    const float *parameters = tutti_model_parameters(k->model);
    for (int i = 0; i < k->net->layer_count; i++) {
        const tutti_holding h = tutti_session_holding(k->session, i);
        if (!h.region.count) continue;
        if (written == TUTTI_OK)
            written = write_layer(k, ck, TUTTI_PART_MODEL, i, parameters + h.region.offset);
        if (!h.state[0]) continue;
        const float *momentum;
        TUTTI_TRY(collect_momentum(k, i, &h, &momentum));
        if (written == TUTTI_OK) written = write_layer(k, ck, TUTTI_PART_OPTIMIZER, i, momentum);
    }
    return written == TUTTI_OK ? tutti_checkpoint_flush(ck) : written;
}

/* ---- in ---- */

/* Where the tensor is in the file; -1, with a sentence in the log, when it has none of that name or
 * shape. */
static int find_tensor(const tutti_keeper *k, const tutti_safetensors *file, const char *path,
                       int param)
{
    const tutti_param *p = &k->net->params[param];
    const tutti_tensor_spec *want = tutti_safetensors_layout_tensor(k->layout, param);
    const int at = tutti_safetensors_find(file, p->name);
    char have[128], need[128];
    if (at < 0) {
        tutti_warn(k->log, "%s has no tensor '%s'", path, p->name);
        return -1;
    }
    const tutti_tensor_spec *found = &tutti_safetensors_tensor(file, at)->spec;
    tutti_tensor_shape_text(found, have, sizeof have);
    tutti_tensor_shape_text(want, need, sizeof need);
    if (!strcmp(have, need)) return at;
    tutti_warn(k->log, "%s: '%s' is %s, the net needs %s", path, p->name, have, need);
    return -1;
}

/* Reads what this rank holds of a tensor: into the parameters, or its strip into the momentum. */
static tutti_status read_tensor(tutti_keeper *k, const tutti_safetensors *file, int at,
                                tutti_checkpoint_part part, int param)
{
    const bool momentum = part == TUTTI_PART_OPTIMIZER;
    const tutti_param *p = &k->net->params[param];
    const int64_t row = (int64_t)(p->count / (size_t)p->dims[0]);
    const tutti_rows held = tutti_model_slice(k->model, param).rows;
    const tutti_holding h = tutti_session_holding(k->session, p->layer);
    const size_t begin = momentum ? h.region.offset + h.begin : 0;
    const size_t end = momentum ? h.region.offset + h.end : tutti_model_parameter_floats(k->model);
    float *strip = momentum ? h.state[0] : tutti_model_parameters(k->model);
    for (tutti_rows r = {.end = held.first}; r.end < held.end;) {
        r = next_rows(p, r.end, held.end);
        TUTTI_TRY(
            tutti_safetensors_read(file, at, r.first * row, k->scratch, (r.end - r.first) * row));
        tutti_model_import_rows(k->model, param, r, k->scratch, begin, end, strip);
    }
    return TUTTI_OK;
}

tutti_status tutti_tensors_read(tutti_keeper *k, tutti_checkpoint_part part, const char *path,
                                int *missing)
{
    tutti_safetensors *file = NULL;
    TUTTI_TRY(tutti_safetensors_open(&file, path));
    tutti_status s = TUTTI_OK;
    *missing = 0;
    for (int i = 0; s == TUTTI_OK && i < k->net->param_count; i++) {
        const int at = find_tensor(k, file, path, i);
        if (at < 0) ++*missing;
        else s = read_tensor(k, file, at, part, i);
    }
    tutti_safetensors_close(&file);
    return s;
}
