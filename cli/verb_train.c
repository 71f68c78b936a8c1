#include "cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/train.h>

/* The options of the library, and what the command line spells differently. */
typedef struct train_options {
    tutti_train_options train;
    int overlap, priority; /* places in "off|on" */
    int steps;
    const char *comm_core;
    cli_texts freeze, lr_scale;
    bool quiet;
} train_options;

#define AT(field) offsetof(train_options, field)
#define TO(field) offsetof(train_options, train.field)

// clang-format off
static const cli_option options[] = {
    {"NET",                CLI_TEXT, TO(net),
     .help = "a net of the zoo (tutti info), or a file; --resume knows it"},
    {"data|d",             CLI_TEXT, TO(data), .value = "SPEC",
     .help = "fashion-mnist, idx:DIR, cifar10:DIR, images:DIR, npy:X.npy,Y.npy, lmdb:DIR, kaldi:..., ..."},
    {"run|checkpoint-dir|ckpt-dir", CLI_TEXT, TO(run), .value = "DIR",
     .help = "keep checkpoints and metrics here"},
    {"overwrite",          CLI_FLAG, TO(overwrite),
     .help = "a run that is in --run already is moved to DIR.old"},
    {"batch-size|mini-batch-size|b", CLI_INT, TO(batch_size), 1, 1 << 24,
     .help = "samples per step, all ranks together", .otherwise = "the net's"},
    {"epochs|num-epochs",  CLI_REAL, TO(epochs), 1e-6, 1e6,
     .help = "passes over the training set", .otherwise = "the net's"},
    {"steps|max-iter|iterations", CLI_INT, AT(steps), 1, 1 << 30,
     .help = "steps, instead of epochs"},
    {"lr|base-lr",         CLI_REAL, TO(lr), 0, 1e6, .unset = -1,
     .help = "learning rate", .otherwise = "the net's"},
    {"optimizer",          CLI_TEXT, TO(optimizer), .value = "NAME",
     .help = "sgd (the default), adamw, adamw,beta2=0.99 ...: a wrong name lists them all"},
    {"momentum",           CLI_REAL, TO(momentum), 0, 1, .unset = -1,
     .help = "momentum of sgd", .otherwise = "the net's"},
    {"nesterov",           CLI_SWITCH, TO(nesterov), .unset = -1, .help = "Nesterov's momentum, of sgd"},
    {"weight-decay",       CLI_REAL, TO(weight_decay), 0, 1, .unset = -1,
     .help = "as in PyTorch", .otherwise = "the net's"},
    {"decay-all",          CLI_CHOICE, TO(decay_all), .choices = "off|on", .unset = -1, .otherwise = "the net's",
     .help = "off: biases and normalisation are left out of weight decay"},
    {"lr-schedule|lr-policy", CLI_TEXT, TO(lr_schedule), .value = "SCHEDULE",
     .help = "fixed, step:30:0.1, multistep:30,60:0.1, exp:0.95, poly:0.9, cosine, onecycle"},
    {"warmup",             CLI_TEXT, TO(warmup), .value = "SPAN",
     .help = "raise the rate from 0 over 500steps or 1epoch, less than the run"},
    {"clip",               CLI_REAL, TO(clip), 0, 1e9, .unset = -1,
     .help = "largest norm of the gradient; 0: no limit", .otherwise = "the net's"},
    {"label-smoothing",    CLI_REAL, TO(label_smoothing), 0, 1, .unset = -1,
     .help = "part of the target that all classes share, as in PyTorch", .otherwise = "the net's"},
    {"class-weights",      CLI_TEXT, TO(class_weights), .value = "auto|FILE",
     .help = "what classes count in the loss: auto (by inverse frequency), FILE, none"},
    {"ema",                CLI_REAL, TO(ema), 0, 0.9999999, .unset = -1,
     .help = "keep an average of the weights, ema * average + (1 - ema) * weights", .otherwise = "the net's"},
    {"eval-weights",       CLI_TEXT, TO(eval_weights), .value = "ema|model",
     .help = "which weights are evaluated and decide what is best", .otherwise = "ema, if kept"},
    {"init",               CLI_TEXT, TO(init), .value = "KIND",
     .help = "he, xavier, gaussian:STD; by default as the net says"},
    {"seed|random-seed",   CLI_U64,  TO(seed), 0, 9e18, .unset = -1,
     .help = "seed of everything random", .otherwise = "0"},
    {"grains",             CLI_INT,  TO(grains), 1, 1 << 20,
     .help = "leaves of the sum over samples: a power of two, at least the number of ranks",
     .otherwise = "by the batch size"},
    {"bn-group",           CLI_TEXT, TO(bn_group), .value = "N|all",
     .help = "samples that batchnorm layers normalise together", .otherwise = "the net's"},
    {"conv",               CLI_TEXT, TO(conv), .value = "ALGORITHM",
     .help = "of 3x3 convolutions whose text names none: direct, winograd-2x2 or winograd-4x4",
     .otherwise = "auto"},
    {"precision",          CLI_TEXT, TO(precision), .value = "fp32|bf16",
     .help = "bf16: layers round what they multiply, faster where the processor can",
     .otherwise = "the net's, usually fp32"},
    {"shuffle",            CLI_CHOICE, TO(shuffle), .choices = "off|on", .unset = -1, .otherwise = "on",
     .help = "a new order in every epoch"},
    {"augment",            CLI_CHOICE, TO(augment), .choices = "off|on", .unset = -1, .otherwise = "on",
     .help = "crop and flip, in the data set's way"},
    {"dropout",            CLI_CHOICE, TO(dropout), .choices = "off|on", .unset = -1, .otherwise = "on",
     .help = "off: dropout and stochastic depth do nothing, for comparisons"},
    {"skip-bad",           CLI_SWITCH, TO(skip_bad), .unset = -1,
     .help = "replace damaged samples instead of stopping"},
    {"resume|snapshot|restart-dir", CLI_TEXT, TO(resume), .value = "RUN",
     .help = "go on from a run or checkpoint; auto: from --run, if it has one"},
    {"weights",            CLI_TEXT, TO(weights), .value = "FILE",
     .help = "start from this run, checkpoint or safetensors file (fine-tuning)"},
    {"rename",             CLI_TEXT, TO(rename), .value = "FILE",
     .help = "what their tensors are called here: lines THEIRS OURS", .otherwise = "found out"},
    {"freeze",             CLI_TEXTS, AT(freeze), .value = "PATTERN,...",
     .help = "keep the layers of these names as they are: conv1, 'conv*', 'layer[12].*'"},
    {"lr-scale|lr-mult",   CLI_TEXTS, AT(lr_scale), .value = "PATTERN=X,...",
     .help = "multiply the learning rate of these layers: 'conv*=0.1'"},
    {"checkpoint-every|ckpt-every", CLI_TEXT, TO(checkpoint_every), .value = "SPAN",
     .help = "1000steps, 1epoch, 600s", .otherwise = "1epoch"},
    {"checkpoint-sync",    CLI_FLAG, TO(checkpoint_sync),
     .help = "wait until a checkpoint is on the disk, and need no memory for a copy"},
    {"keep",               CLI_INT,  TO(keep), 0, 1 << 20, .unset = -1,
     .help = "checkpoints to keep, besides the first and the best; 0: all", .otherwise = "3"},
    {"eval-every",         CLI_TEXT, TO(eval_every), .value = "SPAN",
     .help = "validate (where --data has val=) or test after every SPAN, or never",
     .otherwise = "1epoch"},
    {"patience",           CLI_INT,  TO(patience), 0, 1 << 20, .unset = -1,
     .help = "end after so many evaluations without a better one; 0: never", .otherwise = "0"},
    {"plan",               CLI_TEXT, TO(plan), .value = "PLAN", .fallback = "auto",
     .help = "data, model, auto, or a file from tutti plan --save"},
    {"micro-batch|micro-batch-size", CLI_INT, TO(micro_batch), 1, 1 << 24,
     .help = "samples of a rank in memory at a time: less memory, the same bits",
     .otherwise = "all it has of a step, or what fits"},
    {"overlap",            CLI_CHOICE, AT(overlap), .choices = "off|on", .fallback = "on",
     .help = "communicate while computing"},
    {"priority",           CLI_CHOICE, AT(priority), .choices = "off|on", .fallback = "on",
     .help = "exchange the first layers first"},
    {"threads|omp-num-threads|t", CLI_INT, TO(threads), 1, 4096,
     .help = "threads of each rank", .otherwise = "OMP_NUM_THREADS, else one per core"},
    {"data-threads|num-io-threads", CLI_INT, TO(data_threads), 1, 64,
     .help = "threads that read and decode", .otherwise = "by the number of cores"},
    {"comm-core",          CLI_TEXT, AT(comm_core), .value = "CORE", .fallback = "auto",
     .help = "core of the communication thread: auto, none, or a number"},
    {"part-reduce",        CLI_TEXT, TO(part_reduce), .value = "ALGORITHM",
     .help = "direct, halving or bruck; by default chosen by size and ranks (on one host: no messages)"},
    {"part-broadcast",     CLI_TEXT, TO(part_broadcast), .value = "ALGORITHM",
     .help = "direct, doubling (with halving) or bruck; by default chosen by size and ranks"},
    {"stall-warn",         CLI_REAL, TO(stall_warn), 0, 1e9, "60",
     .help = "seconds until a rank that does not arrive is named"},
    {"stall-abort",        CLI_REAL, TO(stall_abort), 0, 1e9, "600",
     .help = "seconds until the job ends because of it; 0: never"},
    {"trace|timeline-filename", CLI_TEXT, TO(trace), .value = "FILE",
     .help = "write a Chrome/Perfetto trace of all ranks"},
    {"tensorboard",        CLI_FLAG, TO(tensorboard),
     .help = "write the curves for TensorBoard, too, into --run (events.out.tfevents...)"},
    {"quiet|q",            CLI_FLAG, AT(quiet), .help = "no header, no progress, no summary"},
    {.name = NULL},
};

static const cli_group groups[] = {
    {"most used", "data|run|epochs|batch-size|lr"},
    {"what", "weights|rename|freeze|resume|init|seed|steps"},
    {"data", "shuffle|augment|skip-bad|eval-every|data-threads"},
    {"learning", "optimizer|lr-scale|momentum|nesterov|weight-decay|decay-all|lr-schedule|warmup|clip|label-smoothing|class-weights|patience|ema|eval-weights|"
                 "dropout|bn-group|conv|precision|grains"},
    {"machine", "plan|micro-batch|overlap|priority|threads|comm-core|part-reduce|part-broadcast|stall-warn|stall-abort"},
    {"files", "overwrite|checkpoint-every|checkpoint-sync|keep|trace|tensorboard|quiet"},
    {.title = NULL},
};
// clang-format on

static bool set_comm_core(const char *text, int *core)
{
    char *end;
    if (!strcmp(text, "auto") || !strcmp(text, "none")) {
        *core = *text == 'a' ? -1 : -2;
        return true;
    }
    *core = (int)strtol(text, &end, 10);
    return *text && !*end && *core >= 0;
}

static int run(const cli_call *call)
{
    const train_options *given = call->values;
    tutti_train_options o = given->train;
    tutti_train_result result = {0};
    o.steps = given->steps;
    o.freeze = *given->freeze.joined ? given->freeze.joined : NULL;
    o.lr_scale = *given->lr_scale.joined ? given->lr_scale.joined : NULL;
    o.overlap = given->overlap;
    o.priority = given->priority;
    o.log = tutti_log_stderr(TUTTI_LOG_INFO);
    o.show = given->quiet ? NULL : stdout;
    if (!set_comm_core(given->comm_core, &o.comm_core))
        return cli_misused(call, "--comm-core: '%s' is not auto, none or a core's number",
                           given->comm_core);
    if (o.rename && !o.weights) return cli_misused(call, "--rename %s needs --weights", o.rename);
    if (o.tensorboard && !o.run) return cli_misused(call, "--tensorboard needs --run");
    if (o.weights && o.resume)
        return cli_misused(call, "--weights starts anew, --resume goes on: give only one of them");
    if (o.overwrite && (!o.run || (o.resume && !strcmp(o.resume, "auto"))))
        return cli_misused(call, o.run
                                     ? "--overwrite starts anew, --resume auto goes on: give only "
                                       "one of them"
                                     : "--overwrite needs --run");
    signal(SIGPIPE, SIG_IGN); /* a training goes on when nobody looks on: '| head' */
    const tutti_status s = tutti_train(&o, &result);
    if (s == TUTTI_OK) return 0;
    const int code = result.was_said ? tutti_status_exit_code(s) : cli_failed(call, s);
    return s == TUTTI_INTERRUPTED ? result.exit_code : code;
}

const cli_verb cli_verb_train = {
    "train",
    "train a net",
    options,
    sizeof(train_options),
    run,
    "Examples:\n"
    "  tutti train lenet --data fashion-mnist --run runs/lenet\n"
    "  mpirun -n 4 --mca odls_base_sigkill_timeout 60 \\\n"
    "      tutti train vgg-a --data images:/data/imagenet --batch-size 256 --run runs/vgg\n"
    "  tutti train lenet --data fashion-mnist --run runs/lenet --resume auto\n\n"
    "A run that goes on (--resume) is the same run: options that are not given are those of the\n"
    "checkpoint. What fixes its arithmetic cannot change; --lr, --lr-scale, --lr-schedule,\n"
    "--epochs, --steps, --keep, --patience, --eval-every, --checkpoint-every and what is about\n"
    "the machine can.\n",
    groups};
