/* Handlers run in one thread, so nothing here is locked. What is sent belongs to responses that
 * connections share: a thousand clients that take their time hold one copy. */
#define _GNU_SOURCE
#include "watch/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/log.h"
#include "base/memory.h"
#include "watch/showing.h"

enum {
    MOST_CONNECTIONS = 2000,
    OTHER_FILES = 64,
    CONNECTION_BYTES = 16 << 10, /* of headers */
    TIMEOUT_SECONDS = 30,        /* of a client that neither sends nor takes */
    TOKEN_BYTES = 16,
    TOKEN_TEXT = 2 * TOKEN_BYTES + 1
};

struct tutti_server {
    tutti_watch_options options;
    struct sockaddr_storage address;
    bool is_local;
    char made_token[TOKEN_TEXT];
    const char *token; /* NULL: none is needed */
    tutti_guard guard;
    tutti_showing *showing;
    struct MHD_Daemon *daemon;
    struct MHD_Response *kept[TUTTI_ANSWER_KINDS]; /* of generation */
    int64_t generation;
};

/* ---- answers ---- */

static const char *const types[TUTTI_ANSWER_KINDS] = {
    "text/html; charset=utf-8", "application/json", "text/plain; version=0.0.4; charset=utf-8"};

static void add_headers(struct MHD_Response *r, const char *type)
{
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "X-Frame-Options", "DENY");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
}

static enum MHD_Result send_word(struct MHD_Connection *c, unsigned status, const char *word)
{
    /* The text is a constant: it is not written to. */
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(word), (void *)(uintptr_t)word,
                                                             MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    add_headers(r, "text/plain");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(r, "Allow", "GET, HEAD");
    const enum MHD_Result sent = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return sent;
}

static void drop_kept(tutti_server *s)
{
    for (int i = 0; i < TUTTI_ANSWER_KINDS; i++) {
        if (s->kept[i]) MHD_destroy_response(s->kept[i]); /* connections keep theirs */
        s->kept[i] = NULL;
    }
}

static void free_bytes(void *bytes)
{
    tutti_free(bytes);
}

static struct MHD_Response *response_of(tutti_server *s, tutti_answer answer)
{
    tutti_string out = {0};
    if (s->kept[answer]) return s->kept[answer];
    if (tutti_showing_write(s->showing, answer, &out) == TUTTI_OK)
        s->kept[answer] =
            MHD_create_response_from_buffer_with_free_callback(out.length, out.data, free_bytes);
    if (s->kept[answer]) add_headers(s->kept[answer], types[answer]);
    else tutti_string_deinit(&out);
    return s->kept[answer];
}

static tutti_status look(tutti_server *s)
{
    TUTTI_TRY(tutti_showing_refresh(s->showing));
    const int64_t now = tutti_showing_generation(s->showing);
    if (now != s->generation) drop_kept(s);
    s->generation = now;
    return TUTTI_OK;
}

static enum MHD_Result answer(tutti_server *s, struct MHD_Connection *c, const char *path,
                              const char *method)
{
    static const char *const refusals[] = {"no: this needs ?token=..., as tutti watch printed it\n",
                                           "there is / and /data.json and /metrics\n",
                                           "this only reads\n"};
    const tutti_request request = {
        .method = method,
        .path = path,
        .host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
        .token = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token"),
        .since = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "since")};
    tutti_answer what = TUTTI_ANSWER_PAGE;
    int status = tutti_answer_find(&what, &s->guard, &request, -1);
    if (status == 403) return send_word(c, MHD_HTTP_FORBIDDEN, refusals[0]);
    if (status == 404) return send_word(c, MHD_HTTP_NOT_FOUND, refusals[1]);
    if (status == 405) return send_word(c, MHD_HTTP_METHOD_NOT_ALLOWED, refusals[2]);
    if (look(s) != TUTTI_OK)
        return send_word(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "the run cannot be read\n");
    status = tutti_answer_find(&what, &s->guard, &request, s->generation);
    if (status == 204) return send_word(c, MHD_HTTP_NO_CONTENT, "");
    struct MHD_Response *r = response_of(s, what);
    return r ? MHD_queue_response(c, MHD_HTTP_OK, r) : MHD_NO;
}

/* Called when the headers are there, for what follows them, and at the end; a body is not taken. */
static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **seen)
{
    static const char headers[] = "headers";
    (void)version, (void)body;
    if (!*seen) {
        *seen = (void *)(uintptr_t)headers;
        return MHD_YES;
    }
    if (!*body_bytes) return answer(user, c, path, method);
    *body_bytes = 0;
    return MHD_YES;
}

/* ---- opening ---- */

static bool is_loopback(const struct sockaddr_storage *a)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    return a->ss_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
                                   : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static tutti_status read_address(tutti_server *s)
{
    const char *text = s->options.bind ? s->options.bind : "127.0.0.1";
    struct sockaddr_in *v4 = (void *)&s->address;
    struct sockaddr_in6 *v6 = (void *)&s->address;
    const uint16_t port = htons((uint16_t)s->options.port);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = port;
    } else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = port;
    } else
        return tutti_fail(TUTTI_ARGUMENT,
                          "--bind %s is not an address such as 127.0.0.1 or 0.0.0.0", text);
    s->options.bind = text;
    s->is_local = is_loopback(&s->address);
    return TUTTI_OK;
}

static tutti_status make_token(tutti_server *s)
{
    unsigned char chance[TOKEN_BYTES];
    if (getrandom(chance, sizeof chance, 0) != sizeof chance)
        return tutti_fail(TUTTI_IO, "there is no chance to make a token from: give one, --token");
    for (int i = 0; i < TOKEN_BYTES; i++)
        snprintf(s->made_token + 2 * (size_t)i, 3, "%02x", chance[i]);
    s->token = s->made_token;
    return TUTTI_OK;
}

static tutti_status open_guard(tutti_server *s)
{
    s->token = s->options.token;
    if (!s->token && !s->is_local) TUTTI_TRY(make_token(s));
    return tutti_guard_init(&s->guard, s->token);
}

/* As many as the limit of open files allows, which may be raised. */
static unsigned most_connections(void)
{
    struct rlimit files = {0};
    const rlim_t wanted = MOST_CONNECTIONS + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &files)) return FD_SETSIZE - OTHER_FILES;
    if (files.rlim_cur < wanted) {
        files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &files)) getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur >= wanted) return MOST_CONNECTIONS;
    return files.rlim_cur > 2 * OTHER_FILES ? (unsigned)files.rlim_cur - OTHER_FILES : OTHER_FILES;
}

static tutti_status start(tutti_server *s, bool listens)
{
    const unsigned family = s->address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0u;
    const unsigned flags =
        listens ? MHD_USE_EPOLL_INTERNAL_THREAD | family : MHD_USE_NO_LISTEN_SOCKET;
    s->daemon = MHD_start_daemon(
        flags, (uint16_t)s->options.port, NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&s->address, MHD_OPTION_CONNECTION_LIMIT, most_connections(),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)TIMEOUT_SECONDS, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    if (s->daemon) return TUTTI_OK;
    return tutti_fail(TUTTI_IO,
                      "cannot serve at port %d of %s (%s): give another --port, or 0 for any that "
                      "is free",
                      s->options.port, s->options.bind, strerror(errno));
}

static tutti_status open_parts(tutti_server *s, bool listens)
{
    TUTTI_TRY(read_address(s));
    TUTTI_TRY(open_guard(s));
    TUTTI_TRY(tutti_showing_create(&s->showing, s->options.runs, s->options.count));
    TUTTI_TRY(tutti_showing_read_all(s->showing));
    return start(s, listens);
}

tutti_status tutti_server_open(tutti_server **out, const tutti_watch_options *options, bool listens)
{
    tutti_server *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    s->options = *options;
    const tutti_status status = open_parts(s, listens);
    if (status != TUTTI_OK) tutti_server_close(&s);
    *out = s;
    return status;
}

void tutti_server_close(tutti_server **server)
{
    tutti_server *s = *server;
    if (!s) return;
    if (s->daemon) MHD_stop_daemon(s->daemon);
    drop_kept(s);
    tutti_showing_destroy(&s->showing);
    tutti_free(s);
    *server = NULL;
}

void tutti_server_handle(tutti_server *s, int fd)
{
    struct sockaddr_in peer = {.sin_family = AF_INET};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (MHD_add_connection(s->daemon, fd, (struct sockaddr *)&peer, sizeof peer) != MHD_YES) return;
    for (int i = 0; i < 1000; i++) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        if (info && !info->num_connections) break;
        MHD_run(s->daemon);
    }
}

/* ---- where it is ---- */

static int port_of(const tutti_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info && info->port ? info->port : s->options.port;
}

void tutti_server_introduce(const tutti_server *s, FILE *out)
{
    char host[256] = "HOST";
    const bool v6 = s->address.ss_family == AF_INET6;
    const int port = port_of(s);
    if (gethostname(host, sizeof host - 1)) snprintf(host, sizeof host, "HOST");
    fprintf(out, "http://%s%s%s:%d/%s%s\n", v6 ? "[" : "", s->options.bind, v6 ? "]" : "", port,
            s->token ? "?token=" : "", s->token ? s->token : "");
    if (s->is_local)
        fprintf(out, "from elsewhere: ssh -L %d:%s:%d %s, then http://localhost:%d/%s%s\n", port,
                v6 ? "[::1]" : s->options.bind, port, host, port, s->token ? "?token=" : "",
                s->token ? s->token : "");
    fprintf(out, "for Prometheus: /metrics. Ctrl-C ends it; the run does not notice.\n");
    fflush(out);
}

/* ---- the whole ---- */

static void wait_for_the_end(void)
{
    sigset_t ends;
    int number;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    while (sigwait(&ends, &number) && errno == EINTR) continue;
}

tutti_status tutti_watch(const tutti_watch_options *options)
{
    tutti_server *s = NULL;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* in the server's thread, too */
    TUTTI_TRY(tutti_server_open(&s, options, true));
    if (options->show) tutti_server_introduce(s, options->show);
    wait_for_the_end();
    tutti_server_close(&s);
    return TUTTI_OK;
}
