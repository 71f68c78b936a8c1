#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/tensors.h"

static tutti_tensor_spec spec_of(const tutti_param *p, const char *name)
{
    tutti_tensor_spec spec = {
        .name = name, .dims = p->dim_count, .dtype = p->counts ? TUTTI_I64 : TUTTI_F32};
    for (int d = 0; d < p->dim_count; d++) spec.shape[d] = p->dims[d];
    return spec;
}

static tutti_status list_parameters(tutti_keeper *k, tutti_tensor_spec *specs,
                                    const tutti_fact *facts, int count)
{
    for (int i = 0; i < k->net->param_count; i++)
        specs[i] = spec_of(&k->net->params[i], k->net->params[i].name);
    TUTTI_TRY(tutti_safetensors_layout_create_with(&k->layouts[TUTTI_PART_MODEL], specs,
                                                   k->net->param_count, facts, count));
    if (!tutti_stepper_has_average(k->stepper)) return TUTTI_OK;
    return tutti_safetensors_layout_create_with(&k->layouts[TUTTI_PART_AVERAGE], specs,
                                                k->net->param_count, facts, count);
}

tutti_status tutti_keeper_describe(tutti_keeper *k, const tutti_fact *facts, int count)
{
    tutti_tensor_spec *specs = NULL;
    TUTTI_TRY(tutti_alloc(&specs, (size_t)k->net->param_count, sizeof *specs));
    tutti_safetensors_layout_destroy(&k->layouts[TUTTI_PART_MODEL]);
    tutti_safetensors_layout_destroy(&k->layouts[TUTTI_PART_AVERAGE]);
    const tutti_status s = list_parameters(k, specs, facts, count);
    tutti_free(specs);
    return s;
}

/* "conv1.weight" and ".exp_avg" make "conv1.weight.exp_avg". */
static tutti_status name_state(char **out, const tutti_param *p, const char *state)
{
    const size_t bytes = strlen(p->name) + strlen(state) + 1;
    TUTTI_TRY(tutti_alloc(out, bytes, 1));
    snprintf(*out, bytes, "%s%s", p->name, state);
    return TUTTI_OK;
}

static tutti_status list_states(tutti_keeper *k, tutti_tensor_spec *specs)
{
    int n = 0;
    for (int i = 0; i < k->net->param_count; i++) {
        const tutti_param *p = &k->net->params[i];
        k->state_at[i] = p->role == TUTTI_TRAINED ? n : -1;
        for (int s = 0; s < k->states && p->role == TUTTI_TRAINED; s++, n++) {
            TUTTI_TRY(name_state(&k->names[n], p, k->optimizer->state_names[s]));
            specs[n] = spec_of(p, k->names[n]);
        }
    }
    if (k->optimizer && k->optimizer->counts_steps)
        specs[n++] = (tutti_tensor_spec){.name = "step", .dims = 1, .shape = {1}};
    return tutti_safetensors_layout_create(&k->layouts[TUTTI_PART_OPTIMIZER], specs, n);
}

tutti_status tutti_layouts_create(tutti_keeper *k)
{
    const size_t params = (size_t)k->net->param_count;
    const size_t states = params * (size_t)k->states;
    tutti_tensor_spec *specs = NULL;
    tutti_status s = tutti_alloc(&specs, params + states + 1, sizeof *specs);
    if (s == TUTTI_OK) s = tutti_alloc(&k->state_at, params + 1, sizeof *k->state_at);
    if (s == TUTTI_OK) s = tutti_alloc(&k->names, states + 1, sizeof *k->names);
    if (s == TUTTI_OK) s = list_parameters(k, specs, NULL, 0);
    if (s == TUTTI_OK) s = list_states(k, specs);
    tutti_free(specs);
    return s;
}

void tutti_layouts_destroy(tutti_keeper *k)
{
    for (int i = 0; k->names && k->names[i]; i++) tutti_free(k->names[i]);
    tutti_free(k->names);
    tutti_free(k->state_at);
    for (int part = 0; part < TUTTI_PARTS; part++)
        tutti_safetensors_layout_destroy(&k->layouts[part]);
}
