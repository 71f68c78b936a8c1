#include "kernel/elementwise.h"

#include <string.h>

#include "kernel/work.h"

typedef struct flat_job {
    tutti_elementwise_fn *kernel;
    const tutti_elementwise *flat;
    size_t blocks;
} flat_job;

static void run_share(void *arg, int thread, int threads)
{
    const flat_job *job = arg;
    const tutti_range mine = tutti_range_of(job->blocks, threads, thread);
    job->kernel(job->flat, mine.begin * TUTTI_BLOCK, mine.end * TUTTI_BLOCK);
}

static const float *padded(float pad[TUTTI_BLOCK], const float *x, size_t begin, size_t rest)
{
    if (!x) return NULL;
    memcpy(pad, x + begin, rest * sizeof *x);
    return pad;
}

/* The last few elements, which do not fill a vector, in padded copies. */
static void run_rest(tutti_elementwise_fn *kernel, const tutti_elementwise *flat, size_t begin,
                     size_t rest)
{
    float a[TUTTI_BLOCK] = {0}, b[TUTTI_BLOCK] = {0}, mask[TUTTI_BLOCK] = {0};
    float y[TUTTI_BLOCK] = {0}, state[TUTTI_MAX_STATES][TUTTI_BLOCK] = {{0}};
    tutti_elementwise last = *flat;
    last.a = padded(a, flat->a, begin, rest);
    last.b = padded(b, flat->b, begin, rest);
    last.mask = padded(mask, flat->mask, begin, rest);
    padded(y, flat->y, begin, rest);
    last.y = y;
    for (int i = 0; i < TUTTI_MAX_STATES; i++) {
        padded(state[i], flat->state[i], begin, rest);
        last.state[i] = state[i];
    }
    kernel(&last, 0, TUTTI_BLOCK);
    memcpy(flat->y + begin, y, rest * sizeof *y);
    for (int i = 0; i < TUTTI_MAX_STATES; i++)
        if (flat->state[i]) memcpy(flat->state[i] + begin, state[i], rest * sizeof *y);
}

static bool is_input(const tutti_elementwise *flat)
{
    return flat->y == flat->a || flat->y == flat->b || flat->y == flat->mask;
}

void tutti_elementwise_run(tutti_team *team, tutti_elementwise_fn *kernel,
                           const tutti_elementwise *flat, size_t count)
{
    tutti_elementwise whole = *flat;
    whole.stream = !is_input(flat) && tutti_streams(flat->y, count);
    flat_job job = {kernel, &whole, count / TUTTI_BLOCK};
    tutti_team_run(tutti_team_for(team, count), run_share, &job);
    const size_t rest = count % TUTTI_BLOCK;
    if (rest) run_rest(kernel, flat, count - rest, rest);
}
