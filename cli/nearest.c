/* "did you mean": the restricted Damerau-Levenshtein distance (insert, delete, replace, swap
 * neighbours), with '_' and '-' alike. */
#include <string.h>

#include "cli.h"

enum { LONGEST = 40 };

/* Habits from PyTorch, Keras, Caffe, darknet and Slurm. */
static const struct {
    const char *theirs, *ours;
} synonyms[] = {
    {"learning-rate", "lr"},
    {"initial-lr", "lr"},
    {"wd", "weight-decay"},
    {"l2", "weight-decay"},
    {"lr-scheduler", "lr-schedule"},
    {"scheduler", "lr-schedule"},
    {"lr-decay", "lr-schedule"},
    {"warmup-epochs", "warmup"},
    {"warmup-steps", "warmup"},
    {"warmup-iters", "warmup"},
    {"opt", "optimizer"},
    {"solver", "optimizer"},
    {"bs", "batch-size"},
    {"batch", "batch-size"},
    {"minibatch", "batch-size"},
    {"max-epochs", "epochs"},
    {"max-steps", "steps"},
    {"num-steps", "steps"},
    {"dataset", "data"},
    {"data-dir", "data"},
    {"data-path", "data"},
    {"train-dir", "data"},
    {"workers", "data-threads"},
    {"num-workers", "data-threads"},
    {"jobs", "threads"},
    {"cores", "threads"},
    {"nproc", "threads"},
    {"cpus", "threads"},
    {"output", "run"},
    {"output-dir", "run"},
    {"out-dir", "run"},
    {"logdir", "run"},
    {"save-dir", "run"},
    {"pretrained", "weights"},
    {"load", "weights"},
    {"finetune", "weights"},
    {"init-from", "weights"},
    {"checkpoint", "resume"},
    {"restart", "resume"},
    {"grad-clip", "clip"},
    {"clip-grad-norm", "clip"},
    {"max-grad-norm", "clip"},
    {"early-stopping", "patience"},
    {"early-stop", "patience"},
    {"ema-decay", "ema"},
    {"smoothing", "label-smoothing"},
    {"grad-accum", "micro-batch"},
    {"gradient-accumulation-steps", "micro-batch"},
    {"amp", "precision"},
    {"bf16", "precision"},
    {"dtype", "precision"},
    {"log-every", "eval-every"},
    {"save-every", "checkpoint-every"},
    {"topk", "top"},
    {"cluster", "platform"},
    {"num-nodes", "nodes"},
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

static char plain(char c)
{
    return c == '_' ? '-' : c;
}

static int distance(const char *a, int na, const char *b, int nb)
{
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= na; i++) d[i][0] = i;
    for (int j = 0; j <= nb; j++) d[0][j] = j;
    for (int i = 1; i <= na; i++)
        for (int j = 1; j <= nb; j++) {
            const bool same = plain(a[i - 1]) == plain(b[j - 1]);
            d[i][j] = min(min(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[na][nb];
}

const char *cli_synonym(const char *word)
{
    const int n = (int)strlen(word);
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (n <= LONGEST && (int)strlen(synonyms[i].theirs) == n &&
            distance(word, n, synonyms[i].theirs, n) == 0)
            return synonyms[i].ours;
    return NULL;
}

cli_nearest cli_nearest_to(const char *word)
{
    const int length = (int)strlen(word);
    return (cli_nearest){.word = word, .distance = length < 3 ? 2 : 1 + length / 3 + 1};
}

void cli_nearest_try(cli_nearest *search, const char *names)
{
    const int length = (int)strlen(search->word);
    for (const char *name = names; length <= LONGEST; name += strcspn(name, "|") + 1) {
        const int n = (int)strcspn(name, "|");
        const int d = n <= LONGEST ? distance(search->word, length, name, n) : LONGEST;
        if (d < search->distance && d < n) *search = (cli_nearest){search->word, name, n, d};
        if (!name[n]) break;
    }
}
