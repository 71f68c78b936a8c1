/* Functions whose bits must be the same on every machine of a cluster. The C library's do not
 * promise that: glibc has variants with and without FMA and picks one by processor. These are
 * short series of plain operations (contraction is off), good to a few units in the last place of
 * a double, which is far below the last place of the floats that are made from them. */
#ifndef TUTTI_BASE_SERIES_H
#define TUTTI_BASE_SERIES_H

double tutti_series_cos_pi(double x); /* cos(pi x), 0 <= x <= 1; exact at 0, 1/2 and 1 */
double tutti_series_log(double x);    /* natural logarithm, x > 0 */
double tutti_series_exp(double x);

#endif
