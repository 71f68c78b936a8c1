/* session: what a step costs by the public door (tutti/session.h) beside the same step by the
 * stepper inside, in turns on the same samples: nothing but handing over may lie between them.
 *
 *   bench/session NET BATCH STEPS [THREADS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tutti/session.h>
#include "base/clock.h"
#include "base/memory.h"
#include "step/rank.h"
#include "step/ranks.h"
#include "step/stepper.h"

typedef struct subject {
    tutti_ranks *ranks;
    tutti_net *net;
    tutti_session *session;
    tutti_stepper *stepper;
    float *samples, *blocked; /* CHW, and as the net reads them */
    int32_t *labels;
    int batch;
} subject;

static void must(tutti_status status)
{
    if (status == TUTTI_OK) return;
    fprintf(stderr, "session: %s\n", tutti_message());
    exit(1);
}

static void fill(subject *t)
{
    const size_t count = tutti_shape_count(tutti_net_input(t->net)) * (size_t)t->batch;
    const size_t stride = tutti_session_stride(t->session) * (size_t)t->batch;
    must(tutti_alloc(&t->labels, (size_t)t->batch, sizeof *t->labels));
    must(tutti_alloc_floats(&t->samples, count));
    must(tutti_alloc_floats(&t->blocked, stride));
    for (size_t i = 0; i < count; i++) t->samples[i] = (float)(i * 37 % 19) / 19;
    for (size_t i = 0; i < stride; i++) t->blocked[i] = (float)(i * 37 % 19) / 19;
    for (int i = 0; i < t->batch; i++) t->labels[i] = i % tutti_net_classes(t->net);
}

static void set_up(subject *t, const char *net, int batch, int threads)
{
    tutti_ranks_options r = tutti_ranks_defaults();
    tutti_train_options o = tutti_train_defaults();
    r.threads = threads;
    t->batch = batch;
    must(tutti_ranks_open(&t->ranks, &r));
    must(tutti_net_load(&t->net, net));
    o.net = net;
    o.batch_size = batch;
    o.ranks = t->ranks;
    o.optimizer = "sgd,momentum=0.9"; /* alike, whatever the net suggests */
    o.weight_decay = o.clip = o.label_smoothing = o.ema = 0;
    must(tutti_session_create(&t->session, &o));
    const tutti_rank *me = &t->ranks->me;
    tutti_stepper_options s = {.comm = me->comm,
                               .net = t->net,
                               .exec = me->exec,
                               .caches = me->caches,
                               .batch = batch,
                               .grains = tutti_default_grains(t->net, batch),
                               .decay_all = true,
                               .overlap = true,
                               .priority = true};
    must(tutti_optimizer_parse(&s.optimizer, "sgd,momentum=0.9", "bench", tutti_optimizers));
    must(tutti_stepper_create(&t->stepper, &s));
    tutti_model_init(tutti_stepper_model(t->stepper), 0, TUTTI_INIT_AUTO, 0);
    fill(t);
}

/* Seconds of a step; the rate is so small that nothing changes. */
static double by_session(subject *t)
{
    tutti_step_news news;
    const double start = tutti_now();
    must(tutti_session_step(t->session, t->samples, t->labels, 1e-9, &news));
    return tutti_now() - start;
}

static double by_stepper(subject *t)
{
    tutti_news news;
    const tutti_samples samples = {.values = t->blocked, .labels = t->labels};
    const double start = tutti_now();
    must(tutti_stepper_step(t->stepper, &samples, 1e-9, (tutti_note){0}, &news));
    return tutti_now() - start;
}

static void tear_down(subject *t)
{
    tutti_news news;
    must(tutti_stepper_settle(t->stepper, &news));
    tutti_stepper_destroy(&t->stepper);
    tutti_session_destroy(&t->session);
    tutti_net_destroy(&t->net);
    tutti_free(t->labels);
    tutti_free(t->samples);
    tutti_free(t->blocked);
    tutti_ranks_close(&t->ranks);
}

int main(int argc, char **argv)
{
    subject t = {0};
    if (argc < 4) {
        fprintf(stderr, "usage: session NET BATCH STEPS [THREADS]\n");
        return 2;
    }
    double best[2] = {INFINITY, INFINITY}, sum[2] = {0, 0};
    const int steps = atoi(argv[3]);
    set_up(&t, argv[1], atoi(argv[2]), argc > 4 ? atoi(argv[4]) : 0);
    for (int i = -2; i < steps; i++) {
        const double seconds[2] = {by_stepper(&t), by_session(&t)};
        for (int k = 0; i >= 0 && k < 2; k++) {
            best[k] = fmin(best[k], seconds[k]);
            sum[k] += seconds[k];
        }
    }
    printf("%s, %d samples, %d steps in turns: stepper %.3f ms, session %.3f ms, %+.2f %% (best); "
           "mean %+.2f %%\n",
           argv[1], t.batch, steps, best[0] * 1e3, best[1] * 1e3, 100 * (best[1] / best[0] - 1),
           100 * (sum[1] / sum[0] - 1));
    tear_down(&t);
    return 0;
}
