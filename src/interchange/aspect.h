/* How an operator of a graph sees what a layer computes. Reshape, Transpose, Split and the like
 * move nothing in a net: they only say in which order the next operator looks at values. A view
 * keeps that order, as the sizes of its dimensions and, for each dimension, the factors it is made
 * of: how many steps, and how far each step goes in the layer's output [channel][row][column]. A
 * channel shuffle is
 *
 *     [n, 6, h, w]              channels: 6 steps of h*w
 *     [n, 2, 3, h, w]           2 of 3*h*w; 3 of h*w
 *     [n, 3, 2, h, w]           3 of h*w; 2 of 3*h*w             (transposed)
 *     [n, 6, h, w]              channels: 3 of h*w times 2 of 3*h*w
 *
 * and whoever needs channels in order finds from the factors which layer makes them so. */
#ifndef TUTTI_INTERCHANGE_ASPECT_H
#define TUTTI_INTERCHANGE_ASPECT_H

#include <stdbool.h>
#include <stdint.h>

#include <tutti/net.h>

enum { TUTTI_ASPECT_DIMS = 8, TUTTI_ASPECT_FACTORS = 16 };

typedef struct tutti_aspect_factor {
    int64_t size, stride;
    int dim;
    bool samples; /* the samples of a minibatch: it has no stride, and is never divided */
} tutti_aspect_factor;

typedef struct tutti_aspect {
    int dims, factors;
    int64_t size[TUTTI_ASPECT_DIMS];
    tutti_aspect_factor factor[TUTTI_ASPECT_FACTORS];
    int64_t offset;
} tutti_aspect;

/* All of a layer's output: [samples, c, h, w], or with two dimensions [samples, c*h*w]. */
tutti_aspect tutti_aspect_of(int64_t samples, tutti_shape shape, int dims);

int64_t tutti_aspect_count(const tutti_aspect *view); /* values, of all samples */

/* The same values in the same order, with other dimensions, or in another order of dimensions, or
 * 'first' up to 'end' of a dimension. False, with the view unchanged, where no view can say it. */
bool tutti_aspect_reshape(tutti_aspect *view, int dims, const int64_t *size);
bool tutti_aspect_permute(tutti_aspect *view, const int64_t *order);
bool tutti_aspect_cut(tutti_aspect *view, int dim, int64_t first, int64_t end);

bool tutti_aspect_is_equal(const tutti_aspect *a, const tutti_aspect *b);

/* Does it begin with a dimension of its own for the samples? */
bool tutti_aspect_has_samples_first(const tutti_aspect *view);

/* Behind the samples, is it all 'count' values of the layer in their order? Are all there, in some
 * order? */
bool tutti_aspect_is_whole(const tutti_aspect *view, int64_t count);
bool tutti_aspect_is_complete(const tutti_aspect *view, int64_t count);

/* Is it [samples, c, h, w] as the layer has it? Is the dimension number 'dim' the channels, all in
 * order, and are the others behind the samples the pixels, all in order? */
bool tutti_aspect_is_image(const tutti_aspect *view, tutti_shape shape);
bool tutti_aspect_has_channels(const tutti_aspect *view, tutti_shape shape, int dim);

/* Are these dimensions (a set of bits) the pixels, all of them, and the others channels in order?
 * */
bool tutti_aspect_has_pixels(const tutti_aspect *view, tutti_shape shape, unsigned dims);

/* Where in the sample its values are, in its order: out[values of a sample]. Samples come first. */
void tutti_aspect_places(const tutti_aspect *view, int64_t *out);

#endif
