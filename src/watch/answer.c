#include "watch/answer.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *path;
    tutti_answer answer;
} paths[] = {
    {"/", TUTTI_ANSWER_PAGE},
    {"/data.json", TUTTI_ANSWER_DATA},
    {"/metrics", TUTTI_ANSWER_METRICS},
};

tutti_status tutti_guard_init(tutti_guard *guard, const char *token)
{
    *guard = (tutti_guard){.asks = token != NULL};
    return token ? tutti_hash_bytes(guard->token, token, strlen(token)) : TUTTI_OK;
}

/* The hashes have one length, and all of it is compared. */
static bool has_token(const tutti_guard *guard, const char *token)
{
    char hash[TUTTI_HASH_HEX];
    volatile unsigned char differs = 0;
    if (!token) token = "";
    if (tutti_hash_bytes(hash, token, strlen(token)) != TUTTI_OK) return false;
    for (size_t i = 0; i < sizeof hash; i++)
        differs |= (unsigned char)((unsigned char)hash[i] ^ (unsigned char)guard->token[i]);
    return !differs;
}

/* Names that only this machine has, with any port. */
static bool is_own_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        if (strncmp(host, names[i], length) != 0) continue;
        if (!host[length]) return true;
        if (host[length] == ':' && !host[length + 1 + strspn(host + length + 1, "0123456789")])
            return true;
    }
    return false;
}

int tutti_answer_find(tutti_answer *answer, const tutti_guard *guard, const tutti_request *r,
                      int64_t generation)
{
    if (guard->asks ? !has_token(guard, r->token) : !is_own_name(r->host)) return 403;
    if (!r->method || (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0)) return 405;
    for (size_t i = 0; r->path && i < sizeof paths / sizeof *paths; i++) {
        if (strcmp(r->path, paths[i].path) != 0) continue;
        *answer = paths[i].answer;
        const bool knows =
            *answer == TUTTI_ANSWER_DATA && r->since && strtoll(r->since, NULL, 10) == generation;
        return knows ? 204 : 200;
    }
    return 404;
}
