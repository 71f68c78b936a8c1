/* Fully connected layers: backward-data of few samples.
 *
 * With samples in lanes (fc_data_tmpl.c) one sample costs as much as sixteen, and more than its
 * weights take to come from memory. Here inputs are in lanes: a square of VLEN x VLEN weights is
 * transposed in registers, and each sample multiplies it by VLEN scalars. For 16 x 16 weights the
 * transposition takes 64 shuffles and a sample 16 multiply-adds, so that up to 8 samples take no
 * more time than memory needs for the weights (Zen 4: 1 KiB in about 190 cycles). The sums are the
 * same ones in the same order. */
#include "kernel/isa/isa.h"

#include "kernel/fc_tile.h"

#if FC_FEW
enum { AHEAD = 64 }; /* inputs whose weights are fetched before their turn */

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
        vf acc[FC_FEW];
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
#define CASE(zero, samples) \
    case samples: few_inputs(job, samples); break;
    switch (job->samples) {
        UP_TO(FC_FEW, CASE, 0)
    }
#undef CASE
}
#else
static void data_few(const tutti_fc_few_job *job)
{
    (void)job;
}
#endif

const tutti_fc_few NAME(fc_few) = {FC_FEW, data_few};
