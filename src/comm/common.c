/* Common memory: one file without a name that all ranks of a host map.
 *
 *   | bells, standings, names | whole | own of rank 0 | own of rank 1 | ...
 *
 * Rank 0 makes it (memfd_create), the others open it through rank 0's entry in /proc, so nothing
 * is left behind however the job ends. Where that fails - ranks may not see each other's
 * processes - all ranks do without. A token proves that it is the right file: in another container
 * the same process number may belong to somebody else.
 *
 * Every part begins on a huge page. Most systems give huge pages to private memory only, unless a
 * program asks for them once there is something to collapse (MADV_COLLAPSE, Linux 6.1). */
#define _GNU_SOURCE
#include "comm/common.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/topology.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { LOOKS_WITH_A_CORE = 2000 }; /* some 50 microseconds */

/* What rank 0 tells about the file. */
typedef struct offer {
    int pid, fd; /* fd < 0: it could not make one */
    uint64_t token;
} offer;

/* --- the places in it --- */

static size_t round_to_page(size_t bytes)
{
    return tutti_round_up(bytes, TUTTI_HUGE_PAGE);
}

static size_t table_bytes(const tutti_comm *comm)
{
    const size_t ranks = (size_t)comm->size;
    return TUTTI_CACHE_LINE + ranks * sizeof(tutti_bell) +
           TUTTI_COMMON_EXCHANGES * (ranks * sizeof(tutti_standing) + TUTTI_NAME_BYTES);
}

static void lay_out(tutti_common *c, size_t whole, const size_t *own)
{
    c->bytes = round_to_page(table_bytes(c->comm)) + round_to_page(whole);
    for (int r = 0; r < c->comm->size; r++) c->bytes += round_to_page(own[r]);
}

static void set_addresses(tutti_common *c, size_t whole, const size_t *own)
{
    const size_t ranks = (size_t)c->comm->size;
    char *at = c->base + TUTTI_CACHE_LINE; /* after the token */
    c->bell = (tutti_bell *)(void *)at;
    at += ranks * sizeof *c->bell;
    c->standings = (tutti_standing *)(void *)at;
    at += TUTTI_COMMON_EXCHANGES * ranks * sizeof *c->standings;
    c->names = (char(*)[TUTTI_NAME_BYTES])(void *)at;
    c->whole = c->base + round_to_page(table_bytes(c->comm));
    c->own = c->whole + round_to_page(whole);
    for (int r = 0; r < c->comm->rank; r++) c->own += round_to_page(own[r]);
    c->whole_bytes = round_to_page(whole);
    c->own_bytes = round_to_page(own[c->comm->rank]);
}

/* --- the file --- */

static bool map(tutti_common *c, int fd)
{
    const size_t room = c->bytes + TUTTI_HUGE_PAGE;
    char *const all =
        mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return false;
    char *const base = (char *)tutti_round_up((size_t)all, TUTTI_HUGE_PAGE);
    if (base > all) munmap(all, (size_t)(base - all));
    if (base + c->bytes < all + room)
        munmap(base + c->bytes, (size_t)(all + room - base) - c->bytes);
    if (mmap(base, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(base, c->bytes);
        return false;
    }
    c->base = base;
    return true;
}

static uint64_t *token_of(const tutti_common *c)
{
    return (uint64_t *)(void *)c->base;
}

static offer make_file(tutti_common *c)
{
    const double now = tutti_now();
    offer mine = {.pid = (int)getpid(), .fd = memfd_create("tutti", MFD_CLOEXEC)};
    memcpy(&mine.token, &now, sizeof mine.token);
    mine.token = (mine.token * 0x9e3779b97f4a7c15u) ^ (uint64_t)mine.pid;
    if (mine.fd < 0) return mine;
    if (ftruncate(mine.fd, (off_t)c->bytes) == 0 && map(c, mine.fd)) {
        *token_of(c) = mine.token;
        return mine;
    }
    close(mine.fd);
    mine.fd = -1;
    return mine;
}

static bool open_file(tutti_common *c, const offer *theirs)
{
    char path[64];
    struct stat info;
    if (theirs->fd < 0) return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", theirs->pid, theirs->fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_it = fstat(fd, &info) == 0 && (size_t)info.st_size == c->bytes && map(c, fd) &&
                       *token_of(c) == theirs->token;
    close(fd);
    return is_it;
}

/* Only advice, as for private memory. */
static void ask_for_huge_pages(char *part, size_t bytes)
{
    const size_t whole_pages = bytes / TUTTI_HUGE_PAGE * TUTTI_HUGE_PAGE;
    if (!whole_pages) return;
    (void)madvise(part, whole_pages, MADV_HUGEPAGE);
    for (size_t at = 0; at < whole_pages; at += TUTTI_HUGE_PAGE) *(volatile char *)(part + at) = 0;
    (void)madvise(part, whole_pages, MADV_COLLAPSE);
}

/* --- creating --- */

static bool are_neighbours(const tutti_comm *comm)
{
    return comm->size > 1 && comm->local_size == comm->size && comm->has_thread;
}

/* What matters about the machine. */
typedef struct ground {
    bool is_one_node;
    bool has_cores; /* one for every thread that computes */
} ground;

static ground examine(const tutti_comm *comm)
{
    ground g = {false, false};
    tutti_topology *topology = NULL;
    if (tutti_topology_open(&topology) != TUTTI_OK) return g;
    const int threads = comm->compute_threads ? comm->compute_threads : 1;
    const int cores = tutti_topology_cores(topology);
    const bool is_bound = cores < tutti_topology_machine_cores(topology);
    g.has_cores = cores >= threads * (is_bound ? 1 : comm->local_size);
    g.is_one_node = tutti_topology_numa_nodes(topology) <= 1;
    tutti_topology_close(&topology);
    return g;
}

bool tutti_common_is_likely(const tutti_comm *comm)
{
    return are_neighbours(comm) && examine(comm).is_one_node;
}

static tutti_status all_say_yes(tutti_comm *comm, bool mine, bool *all)
{
    bool *said = NULL;
    TUTTI_TRY(tutti_alloc(&said, (size_t)comm->size, sizeof *said));
    const tutti_status s = tutti_comm_allgather(comm, &mine, sizeof mine, said);
    *all = s == TUTTI_OK;
    for (int r = 0; r < comm->size; r++) *all = *all && said[r];
    tutti_free(said);
    return s;
}

static void destroy(tutti_common *c)
{
    if (c->base) munmap(c->base, c->bytes);
    tutti_free(c);
}

/* Sets *shared if all ranks have mapped the file. */
static tutti_status share_file(tutti_common *c, size_t whole, const size_t *own, bool *shared)
{
    tutti_comm *const comm = c->comm;
    lay_out(c, whole, own);
    const ground g = examine(comm);
    bool fine = g.is_one_node;
    c->looks = g.has_cores ? LOOKS_WITH_A_CORE : 0;
    offer file = comm->rank == 0 ? make_file(c) : (offer){0};
    tutti_status s = tutti_comm_broadcast(comm, 0, &file, sizeof file);
    if (s == TUTTI_OK) {
        fine = fine && (comm->rank == 0 ? file.fd >= 0 : open_file(c, &file));
        s = all_say_yes(comm, fine, shared);
    }
    if (comm->rank == 0 && file.fd >= 0) close(file.fd);
    return s;
}

static tutti_status fill(tutti_common *c, size_t whole, const size_t *own)
{
    tutti_comm *const comm = c->comm;
    set_addresses(c, whole, own);
    c->bell[comm->rank].is_common = true;
    if (comm->rank == 0) ask_for_huge_pages(c->whole, round_to_page(whole));
    ask_for_huge_pages(c->own, round_to_page(own[comm->rank]));
    return tutti_comm_barrier(comm);
}

static tutti_status create(tutti_common *c, size_t whole, size_t own, bool *shared)
{
    size_t *owns = NULL;
    TUTTI_TRY(tutti_alloc(&owns, (size_t)c->comm->size, sizeof *owns));
    tutti_status s = tutti_comm_allgather(c->comm, &own, sizeof own, owns);
    if (s == TUTTI_OK) s = share_file(c, whole, owns, shared);
    if (s == TUTTI_OK && *shared) s = fill(c, whole, owns);
    tutti_free(owns);
    return s;
}

tutti_status tutti_common_create(tutti_common **out, tutti_comm *comm, size_t whole, size_t own)
{
    bool shared = false;
    *out = NULL;
    if (!are_neighbours(comm)) return TUTTI_OK;
    tutti_common *c = NULL;
    TUTTI_TRY(tutti_alloc(&c, 1, sizeof *c));
    c->comm = comm;
    const tutti_status s = create(c, whole, own, &shared);
    if (s == TUTTI_OK && shared) {
        c->older = comm->common;
        comm->common = *out = c;
        return TUTTI_OK;
    }
    destroy(c);
    return s;
}

void tutti_common_destroy_all(tutti_comm *comm)
{
    for (tutti_common *c; (c = comm->common);) {
        comm->common = c->older;
        destroy(c);
    }
}

/* A hole in the file is a hole for everybody: when all are here, rank 0 makes that of the whole. */
tutti_status tutti_common_release(tutti_common *c)
{
    if (!c) return TUTTI_OK;
    TUTTI_TRY(tutti_comm_barrier(c->comm));
    if (c->comm->rank == 0) (void)madvise(c->whole, c->whole_bytes, MADV_REMOVE);
    (void)madvise(c->own, c->own_bytes, MADV_REMOVE);
    return TUTTI_OK;
}

void *tutti_common_whole(const tutti_common *c)
{
    return c->whole;
}

void *tutti_common_own(const tutti_common *c)
{
    return c->own;
}
