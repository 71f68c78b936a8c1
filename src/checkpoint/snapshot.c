#include "checkpoint/snapshot.h"

#include "base/memory.h"

typedef struct piece {
    int64_t first, count;
    size_t at; /* in the memory, in floats */
} piece;

struct tutti_snapshot {
    piece *pieces[TUTTI_PARTS]; /* by tensor */
    int counts[TUTTI_PARTS];
    float *memory;
};

tutti_status tutti_snapshot_create(tutti_snapshot **out, const int counts[TUTTI_PARTS])
{
    tutti_snapshot *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    tutti_status status = TUTTI_OK;
    for (int p = 0; p < TUTTI_PARTS && status == TUTTI_OK; p++) {
        s->counts[p] = counts[p];
        status = tutti_alloc(&s->pieces[p], (size_t)counts[p] + 1, sizeof *s->pieces[p]);
    }
    if (status == TUTTI_OK) *out = s;
    else tutti_snapshot_destroy(&s);
    return status;
}

void tutti_snapshot_destroy(tutti_snapshot **snapshot)
{
    if (!*snapshot) return;
    for (int p = 0; p < TUTTI_PARTS; p++) tutti_free((*snapshot)->pieces[p]);
    tutti_free((*snapshot)->memory);
    tutti_free(*snapshot);
    *snapshot = NULL;
}

void tutti_snapshot_add(tutti_snapshot *s, tutti_checkpoint_part part, int tensor, int64_t first,
                        int64_t count)
{
    TUTTI_ASSERT(!s->memory && tensor < s->counts[part]);
    s->pieces[part][tensor] = (piece){.first = first, .count = count};
}

tutti_status tutti_snapshot_take_memory(tutti_snapshot *s)
{
    size_t floats = 0;
    for (int p = 0; p < TUTTI_PARTS; p++)
        for (int t = 0; t < s->counts[p]; t++) {
            s->pieces[p][t].at = floats;
            floats += (size_t)s->pieces[p][t].count;
        }
    if (tutti_alloc(&s->memory, floats + 1, sizeof *s->memory) == TUTTI_OK) return TUTTI_OK;
    return tutti_fail(TUTTI_MEMORY,
                      "%s for the copy that a checkpoint is written from: --checkpoint-sync needs "
                      "none",
                      tutti_message());
}

float *tutti_snapshot_place(const tutti_snapshot *s, tutti_checkpoint_part part, int tensor,
                            int64_t element)
{
    const piece *p = &s->pieces[part][tensor];
    TUTTI_ASSERT(element >= p->first && element < p->first + p->count);
    return s->memory + p->at + (element - p->first);
}

tutti_status tutti_snapshot_write(const tutti_snapshot *s, tutti_checkpoint *checkpoint)
{
    for (int part = 0; part < TUTTI_PARTS; part++)
        for (int t = 0; t < s->counts[part]; t++) {
            const piece *p = &s->pieces[part][t];
            if (p->count)
                TUTTI_TRY(tutti_checkpoint_write(checkpoint, (tutti_checkpoint_part)part, t,
                                                 p->first, s->memory + p->at, p->count));
        }
    return TUTTI_OK;
}
