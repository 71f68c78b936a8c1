/* Blocks of a net's text: lines with parameters that are read again wherever the block is used.
 *
 *     block bottleneck width out stride=1      parameters; with a value: may be left out
 *     conv1 conv $width kernel=1 nobias
 *     conv2 conv $width kernel=3 stride=$stride pad=1 nobias
 *     conv3 conv $out kernel=1 nobias
 *     end
 *
 *     layer1.0 bottleneck 64 256 stride=2      layers layer1.0.conv1, layer1.0.conv2, ...
 *
 * Here are their lines and what stands for a parameter in them; who reads the lines, and what a
 * name in them means, is the parser's matter (nn/parse.c). */
#ifndef TUTTI_NN_BLOCKS_H
#define TUTTI_NN_BLOCKS_H

#include "base/text.h"

enum { TUTTI_BLOCK_PARAMETERS = 16 };

/* All words are in the net's text. */
typedef struct tutti_block {
    tutti_word name, head; /* head: the line that begins it */
    int parameter_count;
    struct {
        tutti_word name, value;
        bool has_value;
    } parameters[TUTTI_BLOCK_PARAMETERS];
    tutti_word *lines; /* those with a word */
    int line_count, line_room;
} tutti_block;

typedef struct tutti_blocks {
    tutti_block *list;
    int count, room;
} tutti_blocks;

/* What a line that uses a block says; words of that line. */
typedef struct tutti_block_use {
    const tutti_block *block;
    tutti_word values[TUTTI_BLOCK_PARAMETERS];
    tutti_word from; /* length 0: not said */
} tutti_block_use;

/* Reads a block whose word "block" was read, up to its end. */
tutti_status tutti_blocks_read(tutti_blocks *blocks, tutti_text *text) TUTTI_MUST_CHECK;
void tutti_blocks_deinit(tutti_blocks *blocks);

/* The block of that name, NULL if there is none. */
const tutti_block *tutti_blocks_find(const tutti_blocks *blocks, tutti_word name);

/* Reads what follows the block's name in a line that uses it. */
tutti_status tutti_block_use_read(tutti_block_use *out, const tutti_block *block,
                                  tutti_text *text) TUTTI_MUST_CHECK;

/* Line 'index' of the block with the values put in, as a text of its own. 'text' is the net's, for
 * messages. */
tutti_status tutti_block_use_line(tutti_text **out, const tutti_block_use *use,
                                  const tutti_text *text, int index) TUTTI_MUST_CHECK;

#endif
