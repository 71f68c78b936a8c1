#include <tutti/machine.h>

#include "cli.h"

typedef struct doctor_options {
    int threads;
    bool quick, measure, json;
    const char *net;
    int batch_size;
} doctor_options;

#define AT(field) offsetof(doctor_options, field)
// clang-format off
static const cli_option options[] = {
    {"threads",  CLI_INT,  AT(threads), 1, 65536, .help = "threads to measure with, like --threads of train", .otherwise = "OMP_NUM_THREADS, else one per core"},
    {"measure",  CLI_FLAG, AT(measure), .fallback = "yes", .help = "--no-measure only looks"},
    {"quick",    CLI_FLAG, AT(quick),   .help = "measure for a tenth of the time, less exactly"},
    {"model",    CLI_TEXT, AT(net), .value = "NET", .help = "say whether there is enough memory to train this net"},
    {"batch-size|b", CLI_INT, AT(batch_size), 1, 1 << 24, .help = "with --model: samples per step, all ranks together", .otherwise = "the net's"},
    {"json",     CLI_FLAG, AT(json),    .help = "print JSON"},
    {.name = NULL},
};
// clang-format on

static int run(const cli_call *call)
{
    const doctor_options *o = call->values;
    tutti_machine *machine = NULL;
    tutti_machine_options wanted = tutti_machine_defaults();
    wanted.threads = o->threads;
    wanted.net = o->net;
    wanted.batch_size = o->batch_size;
    if (o->quick) wanted.seconds /= 10;
    if (!o->measure) wanted.seconds = 0;

    tutti_status s = tutti_machine_create(&machine, &wanted);
    if (s == TUTTI_OK && o->json) s = tutti_machine_print_json(machine, stdout);
    if (s == TUTTI_OK && !o->json) tutti_machine_print(machine, stdout);
    tutti_machine_destroy(&machine);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

const cli_verb cli_verb_doctor = {
    "doctor",
    "say what this machine is, what it can do and what would hurt",
    options,
    sizeof(doctor_options),
    run,
    "Examples:\n"
    "  tutti doctor\n"
    "  tutti doctor --json | jq .fma_gflops\n"
    "  tutti doctor --model vgg-a --batch-size 256\n"
    "  mpirun -np 4 tutti doctor       all ranks at once: who shares a core, who is slow\n"
    "  TUTTI_ISA=avx2 tutti doctor     with the kernels of a lesser processor\n",
    NULL,
};
