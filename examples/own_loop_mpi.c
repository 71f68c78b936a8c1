/* The same on a communicator of one's own: half of the processes train, the others do something
 * else, and a failure or a message of either is none of the other's business. Each rank makes only
 * its own part of every minibatch; the numbers printed are the same for any number of ranks.
 *
 *   mpicc own_loop_mpi.c $(pkg-config --cflags --libs tutti) -o own_loop_mpi
 *   mpirun -n 4 ./own_loop_mpi */
#include <stdio.h>
#include <stdlib.h>

#include <tutti/mpi.h>
#include <tutti/session.h>

enum { INPUTS = 20, BATCH = 32, STEPS = 60 };

static const char net[] = "input 20\n"
                          "fc1  fc 64 relu\n"
                          "fc2  fc 2\n"
                          "loss softmax\n";

static void must(tutti_status status)
{
    if (status == TUTTI_OK) return;
    fprintf(stderr, "own_loop_mpi: %s\n", tutti_message());
    MPI_Abort(MPI_COMM_WORLD, tutti_status_exit_code(status));
}

/* Sample 'number', whoever makes it: is the sum of its numbers positive? */
static int32_t make_sample(int number, float *values)
{
    unsigned state = (unsigned)number * 2654435761u + 1;
    float sum = 0;
    for (int i = 0; i < INPUTS; i++) {
        state = state * 1664525u + 1013904223u;
        sum += values[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    return sum > 0;
}

static void train(tutti_ranks *ranks)
{
    static float samples[BATCH * INPUTS];
    int32_t labels[BATCH];
    int first, count;
    tutti_train_options options = tutti_train_defaults();
    tutti_session *session = NULL;
    tutti_step_news news = {0};
    options.net = net;
    options.batch_size = BATCH;
    options.ranks = ranks;
    must(tutti_session_create(&session, &options));
    tutti_session_share(session, &first, &count);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < count; i++)
            labels[i] = make_sample(step * BATCH + first + i, samples + i * INPUTS);
        must(tutti_session_step(session, samples, labels, 0.1, step + 1 < STEPS ? NULL : &news));
    }
    if (tutti_ranks_rank(ranks) == 0) printf("step %d: loss %.9f\n", (int)news.step, news.loss);
    tutti_session_destroy(&session);
}

int main(int argc, char **argv)
{
    int level, rank, size;
    MPI_Comm half;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int trains = rank < (size + 1) / 2;
    MPI_Comm_split(MPI_COMM_WORLD, trains, rank, &half);

    if (trains) {
        tutti_ranks *ranks = NULL;
        tutti_ranks_options options = tutti_ranks_defaults();
        options.log = tutti_log_stderr(TUTTI_LOG_WARNING);
        options.threads = 1;
        options.no_thread = level < MPI_THREAD_MULTIPLE;
        must(tutti_ranks_open_mpi(&ranks, half, &options));
        train(ranks);
        tutti_ranks_close(&ranks);
    }
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
