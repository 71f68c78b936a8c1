/* The simulated world's memory. Floats that would be computed with are one block for all ranks, for
 * their values do not matter; the engine's inboxes are apart from each other only where messages
 * with contents that matter arrive.
 *
 * The linker puts the functions named __wrap_* in the place of those they are named after. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <smpi/mpi.h>

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim.h"

#define FLOATS_BYTES  ((size_t)1 << 40) /* of address space */
#define INBOXES_BYTES ((size_t)1 << 44)
#define INBOX_MOST    ((size_t)1 << 30)
#define INBOX_OWN     ((size_t)512 << 10) /* not shared, at the beginning of each */
#define MATTERS       4096 /* bytes: larger messages in inboxes are floats, if not many records */

static void *reserve(size_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

tutti_status sim_world_init(sim_scenario *s)
{
    s->payload = SMPI_SHARED_MALLOC(SIM_PAYLOAD);
    s->floats = reserve(FLOATS_BYTES);
    s->inboxes = reserve(INBOXES_BYTES);
    s->inbox_file = memfd_create("inboxes", MFD_CLOEXEC);
    if (!s->payload || !s->floats || !s->inboxes || s->inbox_file < 0 ||
        ftruncate(s->inbox_file, INBOX_MOST))
        return tutti_fail(TUTTI_MEMORY, "no address space for the simulated memory");
    return TUTTI_OK;
}

void *sim_payload(const sim_scenario *s, const void *data, int bytes)
{
    const size_t in_floats = (size_t)((const char *)data - (const char *)s->floats);
    const size_t in_inboxes = (size_t)((const char *)data - s->inboxes);
    const int records = s->nodes / 2 * SIM_RECORD; /* the last round of gathering them */
    const bool is_small = bytes <= MATTERS || bytes <= records;
    const bool matters = in_floats >= FLOATS_BYTES && (in_inboxes >= INBOXES_BYTES || is_small);
    return matters ? (void *)(uintptr_t)data : s->payload;
}

/* Small messages between ranks have contents that matter (agreements); they use the beginning. */
void *sim_take_inbox(void *user, size_t bytes)
{
    const sim_rank *r = user;
    sim_scenario *s = r->scenario;
    const size_t whole = tutti_round_up(bytes, INBOX_OWN);
    char *inbox = s->inboxes + s->inboxes_used;
    if (whole > INBOX_MOST || s->inboxes_used + whole > INBOXES_BYTES) return NULL;
    s->inboxes_used += whole;
    if (whole > INBOX_OWN && mmap(inbox + INBOX_OWN, whole - INBOX_OWN, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, s->inbox_file, 0) == MAP_FAILED)
        return NULL;
    return inbox;
}

void sim_give_inbox(void *user, void *block, size_t bytes)
{
    (void)user;
    if (block) munmap(block, tutti_round_up(bytes, INBOX_OWN));
}

tutti_status __wrap_tutti_alloc_floats(float **out, size_t count);
tutti_status __wrap_tutti_alloc_floats(float **out, size_t count)
{
    *out = NULL;
    if (count > FLOATS_BYTES / sizeof **out)
        return tutti_fail(TUTTI_MEMORY, "%zu floats are more than the simulator has", count);
    *out = sim_self()->scenario->floats;
    return TUTTI_OK;
}

void __real_tutti_free(void *block);
void __wrap_tutti_free(void *block);
void __wrap_tutti_free(void *block)
{
    const sim_rank *r = sim_self();
    if (!r || block != r->scenario->floats) __real_tutti_free(block);
}
