/* Part-reduce and part-broadcast alone: least squares by gradient descent, with a gradient and an
 * update of one's own. The 64 terms of the gradient's sum are shared out over the ranks and added
 * in one order, so the weights printed are the same, bit for bit, for any number of ranks.
 *
 *   cc primitives.c $(pkg-config --cflags --libs tutti) -lm -o primitives
 *   mpirun -n 3 ./primitives */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/part.h>

enum { COUNT = 1000, TERMS = 64, STEPS = 200 };

static void must(tutti_status status)
{
    if (status == TUTTI_OK) return;
    fprintf(stderr, "primitives: %s\n", tutti_message());
    exit(tutti_status_exit_code(status));
}

/* The gradient of term t's squared error: it has seen some of the unknowns, sin(i), through a
 * weight. */
static void gradient_of(int t, const float *weights, float *gradient)
{
    memset(gradient, 0, COUNT * sizeof *gradient);
    for (int i = t; i < COUNT; i += 1 + t % 5) {
        const float seen = 1 + (float)(t % 3);
        gradient[i] = seen * (seen * weights[i] - seen * sinf((float)i));
    }
}

int main(void)
{
    static float weights[COUNT];
    tutti_ranks *ranks = NULL;
    tutti_part *sum = NULL, *spread = NULL;
    tutti_ranks_options options = tutti_ranks_defaults();
    const tutti_part_options parts = {.name = "weights", .count = COUNT, .terms = TERMS};
    int first, end;
    size_t begin, stop;

    options.log = tutti_log_stderr(TUTTI_LOG_WARNING);
    options.threads = 1;
    must(tutti_ranks_open(&ranks, &options));
    must(tutti_part_reduce_create(&sum, ranks, &parts));
    must(tutti_part_broadcast_create(&spread, ranks, weights, &parts));
    tutti_part_share(sum, &first, &end);
    for (int step = 0; step < STEPS; step++) {
        for (int t = first; t < end; t++) gradient_of(t, weights, tutti_part_term(sum));
        must(tutti_part_start(sum));
        /* here is time to compute what does not need the sum */
        must(tutti_part_wait(sum));
        const float *total = tutti_part_strip(sum, &begin, &stop);
        for (size_t i = begin; i < stop; i++) weights[i] -= 0.005f * total[i - begin];
        must(tutti_part_start(spread));
        must(tutti_part_wait(spread));
    }
    if (tutti_ranks_rank(ranks) == 0) {
        double error = 0;
        for (int i = TERMS; i < COUNT; i++) error = fmax(error, fabs(weights[i] - sin(i)));
        printf("largest error %.3g, weights[500] %a\n", error, (double)weights[500]);
    }
    tutti_part_destroy(&spread);
    tutti_part_destroy(&sum);
    tutti_ranks_close(&ranks);
    return 0;
}
