/* What of a computation this row holds in its registers at a time, AVX-512: 32 registers of 16
 * floats. Every row has the same lists. An entry becomes a function, so that no remainder wastes
 * work; its shape is what fits into the registers beside one operand's vectors and a scalar. */

/* Convolution, X(blocks, widest): tiles of 'blocks' blocks of 16 output features by up to 'widest'
 * pixels; backward-weights: by up to 'widest' input channels. */
#define CONV_TILES(X)          X(1, 8) X(2, 14) X(3, 9) X(4, 6)
#define CONV_GRADIENT_TILES(X) X(1, 12) X(2, 12) X(3, 9) X(4, 6)

/* Narrow groups, X(blocks, widest): one block of 16 features by up to 'widest' pixels.
 * Backward-weights, X(channels of a group, taps): by up to 'taps' taps of a kernel row. */
#define LANES_TILES(X)          X(1, 14)
#define LANES_GRADIENT_TILES(X) X(1, 7) X(2, 7) X(4, 5) X(8, 3)

/* Winograd's F(4x4), X(blocks, most): products of 'blocks' blocks of 16 outputs by up to 'most'
 * tiles; backward-weights, X(blocks, channels): of outputs by 'channels' channels. */
#define WINOGRAD4_TILES(X)   X(1, 14) X(2, 14)
#define WINOGRAD4_GATHERS(X) X(1, 16) X(2, 8)

/* Fully connected layers, forward, X(blocks, most): 'blocks' blocks of 16 outputs by up to 'most'
 * samples, the same number for all entries. */
#define FC_FORWARD_TILES(X) X(1, 8) X(2, 8) X(3, 8)

/* Backward-weights, X(blocks, rows): 'blocks' blocks of 16 outputs by 'rows' inputs. */
#define FC_WEIGHTS_TILES(X) X(1, 8) X(2, 8) X(3, 8)

/* Backward-data, X(blocks, large, small): 'blocks' blocks of 16 samples by 'large' inputs, and by
 * 'small' ones where fewer are left, which must cover any multiple of 16. The last steps of a tile
 * take FC_TAIL_ROWS inputs at a time, which divides both. */
#define FC_DATA_TILES(X) X(1, 24, 8) X(2, 12, 4) X(3, 8, 8) X(4, 6, 2)
#define FC_TAIL_ROWS     2
#define FC_DATA_FETCHES  1 /* a tile lasts long enough to fetch all that comes next */

/* Backward-weights of few samples, X(grains, samples): 'grains' grains of 'samples' samples each,
 * FC_SWEEP_HELD samples together at most, by 16 outputs. FC_SWEEP_SAMPLES 0: there is none. */
#define FC_SWEEPS(X)     UP_TO_8(X, 1) X(2, 4) X(2, 5) X(2, 6) X(2, 7) X(2, 8) X(4, 4)
#define FC_SWEEP_SAMPLES 8
#define FC_SWEEP_HELD    16

/* Products of bf16, X(panels, rows): 'panels' blocks of 16 columns by up to 'rows' rows; even and
 * odd chains and sums are all held. */
#define BF16_TILES(X) X(1, 8) X(2, 4)

/* Backward-data with inputs in lanes, of up to FC_FEW samples; 0: there is none. */
#define FC_FEW 8

enum {
    TOGETHER = 4,    /* vectors side by side where each is a chain of many operations */
    FMA_CHAINS = 24, /* chains of multiply-adds that leave the processor no time to wait */
};
