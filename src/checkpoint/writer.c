#define _GNU_SOURCE
#include "checkpoint/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum { SENTENCE = 1024, POLL_MS = 20 };

/* A network's file system may show others' files late, but not that late. */
static const double MARKS_APPEAR = 90; /* seconds after all ranks have flushed */

typedef enum stage { IDLE, WRITING, FLUSHED, DONE } stage;
typedef enum others { UNKNOWN, HAVE_FLUSHED, NEVER_WILL } others;

struct tutti_writer {
    pthread_t thread;
    bool started;
    const tutti_topology *topology;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    stage stage;
    others others;
    bool ends;
    tutti_writer_job job; /* the thread's from start until DONE */
    tutti_status status;
    char sentence[SENTENCE];
};

/* ---- the thread ---- */

static void advance(tutti_writer *w, stage to, tutti_status status)
{
    pthread_mutex_lock(&w->mutex);
    w->stage = to;
    w->status = status;
    if (status != TUTTI_OK) snprintf(w->sentence, sizeof w->sentence, "%s", tutti_message());
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static others ask(tutti_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    const others known = w->others;
    pthread_mutex_unlock(&w->mutex);
    return known;
}

/* A moment, shorter if something is known. */
static void pause_a_moment(tutti_writer *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += POLL_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&w->mutex);
    pthread_cond_timedwait(&w->changed, &w->mutex, &until);
    pthread_mutex_unlock(&w->mutex);
}

/* Until all ranks have left their marks. */
static tutti_status gather(tutti_writer *w)
{
    const char *name = tutti_checkpoint_name(w->job.checkpoint);
    for (double since = 0;; pause_a_moment(w)) {
        const others known = ask(w);
        bool all = false;
        TUTTI_TRY(tutti_checkpoint_is_flushed(w->job.checkpoint, &all));
        if (all) return TUTTI_OK;
        if (known == NEVER_WILL)
            return tutti_fail(TUTTI_PEER, "%s: not all ranks have written their pieces", name);
        if (known == HAVE_FLUSHED && since == 0) since = tutti_now();
        if (since > 0 && tutti_now() - since > MARKS_APPEAR)
            return tutti_fail(TUTTI_IO,
                              "%s: not all ranks' pieces appear: do all ranks see the same "
                              "directory?",
                              name);
    }
}

static tutti_status flush(const tutti_writer_job *job)
{
    if (!job->snapshot) return TUTTI_OK;
    TUTTI_TRY(tutti_snapshot_write(job->snapshot, job->checkpoint));
    return tutti_checkpoint_flush(job->checkpoint);
}

/* The directory is not taken away under ranks that still write into it. */
static void let_others_end(tutti_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    while (w->others == UNKNOWN) pthread_cond_wait(&w->changed, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}

static void work(tutti_writer *w)
{
    tutti_writer_job *job = &w->job;
    tutti_status s = flush(job);
    advance(w, FLUSHED, s);
    if (s == TUTTI_OK && job->finishes) s = gather(w);
    else if (job->finishes) let_others_end(w);
    if (s == TUTTI_OK && job->finishes)
        s = tutti_checkpoint_finish(&job->checkpoint, job->state, job->options);
    tutti_checkpoint_abandon(&job->checkpoint);
    tutti_free(job->state);
    advance(w, DONE, s);
}

/* Threads that compute wait for each other: one that is put off for a time slice delays them all.
 * So this one takes what they leave, and little of what they do not. */
static void step_back(void)
{
    const int politeness = 10;
    setpriority(PRIO_PROCESS, (id_t)gettid(), politeness); /* if it fails, it only costs time */
}

static void *write_jobs(void *user)
{
    tutti_writer *w = user;
    if (w->topology) tutti_topology_unpin_caller(w->topology);
    step_back();
    for (;;) {
        pthread_mutex_lock(&w->mutex);
        while (w->stage != WRITING && !w->ends) pthread_cond_wait(&w->changed, &w->mutex);
        const bool ends = w->stage != WRITING;
        pthread_mutex_unlock(&w->mutex);
        if (ends) return NULL;
        work(w);
    }
}

/* ---- its owner ---- */

tutti_status tutti_writer_create(tutti_writer **out, const tutti_topology *topology)
{
    tutti_writer *w = NULL;
    TUTTI_TRY(tutti_alloc(&w, 1, sizeof *w));
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->topology = topology;
    if (pthread_create(&w->thread, NULL, write_jobs, w)) {
        tutti_writer_destroy(&w);
        return tutti_fail(TUTTI_MEMORY, "cannot start the thread that writes checkpoints");
    }
    w->started = true;
    pthread_setname_np(w->thread, "checkpoints");
    *out = w;
    return TUTTI_OK;
}

void tutti_writer_destroy(tutti_writer **writer)
{
    tutti_writer *w = *writer;
    if (!w) return;
    pthread_mutex_lock(&w->mutex);
    w->ends = true;
    if (w->others == UNKNOWN) w->others = NEVER_WILL;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    if (w->started) pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    tutti_free(w);
    *writer = NULL;
}

void tutti_writer_start(tutti_writer *w, const tutti_writer_job *job)
{
    pthread_mutex_lock(&w->mutex);
    TUTTI_ASSERT(w->stage == IDLE);
    w->job = *job;
    w->stage = WRITING;
    w->status = TUTTI_OK;
    w->others = UNKNOWN;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static stage stage_of(tutti_writer *w, bool *failed)
{
    pthread_mutex_lock(&w->mutex);
    const stage now = w->stage;
    *failed = w->status != TUTTI_OK;
    pthread_mutex_unlock(&w->mutex);
    return now;
}

bool tutti_writer_is_done(tutti_writer *w)
{
    bool failed;
    const stage now = stage_of(w, &failed);
    return now == DONE || now == IDLE;
}

bool tutti_writer_has_failed(tutti_writer *w)
{
    bool failed;
    stage_of(w, &failed);
    return failed;
}

/* Waits for a stage, or a later one; the mutex is held. */
static tutti_status wait_for(tutti_writer *w, stage wanted)
{
    while (w->stage != IDLE && w->stage < wanted) pthread_cond_wait(&w->changed, &w->mutex);
    return w->status == TUTTI_OK ? TUTTI_OK : tutti_fail(w->status, "%s", w->sentence);
}

tutti_status tutti_writer_wait_flushed(tutti_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    const tutti_status s = wait_for(w, FLUSHED);
    pthread_mutex_unlock(&w->mutex);
    return s;
}

tutti_status tutti_writer_wait(tutti_writer *w, bool flushed)
{
    pthread_mutex_lock(&w->mutex);
    w->others = flushed ? HAVE_FLUSHED : NEVER_WILL;
    pthread_cond_broadcast(&w->changed);
    const tutti_status s = wait_for(w, DONE);
    w->stage = IDLE;
    w->status = TUTTI_OK;
    pthread_mutex_unlock(&w->mutex);
    return s;
}
