/* The public face of a run whose loop is somebody else's: a tutti_run without data set, metrics and
 * progress, and the way of the caller's samples to its stepper.
 *
 *   session.c             creating one, steps
 *   session_forward.c     forward passes and evaluations
 *   session_parameters.c  parameters and checkpoints */
#include "train/session.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { ANY_STEPS = 1 << 30 };

/* ---- creating one ---- */

/* A caller's loss hears of samples by their place in what it handed over. */
static void relay_loss(void *user, const tutti_loss_call *call)
{
    const tutti_session *s = user;
    tutti_loss_call told = *call;
    const int place = call->first - tutti_model_first_sample(tutti_stepper_model(s->run.stepper));
    if (!call->gradients) told.first = s->piece_first + place;
    s->own_loss->find(s->own_loss->user, &told);
}

static void fill_options(tutti_session *s, const tutti_train_options *given)
{
    tutti_train_options *o = &s->options;
    *o = *given;
    s->knows_epoch = o->data || (o->own_data && o->own_data->read) || o->epoch_samples > 0;
    if (!o->data && !o->own_data) o->own_data = &s->plain;
    if (o->steps <= 0 && !s->knows_epoch) o->steps = ANY_STEPS;
    o->eval_every = "never";
    o->patience = 0;
    o->show = NULL;
    s->own_loss = o->own_loss;
    s->relay = (tutti_own_loss){relay_loss, s};
    if (o->own_loss) o->own_loss = &s->relay;
}

/* Every thread of the team converts samples with a reader of its own. */
static tutti_status create_converters(tutti_session *s)
{
    tutti_run *run = &s->run;
    const size_t samples = (size_t)tutti_model_samples(tutti_stepper_model(run->stepper));
    TUTTI_TRY(tutti_alloc(&s->no_labels, samples, sizeof *s->no_labels));
    if (!tutti_data_is_own(run->data) || tutti_data_own_is_ready(run->data)) return TUTTI_OK;
    const int threads = tutti_team_size(run->me.exec.team);
    TUTTI_TRY(tutti_alloc_floats(&s->converted, samples * tutti_data_stride(run->data)));
    TUTTI_TRY(tutti_alloc(&s->converters, (size_t)threads, sizeof *s->converters));
    for (; s->converter_count < threads; s->converter_count++)
        TUTTI_TRY(tutti_reader_create(&s->converters[s->converter_count].reader, run->data));
    return TUTTI_OK;
}

static tutti_status open_session(tutti_session *s)
{
    TUTTI_TRY(tutti_run_open(&s->run, &s->options, TUTTI_RUN_STEPS));
    s->is_open = true;
    return tutti_comm_agree(s->run.me.comm, create_converters(s));
}

tutti_status tutti_session_create(tutti_session **out, const tutti_train_options *options)
{
    tutti_session *s = NULL;
    *out = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    fill_options(s, options);
    const tutti_status status = open_session(s);
    if (status == TUTTI_OK) *out = s;
    else tutti_session_destroy(&s);
    return status;
}

/* What is under way is waited for, unless communication has failed. */
static void end_steps(tutti_session *s)
{
    tutti_news late;
    tutti_run *run = &s->run;
    if (tutti_comm_has_failed(run->me.comm)) return;
    if (tutti_stepper_settle(run->stepper, &late) != TUTTI_OK) return;
    if (s->options.ranks) (void)(tutti_stepper_release(run->stepper) == TUTTI_OK);
}

void tutti_session_destroy(tutti_session **session)
{
    tutti_session *s = *session;
    if (!s) return;
    if (s->is_open) end_steps(s);
    for (int i = 0; i < s->converter_count; i++) tutti_reader_destroy(&s->converters[i].reader);
    tutti_free(s->converters);
    tutti_free(s->converted);
    tutti_free(s->no_labels);
    if (s->is_open) tutti_run_close(&s->run);
    tutti_free(s);
    *session = NULL;
}

/* ---- samples ---- */

typedef struct conversion {
    tutti_session *session;
    const char *samples;
    int count;
} conversion;

static void convert_share(void *arg, int thread, int threads)
{
    const conversion *c = arg;
    tutti_session *s = c->session;
    tutti_converter *own = &s->converters[thread];
    const size_t bytes = tutti_data_own_bytes(s->run.data), stride = tutti_data_stride(s->run.data);
    const tutti_range share = tutti_range_of((size_t)c->count, threads, thread);
    own->status = TUTTI_OK;
    for (size_t i = share.begin; i < share.end && own->status == TUTTI_OK; i++) {
        own->status =
            tutti_reader_take(own->reader, c->samples + i * bytes, s->converted + i * stride);
        if (own->status != TUTTI_OK)
            snprintf(own->why, sizeof own->why, "sample %zu: %.200s", i, tutti_message());
    }
}

tutti_status tutti_session_place(tutti_session *s, const void *samples, int count,
                                 const float **placed)
{
    if (!tutti_data_is_own(s->run.data))
        return tutti_fail(TUTTI_ARGUMENT,
                          "this session's samples are those of data set %s: step with "
                          "tutti_session_step_data, or create it without 'data'",
                          tutti_data_kind(s->run.data));
    if (!samples && count) return tutti_fail(TUTTI_ARGUMENT, "samples are NULL");
    *placed = s->converters ? s->converted : samples;
    if (!s->converters) return TUTTI_OK;
    tutti_team_run(s->run.me.exec.team, convert_share, &(conversion){s, samples, count});
    for (int i = 0; i < s->converter_count; i++)
        if (s->converters[i].status != TUTTI_OK)
            return tutti_fail(s->converters[i].status, "%s", s->converters[i].why);
    return TUTTI_OK;
}

tutti_status tutti_session_check_labels(const tutti_session *s, const int32_t *labels, int count)
{
    const int classes = tutti_net_classes(s->run.net);
    for (int i = 0; labels && i < count; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return tutti_fail(TUTTI_DATA, "sample %d has label %d; this net's are 0 to %d", i,
                              labels[i], classes - 1);
    return TUTTI_OK;
}

/* ---- steps ---- */

static tutti_step_news news_of(const tutti_session *s, const tutti_news *news)
{
    return (tutti_step_news){.step = news->step,
                             .loss = news->loss,
                             .top1 = (double)news->hits / s->run.settings.batch,
                             .gradient_norm = news->norm,
                             .lr = s->rates[news->step & 1]};
}

/* What was told late is kept: somebody may ask for the last step later. */
static tutti_status take_news(tutti_session *s, const tutti_news *news)
{
    if (!news->step) return TUTTI_OK;
    s->last = news_of(s, news);
    s->run.score.loss = news->loss;
    return tutti_run_check_loss(&s->run, news);
}

static bool has_fixed_rate(const tutti_settings *settings)
{
    return !strcmp(settings->lr_schedule, "fixed") && !(settings->schedule.warmup.count > 0);
}

static tutti_status choose_rate(const tutti_session *s, double lr, float *rate)
{
    const tutti_settings *settings = &s->run.settings;
    *rate = lr < 0 ? (float)tutti_session_rate(s) : (float)lr;
    if (lr >= 0 || s->knows_epoch || has_fixed_rate(settings)) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT,
                      "the rate follows a schedule (%s%s%s), and nobody said how long an epoch "
                      "is: give epoch_samples and steps or epochs, or a rate with each step",
                      settings->lr_schedule, *settings->warmup ? ", warm-up " : "",
                      settings->warmup);
}

static tutti_status make_step(tutti_session *s, const tutti_samples *samples, double lr,
                              double waited, tutti_step_news *out)
{
    tutti_news late;
    float rate;
    tutti_run *run = &s->run;
    TUTTI_TRY(choose_rate(s, lr, &rate));
    s->rates[(tutti_stepper_steps(run->stepper) + 1) & 1] = rate;
    const tutti_note mine = {.data_wait = waited};
    TUTTI_TRY(tutti_run_fatal(run, tutti_stepper_step(run->stepper, samples, rate, mine, &late)));
    TUTTI_TRY(take_news(s, &late));
    if (!out) return TUTTI_OK;
    TUTTI_TRY(tutti_stepper_hear(run->stepper, &late));
    TUTTI_TRY(take_news(s, &late));
    *out = s->last;
    return TUTTI_OK;
}

static tutti_status prepare(tutti_session *s, const void *values, const int32_t *labels,
                            tutti_samples *samples)
{
    const int count = tutti_model_samples(tutti_stepper_model(s->run.stepper));
    if (!labels && !s->own_loss)
        return tutti_fail(TUTTI_ARGUMENT, "labels are NULL; only a loss of one's own goes without");
    TUTTI_TRY(tutti_session_check_labels(s, labels, count));
    samples->labels = labels ? labels : s->no_labels;
    return tutti_session_place(s, values, count, &samples->values);
}

tutti_status tutti_session_step(tutti_session *s, const void *values, const int32_t *labels,
                                double lr, tutti_step_news *news)
{
    tutti_samples samples = {0};
    TUTTI_TRY(tutti_run_fatal(&s->run, prepare(s, values, labels, &samples)));
    return make_step(s, &samples, lr, 0, news);
}

tutti_status tutti_session_step_data(tutti_session *s, double lr, tutti_step_news *news)
{
    tutti_batch batch;
    if (!s->run.loader)
        return tutti_fail(TUTTI_ARGUMENT, "this session has no data set: give it samples, or "
                                          "'data' when it is created");
    TUTTI_TRY(tutti_run_fatal(&s->run, tutti_loader_next(s->run.loader, &batch)));
    const tutti_samples samples = {.values = batch.samples,
                                   .labels = batch.labels,
                                   .others = batch.others,
                                   .shares = batch.shares};
    return make_step(s, &samples, lr, batch.waited, news);
}

tutti_status tutti_session_settle(tutti_session *s, tutti_step_news *news)
{
    tutti_news late;
    TUTTI_TRY(tutti_stepper_settle(s->run.stepper, &late));
    TUTTI_TRY(take_news(s, &late));
    if (news) *news = s->last;
    return TUTTI_OK;
}

double tutti_session_rate(const tutti_session *s)
{
    return tutti_run_rate(&s->run, tutti_stepper_steps(s->run.stepper));
}

/* ---- questions ---- */

int tutti_session_rank(const tutti_session *s)
{
    return s->run.me.rank;
}

int tutti_session_ranks(const tutti_session *s)
{
    return s->run.me.size;
}

const tutti_net *tutti_session_net(const tutti_session *s)
{
    return s->run.net;
}

int tutti_session_batch_size(const tutti_session *s)
{
    return s->run.settings.batch;
}

int64_t tutti_session_steps(const tutti_session *s)
{
    return tutti_stepper_steps(s->run.stepper);
}

void tutti_session_share(const tutti_session *s, int *first, int *count)
{
    *first = tutti_model_first_sample(tutti_stepper_model(s->run.stepper));
    *count = tutti_model_samples(tutti_stepper_model(s->run.stepper));
}

size_t tutti_session_stride(const tutti_session *s)
{
    return tutti_data_stride(s->run.data);
}
