/* How random nets are made: the maker's numbers and text (random_net.c), and a function for each
 * kind of layer (random_layers.c). */
#ifndef TUTTI_TESTS_RANDOM_MAKER_H
#define TUTTI_TESTS_RANDOM_MAKER_H

#include "random_net.h"

typedef struct maker {
    random_net *net;
    random_numbers numbers;
    double budget; /* multiply-adds that may still be spent on a sample */
    bool trains;   /* something has parameters that are not frozen */
    int frost;     /* one in that many layers is frozen; 0: none */
} maker;

/* ---- random_net.c ---- */

int below(maker *m, int bound);
bool one_in(maker *m, int n);

#define ONE_OF(m, list) (list)[below(m, (int)(sizeof(list) / sizeof *(list)))]

void say(maker *m, const char *format, ...);
random_layer *value_at(maker *m, int value);
int last_value(const maker *m);
int pixels(const random_layer *v);

/* Begins the line of a layer that reads 'from' first. */
random_layer *begin(maker *m, const char *kind, int from);
/* Ends it; the layer above need not be named. */
void end(maker *m, int from);

/* ---- random_layers.c ---- */

/* Each adds a layer that reads value 'from', or returns false if it does not fit. */
typedef bool random_maker(maker *m, int from);
extern random_maker *const random_makers[];
extern const int random_maker_count;

random_maker make_global_pool;
bool make_fc_of(maker *m, int from, int features);
void join(maker *m, const char *kind, const int *from, int count);

#endif
