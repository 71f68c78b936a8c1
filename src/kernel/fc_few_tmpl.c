/* Fully connected layers: backward-data of few samples.
 *
 * With samples in lanes (fc_data_tmpl.c) one sample costs as much as sixteen, and more than its
 * weights take to come from memory. Here inputs are in lanes: a square of VLEN x VLEN weights is
 * transposed in registers, and each sample multiplies it by VLEN scalars. Of 16 x 16 weights the
 * transposition is 64 shuffles and a sample 16 multiply-adds, so that up to 8 samples take no more
 * time than memory needs for the weights (Zen 4: 1 KiB in about 190 cycles). The sums are the same
 * ones in the same order. */
#include "kernel/isa/isa.h"

#include "kernel/fc_tile.h"

#if VLEN > 1
enum {
    FEW = 8,
    AHEAD = 64, /* inputs whose weights are fetched before their turn */
};

/* The chains of VLEN inputs from 'input' on over a leaf. */
INLINE void few_chains(vf *acc, const tutti_fc_few_job *job, int samples, int input)
{
    zero(acc, samples);
    for (int square = 0; square < job->output_blocks * VECS; square++) {
        const float *w = job->w + square / VECS * job->w_block + square % VECS * VLEN +
                         (size_t)input * TUTTI_BLOCK;
        const float *dy = job->dy + square * VLEN;
        vf v[VLEN];
        UNROLL(16)
        for (int i = 0; i < VLEN; i++) {
            v[i] = vf_load(w + i * TUTTI_BLOCK);
            FETCH(w + (AHEAD + i) * TUTTI_BLOCK);
        }
        vf_transpose(v);
        UNROLL(16)
        for (int k = 0; k < VLEN; k++) {
            UNROLL(8)
            for (int s = 0; s < samples; s++)
                acc[s] = vf_fma(vf_set1(dy[s * job->dy_row + k]), v[k], acc[s]);
        }
    }
}

INLINE void few_inputs(const tutti_fc_few_job *job, int samples)
{
    const size_t row = (size_t)job->inputs, level = job->level;
    for (int input = 0; input < job->inputs; input += VLEN) {
        vf acc[FEW];
        few_chains(acc, job, samples, input);
        UNROLL(8)
        for (int s = 0; s < samples; s++) {
            const float *waiting = job->top + s * row + input;
            for (int j = 0; j < job->joins; j++, waiting -= level)
                acc[s] = vf_add(vf_load(waiting), acc[s]);
            const size_t at = s * job->to_row + input;
            if (job->mask) acc[s] = vf_gate(acc[s], vf_load(job->mask + at));
            vf_store(job->to + at, acc[s]);
        }
    }
}

static void data_few(const tutti_fc_few_job *job)
{
    switch (job->samples) {
    case 1: few_inputs(job, 1); break;
    case 2: few_inputs(job, 2); break;
    case 3: few_inputs(job, 3); break;
    case 4: few_inputs(job, 4); break;
    case 5: few_inputs(job, 5); break;
    case 6: few_inputs(job, 6); break;
    case 7: few_inputs(job, 7); break;
    case FEW: few_inputs(job, FEW); break;
    }
}
#else
enum { FEW = 0 };
static void data_few(const tutti_fc_few_job *job)
{
    (void)job;
}
#endif

const tutti_fc_few NAME(fc_few) = {FEW, data_few};
