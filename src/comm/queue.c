#include "comm/queue.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The futex word is the atomic counter itself; the kernel compares and sleeps in one step. */
static long futex(tutti_bell *bell, int operation, uint32_t value, const struct timespec *timeout)
{
    const int where = bell->is_common ? 0 : FUTEX_PRIVATE_FLAG;
    return syscall(SYS_futex, &bell->rings, operation | where, value, timeout, NULL, 0);
}

void tutti_bell_ring(tutti_bell *bell)
{
    atomic_fetch_add(&bell->rings, 1);
    if (atomic_load(&bell->asleep)) futex(bell, FUTEX_WAKE, 1, NULL);
}

void tutti_bell_sleep(tutti_bell *bell, uint32_t ticket, double seconds)
{
    const struct timespec timeout = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    atomic_store(&bell->asleep, 1);
    if (atomic_load(&bell->rings) == ticket) futex(bell, FUTEX_WAIT, ticket, &timeout);
    atomic_store(&bell->asleep, 0);
}
