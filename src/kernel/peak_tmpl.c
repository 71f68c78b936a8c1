/* The machine's limit: independent chains of fused multiply-adds, nothing else. */
#include "kernel/isa/isa.h"

double NAME(fma_rounds)(long rounds, float *sink);

double NAME(fma_rounds)(long rounds, float *sink)
{
    const vf b = vf_set1(0.9999f), c = vf_set1(1e-6f);
    vf chain[FMA_CHAINS];
    UNROLL(24)
    for (int i = 0; i < FMA_CHAINS; i++) chain[i] = c;
    for (long r = 0; r < rounds; r++) {
        UNROLL(24)
        for (int i = 0; i < FMA_CHAINS; i++) {
            chain[i] = vf_fma(chain[i], b, c);
            HOLD(chain[i]); /* no round may be folded away */
        }
    }
    vf sum = vf_zero();
    UNROLL(24)
    for (int i = 0; i < FMA_CHAINS; i++) sum = vf_add(sum, chain[i]);
    float lanes[VLEN];
    vf_store(lanes, sum);
    *sink = lanes[0];
    return 2.0 * VLEN * FMA_CHAINS * (double)rounds;
}
