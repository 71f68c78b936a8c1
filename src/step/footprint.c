/* What a training run takes, foretold: the model plans its memory without taking it. */
#include <tutti/net.h>

#include "base/team.h"
#include "nn/model.h"

enum {
    PROGRAM_BYTES = 19 << 20, /* code, libraries, stacks: measured on an idle run */
    BATCHES = 3,              /* the one in use and those the loader reads ahead */
    SAVED = 2,                /* of each parameter: itself and its momentum */
};

tutti_status tutti_net_memory(const tutti_net *net, int batch, int threads, tutti_memory *out)
{
    tutti_model_options options;
    tutti_model_bytes bytes;
    if (batch < 1) return tutti_fail(TUTTI_ARGUMENT, "a batch size of %d", batch);
    TUTTI_TRY(tutti_model_defaults(&options, batch));
    TUTTI_TRY(tutti_team_create(&options.team, threads));
    const tutti_status s = tutti_model_measure(&bytes, net, &options);
    tutti_team_destroy(&options.team);
    TUTTI_TRY(s);
    *out = (tutti_memory){
        .parameters = bytes.parameters,
        .gradients = bytes.gradients,
        .momentum = bytes.parameters,
        .activations = bytes.arena,
        .data = (uint64_t)BATCHES * (uint64_t)batch * tutti_net_input_floats(net) * sizeof(float),
        .snapshot = SAVED * tutti_net_total(net).parameters * sizeof(float),
        .program = PROGRAM_BYTES,
        .separate = bytes.separate,
    };
    out->peak = out->parameters + out->gradients + out->momentum + out->activations + out->data +
                out->snapshot + out->program;
    return TUTTI_OK;
}
