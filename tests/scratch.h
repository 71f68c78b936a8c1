/* A directory of a test's own, removed with all that is in it. */
#ifndef TUTTI_TESTS_SCRATCH_H
#define TUTTI_TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct scratch {
    char path[256];
} scratch;

static inline void scratch_open(scratch *s)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(s->path, sizeof s->path, "%s/tutti-test-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(s->path)) abort();
}

static inline int scratch_remove_one(const char *path, const struct stat *info, int type,
                                     struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static inline void scratch_close(scratch *s)
{
    nftw(s->path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of a file in it, in one of a few buffers that are used in turn. */
static inline const char *scratch_file(const scratch *s, const char *name)
{
    static char paths[8][512];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", s->path, name);
    return path;
}

/* A cmocka test whose state is a fresh scratch. */
static inline int scratch_set_up(void **state)
{
    static scratch s;
    scratch_open(&s);
    *state = &s;
    return 0;
}

static inline int scratch_tear_down(void **state)
{
    scratch_close(*state);
    return 0;
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, scratch_set_up, scratch_tear_down)

#endif
