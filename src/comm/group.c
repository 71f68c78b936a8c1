#include "base/memory.h"
#include "comm/exchange.h"

static tutti_status create(tutti_group **out, int size, int rank, int first, int stride)
{
    tutti_group *group = NULL;
    TUTTI_TRY(tutti_alloc(&group, 1, sizeof *group));
    group->size = size;
    group->rank = rank;
    const tutti_status s = tutti_alloc(&group->members, (size_t)size, sizeof *group->members);
    for (int i = 0; s == TUTTI_OK && i < size; i++) group->members[i] = first + i * stride;
    if (s != TUTTI_OK) tutti_group_destroy(&group);
    *out = group;
    return s;
}

static tutti_status check_divides(int groups, int size)
{
    if (groups >= 1 && size % groups == 0) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT,
                      "%d groups do not divide %d ranks evenly: take a divisor of %d", groups, size,
                      size);
}

tutti_status tutti_group_create_all(tutti_group **out, int rank, int size)
{
    return create(out, size, rank, 0, 1);
}

tutti_status tutti_group_create_inside(tutti_group **out, tutti_comm *comm, int groups)
{
    TUTTI_TRY(check_divides(groups, comm->size));
    const int each = comm->size / groups;
    return create(out, each, comm->rank % each, comm->rank / each * each, 1);
}

tutti_status tutti_group_create_across(tutti_group **out, tutti_comm *comm, int groups)
{
    TUTTI_TRY(check_divides(groups, comm->size));
    const int each = comm->size / groups;
    return create(out, groups, comm->rank / each, comm->rank % each, each);
}

void tutti_group_destroy(tutti_group **group)
{
    if (!*group) return;
    tutti_free((*group)->members);
    tutti_free(*group);
    *group = NULL;
}

int tutti_group_rank(const tutti_group *group)
{
    return group->rank;
}

int tutti_group_size(const tutti_group *group)
{
    return group->size;
}
