/* The platforms that come with the library: platforms/NAME.platform, built into it. */
#ifndef TUTTI_PLAN_PLATFORMS_H
#define TUTTI_PLAN_PLATFORMS_H

typedef struct tutti_known_platform {
    const char *name, *text;
} tutti_known_platform;

extern const tutti_known_platform tutti_platforms[]; /* by name; ends with a NULL name */

#endif
