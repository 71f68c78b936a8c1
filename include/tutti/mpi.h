/* The caller's own MPI communicator. The only header that needs <mpi.h>, which must be that of the
 * MPI Tutti was built with ('tutti --check-build' names it).
 *
 *     MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
 *     MPI_Comm_split(MPI_COMM_WORLD, colour, 0, &some);
 *     tutti_ranks_open_mpi(&ranks, some, NULL);
 *
 * Tutti duplicates the communicator, so its messages meet nobody else's, and leaves it and MPI as
 * they are. With a level below MPI_THREAD_MULTIPLE set no_thread in the options. */
#ifndef TUTTI_MPI_H
#define TUTTI_MPI_H

#include <mpi.h>

#include <tutti/ranks.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over the communicator, which is borrowed until the call returns. 'options' may be
 * NULL: the defaults. */
static inline tutti_status tutti_ranks_open_mpi(tutti_ranks **out, MPI_Comm comm,
                                                const tutti_ranks_options *options)
{
    tutti_ranks_options o = options ? *options : tutti_ranks_defaults();
    o.mpi_comm = &comm;
    o.mpi_comm_bytes = sizeof comm;
    return tutti_ranks_open(out, &o);
}

#ifdef __cplusplus
}
#endif
#endif
