/* What a model's file tells about itself, in the metadata of its header, text by name: the net, the
 * classes, how a sample is made. Enough to ask it about pictures when nothing else is at hand.
 *
 *   net, net_text          the net's name and its text
 *   classes                ["bag","boot"], in the order of the outputs
 *   mean, std              [0.286],[0.353]: of each channel, or of each number of a frame
 *   picture                {"channels":1,"height":28,"width":28,"zoom":0}; only of pictures
 *   input                  1x28x28
 *   precision, arithmetic  fp32 or bf16, and the version of the arithmetic that made the weights
 *   conv                   the algorithm of convolutions whose text names none
 *
 * The texts are a function of the run alone. */
#ifndef TUTTI_TRAIN_ABOUT_H
#define TUTTI_TRAIN_ABOUT_H

#include "data/data.h"
#include "format/safetensors.h"
#include "nn/net.h"
#include "train/settings.h"

enum { TUTTI_ABOUT_MOST = 12 };

/* The texts that a model's file is to carry. */
typedef struct tutti_about_texts {
    tutti_fact list[TUTTI_ABOUT_MOST]; /* owns the values */
    int count;
} tutti_about_texts;

tutti_status tutti_about_texts_init(tutti_about_texts *out, const tutti_net *net,
                                    const tutti_settings *settings,
                                    const tutti_data *data) TUTTI_MUST_CHECK;
void tutti_about_texts_deinit(tutti_about_texts *texts); /* all zero is fine; leaves it so */

/* What was read; everything belongs to the handle. */
typedef struct tutti_about {
    const char *net, *net_text, *conv, *precision;
    const char **classes;
    int class_count;
    tutti_normalisation normalise;
    tutti_manner manner;
    struct json_t *lists[3]; /* own the texts */
    float *numbers;
    tutti_safetensors *file;
} tutti_about;

/* Reads what the file at 'path' tells; *out is NULL if it is not one of ours. What cannot be
 * understood is TUTTI_CHECKPOINT and names the file. */
tutti_status tutti_about_open(tutti_about **out, const char *path) TUTTI_MUST_CHECK;
void tutti_about_close(tutti_about **about);

#endif
