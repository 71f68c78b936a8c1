/* Bytes at the socket of the page's server: whatever they are, it answers with nothing, or with
 * HTTP; the page goes only to who has the token; and no file of the machine ever does. */
#define _GNU_SOURCE
#include "in_memory.h"

#include <sys/socket.h>

#include "watch/serve.h"

static const char token[] = "0123456789abcdef", secret[] = "this is in a file beside the run";
static tutti_server *server;

static void close_server(void)
{
    tutti_server_close(&server);
}

static void open_server(void)
{
    const int metrics = make_file("metrics.jsonl"), beside = make_file("secret");
    const char *run = folder.path;
    const tutti_watch_options o = {.runs = &run, .count = 1, .token = token};
    set_content(metrics, "{}\n", 3);
    set_content(beside, secret, sizeof secret);
    if (tutti_server_open(&server, &o, false)) abort();
    atexit(close_server);
}

/* Only whole pages are in question here: the first bytes of an answer. */
static void check(const char *answer, ssize_t length, bool has_token)
{
    if (length <= 0) return;
    if (strncmp(answer, "HTTP/1.", 7) != 0) abort();
    if (!has_token && !strncmp(answer + 8, " 200", 4)) abort();
    if (memmem(answer, (size_t)length, secret, sizeof secret - 1)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 15 };
    static char answer[MOST];
    int ends[2];
    if (!server) open_server();
    if (size > MOST || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return 0;
    if (send(ends[0], data, size, MSG_NOSIGNAL) != (ssize_t)size) abort();
    shutdown(ends[0], SHUT_WR);
    tutti_server_handle(server, ends[1]);
    const ssize_t length = recv(ends[0], answer, sizeof answer, MSG_DONTWAIT);
    /* the token may be spelt with %-signs, too */
    check(answer, length, memmem(data, size, token, sizeof token - 1) || memchr(data, '%', size));
    close(ends[0]);
    return 0;
}
