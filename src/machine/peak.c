/* The best of many short tries, because other work on the machine only ever takes away. */
#include "machine/peak.h"

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/bf16_kernels.h"

enum { TRY_FLOATS = 64 }; /* the unit of the streaming kernels */

/* What one thread works on, a cache line apart from the next. */
typedef struct desk {
    _Alignas(TUTTI_CACHE_LINE) float *x, *y;
    double flops;
    float sink;
    tutti_status status;
} desk;

typedef struct bench {
    const tutti_kernels *row;
    long rounds;
    size_t count; /* floats of each thread's arrays */
    desk *desks;
} bench;

static void fma_job(void *arg, int thread, int size)
{
    bench *b = arg;
    (void)size;
    b->desks[thread].flops = b->row->fma_rounds(b->rounds, &b->desks[thread].sink);
}

static void bf16_job(void *arg, int thread, int size)
{
    bench *b = arg;
    (void)size;
    b->desks[thread].flops = b->row->bf16->rounds(b->rounds, &b->desks[thread].sink);
}

static void read_job(void *arg, int thread, int size)
{
    bench *b = arg;
    (void)size;
    b->row->stream_read(b->desks[thread].x, b->count, &b->desks[thread].sink);
}

static void write_job(void *arg, int thread, int size)
{
    bench *b = arg;
    (void)size;
    b->row->stream_write(b->desks[thread].y, b->count, 1.0f);
}

static void copy_job(void *arg, int thread, int size)
{
    bench *b = arg;
    (void)size;
    b->row->stream_copy(b->desks[thread].y, b->desks[thread].x, b->count);
}

/* The shortest time of the job, tried for that many seconds and at least twice. */
static double best_time(tutti_team *team, tutti_team_job *job, bench *b, double seconds)
{
    double best = 1e30;
    const double end = tutti_now() + seconds;
    for (int tries = 0; tries < 2 || tutti_now() < end; tries++) {
        const double start = tutti_now();
        tutti_team_run(team, job, b);
        const double time = tutti_now() - start;
        if (time < best) best = time;
    }
    return best;
}

/* GFLOP/s; 'rounds' is chosen so that a try takes a quarter of a millisecond: so short that on a
 * busy machine all threads are sometimes at work at once, undisturbed. */
static double product_speed(tutti_team *team, tutti_team_job *job, bench *b, double seconds)
{
    double flops = 0;
    b->rounds = 256;
    while (best_time(NULL, job, b, 0) < 0.25e-3) b->rounds *= 2;
    const double time = best_time(team, job, b, seconds);
    for (int i = 0; i < tutti_team_size(team); i++) flops += b->desks[i].flops;
    return flops / time * 1e-9;
}

double tutti_peak_share(const tutti_rank *me)
{
    const int cores = tutti_topology_cores(me->topology), threads = tutti_team_size(me->exec.team);
    const bool is_bound = cores < tutti_topology_machine_cores(me->topology);
    const int wanted =
        (threads < cores ? threads : cores) * (is_bound ? 1 : tutti_comm_local_size(me->comm));
    return wanted > cores ? (double)cores / wanted : 1;
}

/* Two threads of one core share what it can do, but more than two do not. */
tutti_status tutti_peak_measure(double *gflops, tutti_exec exec, double seconds)
{
    bench b = {.row = exec.row};
    const int threads = tutti_team_size(exec.team);
    TUTTI_TRY(tutti_alloc(&b.desks, (size_t)threads, sizeof *b.desks));
    const double one = product_speed(NULL, fma_job, &b, seconds / 4);
    const double all = product_speed(exec.team, fma_job, &b, seconds - seconds / 4);
    tutti_free(b.desks);
    *gflops = all > one * threads / 2 ? all : one * threads / 2;
    return TUTTI_OK;
}

/* Every thread takes its own memory, so that it lies near its core. */
static void take_arrays(void *arg, int thread, int size)
{
    bench *b = arg;
    desk *d = &b->desks[thread];
    (void)size;
    d->status = tutti_alloc(&d->x, b->count, sizeof(float));
    if (d->status == TUTTI_OK) d->status = tutti_alloc(&d->y, b->count, sizeof(float));
}

static tutti_status memory_speeds(tutti_speeds *speeds, tutti_team *team, bench *b, double seconds)
{
    const int size = tutti_team_size(team);
    tutti_team_run(team, take_arrays, b);
    for (int i = 0; i < size; i++)
        if (b->desks[i].status)
            return tutti_fail(TUTTI_MEMORY,
                              "no memory for two arrays of %.0f MiB to measure it with",
                              (double)b->count * size * sizeof(float) / (1 << 20));
    const double gigabytes = (double)b->count * sizeof(float) * size * 1e-9;
    speeds->read = gigabytes / best_time(team, read_job, b, seconds / 3);
    speeds->write = gigabytes / best_time(team, write_job, b, seconds / 3);
    speeds->copy = 2 * gigabytes / best_time(team, copy_job, b, seconds / 3);
    return TUTTI_OK;
}

/* Arrays of four times the largest cache, so that the caches hold little of them. */
static size_t floats_per_thread(const tutti_topology *topology, uint64_t memory_free, int threads)
{
    size_t bytes = (size_t)64 << 20;
    for (int level = 1; level <= 3; level++)
        if (bytes < 4 * tutti_topology_cache(topology, level))
            bytes = 4 * tutti_topology_cache(topology, level);
    if (bytes > memory_free / 8) bytes = (size_t)(memory_free / 8);
    return tutti_round_up(bytes / sizeof(float) / (size_t)threads + 1, TRY_FLOATS);
}

tutti_status tutti_speeds_measure(tutti_speeds *speeds, const tutti_rank *me, uint64_t memory_free,
                                  double seconds)
{
    tutti_team *team = me->exec.team;
    const int size = tutti_team_size(team);
    const uint64_t share = memory_free / (uint64_t)tutti_comm_local_size(me->comm);
    bench b = {.row = me->exec.row, .count = floats_per_thread(me->topology, share, size)};
    *speeds = (tutti_speeds){0};
    TUTTI_TRY(tutti_alloc(&b.desks, (size_t)size, sizeof *b.desks));
    speeds->fma_one = product_speed(NULL, fma_job, &b, seconds / 8);
    speeds->fma_all = product_speed(team, fma_job, &b, seconds / 8);
    speeds->bf16_one = product_speed(NULL, bf16_job, &b, seconds / 8);
    speeds->bf16_all = product_speed(team, bf16_job, &b, seconds / 8);
    const tutti_status s = memory_speeds(speeds, team, &b, seconds / 2);
    for (int i = 0; i < size; i++) {
        tutti_free(b.desks[i].x);
        tutti_free(b.desks[i].y);
    }
    tutti_free(b.desks);
    return s;
}
