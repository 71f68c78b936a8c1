#include "comm/transport.h"

#include <limits.h>
#ifdef TUTTI_SIMULATED /* by name: a compiler that is itself an MPI wrapper knows another mpi.h */
#include <smpi/mpi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "comm/process.h"

enum { NOTE_TAG = 1, NOTE_BYTES = 512 };

typedef struct note_out {
    MPI_Request request;
    char bytes[NOTE_BYTES];
} note_out;

struct tutti_transport {
    bool launched, finalize;
    int rank, size;
    MPI_Comm data, notes;
    MPI_Request *request; /* request[i] belongs to cookie[i]; the first 'count'
                           are under way */
    tutti_cookie *cookie, *finished;
    MPI_Status *status; /* MPICH's "ignore" is an address that gcc warns of */
    int *index;
    int count, capacity;
    note_out *outbox; /* one per rank, from the first note on */
    int error;        /* the first MPI error */
};

static void check(tutti_transport *t, int error)
{
    if (error != MPI_SUCCESS && t->error == MPI_SUCCESS) t->error = error;
}

static tutti_status check_level(bool own_thread)
{
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (!own_thread || level == MPI_THREAD_MULTIPLE) return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "this program has started MPI below MPI_THREAD_MULTIPLE: ask MPI for that "
                      "level (MPI_Init_thread), let Tutti start MPI, or do without its thread "
                      "(no_thread)");
}

static tutti_status start_mpi(tutti_transport *t, bool own_thread)
{
    int running = 0, over = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (over)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "MPI cannot start again in the same process: for more than one training "
                          "start it yourself (MPI_Init_thread, mpi4py) and hand over a "
                          "communicator");
    if (!running) {
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
            return tutti_fail(TUTTI_COMM, "MPI_Init_thread failed");
        t->finalize = true;
        return TUTTI_OK;
    }
    return check_level(own_thread);
}

/* The caller's communicator, as it lies in the caller's memory. */
static tutti_status take_comm(const tutti_transport_world *world, MPI_Comm *comm)
{
    int running = 0, over = 0, between = 0;
    if (world->mpi_comm_bytes != sizeof *comm)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "a communicator of %zu bytes is not one of %s, which this library was "
                          "built with (%zu bytes): build both with the same MPI",
                          world->mpi_comm_bytes, tutti_transport_library(), sizeof *comm);
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (!running || over)
        return tutti_fail(TUTTI_ARGUMENT, "a communicator was handed over, but MPI %s",
                          over ? "has ended already" : "was not started yet");
    memcpy(comm, world->mpi_comm, sizeof *comm);
    if (*comm == MPI_COMM_NULL)
        return tutti_fail(TUTTI_ARGUMENT, "the communicator is MPI_COMM_NULL: only ranks that "
                                          "are part of it may open it");
    if (MPI_Comm_test_inter(*comm, &between) || between)
        return tutti_fail(TUTTI_ARGUMENT, "the communicator is one between two groups");
    return check_level(world->own_thread);
}

static tutti_status join_job(tutti_transport *t, const tutti_transport_world *world)
{
    MPI_Comm all = MPI_COMM_WORLD;
    TUTTI_TRY(world->mpi_comm ? take_comm(world, &all) : start_mpi(t, world->own_thread));
    if (MPI_Comm_dup(all, &t->data) || MPI_Comm_dup(all, &t->notes))
        return tutti_fail(TUTTI_COMM, "MPI_Comm_dup failed");
    MPI_Comm_set_errhandler(t->data, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(t->notes, MPI_ERRORS_RETURN);
    MPI_Comm_rank(t->data, &t->rank);
    MPI_Comm_size(t->data, &t->size);
    return TUTTI_OK;
}

tutti_status tutti_transport_open(tutti_transport **out, const tutti_transport_world *world)
{
    tutti_transport *t = NULL;
    TUTTI_TRY(tutti_alloc(&t, 1, sizeof *t));
    t->size = 1;
    t->launched = world->launched || world->mpi_comm;
    t->data = t->notes = MPI_COMM_NULL;
    const tutti_status s = t->launched ? join_job(t, world) : TUTTI_OK;
    if (s != TUTTI_OK) tutti_transport_close(&t);
    *out = t;
    return s;
}

static void leave_job(tutti_transport *t)
{
    for (int i = 0; t->outbox && i < t->size; i++)
        if (t->outbox[i].request != MPI_REQUEST_NULL) MPI_Request_free(&t->outbox[i].request);
    if (t->data != MPI_COMM_NULL) MPI_Comm_free(&t->data);
    if (t->notes != MPI_COMM_NULL) MPI_Comm_free(&t->notes);
    if (t->finalize) MPI_Finalize();
}

void tutti_transport_close(tutti_transport **transport)
{
    tutti_transport *t = *transport;
    if (!t) return;
    if (t->launched) leave_job(t);
    tutti_free(t->outbox);
    tutti_free(t->request);
    tutti_free(t->cookie);
    tutti_free(t->finished);
    tutti_free(t->status);
    tutti_free(t->index);
    tutti_free(t);
    *transport = NULL;
}

_Noreturn void tutti_transport_abort(tutti_transport *t, int exit_code)
{
    tutti_process_end_soon(exit_code); /* where the launcher is out of reach, MPI_Abort hangs */
    if (t->launched) {
        tutti_process_end_launcher_soon();
        MPI_Abort(t->data, exit_code);
    }
    exit(exit_code);
}

int tutti_transport_rank(const tutti_transport *t)
{
    return t->rank;
}

int tutti_transport_size(const tutti_transport *t)
{
    return t->size;
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *tutti_transport_library(void)
{
#if defined(OMPI_MAJOR_VERSION)
    return "Open MPI " TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(
        OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
    return "Intel MPI " I_MPI_VERSION;
#elif defined(MPICH_VERSION)
    return "MPICH " MPICH_VERSION;
#else
    return "MPI";
#endif
}

const char *tutti_transport_launcher_hint(void)
{
#if defined(OMPI_MAJOR_VERSION)
    return "start it with Open MPI's mpirun (mpirun.openmpi) or srun --mpi=pmix";
#elif defined(I_MPI_VERSION)
    return "start it with Intel MPI's mpirun or srun --mpi=pmi2";
#elif defined(MPICH_VERSION)
    return "start it with MPICH's mpiexec (mpiexec.mpich) or srun --mpi=pmi2";
#else
    return "start it with the launcher of the MPI it was built with";
#endif
}

tutti_status tutti_transport_reserve(tutti_transport *t, int messages)
{
    if (messages <= t->capacity) return TUTTI_OK;
    MPI_Request *request = NULL;
    tutti_cookie *cookie = NULL, *finished = NULL;
    MPI_Status *status = NULL;
    int *index = NULL;
    tutti_status s;
    if ((s = tutti_alloc(&request, (size_t)messages, sizeof *request))) goto out;
    if ((s = tutti_alloc(&cookie, (size_t)messages, sizeof *cookie))) goto out;
    if ((s = tutti_alloc(&finished, (size_t)messages, sizeof *finished))) goto out;
    if ((s = tutti_alloc(&status, (size_t)messages, sizeof *status))) goto out;
    if ((s = tutti_alloc(&index, (size_t)messages, sizeof *index))) goto out;
    if (t->count) {
        memcpy(request, t->request, (size_t)t->count * sizeof *request);
        memcpy(cookie, t->cookie, (size_t)t->count * sizeof *cookie);
    }
#define SWAP(type, name)           \
    do {                           \
        type *const old = t->name; \
        t->name = name;            \
        name = old;                \
    } while (0)
    SWAP(MPI_Request, request);
    SWAP(tutti_cookie, cookie);
    SWAP(tutti_cookie, finished);
    SWAP(MPI_Status, status);
    SWAP(int, index);
#undef SWAP
    t->capacity = messages;
out: /* frees the old arrays, or the new ones after a failure */
    tutti_free(request);
    tutti_free(cookie);
    tutti_free(finished);
    tutti_free(status);
    tutti_free(index);
    return s;
}

static MPI_Request *next_request(tutti_transport *t, tutti_cookie cookie)
{
    TUTTI_ASSERT(t->count < t->capacity);
    t->cookie[t->count] = cookie;
    t->request[t->count] = MPI_REQUEST_NULL;
    return &t->request[t->count++];
}

void tutti_transport_send(tutti_transport *t, const void *data, size_t bytes, int peer, int tag,
                          tutti_cookie cookie)
{
    TUTTI_ASSERT(bytes <= INT_MAX);
    check(t, MPI_Isend(data, (int)bytes, MPI_BYTE, peer, tag, t->data, next_request(t, cookie)));
}

void tutti_transport_receive(tutti_transport *t, void *data, size_t bytes, int peer, int tag,
                             tutti_cookie cookie)
{
    TUTTI_ASSERT(bytes <= INT_MAX);
    check(t, MPI_Irecv(data, (int)bytes, MPI_BYTE, peer, tag, t->data, next_request(t, cookie)));
}

/* Closes the gaps that finished requests left, keeping the order. */
static void close_gaps(tutti_transport *t, int finished)
{
    for (int i = 0; i < finished; i++) {
        t->finished[i] = t->cookie[t->index[i]];
        t->cookie[t->index[i]].owner = NULL;
    }
    int kept = 0;
    for (int i = 0; i < t->count; i++) {
        if (!t->cookie[i].owner) continue;
        t->cookie[kept] = t->cookie[i];
        t->request[kept++] = t->request[i];
    }
    t->count = kept;
}

int tutti_transport_poll(tutti_transport *t, const tutti_cookie **finished, bool block)
{
    if (!t->count || t->error != MPI_SUCCESS) return 0;
    int done = 0;
    check(t,
          (block ? MPI_Waitsome : MPI_Testsome)(t->count, t->request, &done, t->index, t->status));
    if (done == MPI_UNDEFINED || t->error != MPI_SUCCESS) return 0;
    if (done) close_gaps(t, done);
    *finished = t->finished;
    return done;
}

int tutti_transport_under_way(const tutti_transport *t)
{
    return t->count;
}

tutti_cookie tutti_transport_pending(const tutti_transport *t, int index)
{
    return t->cookie[index];
}

tutti_status tutti_transport_status(const tutti_transport *t, char *text, size_t bytes)
{
    if (t->error == MPI_SUCCESS) return TUTTI_OK;
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(t->error, reason, &length);
    snprintf(text, bytes, "%.*s", length, reason);
    return TUTTI_COMM;
}

/* When a peer does not run, the last note to it is still on its way: then there is no point in
 * sending another. */
static bool is_free(note_out *out)
{
    int done = 1;
    if (out->request != MPI_REQUEST_NULL) MPI_Test(&out->request, &done, MPI_STATUS_IGNORE);
    return done;
}

static bool outbox_ready(tutti_transport *t)
{
    if (t->outbox) return true;
    if (tutti_alloc(&t->outbox, (size_t)t->size, sizeof *t->outbox) != TUTTI_OK) return false;
    for (int i = 0; i < t->size; i++) t->outbox[i].request = MPI_REQUEST_NULL;
    return true;
}

void tutti_transport_note_send(tutti_transport *t, const void *note, size_t bytes, int peer)
{
    TUTTI_ASSERT(bytes <= NOTE_BYTES);
    if (!t->launched || t->error || !outbox_ready(t) || !is_free(&t->outbox[peer])) return;
    memcpy(t->outbox[peer].bytes, note, bytes);
    check(t, MPI_Isend(t->outbox[peer].bytes, (int)bytes, MPI_BYTE, peer, NOTE_TAG, t->notes,
                       &t->outbox[peer].request));
}

bool tutti_transport_note_take(tutti_transport *t, void *note, size_t bytes, int *peer)
{
    if (!t->launched || t->error) return false;
    int waiting = 0;
    MPI_Status status;
    check(t, MPI_Iprobe(MPI_ANY_SOURCE, NOTE_TAG, t->notes, &waiting, &status));
    if (!waiting || t->error) return false;
    *peer = status.MPI_SOURCE;
    check(t, MPI_Recv(note, (int)bytes, MPI_BYTE, *peer, NOTE_TAG, t->notes, MPI_STATUS_IGNORE));
    return t->error == MPI_SUCCESS;
}
