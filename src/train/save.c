/* Checkpoints do not know how many ranks wrote them. Parameters and momentum are brought into
 * torch's layout piece by piece; of each tensor every rank that holds it writes its share of the
 * rows. Momentum exists only in strips, so the holders of a layer first collect it. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum { PIECE_FLOATS = 4 << 20 };

/* Rows that are brought into torch's layout at a time: whole blocks of features. */
static int rows_at_once(const tutti_param *p)
{
    const size_t rows = PIECE_FLOATS / (p->count / (size_t)p->dims[0]) / TUTTI_BLOCK * TUTTI_BLOCK;
    return rows < TUTTI_BLOCK ? TUTTI_BLOCK : rows > (size_t)p->dims[0] ? p->dims[0] : (int)rows;
}

static tutti_status create_layout(tutti_trainer *t)
{
    if (t->layout) return TUTTI_OK;
    tutti_tensor_spec *specs = NULL;
    size_t largest = 0;
    TUTTI_TRY(tutti_alloc(&specs, (size_t)t->net->param_count + 1, sizeof *specs));
    for (int i = 0; i < t->net->param_count; i++) {
        const tutti_param *p = &t->net->params[i];
        const size_t piece = (size_t)rows_at_once(p) * (p->count / (size_t)p->dims[0]);
        specs[i] = (tutti_tensor_spec){.name = p->name, .dims = p->dim_count};
        for (int d = 0; d < p->dim_count; d++) specs[i].shape[d] = p->dims[d];
        if (piece > largest) largest = piece;
    }
    tutti_status s = tutti_safetensors_layout_create(&t->layout, specs, t->net->param_count);
    if (s == TUTTI_OK) s = tutti_alloc(&t->scratch, largest, sizeof *t->scratch);
    tutti_free(specs);
    return s;
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
static tutti_rows own_rows(const tutti_trainer *t, int param)
{
    const tutti_holding h = tutti_session_holding(t->session, t->net->params[param].layer);
    const tutti_rows held = tutti_model_slice(tutti_session_model(t->session), param).rows;
    const int blocks = tutti_ceil_div(held.end - held.first, TUTTI_BLOCK);
    const int end = held.first + TUTTI_BLOCK * tutti_share_begin(blocks, h.holders, h.place + 1);
    return (tutti_rows){held.first + TUTTI_BLOCK * tutti_share_begin(blocks, h.holders, h.place),
                        end < held.end ? end : held.end};
}

static tutti_status write_tensor(tutti_trainer *t, tutti_checkpoint *ck, tutti_checkpoint_part part,
                                 const tutti_region *whole, int param, const float *region)
{
    const tutti_model *model = tutti_session_model(t->session);
    const tutti_param *p = &t->net->params[param];
    const int64_t row = (int64_t)(p->count / (size_t)p->dims[0]);
    const size_t begin = whole->offset;
    const tutti_rows own = own_rows(t, param);
    for (tutti_rows r = {.end = own.first}; r.end < own.end;) {
        r = next_rows(p, r.end, own.end);
        tutti_model_export_rows(model, param, r, begin, begin + whole->count, region, t->scratch);
        TUTTI_TRY(tutti_checkpoint_write(ck, part, param, r.first * row, t->scratch,
                                         (r.end - r.first) * row));
    }
    return TUTTI_OK;
}

static tutti_status write_layer(tutti_trainer *t, tutti_checkpoint *ck, tutti_checkpoint_part part,
                                int layer, const float *region)
{
    const tutti_layer *l = &t->net->layers[layer];
    const tutti_region whole = tutti_session_holding(t->session, layer).region;
    for (int i = 0; i < l->param_count; i++)
        TUTTI_TRY(write_tensor(t, ck, part, &whole, l->first_param + i, region));
    return TUTTI_OK;
}

/* Collective: exchanges are created in one order on all ranks. */
static tutti_status create_collects(tutti_trainer *t)
{
    size_t largest = 0;
    if (t->collects || t->me.size == 1) return TUTTI_OK;
    for (int i = 0; i < t->net->layer_count; i++) {
        const size_t count = tutti_session_holding(t->session, i).region.count;
        if (count > largest) largest = count;
    }
    TUTTI_TRY(tutti_alloc_floats(&t->collected, largest));
    TUTTI_TRY(tutti_alloc(&t->collects, (size_t)t->net->layer_count, sizeof *t->collects));
    for (int i = 0; i < t->net->layer_count; i++) {
        const tutti_holding h = tutti_session_holding(t->session, i);
        const tutti_exchange_spec spec = {.name = t->net->layers[i].name,
                                          .group = h.across,
                                          .count = h.region.count,
                                          .whole = t->collected};
        if (h.state[0] && h.holders > 1)
            TUTTI_TRY(tutti_exchange_create(&t->collects[i], t->me.comm, &spec));
    }
    return TUTTI_OK;
}

void tutti_trainer_close_checkpoints(tutti_trainer *t)
{
    for (int i = 0; t->collects && i < t->net->layer_count; i++)
        tutti_exchange_destroy(&t->collects[i]);
    tutti_free(t->collects);
    tutti_free(t->collected);
    tutti_free(t->scratch);
    tutti_safetensors_layout_destroy(&t->layout);
}

/* Collective among the layer's holders. The momentum of the whole region. */
static tutti_status collect_momentum(tutti_trainer *t, int layer, const tutti_holding *h,
                                     const float **out)
{
    *out = h->state[0];
    if (!t->collects || !t->collects[layer]) return TUTTI_OK;
    memcpy(t->collected + h->begin, h->state[0], (h->end - h->begin) * sizeof *h->state[0]);
    *out = t->collected;
    return tutti_exchange_run(t->collects[layer]);
}

/* A failure to write on one rank must not keep the others waiting: everybody goes on collecting
 * and the first failure is the result. */
static tutti_status write_all(tutti_trainer *t, tutti_checkpoint *ck)
{
    tutti_status written = TUTTI_OK;
    const float *parameters = tutti_model_parameters(tutti_session_model(t->session));
    for (int i = 0; i < t->net->layer_count; i++) {
        const tutti_holding h = tutti_session_holding(t->session, i);
        if (!h.region.count) continue;
        if (written == TUTTI_OK)
            written = write_layer(t, ck, TUTTI_PART_MODEL, i, parameters + h.region.offset);
        if (!h.state[0]) continue;
        const float *momentum;
        TUTTI_TRY(collect_momentum(t, i, &h, &momentum));
        if (written == TUTTI_OK) written = write_layer(t, ck, TUTTI_PART_OPTIMIZER, i, momentum);
    }
    return written == TUTTI_OK ? tutti_checkpoint_flush(ck) : written;
}

enum { OPTIONS = 16, OPTION_BYTES = TUTTI_OPTIMIZER_TEXT };

/* What must be equal for two runs to be equal. */
static int state_options(const tutti_trainer *t, tutti_state_option *list,
                         char text[OPTIONS][OPTION_BYTES])
{
    const tutti_settings *s = &t->settings;
    char optimizer[TUTTI_OPTIMIZER_TEXT];
    int n = 0;
#define OPTION(key, format, value)                      \
    do {                                                \
        snprintf(text[n], OPTION_BYTES, format, value); \
        list[n] = (tutti_state_option){key, text[n]};   \
        n++;                                            \
    } while (0)
    OPTION("lr", "%.17g", s->lr);
    tutti_optimizer_text(&s->optimizer, optimizer);
    OPTION("optimizer", "%s", optimizer);
    OPTION("weight-decay", "%.17g", s->weight_decay);
    OPTION("decay-all", "%s", s->decay_all ? "yes" : "no");
    OPTION("lr-schedule", "%s", s->lr_schedule);
    OPTION("warmup", "%s", s->warmup);
    OPTION("clip", "%.17g", s->clip);
    OPTION("steps", "%lld", (long long)s->pace.steps);
    OPTION("shuffle", "%s", t->options->shuffle ? "yes" : "no");
    OPTION("augment", "%s", t->options->augment ? "yes" : "no");
    OPTION("data-hash", "%s", tutti_data_hash(t->data));
#undef OPTION
    return n;
}

static tutti_status finish(tutti_trainer *t, tutti_checkpoint **ck, bool best)
{
    char text[OPTIONS][OPTION_BYTES];
    tutti_state_option options[OPTIONS];
    const tutti_state_metric metrics[] = {
        {"loss", t->last_loss},
        {"top1", t->last_top1},
        {"top5", t->last_top5},
        {"best_top1", t->best_top1},
        {"best_step", (double)t->best_step},
    };
    const tutti_pace *pace = &t->settings.pace;
    const int64_t step = tutti_session_steps(t->session), seen = step * pace->batch;
    const tutti_state state = {
        .step = step,
        .epoch = seen / pace->samples,
        .epoch_sample = seen % pace->samples,
        .seed = (int64_t)t->options->seed,
        .batch_size = t->settings.batch,
        .grains = t->settings.grains,
        .net = t->net->name,
        .net_sha256 = t->net_hash,
        .options = options,
        .option_count = state_options(t, options, text),
        .metrics = metrics,
        .metric_count = sizeof metrics / sizeof *metrics,
    };
    const tutti_checkpoint_finish_options o = {.best = best, .keep = t->options->keep};
    return tutti_checkpoint_finish(ck, &state, o);
}

tutti_status tutti_trainer_save(tutti_trainer *t, bool best)
{
    if (!t->options->run) return TUTTI_OK;
    tutti_checkpoint *ck = NULL;
    const bool creates = t->me.rank == 0;
    const int64_t step = tutti_session_steps(t->session);
    tutti_status s = create_layout(t);
    if (s == TUTTI_OK) s = create_collects(t);
    if (s == TUTTI_OK && creates)
        s = tutti_checkpoint_begin(&ck, t->options->run, step, t->layout, t->layout, true);
    if ((s = tutti_comm_agree(t->me.comm, s)) != TUTTI_OK) goto out;
    if (!creates)
        s = tutti_checkpoint_begin(&ck, t->options->run, step, t->layout, t->layout, false);
    if ((s = tutti_comm_agree(t->me.comm, s)) != TUTTI_OK) goto out;
    if ((s = tutti_comm_agree(t->me.comm, write_all(t, ck))) != TUTTI_OK) goto out;
    if (creates) s = finish(t, &ck, best);
    s = tutti_comm_agree(t->me.comm, s);
out:
    tutti_checkpoint_abandon(&ck);
    return s;
}

/* ---- in ---- */

/* Where the tensor is in the file; -1, with a sentence in the log, when it has none of that name or
 * shape. */
static int find_tensor(const tutti_trainer *t, const tutti_safetensors *file, const char *path,
                       int param)
{
    const tutti_param *p = &t->net->params[param];
    const tutti_tensor_spec *want = tutti_safetensors_layout_tensor(t->layout, param);
    const int at = tutti_safetensors_find(file, p->name);
    char have[128], need[128];
    if (at < 0) {
        tutti_warn(&t->log, "%s has no tensor '%s'", path, p->name);
        return -1;
    }
    const tutti_tensor_spec *found = &tutti_safetensors_tensor(file, at)->spec;
    tutti_tensor_shape_text(found, have, sizeof have);
    tutti_tensor_shape_text(want, need, sizeof need);
    if (!strcmp(have, need)) return at;
    tutti_warn(&t->log, "%s: '%s' is %s, the net needs %s", path, p->name, have, need);
    return -1;
}

/* Reads what this rank holds of a tensor: into the parameters, or its strip into the momentum. */
static tutti_status read_tensor(tutti_trainer *t, const tutti_safetensors *file, int at, int param,
                                bool momentum)
{
    tutti_model *model = tutti_session_model(t->session);
    const tutti_param *p = &t->net->params[param];
    const int64_t row = (int64_t)(p->count / (size_t)p->dims[0]);
    const tutti_rows held = tutti_model_slice(model, param).rows;
    const tutti_holding h = tutti_session_holding(t->session, p->layer);
    const size_t begin = momentum ? h.region.offset + h.begin : 0;
    const size_t end = momentum ? h.region.offset + h.end : tutti_model_parameter_floats(model);
    float *strip = momentum ? h.state[0] : tutti_model_parameters(model);
    for (tutti_rows r = {.end = held.first}; r.end < held.end;) {
        r = next_rows(p, r.end, held.end);
        TUTTI_TRY(
            tutti_safetensors_read(file, at, r.first * row, t->scratch, (r.end - r.first) * row));
        tutti_model_import_rows(model, param, r, t->scratch, begin, end, strip);
    }
    return TUTTI_OK;
}

/* Reads all tensors of the net; *missing counts those that do not fit. */
static tutti_status read_all(tutti_trainer *t, const char *path, bool momentum, int *missing)
{
    tutti_safetensors *file = NULL;
    TUTTI_TRY(tutti_safetensors_open(&file, path));
    tutti_status s = TUTTI_OK;
    *missing = 0;
    for (int i = 0; s == TUTTI_OK && i < t->net->param_count; i++) {
        const int at = find_tensor(t, file, path, i);
        if (at < 0) ++*missing;
        else s = read_tensor(t, file, at, i, momentum);
    }
    tutti_safetensors_close(&file);
    return s;
}

/* A run or a checkpoint stands for its weights: the best ones of a run. */
static const char *weights_in(const char *path, char *out, size_t size)
{
    static const char *const places[] = {"best/model.safetensors", "latest/model.safetensors",
                                         "model.safetensors"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int n = snprintf(out, size, "%s/%s", path, places[i]);
        if (n > 0 && (size_t)n < size && access(out, R_OK) == 0) return out;
    }
    return path;
}

tutti_status tutti_trainer_load_weights(tutti_trainer *t, const char *where, bool all)
{
    int missing = 0;
    char found[TUTTI_PATH_BYTES + 64];
    const char *path = weights_in(where, found, sizeof found);
    tutti_status s = create_layout(t);
    if (s == TUTTI_OK) s = read_all(t, path, false, &missing);
    if (s == TUTTI_OK && (all ? missing > 0 : missing == t->net->param_count))
        s = tutti_fail(TUTTI_DATA, "%s: %d of the %d tensors of %s are missing or do not fit", path,
                       missing, t->net->param_count, t->net->name);
    return tutti_comm_agree(t->me.comm, s);
}

/* A run goes on only as what it was. */
static tutti_status check_state(const tutti_trainer *t, const tutti_state *state, const char *path)
{
    if (strcmp(state->net_sha256, t->net_hash))
        return tutti_fail(TUTTI_MISMATCH, "%s is a checkpoint of another net (%s) than %s", path,
                          state->net, t->net->name);
    const struct {
        const char *option;
        int64_t was, is;
    } same[] = {
        {"--batch-size", state->batch_size, t->settings.batch},
        {"--grains", state->grains, t->settings.grains},
        {"--seed", state->seed, (int64_t)t->options->seed},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].was != same[i].is)
            return tutti_fail(TUTTI_MISMATCH,
                              "%s was trained with %s %lld, not %lld: give it the "
                              "same to go on, or start from it with --weights",
                              path, same[i].option, (long long)same[i].was, (long long)same[i].is);
    const char *data = tutti_state_option_value(state, "data-hash");
    if (data && strcmp(data, tutti_data_hash(t->data)))
        return tutti_fail(TUTTI_MISMATCH, "%s was trained on other data than %s", path,
                          t->options->data);
    return TUTTI_OK;
}

static void take_state(tutti_trainer *t, const tutti_state *state)
{
    tutti_session_begin_at(t->session, state->step);
    t->last_loss = tutti_state_metric_value(state, "loss");
    t->last_top1 = tutti_state_metric_value(state, "top1");
    t->last_top5 = tutti_state_metric_value(state, "top5");
    t->best_top1 = tutti_state_metric_value(state, "best_top1");
    const double best_step = tutti_state_metric_value(state, "best_step");
    t->best_step = isfinite(best_step) ? (int64_t)best_step : 0;
}

static tutti_status read_checkpoint(tutti_trainer *t, const char *directory)
{
    char path[TUTTI_PATH_BYTES + 64];
    tutti_state_file *file = NULL;
    int missing = 0;
    snprintf(path, sizeof path, "%s/state.json", directory);
    TUTTI_TRY(tutti_state_open(&file, path));
    tutti_status s = check_state(t, tutti_state_of(file), directory);
    if (s == TUTTI_OK) take_state(t, tutti_state_of(file));
    tutti_state_close(&file);
    if (s == TUTTI_OK) s = create_layout(t);
    snprintf(path, sizeof path, "%s/model.safetensors", directory);
    if (s == TUTTI_OK) s = read_all(t, path, false, &missing);
    snprintf(path, sizeof path, "%s/optimizer.safetensors", directory);
    if (s == TUTTI_OK && !missing && tutti_optimizer_cost_of(&t->settings.optimizer).states > 0)
        s = read_all(t, path, true, &missing);
    if (s == TUTTI_OK && missing)
        s = tutti_fail(TUTTI_CHECKPOINT, "%s: %d tensors do not fit", path, missing);
    return s;
}

tutti_status tutti_trainer_resume(tutti_trainer *t, const char *where, bool must_exist)
{
    char directory[TUTTI_PATH_BYTES];
    bool found = false;
    tutti_status s = tutti_checkpoint_find(directory, &found, where);
    if (s == TUTTI_OK && !found && must_exist)
        s = tutti_fail(TUTTI_IO, "--resume %s: there is no checkpoint", where);
    if (s == TUTTI_OK && found) s = read_checkpoint(t, directory);
    s = tutti_comm_agree(t->me.comm, s);
    if (s == TUTTI_OK)
        s = tutti_comm_check_same(t->me.comm, "the checkpoint's step",
                                  (uint64_t)tutti_session_steps(t->session));
    return s;
}
