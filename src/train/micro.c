/* How many samples of a rank are in memory at a time: as many as the user asks for; all of them, if
 * they fit into what is free; else the largest number that does, of those that make 2, 4, 8 ...
 * passes, for these keep the fewest partial gradients (nn/partials.h). All ranks take the least of
 * any. Bits do not depend on it. */
#include "train/run.h"

#include <stdio.h>

#include "base/log.h"
#include "base/memory.h"
#include "format/human.h"
#include "machine/room.h"
#include "nn/passes.h"

static bool has_checkpoints(const tutti_run *run)
{
    return run->options->run && !run->options->checkpoint_sync;
}

static tutti_status needed(const tutti_run *run, const tutti_stepper_options *stepper, int samples,
                           uint64_t *out)
{
    tutti_stepper_options o = *stepper;
    o.micro_batch = samples;
    return tutti_stepper_measure(&o, has_checkpoints(run), out);
}

/* Below 'samples' (0: any) the largest number that fits into 'room', or, if none does, the one that
 * takes least; *need is what that is. 0: there is nothing below. */
static tutti_status find_smaller(const tutti_run *run, const tutti_stepper_options *stepper,
                                 int samples, uint64_t room, int *out, uint64_t *need)
{
    const tutti_sharing sharing = {stepper->batch, stepper->grains, run->me.size, 0};
    const int least = tutti_passes_least(stepper->net, &sharing);
    const int share = tutti_ceil_div(stepper->batch, run->me.size);
    int at = least;
    if (!samples || samples > share) samples = share;
    while (2 * at < samples) at *= 2;
    *out = 0;
    *need = UINT64_MAX;
    for (; at >= least && at<samples && * need> room; at /= 2) {
        uint64_t bytes;
        TUTTI_TRY(needed(run, stepper, at, &bytes));
        if (bytes >= *need) continue;
        *need = bytes;
        *out = at;
    }
    return TUTTI_OK;
}

/* "--micro-batch 16 would take about 1.2 GiB": less than 'room', or what comes closest. */
static tutti_status advise(const tutti_run *run, const tutti_stepper_options *stepper,
                           uint64_t room, char *out, size_t size)
{
    uint64_t need = 0;
    int smaller;
    char bytes[32];
    TUTTI_TRY(find_smaller(run, stepper, stepper->micro_batch, room, &smaller, &need));
    tutti_format_bytes(bytes, (double)need);
    if (smaller && need <= room)
        snprintf(out, size, "--micro-batch %d would take about %s", smaller, bytes);
    else if (smaller)
        snprintf(out, size,
                 "even --micro-batch %d would take about %s: use a smaller --batch-size, or more "
                 "hosts",
                 smaller, bytes);
    else snprintf(out, size, "use a smaller --batch-size, or more hosts");
    return TUTTI_OK;
}

static tutti_status warn(const tutti_run *run, const tutti_stepper_options *stepper,
                         const char *wanted, const char *free)
{
    char advice[200];
    TUTTI_TRY(advise(run, stepper, run->room, advice, sizeof advice));
    tutti_warn(&run->log, "this takes about %s on a rank, but only %s are free: %s", wanted, free,
               advice);
    return TUTTI_OK;
}

/* What this rank would like. */
static tutti_status choose_alone(tutti_run *run, const tutti_stepper_options *stepper)
{
    const tutti_room found = tutti_room_find("");
    char wanted[32], free[32];
    uint64_t need, smaller_need = UINT64_MAX;
    int smaller = 0;
    run->room = tutti_room_of(&found, tutti_comm_local_size(run->me.comm));
    TUTTI_TRY(needed(run, stepper, stepper->micro_batch, &need));
    if (need <= run->room) return TUTTI_OK;
    tutti_format_bytes(wanted, (double)need);
    tutti_format_bytes(free, (double)run->room);
    if (!stepper->micro_batch)
        TUTTI_TRY(find_smaller(run, stepper, 0, run->room, &smaller, &smaller_need));
    if (smaller_need > run->room) TUTTI_TRY(warn(run, stepper, wanted, free));
    if (smaller_need >= need) return TUTTI_OK;
    run->micro_batch = smaller;
    snprintf(run->micro_note, sizeof run->micro_note,
             "all at once would take about %s, and %s are free", wanted, free);
    return TUTTI_OK;
}

/* Collective. 0, all samples, is the most. */
static tutti_status take_least(tutti_run *run)
{
    int *all = NULL;
    TUTTI_TRY(tutti_comm_agree(run->me.comm, tutti_alloc(&all, (size_t)run->me.size, sizeof *all)));
    const tutti_status s = tutti_comm_allgather(run->me.comm, &run->micro_batch, sizeof *all, all);
    for (int r = 0; s == TUTTI_OK && r < run->me.size; r++)
        if (all[r] && (!run->micro_batch || all[r] < run->micro_batch)) run->micro_batch = all[r];
    tutti_free(all);
    return s;
}

tutti_status tutti_run_choose_micro_batch(tutti_run *run, const tutti_stepper_options *stepper)
{
    tutti_comm *comm = run->me.comm;
    run->micro_batch = stepper->micro_batch;
    TUTTI_TRY(tutti_comm_agree(comm, choose_alone(run, stepper)));
    if (stepper->micro_batch) return TUTTI_OK;
    return take_least(run);
}

/* What was found to be free was not enough, or a little too optimistic. */
static tutti_status advise_after(const tutti_run *run, char *out, size_t size)
{
    tutti_stepper_options o = tutti_run_stepper_options(run, false);
    uint64_t need;
    o.micro_batch = run->micro_batch;
    TUTTI_TRY(needed(run, &o, o.micro_batch, &need));
    const uint64_t less = need / 5 * 4;
    return advise(run, &o, less < run->room ? less : run->room, out, size);
}

tutti_status tutti_run_advise_memory(tutti_run *run, tutti_status status)
{
    char sentence[400], advice[200];
    const bool is_peer = status == TUTTI_PEER && tutti_comm_failure(run->me.comm) == TUTTI_MEMORY;
    if (!run->room || (status != TUTTI_MEMORY && !is_peer)) return status;
    snprintf(sentence, sizeof sentence, "%s", tutti_message());
    if (advise_after(run, advice, sizeof advice) != TUTTI_OK) *advice = 0;
    const char *join = *advice ? "; " : "";
    return is_peer ? tutti_fail_peer(TUTTI_MEMORY, "%s%s%s", sentence, join, advice)
                   : tutti_fail(TUTTI_MEMORY, "%s%s%s", sentence, join, advice);
}
