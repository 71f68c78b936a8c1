/* "KIND:PLACE,PLACE,KEY=VALUE,...": how the command line names a data set. */
#ifndef TUTTI_DATA_SPEC_H
#define TUTTI_DATA_SPEC_H

#include <stdbool.h>
#include "base/status.h"

enum { TUTTI_SPEC_PLACES = 5, TUTTI_SPEC_KEYS = 24, TUTTI_SPEC_ASKED = 40 };

typedef struct tutti_spec {
    char *text; /* cut into the strings below */
    const char *kind;
    const char *place[TUTTI_SPEC_PLACES];
    int places;
    struct {
        const char *key, *value;
        bool used;
    } pair[TUTTI_SPEC_KEYS];
    int pairs;
    const char *asked[TUTTI_SPEC_ASKED]; /* keys this kind knows */
    int asks;
} tutti_spec;

tutti_status tutti_spec_init(tutti_spec *spec, const char *text) TUTTI_MUST_CHECK;
void tutti_spec_deinit(tutti_spec *spec);

/* The value of a key, NULL where it is not given. Asking makes the key known: tutti_spec_finish
 * fails for a key nobody asked for, and lists the known ones. */
const char *tutti_spec_value(tutti_spec *spec, const char *key);
tutti_status tutti_spec_finish(const tutti_spec *spec) TUTTI_MUST_CHECK;

/* Numbers: '*value' stays as it is where the key is not given. */
tutti_status tutti_spec_int(tutti_spec *spec, const char *key, int *value, int least,
                            int most) TUTTI_MUST_CHECK;
tutti_status tutti_spec_real(tutti_spec *spec, const char *key, double *value, double least,
                             double most) TUTTI_MUST_CHECK;
tutti_status tutti_spec_flag(tutti_spec *spec, const char *key, bool *value) TUTTI_MUST_CHECK;

/* The percentage of samples to hold out for testing: holdout=, or 10. It is refused where samples
 * to test on are given already: 'tests' says where they are, NULL that there are none. */
tutti_status tutti_spec_holdout(tutti_spec *spec, const char *tests, int *percent) TUTTI_MUST_CHECK;

/* Up to 'most' numbers "0.5/0.5/0.5"; *count stays as it is where the key is not given. */
tutti_status tutti_spec_reals(tutti_spec *spec, const char *key, float *values, int *count,
                              int most) TUTTI_MUST_CHECK;

#endif
