/* The nets that come with the library: models/NAME.net, built into it. */
#ifndef TUTTI_NN_ZOO_H
#define TUTTI_NN_ZOO_H

typedef struct tutti_zoo_net {
    const char *name, *text;
} tutti_zoo_net;

extern const tutti_zoo_net tutti_zoo[]; /* by name; ends with a NULL name */

#endif
