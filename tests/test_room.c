/* How much memory there is room for, on machines made of files. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "machine/room.h"
#include "scratch.h"

enum { MIB = 1 << 20 };

/* Writes a file and the folders on the way to it. */
static void put(const scratch *s, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->path, name);
    for (char *at = strchr(path + strlen(s->path) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static uint64_t host_room(const scratch *s)
{
    return tutti_room_find(s->path).host;
}

static void a_machine_without_limits(void **state)
{
    (void)state;
    scratch s;
    scratch_open(&s);
    assert_true(host_room(&s) == UINT64_MAX);
    put(&s, "proc/meminfo", "MemTotal: 99 kB\nMemAvailable:   2048 kB\nSwapFree: 1 kB\n");
    assert_int_equal(host_room(&s), 2 * MIB);
    put(&s, "proc/self/cgroup", "0::/user\n");
    put(&s, "sys/fs/cgroup/user/memory.max", "max\n");
    assert_int_equal(host_room(&s), 2 * MIB);
    scratch_close(&s);
}

static void control_groups_of_either_version(void **state)
{
    (void)state;
    scratch s;
    scratch_open(&s);
    put(&s, "proc/meminfo", "MemAvailable: 1000000 kB\n");
    put(&s, "proc/self/cgroup", "3:cpu:/x\n0::/job/step\n");
    put(&s, "sys/fs/cgroup/job/step/memory.max", "max\n");
    put(&s, "sys/fs/cgroup/job/memory.max", "10485760\n");
    put(&s, "sys/fs/cgroup/job/memory.current", "6291456\n");
    put(&s, "sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 1048576\n");
    assert_int_equal(host_room(&s), 5 * MIB);
    put(&s, "sys/fs/cgroup/job/memory.current", "99999999\n");
    assert_int_equal(host_room(&s), 0);
    put(&s, "proc/self/cgroup", "4:memory:/slurm\n0::/\n");
    put(&s, "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "4194304\n");
    put(&s, "sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "1048576\n");
    assert_int_equal(host_room(&s), 3 * MIB);
    put(&s, "proc/self/cgroup", "4:memory:/elsewhere/mounted\n");
    put(&s, "sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
    put(&s, "sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
    assert_int_equal(host_room(&s), 2 * MIB);
    put(&s, "proc/self/cgroup", "nonsense\n:\n4:memory\n");
    assert_int_equal(host_room(&s), 1000000u << 10);
    scratch_close(&s);
}

static void ranks_share_a_host(void **state)
{
    (void)state;
    assert_int_equal(tutti_room_of(&(tutti_room){12, UINT64_MAX}, 3), 4);
    assert_int_equal(tutti_room_of(&(tutti_room){12, 3}, 3), 3);
    assert_true(tutti_room_of(&(tutti_room){UINT64_MAX, UINT64_MAX}, 3) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_limits),
        cmocka_unit_test(control_groups_of_either_version),
        cmocka_unit_test(ranks_share_a_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
