/* What a training run takes, foretold: the model plans its memory without taking it. */
#include <tutti/net.h>

#include "base/team.h"
#include "step/parts.h"

enum {
    PROGRAM_BYTES = 19 << 20, /* code, libraries, stacks: measured on an idle run */
    BATCHES = 3,              /* the one in use and those the loader reads ahead */
};

static uint64_t data_bytes(const tutti_net *net, int samples)
{
    return (uint64_t)BATCHES * (uint64_t)samples * tutti_net_input_floats(net) * sizeof(float);
}

tutti_status tutti_net_memory(const tutti_net *net, int batch, int micro_batch, int threads,
                              double ema, tutti_memory *out)
{
    tutti_model_options options;
    tutti_model_bytes bytes;
    tutti_suggested said;
    const tutti_layer_info total = tutti_net_total(net);
    if (batch < 1) return tutti_fail(TUTTI_ARGUMENT, "a batch size of %d", batch);
    TUTTI_TRY(tutti_net_suggested(&said, net));
    TUTTI_TRY(tutti_model_defaults(&options, net, batch));
    options.micro_batch = micro_batch;
    TUTTI_TRY(tutti_team_create(&options.team, threads));
    const tutti_status s = tutti_model_measure(&bytes, net, &options);
    tutti_team_destroy(&options.team);
    TUTTI_TRY(s);
    const uint64_t states = (uint64_t)tutti_optimizer_cost_of(&said.optimizer).states;
    const uint64_t averages = (ema < 0 ? said.ema : ema) > 0;
    *out = (tutti_memory){
        .passes = bytes.passes,
        .parameters = bytes.parameters,
        .gradients = bytes.gradients,
        .momentum = bytes.followed * states,
        .average = bytes.followed * averages,
        .activations = bytes.arena,
        .data = data_bytes(net, batch),
        .snapshot = (total.parameters + total.trained * (states + averages)) * sizeof(float),
        .program = PROGRAM_BYTES,
        .separate = bytes.separate,
    };
    out->peak = out->parameters + out->gradients + out->momentum + out->average + out->activations +
                out->data + out->snapshot + out->program;
    return TUTTI_OK;
}

/* While a run evaluates it reads samples of two kinds ahead. Of parameters that all ranks hold each
 * rank has its strip's part of the optimizer's state, of the average and of the copy; messages take
 * about one more. Split layers count as if nobody else held them. */
tutti_status tutti_stepper_measure(const tutti_stepper_options *options, bool saves, uint64_t *out)
{
    tutti_stepper s = {.options = *options,
                       .rank = tutti_comm_rank(options->comm),
                       .size = tutti_comm_size(options->comm)};
    tutti_model_bytes bytes;
    const tutti_model_options model = tutti_stepper_model_options(&s);
    TUTTI_TRY(tutti_model_measure(&bytes, options->net, &model));
    const uint64_t kept =
        (uint64_t)tutti_optimizer_cost_of(&options->optimizer).states + (options->ema > 0);
    const uint64_t sharers = model.groups ? 1 : (uint64_t)s.size;
    const uint64_t states = bytes.followed / sharers * kept;
    const uint64_t messages = s.size > 1 ? bytes.followed : 0;
    *out = PROGRAM_BYTES + bytes.parameters + bytes.gradients + bytes.arena +
           2 * data_bytes(options->net, bytes.samples) + messages + states +
           (saves ? bytes.parameters / sharers + states : 0);
    return TUTTI_OK;
}
