/* Weights that tell about themselves, and whether that fits what they are used for. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "format/json.h"
#include "kernel/conv.h"
#include "nn/kinds/kind.h"
#include "train/run.h"

tutti_status tutti_run_read_about(tutti_run *run, bool evaluates_only)
{
    char path[TUTTI_PATH_BYTES + 64];
    const char *weights = run->options->weights;
    if (run->was) {
        snprintf(path, sizeof path, "%s/model.safetensors", run->begins_at);
        return tutti_about_open(&run->about, path);
    }
    if (!evaluates_only || !weights) return TUTTI_OK;
    TUTTI_TRY(tutti_checkpoint_weights(path, weights));
    if (access(path, R_OK) && run->options->net) return TUTTI_OK; /* loading them will say why */
    TUTTI_TRY(tutti_checkpoint_verify_file(path));
    return tutti_about_open(&run->about, path);
}

/* ---- the net ---- */

static tutti_status parse_net(tutti_net **out, const tutti_about *about)
{
    char where[256];
    snprintf(where, sizeof where, "%.200s.net", about->net);
    return tutti_net_parse(out, about->net_text, where);
}

/* Dropout makes no difference to answers. */
static tutti_status hash_of_answers(tutti_net *net, char hex[TUTTI_HASH_HEX])
{
    tutti_net_still(net);
    return tutti_net_hash_answers(net, hex);
}

static tutti_status check_net(tutti_run *run)
{
    char given[TUTTI_HASH_HEX] = "", told[TUTTI_HASH_HEX] = "";
    tutti_net *net = NULL;
    TUTTI_TRY(parse_net(&net, run->about));
    tutti_status s = hash_of_answers(net, told);
    tutti_net_destroy(&net);
    if (s == TUTTI_OK) s = hash_of_answers(run->net, given);
    if (s != TUTTI_OK || !strcmp(given, told)) return s;
    return tutti_fail(TUTTI_OTHER_RUN,
                      "--weights %s are those of another net (%s) than %s: leave NET out, they "
                      "know theirs",
                      run->options->weights, run->about->net, run->net->name);
}

tutti_status tutti_run_open_net(tutti_run *run, bool evaluates_only)
{
    const char *name = run->options->net;
    if (name && strchr(name, '\n')) TUTTI_TRY(tutti_net_parse(&run->net, name, "net"));
    else if (name) TUTTI_TRY(tutti_net_load(&run->net, name));
    else if (run->about) return parse_net(&run->net, run->about);
    else
        return tutti_fail(TUTTI_ARGUMENT, "NET is missing%s: name a net of the zoo, or a file",
                          evaluates_only ? ", and the weights do not tell" : "");
    return evaluates_only && run->about ? check_net(run) : TUTTI_OK;
}

/* Those who ask a net, or take it from its weights, have it as it was trained. */
static const char *as_trained(const tutti_run *run, bool evaluates_only, const char *told)
{
    const bool is_theirs = run->about && (evaluates_only || !run->options->net);
    return is_theirs ? told : NULL;
}

void tutti_run_convolve(tutti_run *run, bool evaluates_only)
{
    tutti_settings *s = &run->settings;
    const char *word = as_trained(run, evaluates_only, run->about ? run->about->conv : NULL);
    if (word && !run->options->conv) snprintf(s->conv, sizeof s->conv, "%s", word);
    for (int i = TUTTI_CONV_DIRECT; tutti_conv_algorithm_words[i]; i++)
        if (!strcmp(tutti_conv_algorithm_words[i], s->conv)) tutti_net_convolve(run->net, i);
}

tutti_status tutti_run_round(tutti_run *run, bool evaluates_only)
{
    tutti_settings *s = &run->settings;
    const char *word = as_trained(run, evaluates_only, run->about ? run->about->precision : NULL);
    if (word && !run->options->precision) snprintf(s->precision, sizeof s->precision, "%s", word);
    return tutti_net_set_precision(run->net, s->precision);
}

/* ---- the classes ---- */

int tutti_run_classes(const tutti_run *run)
{
    return run->about ? run->about->class_count : tutti_data_classes(run->data);
}

const char *tutti_run_class_name(const tutti_run *run, int output)
{
    if (output >= tutti_run_classes(run)) return "-";
    return run->about ? run->about->classes[output] : tutti_data_class_name(run->data, output);
}

/* The one output of that name, or -1; where names repeat, only the place tells. */
static int output_of(const tutti_about *about, const char *name, int label)
{
    int found = -1;
    if (label < about->class_count && !strcmp(about->classes[label], name)) return label;
    for (int i = 0; i < about->class_count; i++) {
        if (strcmp(about->classes[i], name)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

static tutti_status match_class(tutti_run *run, int label)
{
    tutti_string name = {0};
    tutti_string_utf8(&name, tutti_data_class_name(run->data, label));
    tutti_status s = tutti_string_status(&name);
    if (s == TUTTI_OK)
        run->outputs[label] = output_of(run->about, name.data ? name.data : "", label);
    if (s == TUTTI_OK && run->outputs[label] < 0)
        s = tutti_fail(TUTTI_OTHER_RUN,
                       "--data %s has a class '%s' that --weights %s do not know: their %d classes "
                       "begin with '%s'",
                       run->options->data, name.data ? name.data : "", run->options->weights,
                       run->about->class_count, run->about->classes[0]);
    tutti_string_deinit(&name);
    return s;
}

static bool is_number_of(const char *name, int label)
{
    char number[16];
    snprintf(number, sizeof number, "%d", label);
    return !strcmp(name, number);
}

/* Masks and arrays hold numbers, which names must not turn round. */
static tutti_status compare_name(const tutti_run *run, int label)
{
    const char *name = tutti_data_class_name(run->data, label);
    const char *was = tutti_run_class_name(run, label);
    if (is_number_of(name, label) || is_number_of(was, label) || !strcmp(name, was))
        return TUTTI_OK;
    return tutti_fail(
        TUTTI_OTHER_RUN,
        "--data %s calls output %d '%s', --weights %s call it '%s': names= must be in "
        "the same order",
        run->options->data, label, name, run->options->weights, was);
}

tutti_status tutti_run_match_classes(tutti_run *run)
{
    const int count = tutti_data_classes(run->data);
    const bool by_number = tutti_data_has_goals(run->data);
    for (int label = 0; by_number && label < count; label++) TUTTI_TRY(compare_name(run, label));
    if (by_number) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&run->outputs, (size_t)count, sizeof *run->outputs));
    for (int label = 0; label < count; label++) TUTTI_TRY(match_class(run, label));
    return TUTTI_OK;
}

/* Often forgotten: the zoo's nets tell ImageNet's classes apart. */
void tutti_run_mention_spare_outputs(const tutti_run *run)
{
    const tutti_layer *last = &run->net->layers[run->net->layer_count - 1];
    const int have = tutti_data_classes(run->data), can = tutti_net_classes(run->net);
    if (run->me.rank || have >= can || last->from[0] < 0) return;
    tutti_warn(&run->log,
               "%s has %d outputs for %d classes; to do without the others, give layer %s %d "
               "outputs in a copy of the net's text and train that",
               run->net->name, can, have, run->net->layers[last->from[0]].name, have);
}

/* ---- the loss ---- */

/* What is said of classes is for nets that tell them apart. */
tutti_status tutti_run_check_kind_of_loss(const tutti_run *run)
{
    const char *weights = run->options->class_weights;
    const char *loss = run->net->layers[run->net->layer_count - 1].kind->word;
    const bool simple =
        run->net->target_count == 1 && tutti_run_target(run)->form == TUTTI_TARGET_CLASS;
    if (run->use == TUTTI_RUN_STEPS && !simple)
        return tutti_fail(TUTTI_ARGUMENT,
                          "a loop of one's own has a label for each sample, but this net's loss is "
                          "%s: train it with tutti train",
                          loss);
    if (!tutti_target_is_values(tutti_run_target(run))) return TUTTI_OK;
    if (run->settings.label_smoothing > 0)
        return tutti_fail(
            TUTTI_ARGUMENT,
            "--label-smoothing is for softmax and pixelsoftmax; this net's loss is %s: "
            "leave it out",
            loss);
    if (weights && *weights && strcmp(weights, "none") != 0)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--class-weights is for softmax and pixelsoftmax; this net's loss is %s: "
                          "leave it out",
                          loss);
    return TUTTI_OK;
}
