/* What a client says to the page's server, as lines: method, path, host, token, since. Whatever it
 * says, without the token it gets 403, and with it nothing but the three things there are. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "watch/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char token[] = "0123456789abcdef";

static void check(const tutti_guard *guard, const tutti_request *r, bool may)
{
    tutti_answer answer = TUTTI_ANSWER_KINDS;
    const int status = tutti_answer_find(&answer, guard, r, 7);
    if (!may && status != 403) abort();
    if (status == 200 && answer >= TUTTI_ANSWER_KINDS) abort();
    if (status == 200 && (!r->path || strstr(r->path, ".."))) abort();
    if (status != 200 && status != 204 && status != 403 && status != 404 && status != 405) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *lines[5] = {NULL}, *at = text;
    tutti_guard asks, open;
    memcpy(text, data, size);
    text[size] = 0;
    for (int i = 0; i < 5 && at; i++) lines[i] = strsep(&at, "\n");
    const tutti_request r = {lines[0], lines[1], lines[2], lines[3], lines[4]};
    if (tutti_guard_init(&asks, token) || tutti_guard_init(&open, NULL)) abort();
    check(&asks, &r, r.token && !strcmp(r.token, token));
    const bool is_own =
        r.host && (!strncmp(r.host, "localhost", 9) || !strncmp(r.host, "127.0.0.1", 9) ||
                   !strncmp(r.host, "[::1]", 5));
    check(&open, &r, is_own);
    free(text);
    return 0;
}
