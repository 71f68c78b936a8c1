/* Register tiles, AVX2: 16 registers of 8 floats; see avx512_tiles.h. */
#define CONV_TILES(X)           X(1, 6)
#define CONV_GRADIENT_TILES(X)  X(1, 6)
#define LANES_TILES(X)          X(1, 6)
#define LANES_GRADIENT_TILES(X) X(1, 7) X(2, 5) X(4, 3) X(8, 1)

#define WINOGRAD4_TILES(X)   X(1, 6)
#define WINOGRAD4_GATHERS(X) X(1, 6)

#define FC_FORWARD_TILES(X) X(1, 6)
#define FC_WEIGHTS_TILES(X) X(1, 6)
#define FC_DATA_TILES(X)    X(1, 6, 2)
#define FC_TAIL_ROWS        2
#define FC_DATA_FETCHES     0
#define FC_SWEEPS(X)        UP_TO_8(X, 1)
#define FC_SWEEP_SAMPLES    8
#define FC_SWEEP_HELD       8
#define FC_FEW              8

#define BF16_TILES(X) X(1, 2)

enum { TOGETHER = 2, FMA_CHAINS = 12 };
