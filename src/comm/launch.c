#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "comm/launch.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* The first variable that is set decides. */
static const struct {
    const char *variable, *launcher;
    bool is_size;
    const char *rank;
} signs[] = {
    {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", true, "OMPI_COMM_WORLD_RANK"},
    {"SMPI_GLOBAL_SIZE", "smpirun", true, NULL},
    {"PMI_SIZE", "an MPICH launcher", true, "PMI_RANK"},
    {"PMI_RANK", "a PMI launcher", false, "PMI_RANK"},
    {"PMIX_RANK", "a PMIx launcher", false, "PMIX_RANK"},
};

tutti_status tutti_launch_detect(tutti_launch *out, char *(*get)(const char *))
{
    *out = (tutti_launch){NULL, 1, -1};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *value = get(signs[i].variable);
        if (!value) continue;
        const char *rank = signs[i].rank ? get(signs[i].rank) : NULL;
        *out = (tutti_launch){signs[i].launcher, signs[i].is_size ? atoi(value) : 0,
                              rank ? atoi(rank) : -1};
        return TUTTI_OK;
    }
    const char *tasks = get("SLURM_STEP_NUM_TASKS");
    if (tasks && atoi(tasks) > 1)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "srun started %s tasks without MPI; each would train alone: use "
                          "srun --mpi=pmix (or pmi2; see srun --mpi=list)",
                          tasks);
    return TUTTI_OK;
}

double tutti_launch_grace(char *(*get)(const char *))
{
    if (!get("OMPI_COMM_WORLD_SIZE")) return 0;
    const char *seconds = get("OMPI_MCA_odls_base_sigkill_timeout");
    return seconds ? strtod(seconds, NULL) : 1;
}

/* --- build id --- */

static uint64_t fnv(const unsigned char *bytes, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t id_in_notes(const char *at, size_t bytes)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const size_t name = (note->n_namesz + 3u) & ~(size_t)3;
        const size_t size = sizeof *note + name + ((note->n_descsz + 3u) & ~(size_t)3);
        if (size > bytes) break;
        if (note->n_type == NT_GNU_BUILD_ID && !memcmp(note + 1, "GNU", 4))
            return fnv((const unsigned char *)(note + 1) + name, note->n_descsz);
        at += size;
        bytes -= size;
    }
    return 0;
}

static bool contains(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address - begin < segment->p_memsz) return true;
    }
    return false;
}

static int look_into(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    if (!contains(object, (uintptr_t)(void (*)(void))tutti_launch_build_id)) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE) continue;
        const uint64_t id =
            id_in_notes((const char *)(object->dlpi_addr + segment->p_vaddr), segment->p_memsz);
        if (id) *(uint64_t *)found = id;
    }
    return 1;
}

uint64_t tutti_launch_build_id(void)
{
    uint64_t id = 0;
    dl_iterate_phdr(look_into, &id);
    return id;
}
