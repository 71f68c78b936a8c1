/* Part-reduce + part-broadcast against the MPI library's own collectives, and how much of an
 * exchange is hidden behind computing.
 *
 *   mpirun -n N bench/comm [--json] [--min BYTES] [--max BYTES] [--seconds S] [--chunk BYTES]
 *                          [--in-flight N] [--only sizes|overlap|idle] [--overlap-bytes BYTES]
 *                          [--no-thread]
 *
 * Same buffers, alternating, best of many. The opponents run in the main thread without a detour;
 * ours go through the queue and the communication thread, as in training. Times are those of the
 * slowest rank. The program starts MPI itself because two threads of it call MPI. */
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "kernel/table.h"

enum { OURS, RING, ALLREDUCE, METHODS, MAX_ROWS = 32 };

typedef struct bench {
    tutti_comm *comm;
    int rank, size;
    size_t bytes_min, bytes_max, chunk, overlap_bytes;
    double seconds; /* per size */
    const char *only;
    bool json, no_thread;
    int in_flight;
    float *partial, *whole;
} bench;

typedef struct row {
    size_t bytes;
    double seconds[METHODS];
} row;

static void must(bench *b, tutti_status s)
{
    if (s == TUTTI_OK) return;
    fprintf(stderr, "bench/comm: %s\n", tutti_message());
    if (b->comm) tutti_comm_abort(b->comm, s);
    exit(1);
}

static double slowest(double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

/* --- sizes --- */

static void run_once(bench *b, int method, tutti_exchange *x, size_t count)
{
    const int strip = (int)(count / (size_t)b->size);
    switch (method) {
    case OURS: must(b, tutti_exchange_run(x)); break;
    case RING:
        MPI_Reduce_scatter_block(b->partial, b->whole + (size_t)b->rank * (size_t)strip, strip,
                                 MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b->whole, strip, MPI_FLOAT,
                      MPI_COMM_WORLD);
        break;
    default: MPI_Allreduce(b->partial, b->whole, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static double time_of(bench *b, int method, tutti_exchange *x, size_t count, int repeat)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = tutti_now();
    for (int i = 0; i < repeat; i++) run_once(b, method, x, count);
    return slowest((tutti_now() - begin) / repeat);
}

static tutti_exchange *create_exchange(bench *b, size_t count)
{
    tutti_exchange *x = NULL;
    float *const partials[] = {b->partial};
    must(b, tutti_exchange_create(&x, b->comm,
                                  &(tutti_exchange_spec){.name = "bench",
                                                         .count = count,
                                                         .leaves = b->size,
                                                         .partials = partials,
                                                         .whole = b->whole}));
    return x;
}

static row time_size(bench *b, size_t bytes)
{
    const size_t unit = TUTTI_STRIP_UNIT * (size_t)b->size;
    const size_t count = bytes / sizeof(float) / unit * unit;
    tutti_exchange *x = create_exchange(b, count);
    row r = {.bytes = count * sizeof(float), .seconds = {1e30, 1e30, 1e30}};
    const double warm = time_of(b, OURS, x, count, 1);
    const int repeat = warm < 1e-3 ? (int)(2e-3 / warm) : 1;
    const double begin = tutti_now();
    for (int round = 0; round < 3 || slowest(tutti_now() - begin) < b->seconds; round++)
        for (int method = 0; method < METHODS; method++) {
            memset(b->partial, 0, count < 4096 ? count * sizeof(float) : 4096 * sizeof(float));
            const double t = time_of(b, method, x, count, repeat);
            if (t < r.seconds[method]) r.seconds[method] = t;
        }
    tutti_exchange_destroy(&x);
    return r;
}

static double ratio_of(const row *r)
{
    const double theirs =
        r->seconds[RING] < r->seconds[ALLREDUCE] ? r->seconds[RING] : r->seconds[ALLREDUCE];
    return theirs / r->seconds[OURS];
}

static int time_sizes(bench *b, row *rows)
{
    int count = 0;
    if (!b->json && b->rank == 0)
        printf("%12s %12s %12s %12s %9s %7s\n", "bytes", "ours s", "rs+ag s", "allreduce s",
               "ours GB/s", "ratio");
    for (size_t bytes = b->bytes_min; bytes <= b->bytes_max && count < MAX_ROWS; bytes *= 2) {
        const row r = rows[count++] = time_size(b, bytes);
        if (!b->json && b->rank == 0)
            printf("%12zu %12.3e %12.3e %12.3e %9.2f %7.2f\n", r.bytes, r.seconds[OURS],
                   r.seconds[RING], r.seconds[ALLREDUCE], (double)r.bytes / r.seconds[OURS] / 1e9,
                   ratio_of(&r));
    }
    return count;
}

/* --- overlap --- */

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

typedef struct work {
    const tutti_kernels *kernels;
    long rounds;
} work;

static void compute(const work *w)
{
    float sink = 0;
    w->kernels->fma_rounds(w->rounds, &sink);
}

static double time_compute(const work *w)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = tutti_now();
    compute(w);
    return slowest(tutti_now() - begin);
}

static double time_both(bench *b, tutti_exchange *x, const work *w)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = tutti_now();
    tutti_exchange_start(x);
    compute(w);
    must(b, tutti_exchange_wait(x));
    return slowest(tutti_now() - begin);
}

/* As much computing as takes 'seconds' on the slowest rank. */
static work calibrate(bench *b, double seconds)
{
    work w = {.rounds = 1000000};
    must(b, tutti_kernels_choose(&w.kernels));
    double took = time_compute(&w);
    for (int i = 0; i < 3; i++) {
        w.rounds = (long)((double)w.rounds * seconds / took) + 1;
        MPI_Bcast(&w.rounds, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        took = time_compute(&w);
    }
    return w;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* Computing takes a fifth longer than the exchange. 1: all of the exchange is hidden. */
static double time_overlap(bench *b)
{
    enum { ROUNDS = 7 };
    double alone[ROUNDS], computing[ROUNDS], both[ROUNDS], used[ROUNDS];
    const size_t count = b->overlap_bytes / sizeof(float);
    tutti_exchange *x = create_exchange(b, count);
    time_of(b, OURS, x, count, 1);
    const work w = calibrate(b, 1.2 * time_of(b, OURS, x, count, 1));
    for (int i = 0; i < ROUNDS; i++) {
        alone[i] = time_of(b, OURS, x, count, 1);
        const double idle = cpu_seconds();
        computing[i] = time_compute(&w);
        const double busy = cpu_seconds();
        both[i] = time_both(b, x, &w);
        used[i] = slowest(cpu_seconds() - busy - (busy - idle));
    }
    tutti_exchange_destroy(&x);
    const double e = median(alone, ROUNDS), c = median(computing, ROUNDS), t = median(both, ROUNDS);
    const double hidden = (e + c - t) / e;
    if (!b->json && b->rank == 0)
        printf("exchange %.4f s, computing %.4f s, both %.4f s: %.1f %% of the exchange hidden\n"
               "beside computing it cost %.4f s of processor time\n",
               e, c, t, 100 * hidden, median(used, ROUNDS));
    return hidden;
}

/* --- idle --- */

/* The share of a core that this process uses while it does nothing. */
static double time_idle(bench *b)
{
    must(b, tutti_comm_barrier(b->comm));
    usleep(100000);
    const double cpu = cpu_seconds(), begin = tutti_now();
    usleep(1000000);
    const double share = slowest((cpu_seconds() - cpu) / (tutti_now() - begin));
    if (!b->json && b->rank == 0) printf("idle: %.2f %% of a core per rank\n", 100 * share);
    return share;
}

/* --- the program --- */

static void print_json(const bench *b, const row *rows, int count, double hidden, double idle)
{
    printf("{\"ranks\": %d, \"rows\": [", b->size);
    for (int i = 0; i < count; i++)
        printf("%s\n  {\"bytes\": %zu, \"ours_s\": %.4e, "
               "\"mpi_reduce_scatter_allgather_s\": %.4e, \"mpi_allreduce_s\": %.4e, "
               "\"ratio\": %.3f}",
               i ? "," : "", rows[i].bytes, rows[i].seconds[OURS], rows[i].seconds[RING],
               rows[i].seconds[ALLREDUCE], ratio_of(&rows[i]));
    printf("],\n \"hidden_fraction\": %.4f, \"idle_fraction\": %.4f, \"mpi\": \"%s\"}\n", hidden,
           idle, tutti_comm_library());
}

/* "4096", "64KiB", "1MiB". */
static size_t bytes_of(const char *option, const char *word)
{
    static const struct {
        const char *unit;
        int shift;
    } units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    char *end;
    const unsigned long long number = strtoull(word, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end != word && *word != '-' && !strcmp(end, units[i].unit))
            return (size_t)number << units[i].shift;
    fprintf(stderr, "bench/comm: --%s %s is not a size: 4096, 64KiB, 1MiB\n", option, word);
    exit(2);
}

static double number_of(const char *option, const char *word)
{
    char *end;
    const double number = strtod(word, &end);
    if (end != word && !*end && number > 0) return number;
    fprintf(stderr, "bench/comm: --%s %s is not a number above 0\n", option, word);
    exit(2);
}

static void parse(bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"min", required_argument, NULL, 'l'},
        {"max", required_argument, NULL, 'h'},
        {"seconds", required_argument, NULL, 's'},
        {"chunk", required_argument, NULL, 'c'},
        {"in-flight", required_argument, NULL, 'f'},
        {"only", required_argument, NULL, 'o'},
        {"overlap-bytes", required_argument, NULL, 'b'},
        {"no-thread", no_argument, NULL, 'n'},
        {"help", no_argument, NULL, '?'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (c) {
        case 'j': b->json = true; break;
        case 'l': b->bytes_min = bytes_of("min", optarg); break;
        case 'h': b->bytes_max = bytes_of("max", optarg); break;
        case 's': b->seconds = number_of("seconds", optarg); break;
        case 'c': b->chunk = bytes_of("chunk", optarg); break;
        case 'f': b->in_flight = (int)number_of("in-flight", optarg); break;
        case 'o': b->only = optarg; break;
        case 'b': b->overlap_bytes = bytes_of("overlap-bytes", optarg); break;
        case 'n': b->no_thread = true; break;
        default:
            fprintf(stderr, "usage: mpirun -n N bench/comm [--json] [--only sizes|idle|overlap] "
                            "[--min BYTES] [--max BYTES] [--seconds S]\n"
                            "       [--overlap-bytes BYTES] [--chunk BYTES] [--in-flight CHUNKS] "
                            "[--no-thread]\n");
            exit(2);
        }
}

static bool wanted(const bench *b, const char *part)
{
    return !b->only || strcmp(b->only, part) == 0;
}

int main(int argc, char **argv)
{
    bench b = {
        .bytes_min = 4096, .bytes_max = 512u << 20, .seconds = 0.5, .overlap_bytes = 64u << 20};
    parse(&b, argc, argv);
    int level = 0;
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    tutti_comm_options options = tutti_comm_defaults();
    options.log = tutti_log_stderr(TUTTI_LOG_WARNING);
    options.compute_threads = 1;
    options.chunk_bytes = b.chunk;
    options.chunks_in_flight = b.in_flight;
    options.no_thread = b.no_thread;
    must(&b, tutti_comm_open(&b.comm, &options));
    b.rank = tutti_comm_rank(b.comm);
    b.size = tutti_comm_size(b.comm);
    if (b.size == 1) {
        fprintf(stderr, "bench/comm: one rank has nobody to talk to: mpirun -n 2 bench/comm\n");
        return 2;
    }
    const size_t most = b.bytes_max > b.overlap_bytes ? b.bytes_max : b.overlap_bytes;
    must(&b, tutti_alloc(&b.partial, most, 1));
    must(&b, tutti_alloc(&b.whole, most, 1));
    memset(b.partial, 0, most); /* pages of its own */
    memset(b.whole, 0, most);
    row rows[MAX_ROWS];
    const int count = wanted(&b, "sizes") ? time_sizes(&b, rows) : 0;
    const double idle = wanted(&b, "idle") ? time_idle(&b) : 0;
    const double hidden = wanted(&b, "overlap") ? time_overlap(&b) : 0;
    if (b.json && b.rank == 0) print_json(&b, rows, count, hidden, idle);
    tutti_free(b.partial);
    tutti_free(b.whole);
    tutti_comm_close(&b.comm);
    MPI_Finalize();
    return 0;
}
