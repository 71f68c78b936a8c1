/* The platforms that came with the library: platforms/NAME.platform, made part of it when it is
 * built. */
#ifndef TUTTI_PLAN_PLATFORMS_H
#define TUTTI_PLAN_PLATFORMS_H

typedef struct tutti_known_platform {
    const char *name, *text;
} tutti_known_platform;

extern const tutti_known_platform tutti_platforms[]; /* by name; ends with a NULL name */

#endif
