/* Weights for a new run, from another one or another program: what is taken, and what starts
 * fresh, in one line. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/match.h"
#include "checkpoint/names.h"
#include "checkpoint/tensors.h"
#include "format/json.h"

/* A file of weights that is being read. */
typedef struct weights {
    tutti_keeper *k;
    const char *path;
    tutti_safetensors *file;
    tutti_match match;
    int taken, left; /* parameters; counters of minibatches that are not there are not left */
    tutti_string fresh;
} weights;

static const tutti_tensor_spec *wanted(const weights *w, int param)
{
    return tutti_safetensors_layout_tensor(w->k->layouts[TUTTI_PART_MODEL], param);
}

/* Notes why a parameter starts fresh; a layer is named once. */
static void leave(weights *w, int param, const char *have, const char *need)
{
    const tutti_param *p = &w->k->net->params[param];
    const tutti_layer *layer = &w->k->net->layers[p->layer];
    const bool again =
        w->fresh.length && param > layer->first_param && w->match.tensor[param - 1] < 0;
    w->match.tensor[param] = -1;
    w->left++;
    if (again) return;
    tutti_string_printf(&w->fresh, "%s%s", w->fresh.length ? ", " : "", layer->name);
    if (have) tutti_string_printf(&w->fresh, " (%s there, %s here)", have, need);
}

static tutti_status take(weights *w, int param)
{
    const int at = w->match.tensor[param];
    char have[128], need[128];
    if (at < 0 && w->k->net->params[param].counts) return TUTTI_OK;
    if (at < 0) {
        leave(w, param, NULL, NULL);
        return TUTTI_OK;
    }
    tutti_tensor_shape_text(&tutti_safetensors_tensor(w->file, at)->spec, have, sizeof have);
    tutti_tensor_shape_text(wanted(w, param), need, sizeof need);
    if (strcmp(have, need)) {
        leave(w, param, have, need);
        return TUTTI_OK;
    }
    w->taken++;
    return tutti_tensors_read_parameter(w->k, w->file, at, param);
}

/* "features.0 -> conv1, features.3 -> conv2", as many in a line as fit. */
static void say_mapping(const weights *w)
{
    enum { WIDTH = 90 };
    char line[1200] = "";
    tutti_info(w->k->log, "%s has other names; by shapes and order it is", w->path);
    for (int i = 0; i < w->k->net->layer_count; i++) {
        const tutti_layer *l = &w->k->net->layers[i];
        const int at = l->param_count ? w->match.tensor[l->first_param] : -1;
        if (at < 0) continue;
        const char *theirs = tutti_safetensors_tensor(w->file, at)->spec.name;
        const int stem = tutti_match_stem(theirs);
        if (*line && strlen(line) + (size_t)stem + strlen(l->name) > WIDTH) {
            tutti_info(w->k->log, "  %s", line);
            *line = 0;
        }
        const size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%.*s -> %s", used ? ", " : "", stem, theirs,
                 l->name);
    }
    tutti_info(w->k->log, "  %s", line);
}

static tutti_status conclude(const weights *w, bool all)
{
    const char *fresh = w->fresh.data ? w->fresh.data : "";
    const int unused = tutti_safetensors_count(w->file) - w->taken;
    char rest[64] = "";
    TUTTI_TRY(tutti_string_status(&w->fresh));
    if (all ? w->left > 0 : !w->taken)
        return tutti_fail(TUTTI_DATA,
                          "%s: %d of the %d tensors of %s are missing or do not fit: %.600s",
                          w->path, w->left, w->match.count, w->k->net->name, fresh);
    if (all && !w->match.by_look) return TUTTI_OK;
    if (unused > 0) snprintf(rest, sizeof rest, "; of the file %d are not used", unused);
    tutti_info(w->k->log, "weights: %d of %d tensors are taken from %s%s%.600s%s", w->taken,
               w->match.count, w->path, *fresh ? "; these layers start fresh: " : "", fresh, rest);
    return TUTTI_OK;
}

static tutti_status read_weights(weights *w, const char *rename, bool all)
{
    TUTTI_TRY(tutti_safetensors_open(&w->file, w->path));
    TUTTI_TRY(tutti_match_init(&w->match, w->k->layouts[TUTTI_PART_MODEL], w->k->net->name, w->file,
                               w->path, rename));
    if (w->match.by_look) say_mapping(w);
    for (int i = 0; i < w->match.count; i++) TUTTI_TRY(take(w, i));
    return conclude(w, all);
}

tutti_status tutti_keeper_load_weights(tutti_keeper *k, const char *where, const char *rename,
                                       bool all)
{
    char path[TUTTI_PATH_BYTES];
    weights w = {.k = k, .path = path};
    tutti_status s = tutti_checkpoint_weights(path, where);
    if (s == TUTTI_OK) s = tutti_checkpoint_verify_file(path);
    if (s == TUTTI_OK) s = read_weights(&w, rename, all);
    tutti_match_deinit(&w.match);
    tutti_safetensors_close(&w.file);
    tutti_string_deinit(&w.fresh);
    return tutti_comm_agree(k->comm, s);
}
