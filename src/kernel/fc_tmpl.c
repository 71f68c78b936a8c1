/* Fully connected layers: the inner loops of forward and backward-weights, and changes of layout;
 * see fc_tile.h. */
#include "kernel/isa/isa.h"

#include <string.h>

#include "kernel/fc_tile.h"

/* ---- forward ---- */

INLINE void forward_start(vf *acc, int rows, int blocks, const float *y, size_t y_row, bool first)
{
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++)
            acc[r * blocks * VECS + v] = first ? vf_zero() : vf_load(y + r * y_row + v * VLEN);
    }
}

INLINE void forward_end(vf *acc, int rows, int blocks, const tutti_fc_forward_job *job)
{
    if (!job->last) return;
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++) {
            vf *sum = &acc[r * blocks * VECS + v];
            if (job->bias) *sum = vf_add(*sum, vf_load(job->bias + v * VLEN));
            if (job->relu) *sum = vf_max(vf_zero(), *sum);
        }
    }
}

/* The next job's weights, fetched to the second-level cache one or two lines per step, shared out
 * among the tiles of this job: a line per step is about what memory delivers. They are at a fixed
 * distance from this job's, which costs no register that moves; 0 means none. */
typedef struct fetcher {
    ptrdiff_t ahead[2];
} fetcher;

INLINE fetcher fetcher_of(const tutti_fc_forward_job *job, int sample)
{
    const int tile = sample / FORWARD_ROWS,
              tiles = (job->samples + FORWARD_ROWS - 1) / FORWARD_ROWS;
    const int first = tiles <= 2 ? 2 * tile : tile,
              second = tiles <= 2 ? first + 1 : FORWARD_BLOCKS;
    const ptrdiff_t next = job->next ? job->next - job->w : 0;
    return (fetcher){
        {job->next && first < job->blocks ? next + first * (ptrdiff_t)job->w_block : 0,
         job->next && second < job->blocks ? next + second * (ptrdiff_t)job->w_block : 0}};
}

/* The unfinished chains of the tile after this one, which waits for them as soon as it starts. */
INLINE void fetch_sums(const tutti_fc_forward_job *job, int sample, int rows, int blocks)
{
    const float *y = job->y + (size_t)sample * job->y_row;
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int b = 0; b < blocks; b++)
            __builtin_prefetch(y + r * job->y_row + b * TUTTI_BLOCK, 1, 3);
    }
}

INLINE void forward_tile(const tutti_fc_forward_job *job, int sample, int rows, int blocks)
{
    vf acc[TILE];
    float *y = job->y + (size_t)sample * job->y_row;
    forward_start(acc, rows, blocks, y, job->y_row, job->first);
    fetch_sums(job, sample + rows, rows, blocks);
    const float *x = job->x + (size_t)sample * job->x_row, *w = job->w;
    const size_t x_row = job->x_row, w_block = job->w_block;
    const fetcher fetch = fetcher_of(job, sample);
    if (fetch.ahead[0] | fetch.ahead[1])
        for (int k = 0; k < job->inputs; k++) {
            step(acc, rows, blocks, x + k, x_row, w, w_block);
            FETCH(w + fetch.ahead[0]);
            FETCH(w + fetch.ahead[1]);
            w += TUTTI_BLOCK;
        }
    else
        for (int k = 0; k < job->inputs; k++) {
            step(acc, rows, blocks, x + k, x_row, w, w_block);
            UNROLL(4)
            for (int b = 0; b < blocks; b++)
                __builtin_prefetch(w + b * w_block + 8 * TUTTI_BLOCK, 0, 3);
            w += TUTTI_BLOCK;
        }
    forward_end(acc, rows, blocks, job);
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++)
            vf_store(y + r * job->y_row + v * VLEN, acc[r * blocks * VECS + v]);
    }
}

typedef void forward_fn(const tutti_fc_forward_job *job, int sample);
#define FORWARD(blocks, rows)                                                          \
    static void forward_##rows##x##blocks(const tutti_fc_forward_job *job, int sample) \
    {                                                                                  \
        forward_tile(job, sample, rows, blocks);                                       \
    }
#define FORWARD_ENTRY(blocks, rows)   [blocks][rows] = forward_##rows##x##blocks,
#define FORWARDS(blocks, rows)        UP_TO_##rows(FORWARD, blocks)
#define FORWARD_ENTRIES(blocks, rows) UP_TO_##rows(FORWARD_ENTRY, blocks)

FC_FORWARD_TILES(FORWARDS)
static forward_fn *const forward_tiles[FORWARD_BLOCKS + 1][FORWARD_ROWS + 1] = {
    FC_FORWARD_TILES(FORWARD_ENTRIES)};

static void forward(const tutti_fc_forward_job *job)
{
    const int tiles = (job->samples + FORWARD_ROWS - 1) / FORWARD_ROWS;
    for (int t = 0; t < tiles; t++) { /* tiles of equal size rather than a small last one */
        const int begin = tutti_share_begin(job->samples, tiles, t);
        const int end = tutti_share_begin(job->samples, tiles, t + 1);
        forward_tiles[job->blocks][end - begin](job, begin);
    }
}

/* ---- backward-weights ---- */

INLINE void weights_store(float *dw, size_t dw_block, bool stream, int rows, int blocks,
                          const vf *acc)
{
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++) {
            float *to = dw + (v / VECS) * dw_block + r * TUTTI_BLOCK + (v % VECS) * VLEN;
            if (stream) vf_stream(to, acc[r * blocks * VECS + v]);
            else vf_store(to, acc[r * blocks * VECS + v]);
        }
    }
}

/* Where a tile finds its operands: sample s at x + s * x_step and dy + s * 16. */
typedef struct operands {
    const float *x, *dy;
    size_t x_row, x_step, dy_block;
} operands;

/* A chain over samples 'sample' .. 'end'-1, which acc continues or starts. */
INLINE void samples(vf *acc, int rows, int blocks, const operands *from, int sample, int end,
                    bool start)
{
    const float *x = from->x + sample * from->x_step;
    const float *dy = from->dy + (size_t)sample * TUTTI_BLOCK;
    if (start && sample == end) zero(acc, rows * blocks * VECS);
    else if (start) {
        multiply(acc, rows, blocks, x, from->x_row, dy, from->dy_block, true);
        chain(acc, rows, blocks, end - sample - 1, x + from->x_step, from->x_row, from->x_step,
              dy + TUTTI_BLOCK, from->dy_block);
    } else chain(acc, rows, blocks, end - sample, x, from->x_row, from->x_step, dy, from->dy_block);
}

INLINE void sum_grains(vf *acc, const tutti_fc_weights_job *job, int rows, int blocks,
                       const operands *from)
{
    const int grains = job->grains, *const begin = job->begin, zeroth = begin[0];
    float *const stack = job->near;
    for (int g = 0; g < grains; g++) {
        samples(acc, rows, blocks, from, begin[g] - zeroth, begin[g + 1] - zeroth, job->first);
        join_leaf(acc, rows * blocks * VECS, g, grains, stack);
    }
}

/* One run for one tile, and its place in the tree over runs. */
INLINE void weights_tile(const tutti_fc_weights_job *job, int input, int rows, int blocks)
{
    vf acc[TILE];
    const int count = rows * blocks * VECS;
    const operands from = {job->x + input / TUTTI_BLOCK * job->x_block + input % TUTTI_BLOCK,
                           job->dy, 1, TUTTI_BLOCK, job->dy_block};
    float *far = job->far + (size_t)input * blocks * TUTTI_BLOCK * job->levels;
    float *const top = far + __builtin_popcount((unsigned)job->run) * count * VLEN;
    zero(acc, count);
    if (!job->first) load_from(acc, count, top);
    sum_grains(acc, job, rows, blocks, &from);
    if (!job->last) {
        store_to(top, count, acc);
        return;
    }
    join_leaf(acc, count, job->run, job->runs, far);
    if (job->run + 1 < job->runs) return;
    float *dw = job->dw + (size_t)input * TUTTI_BLOCK;
    if (job->stream) weights_store(dw, job->dw_block, true, rows, blocks, acc);
    else weights_store(dw, job->dw_block, false, rows, blocks, acc);
}

/* All inputs, a panel of 'blocks' blocks wide, 'rows' inputs at a time. */
INLINE void weights_panel(const tutti_fc_weights_job *job, int blocks, int rows)
{
    const int rest = TUTTI_BLOCK % rows;
    for (int i = 0; i < job->inputs; i += TUTTI_BLOCK) {
        int r = 0;
        for (; r + rows <= TUTTI_BLOCK; r += rows) weights_tile(job, i + r, rows, blocks);
        if (rest) weights_tile(job, i + r, rest ? rest : 1, blocks);
    }
}

/* ---- backward-weights with few samples per grain ----
 *
 * With 4 samples per grain the tile above would load and store partial sums as often as it
 * multiplies. So turn it inside out: the dy of one block of outputs for a grain, or for an aligned
 * pair or four of grains with up to 16 samples together, fills the registers, and one row of dw
 * after the other sweeps past: 16 scalars, 16 multiply-adds, the grains joined, and one partial sum
 * to the stack, of SWEEP_ROWS rows at a time so that it stays in the first-level cache. Sixteen
 * registers hold only one grain; that is still 72 % of the peak, where the tile has 62.
 *
 * What grains cost. A tree over grains of 4 samples adds once for every 4 multiply-adds,
 * whatever holds the sums: with every add in registers a row of four grains is 16 multiply-adds,
 * 3 adds among the four and on average one of the levels above. Where adds and multiply-adds
 * share two ports (Intel) that is 10 cycles for what takes 8 in one flat sum, so 80 % of the
 * peak is all there is, and a library whose flat sum runs at more than 84 % cannot be matched to
 * 0.95. Where adds have pipes of their own (Zen 4) they cost nothing. The 17 loads of a row fit
 * in beside them. */
#if FC_SWEEP_SAMPLES
enum { SWEEP_ROWS = TUTTI_FC_NEAR / TUTTI_BLOCK, FETCH_ROWS = 4 };

typedef struct sweep_job {
    int rows;       /* a multiple of 16 */
    const float *x; /* [rows/16][samples][16], x_block apart */
    size_t x_block;
    const float *dy; /* [samples][16] */
    int joins;
    const float *top; /* joined first; the one below it 'slot' floats before, and so on */
    size_t slot;
    float *to;          /* [rows][16] */
    const float *fetch; /* rows of dw to be fetched, FETCH_ROWS for every 16; NULL: none */
} sweep_job;

INLINE void join(vf *sum, const vf *right)
{
    UNROLL(4)
    for (int v = 0; v < VECS; v++) sum[v] = vf_add(sum[v], right[v]);
}

/* sum[] = a row's sum of 'grains' grains of 'samples' samples each: chains, then their tree. */
INLINE void sweep_row(vf *sum, const vf *dy, int grains, int samples, const float *x)
{
    UNROLL(4)
    for (int g = 0; g < grains; g++) {
        UNROLL(8)
        for (int s = g * samples; s < (g + 1) * samples; s++) {
            const vf scalar = vf_set1(x[s * TUTTI_BLOCK]);
            UNROLL(4)
            for (int v = 0; v < VECS; v++) {
                vf *to = &sum[g * VECS + v];
                *to = s == g * samples ? vf_mul(scalar, dy[s * VECS + v])
                                       : vf_fma(scalar, dy[s * VECS + v], *to);
            }
        }
    }
    if (grains == 4) join(sum + 2 * VECS, sum + 3 * VECS);
    if (grains >= 2) join(sum, sum + VECS);
    if (grains == 4) join(sum, sum + 2 * VECS);
}

/* Brings to the first level the lines of FETCH_ROWS rows of dw that the last sweep will write:
 * those of all its rows at once would hold it up for longer than it computes. */
INLINE void fetch_gradient(const float *dw)
{
    UNROLL(4)
    for (int r = 0; r < FETCH_ROWS; r++) __builtin_prefetch(dw + r * TUTTI_BLOCK, 1, 3);
}

/* All rows, each of which fetches a line of the x of the next 16, or of the next grains' first 16:
 * a burst of prefetches would hold up the loads after it. 'joins' is the job's, known to the
 * compiler, or negative: a loop of unknown length within the loop over rows would be mispredicted
 * in every call. */
INLINE void sweep_rows(const sweep_job *job, const vf *dy, int grains, int samples, int joins,
                       bool stream)
{
    const int held = grains * samples;
    const size_t x_block = job->x_block, slot = job->slot;
    const float *x = job->x, *top = job->top, *fetch = job->fetch;
    float *to = job->to;
    for (int left = job->rows; left > 0; left -= TUTTI_BLOCK, x += x_block) {
        const float *next = left > TUTTI_BLOCK ? x + x_block : job->x + held * TUTTI_BLOCK;
        if (fetch) {
            fetch_gradient(fetch);
            fetch += FETCH_ROWS * TUTTI_BLOCK;
        }
        UNROLL(4)
        for (int r = 0; r < TUTTI_BLOCK; r++) {
            vf sum[4 * VECS];
            if (r < held) __builtin_prefetch(next + r * TUTTI_BLOCK, 0, 3);
            sweep_row(sum, dy, grains, samples, x + r);
            const float *waiting = top + r * TUTTI_BLOCK;
            if (joins == 1) add_from(sum, VECS, waiting);
            for (int j = joins < 0 ? job->joins : 0; j; j--, waiting -= slot)
                add_from(sum, VECS, waiting);
            UNROLL(4)
            for (int v = 0; v < VECS; v++) vf_put(to + r * TUTTI_BLOCK + v * VLEN, sum[v], stream);
        }
        top += TUTTI_BLOCK * TUTTI_BLOCK;
        to += TUTTI_BLOCK * TUTTI_BLOCK;
    }
}

INLINE void sweep(const sweep_job *job, int grains, int samples, bool stream)
{
    const int held = grains * samples;
    vf dy[FC_SWEEP_HELD * VECS];
    UNROLL(16)
    for (int v = 0; v < held * VECS; v++) dy[v] = vf_load(job->dy + v * VLEN);
    UNROLL(16)
    for (int s = held; s < 2 * held; s++) __builtin_prefetch(job->dy + s * TUTTI_BLOCK, 0, 3);
    if (stream) sweep_rows(job, dy, grains, samples, -1, true);
    else if (job->joins == 0) sweep_rows(job, dy, grains, samples, 0, false);
    else if (job->joins == 1) sweep_rows(job, dy, grains, samples, 1, false);
    else sweep_rows(job, dy, grains, samples, -1, false);
}

typedef void sweep_fn(const sweep_job *job, bool stream);
#define SWEEP(grains, samples)                                                   \
    static void sweep_##grains##_of_##samples(const sweep_job *job, bool stream) \
    {                                                                            \
        if (stream) sweep(job, grains, samples, true);                           \
        else sweep(job, grains, samples, false);                                 \
    }
#define SWEEP_ENTRY(grains, samples) [grains][samples] = sweep_##grains##_of_##samples,
FC_SWEEPS(SWEEP)
static sweep_fn *const sweeps[5][FC_SWEEP_SAMPLES + 1] = {FC_SWEEPS(SWEEP_ENTRY)};

/* How many grains from 'g' on are swept at once: a subtree of grains of equal size. */
static int grains_at_once(const tutti_fc_weights_job *job, int g)
{
    const int *const begin = job->begin + g, samples = begin[1] - begin[0];
    for (int count = 4; count > 1; count /= 2) {
        if (g % count || g + count > job->grains || !sweeps[count][samples]) continue;
        bool equal = true;
        for (int i = 1; i < count; i++) equal = equal && begin[i + 1] - begin[i] == samples;
        if (equal) return count;
    }
    return 1;
}

/* Rows 'input' .. 'input' + rows - 1 of one block: grain after grain, with the stack of
 * base/tree.h. */
static void sweep_grains(const tutti_fc_weights_job *job, int block, int input, int rows)
{
    const size_t slot = (size_t)rows * TUTTI_BLOCK;
    const int *const begin = job->begin, share = rows / TUTTI_BLOCK * FETCH_ROWS;
    float *const dw = job->dw + block * job->dw_block + (size_t)input * TUTTI_BLOCK;
    for (int g = 0, next; g < job->grains; g = next) {
        const int samples = begin[g + 1] - begin[g], sample = begin[g] - begin[0];
        const int count = grains_at_once(job, g);
        next = g + count;
        const bool last = next == job->grains;
        const int depth = __builtin_popcount((unsigned)g);
        const int joins =
            last ? depth : tutti_tree_joins(next - 1) - __builtin_ctz((unsigned)count);
        const int left = (job->grains - next + count - 1) / count;
        const bool fetch = !job->stream && left > 0 && left * share <= rows;
        const sweep_job part = {
            .rows = rows,
            .x = job->x + input / TUTTI_BLOCK * job->x_block + (size_t)sample * TUTTI_BLOCK,
            .x_block = job->x_block,
            .dy = job->dy + block * job->dy_block + (size_t)sample * TUTTI_BLOCK,
            .joins = joins,
            .top = job->near + (joins ? depth - 1 : 0) * slot,
            .slot = slot,
            .to = last ? dw : job->near + (depth - joins) * slot,
            .fetch = fetch ? dw + (size_t)(rows - left * share) * TUTTI_BLOCK : NULL,
        };
        sweeps[count][samples](&part, last && job->stream);
    }
}

static void sweep_panel(const tutti_fc_weights_job *job)
{
    for (int i = 0; i < job->inputs; i += SWEEP_ROWS) {
        const int rows = job->inputs - i < SWEEP_ROWS ? job->inputs - i : SWEEP_ROWS;
        for (int b = 0; b < job->blocks; b++) sweep_grains(job, b, i, rows);
    }
}
#else
static void sweep_panel(const tutti_fc_weights_job *job)
{
    (void)job;
}
#endif

static void weights(const tutti_fc_weights_job *job)
{
#define PANEL(blocks, rows) \
    case blocks: weights_panel(job, blocks, rows); break;
    switch (job->sweep ? 0 : job->blocks) {
    case 0:
        sweep_panel(job);
        break;
        FC_WEIGHTS_TILES(PANEL)
    }
#undef PANEL
}

static void bias(const tutti_fc_weights_job *job, float *db)
{
    static const float one = 1.0f;
    for (int b = 0; b < job->blocks; b++) {
        vf acc[TILE];
        const operands from = {&one, job->dy + b * job->dy_block, 0, 0, 0};
        zero(acc, VECS);
        sum_grains(acc, job, 1, 1, &from);
        store_to(db + b * TUTTI_BLOCK, VECS, acc);
    }
}

/* ---- changes of layout ---- */

/* Rows that are read side by side. Rows a power of two apart meet in the same sets of the
 * first-level cache, which has 8 ways or more: with 16 rows it loses what was read ahead and
 * packing takes 1.4 times as long. */
enum { PACK_ROWS = 8 };

static void pack(int n, int columns, const float *from, size_t from_row, float *to, size_t to_block)
{
    for (int i = 0; i < n; i += PACK_ROWS)
        for (int c = 0; c < columns; c += TUTTI_BLOCK) {
            const float *rows = from + (size_t)i * from_row + c;
            float *block = to + c / TUTTI_BLOCK * to_block + (size_t)i * TUTTI_BLOCK;
            for (int r = 0; r < PACK_ROWS && i + r < n; r++)
                memcpy(block + r * TUTTI_BLOCK, rows + r * from_row, TUTTI_BLOCK * sizeof *to);
        }
}

/* VLEN x VLEN floats; rows from 'n' on are zero. */
INLINE void load_transposed(vf v[VLEN], int n, const float *from, size_t from_row)
{
    UNROLL(16)
    for (int i = 0; i < VLEN; i++) v[i] = i < n ? vf_load(from + i * from_row) : vf_zero();
    vf_transpose(v);
}

static void pack_transposed(int n, int columns, const float *from, size_t from_row, float *to,
                            size_t to_block)
{
    const int filled = (n + TUTTI_BLOCK - 1) / TUTTI_BLOCK * TUTTI_BLOCK;
    for (int i = 0; i < filled; i += VLEN)
        for (int c = 0; c < columns; c += VLEN) {
            vf v[VLEN];
            load_transposed(v, n - i, from + (size_t)i * from_row + c, from_row);
            float *out =
                to + i / TUTTI_BLOCK * to_block + (size_t)c * TUTTI_BLOCK + i % TUTTI_BLOCK;
            UNROLL(16)
            for (int j = 0; j < VLEN; j++) vf_store(out + j * TUTTI_BLOCK, v[j]);
        }
}

static void unpack_transposed(int n, int columns, const float *from, size_t from_row,
                              const float *mask, float *to, size_t to_row)
{
    for (int i = 0; i < n; i += VLEN)
        for (int c = 0; c < columns; c += VLEN) {
            vf v[VLEN];
            load_transposed(v, VLEN, from + (size_t)c * from_row + i, from_row);
            UNROLL(16)
            for (int j = 0; j < VLEN; j++) {
                const size_t at = (size_t)(i + j) * to_row + c;
                if (i + j >= n) break;
                if (i + j + VLEN < n) {
                    FETCH(to + at + VLEN * to_row);
                    if (mask) FETCH(mask + at + VLEN * to_row);
                }
                vf_store(to + at, mask ? vf_gate(v[j], vf_load(mask + at)) : v[j]);
            }
        }
}

extern const tutti_fc_kernels NAME(fc);

const tutti_fc_kernels NAME(fc) = {
    .forward_blocks = FORWARD_BLOCKS,
    .data_blocks = DATA_BLOCKS,
    .weights_blocks = WEIGHTS_BLOCKS,
    .few_samples = FC_SWEEP_SAMPLES,
    .forward = forward,
    .data = NAME(fc_data),
    .few = &NAME(fc_few),
    .weights = weights,
    .bias = bias,
    .pack = pack,
    .pack_transposed = pack_transposed,
    .unpack_transposed = unpack_transposed,
};
