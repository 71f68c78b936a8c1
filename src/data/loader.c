/* A ring of batches between reading threads and one consumer.
 *
 *            held by the consumer      being filled
 *                     |                 |        |
 *     steps   ...  [ s-1 ]  [  s  ]  [ s+1 ]  [ s+2 ] ...
 *                              |
 *                         complete, waits for next()
 *
 * Slot s % slots belongs to step s from the moment a thread takes its first samples until the
 * consumer asks for step s+1. Threads take runs of samples in the order of the stream, so all of
 * them work on the batch that is needed first. Where a sample goes and what is in it follow from
 * its place in the stream alone; which thread fetched it leaves no trace.
 *
 * One mutex guards the counters; samples are read and decoded outside of it. */
#define _GNU_SOURCE
#include "data/loader.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "data/order.h"
#include "data/source.h"

enum { MOST_THREADS = 64, NICE = 10, RUN_FLOATS = 1 << 15, MOST_RUN = 64, SENTENCE = 512 };

typedef struct slot {
    int64_t step;
    int count, taken, done; /* samples of this batch; given to threads; finished */
    float *samples;
    int *labels;
    int *others; /* with mixed samples */
    float *shares;
    void *targets[TUTTI_MOST_TARGETS];
    uint32_t *ids, *epochs;
    int failed_at; /* the first damaged sample, or count */
    tutti_status status;
    char sentence[SENTENCE];
} slot;

struct tutti_loader {
    tutti_data *data;
    tutti_loader_options options;
    size_t stride;
    int64_t steps; /* of a pass */
    int places;    /* samples of a full batch here */
    int run;       /* samples a thread takes at a time */
    bool mixes;
    slot *slot;
    int slots;
    tutti_arena arena;
    tutti_reader *reader[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    int threads;

    pthread_mutex_t mutex; /* guards what follows and the counters of the slots */
    pthread_cond_t work, ready;
    int64_t filling; /* the step that threads take samples of */
    int64_t next;    /* the step next() gives */
    bool holds;      /* the consumer still reads step next-1 */
    int busy;        /* threads that are fetching */
    bool paused, stop;
};

typedef struct run {
    slot *slot;
    int first, count;
} run;

tutti_loader_options tutti_loader_defaults(void)
{
    return (tutti_loader_options){.split = TUTTI_SPLIT_TRAIN, .shuffle = true};
}

/* --------------------------------------------------------------------------- the stream */

static bool is_endless(const tutti_loader *l)
{
    return l->options.split == TUTTI_SPLIT_TRAIN;
}

static int count_of_step(const tutti_loader *l, int64_t step)
{
    if (is_endless(l)) return l->places;
    const int64_t left =
        tutti_data_count(l->data, l->options.split) - step * l->options.batch - l->options.first;
    return left <= 0 ? 0 : left < l->places ? (int)left : l->places;
}

static void begin_slot(tutti_loader *l, int64_t step)
{
    slot *s = &l->slot[step % l->slots];
    s->step = step;
    s->count = count_of_step(l, step);
    s->taken = s->done = 0;
    s->status = TUTTI_OK;
    s->failed_at = s->count;
}

/* Which sample is at place 'index' of this rank's part of a step. */
static void place(const tutti_loader *l, slot *s, int index)
{
    const tutti_loader_options *o = &l->options;
    const int64_t count = tutti_data_count(l->data, o->split);
    const int64_t at = s->step * o->batch + o->first + index;
    const uint32_t epoch = (uint32_t)(at / count), in_epoch = (uint32_t)(at % count);
    s->epochs[index] = epoch;
    s->ids[index] = is_endless(l) && o->shuffle
                        ? tutti_order_id(o->seed, epoch, (uint32_t)count, in_epoch)
                        : in_epoch;
}

/* --------------------------------------------------------------------------- the threads */

static bool may_fill(const tutti_loader *l)
{
    const int64_t oldest = l->next - l->holds;
    return !l->paused && l->filling < oldest + l->slots && (is_endless(l) || l->filling < l->steps);
}

/* Takes the next samples of the stream; steps in which this rank has none are skipped. */
static bool take_run(tutti_loader *l, run *r)
{
    while (may_fill(l)) {
        slot *s = &l->slot[l->filling % l->slots];
        if (s->step != l->filling) begin_slot(l, l->filling);
        const int left = s->count - s->taken;
        *r = (run){s, s->taken, left < l->run ? left : l->run};
        s->taken += r->count;
        if (s->taken == s->count) l->filling++;
        if (r->count) return true;
        pthread_cond_signal(&l->ready);
    }
    return false;
}

static void keep_failure(slot *s, int index, tutti_status status, const char *sentence)
{
    if (index >= s->failed_at) return;
    s->failed_at = index;
    s->status = status;
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
}

static size_t target_bytes(const tutti_loader *l, int target)
{
    return tutti_target_words(&l->data->options.targets[target]) * sizeof(int32_t);
}

static tutti_sample_room room_of(const tutti_loader *l, const slot *s, int index)
{
    tutti_sample_room room = {.sample = s->samples + (size_t)index * l->stride,
                              .label = &s->labels[index]};
    for (int t = 0; t < TUTTI_MOST_TARGETS; t++)
        if (s->targets[t])
            room.targets[t] = (char *)s->targets[t] + (size_t)index * target_bytes(l, t);
    return room;
}

static tutti_status fetch_one(tutti_loader *l, tutti_reader *reader, slot *s, int i)
{
    const tutti_sample_room room = room_of(l, s, i);
    if (!l->mixes)
        return tutti_reader_fetch_all(reader, l->options.split, s->epochs[i], s->ids[i], &room);
    tutti_mixed mixed = {0};
    TUTTI_TRY(tutti_reader_fetch_mixed(reader, s->epochs[i], s->ids[i], room.sample, &mixed));
    s->labels[i] = mixed.label;
    s->others[i] = mixed.other;
    s->shares[i] = mixed.share;
    return TUTTI_OK;
}

/* Fetches a run; returns the index of the first failure in it, or where the run ends. */
static int fetch_run(tutti_loader *l, tutti_reader *reader, const run *r, tutti_status *status)
{
    slot *s = r->slot;
    for (int i = r->first; i < r->first + r->count; i++) {
        place(l, s, i);
        *status = fetch_one(l, reader, s, i);
        if (*status) return i;
    }
    return r->first + r->count;
}

/* Computing comes first; and where the caller is pinned to one core, its readers are not. */
static void step_back(const tutti_data *data)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    if (CPU_COUNT(&data->cpus)) (void)sched_setaffinity(0, sizeof data->cpus, &data->cpus);
}

static void *work(void *arg)
{
    tutti_loader *l = ((void **)arg)[0];
    tutti_reader *reader = ((void **)arg)[1];
    tutti_free(arg);
    step_back(l->data);
    pthread_mutex_lock(&l->mutex);
    while (!l->stop) {
        run r;
        if (!take_run(l, &r)) {
            pthread_cond_wait(&l->work, &l->mutex);
            continue;
        }
        l->busy++;
        pthread_mutex_unlock(&l->mutex);
        tutti_status status = TUTTI_OK;
        const int reached = fetch_run(l, reader, &r, &status);
        pthread_mutex_lock(&l->mutex);
        if (status) keep_failure(r.slot, reached, status, tutti_message());
        r.slot->done += r.count;
        l->busy--;
        if (r.slot->done == r.slot->count || l->paused) pthread_cond_signal(&l->ready);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* A quarter of the cores: decoding a picture takes one core a few milliseconds, training on it
 * takes all of them longer. At least two, so that more than one can finish a late batch. */
static int default_threads(const tutti_data *data)
{
    const int quarter = CPU_COUNT(&data->cpus) / 4;
    return quarter < 2 ? 2 : quarter > 16 ? 16 : quarter;
}

static tutti_status start_thread(tutti_loader *l)
{
    void **arg = NULL;
    const int i = l->threads;
    TUTTI_TRY(tutti_reader_create(&l->reader[i], l->data));
    tutti_status s = tutti_alloc(&arg, 2, sizeof *arg);
    if (!s) {
        arg[0] = l;
        arg[1] = l->reader[i];
        if (pthread_create(&l->thread[i], NULL, work, arg))
            s = tutti_fail(TUTTI_MEMORY, "cannot start a thread for reading data");
    }
    if (s) {
        tutti_free(arg);
        tutti_reader_destroy(&l->reader[i]);
        return s;
    }
    l->threads++;
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------ create, destroy */

/* Takes the memory of all slots; from an arena without a base it only counts. */
static void take_slots(tutti_loader *l, tutti_arena *arena)
{
    const size_t places = (size_t)l->places;
    for (int i = 0; i < l->slots; i++) {
        slot *s = &l->slot[i];
        s->step = -1;
        s->samples = tutti_arena_take(arena, places * l->stride * sizeof *s->samples);
        s->labels = tutti_arena_take(arena, places * sizeof *s->labels);
        if (l->mixes) {
            s->others = tutti_arena_take(arena, places * sizeof *s->others);
            s->shares = tutti_arena_take(arena, places * sizeof *s->shares);
        }
        for (int t = 0; tutti_data_has_goals(l->data) && t < l->data->options.target_count; t++)
            s->targets[t] = tutti_arena_take(arena, places * target_bytes(l, t));
        s->ids = tutti_arena_take(arena, places * sizeof *s->ids);
        s->epochs = tutti_arena_take(arena, places * sizeof *s->epochs);
    }
}

static tutti_status check_options(const tutti_data *data, const tutti_loader_options *o)
{
    if (o->batch < 1 || o->first < 0 || o->first > o->end || o->end > o->batch)
        return tutti_fail(TUTTI_ARGUMENT, "samples %d to %d of a batch of %d", o->first, o->end,
                          o->batch);
    if (o->step < 0 || o->threads < 0 || o->threads > MOST_THREADS || o->ahead < 0)
        return tutti_fail(TUTTI_ARGUMENT, "0 to %d threads can read data, not %d",
                          (int)MOST_THREADS, o->threads);
    if (tutti_data_count(data, o->split) < 1)
        return tutti_fail(TUTTI_DATA, "the data set has no samples to test on");
    return TUTTI_OK;
}

static tutti_status create(tutti_loader *l)
{
    const tutti_loader_options *o = &l->options;
    const int64_t count = tutti_data_count(l->data, o->split);
    l->stride = tutti_data_stride(l->data);
    l->steps = (count + o->batch - 1) / o->batch;
    l->places = o->end - o->first;
    l->run = (int)((size_t)RUN_FLOATS / l->stride);
    l->run = l->run < 1 ? 1 : l->run > MOST_RUN ? MOST_RUN : l->run;
    l->mixes = is_endless(l) && tutti_data_mixes(l->data);
    l->slots = 1 + (o->ahead ? o->ahead : 2);
    l->filling = l->next = o->step;
    TUTTI_TRY(tutti_alloc(&l->slot, (size_t)l->slots, sizeof *l->slot));
    tutti_arena counting = {0};
    take_slots(l, &counting);
    TUTTI_TRY(tutti_arena_init(&l->arena, counting.used));
    take_slots(l, &l->arena);
    const int threads = o->threads ? o->threads : default_threads(l->data);
    while (l->threads < threads) TUTTI_TRY(start_thread(l));
    return TUTTI_OK;
}

tutti_status tutti_loader_create(tutti_loader **out, tutti_data *data,
                                 const tutti_loader_options *options)
{
    tutti_loader *l = NULL;
    TUTTI_TRY(check_options(data, options));
    TUTTI_TRY(tutti_alloc(&l, 1, sizeof *l));
    l->data = data;
    l->options = *options;
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    const tutti_status s = create(l);
    if (s) tutti_loader_destroy(&l);
    else *out = l;
    return s;
}

void tutti_loader_destroy(tutti_loader **loader)
{
    tutti_loader *l = *loader;
    if (!l) return;
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
    for (int i = 0; i < l->threads; i++) {
        pthread_join(l->thread[i], NULL);
        tutti_reader_destroy(&l->reader[i]);
    }
    pthread_mutex_destroy(&l->mutex);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    tutti_arena_deinit(&l->arena);
    tutti_free(l->slot);
    tutti_free(l);
    *loader = NULL;
}

/* --------------------------------------------------------------------------- the consumer */

static bool is_complete(const tutti_loader *l, const slot *s)
{
    return s->step == l->next && s->done == s->count;
}

static tutti_status give(tutti_loader *l, slot *s, tutti_batch *batch)
{
    if (s->status) return tutti_fail(s->status, "%s", s->sentence);
    *batch = (tutti_batch){
        .step = s->step,
        .count = s->count,
        .samples = s->samples,
        .labels = s->labels,
        .others = s->others,
        .shares = s->shares,
        .ids = s->ids,
        .epochs = s->epochs,
    };
    for (int t = 0; t < TUTTI_MOST_TARGETS; t++) batch->targets[t] = s->targets[t];
    l->next++;
    l->holds = true;
    return TUTTI_OK;
}

tutti_status tutti_loader_next(tutti_loader *l, tutti_batch *batch)
{
    const double start = tutti_now();
    double waited = 0;
    pthread_mutex_lock(&l->mutex);
    l->holds = false;
    pthread_cond_broadcast(&l->work);
    tutti_status status = TUTTI_OK;
    if (!is_endless(l) && l->next >= l->steps) {
        *batch = (tutti_batch){.step = l->next};
    } else {
        slot *s = &l->slot[l->next % l->slots];
        for (; !is_complete(l, s); waited = tutti_now() - start)
            pthread_cond_wait(&l->ready, &l->mutex);
        status = give(l, s, batch);
    }
    pthread_mutex_unlock(&l->mutex);
    batch->waited = waited;
    return status;
}

void tutti_loader_seek(tutti_loader *l, int64_t step)
{
    TUTTI_ASSERT(step >= 0);
    pthread_mutex_lock(&l->mutex);
    l->paused = true;
    while (l->busy) pthread_cond_wait(&l->ready, &l->mutex);
    for (int i = 0; i < l->slots; i++) l->slot[i].step = -1;
    l->filling = l->next = step;
    l->holds = l->paused = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
}

int64_t tutti_loader_steps(const tutti_loader *l)
{
    return l->steps;
}

size_t tutti_loader_bytes(const tutti_loader *l)
{
    return l->arena.bytes;
}
