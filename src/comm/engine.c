/* The engine.
 *
 * An exchange is cut into chunks; a chunk is the same piece of every strip. Each chunk goes through
 * the chain on its own: part-reduce, then (gate open, in order) update and part-broadcast. A chunk
 * under way occupies a slot, which owns the memory messages arrive in; a chunk that waits for its
 * gate occupies none, because its sum is already in the partial buffer.
 *
 * A free slot goes to the most urgent exchange that has a chunk to post. Urgency alone could
 * deadlock: rank A fills its slots with chunks of X, B with chunks of Y, and each waits for the
 * other. So what the compute thread waits for has slots of its own, some for each stage. Ranks run
 * the same program. Of all the exchanges that ranks wait for, take the earliest in program order:
 * each member has been through that wait, so it is done there; or waits for it, too; or still
 * computes, and will come. Of its chunks, take the first that is not through a stage everywhere:
 * whoever has not posted it has nothing else of that stage under way, so there is a slot for it,
 * and it goes through.
 *
 * A jam short of a deadlock costs time all the same: ranks have filled their slots with chunks of
 * different exchanges. So the most urgent exchange does not wait for a slot: its first chunk gets
 * an extra one; and so does the first chunk of any that has waited for longer than a chunk usually
 * takes. Then every exchange under way somewhere is soon under way everywhere.
 *
 * While an exchange is under way whose caller waits at once (a move of activations, an agreement),
 * nothing else is posted: it gets all of the wire.
 *
 * Messages need no handshake: between two ranks, those of one exchange and stage carry one tag and
 * are posted in chunk order on both sides, and MPI does not let them overtake each other. */
#include "comm/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"

enum { LANE_ALL, LANE_AWAITED, LANE_BESIDE = LANE_AWAITED + TUTTI_STAGES };

#define PATIENCE          4 /* times as long as a chunk usually takes */
#define SHORTEST_PATIENCE 0.2e-3

double tutti_engine_now(const tutti_engine *e)
{
    return e->world.now ? e->world.now(e->world.user) : tutti_now();
}

tutti_status tutti_engine_init(tutti_engine *e, int budget, const tutti_comm_world *world)
{
    if (world) e->world = *world;
    const int most = TUTTI_MAX_SLOTS / TUTTI_LANES;
    e->budget = budget < most ? budget : most;
    return tutti_kernels_choose(&e->kernels);
}

static void inbox_free(tutti_engine *e, tutti_slot *s)
{
    if (e->world.give_memory) e->world.give_memory(e->world.user, s->inbox, s->inbox_bytes);
    else tutti_free(s->inbox);
    s->inbox = NULL;
    s->inbox_bytes = 0;
}

static tutti_status inbox_alloc(tutti_engine *e, tutti_slot *s, size_t bytes)
{
    inbox_free(e, s);
    if (e->world.take_memory) {
        s->inbox = e->world.take_memory(e->world.user, bytes);
        if (!s->inbox)
            return tutti_fail(TUTTI_MEMORY, "no memory for an inbox of %zu bytes", bytes);
    } else {
        TUTTI_TRY(tutti_alloc(&s->inbox, bytes, 1));
    }
    s->inbox_bytes = bytes;
    return TUTTI_OK;
}

void tutti_engine_deinit(tutti_engine *e)
{
    for (int i = 0; i < TUTTI_MAX_SLOTS; i++) {
        if (e->slot[i].inbox) inbox_free(e, &e->slot[i]);
        tutti_free(e->slot[i].here);
    }
}

void tutti_engine_fail(tutti_engine *e, tutti_status status, const char *sentence)
{
    if (atomic_load(&e->failed)) return;
    e->failure = status;
    snprintf(e->sentence, sizeof e->sentence, "%s", sentence);
    atomic_store(&e->failed, true);
    tutti_bell_ring(&e->finished);
}

static bool has_failed(const tutti_engine *e)
{
    return atomic_load_explicit(&e->failed, memory_order_relaxed);
}

/* --- room for an exchange --- */

static size_t inbox_bytes(const tutti_exchange *x)
{
    const size_t reduce = x->reduce ? x->reduce->inbox(x) : 0;
    const size_t broadcast = x->broadcast ? x->broadcast->inbox(x) : 0;
    return reduce > broadcast ? reduce : broadcast;
}

static tutti_status fit_slot(tutti_engine *e, tutti_slot *s, const tutti_exchange *x)
{
    if (x->root_count > s->here_count) {
        tutti_free(s->here);
        s->here_count = 0;
        TUTTI_TRY(tutti_alloc(&s->here, (size_t)x->root_count, sizeof *s->here));
        s->here_count = x->root_count;
    }
    const size_t bytes = inbox_bytes(x);
    return bytes > s->inbox_bytes ? inbox_alloc(e, s, bytes) : TUTTI_OK;
}

/* Grows what is free now; a busy slot grows when it is next taken. */
static tutti_status prepare(tutti_engine *e, const tutti_exchange *x)
{
    const int roots = x->reduce ? x->max_roots : 1;
    const int per_slot = 2 * (TUTTI_WINDOW + roots);
    TUTTI_TRY(tutti_transport_reserve(e->transport, TUTTI_MAX_SLOTS * per_slot));
    for (int i = 0; i < LANE_BESIDE * e->budget; i++)
        if (!e->slot[i].x) TUTTI_TRY(fit_slot(e, &e->slot[i], x));
    return TUTTI_OK;
}

/* --- commands --- */

static void insert_by_urgency(tutti_engine *e, tutti_exchange *x)
{
    tutti_exchange **at = &e->active;
    while (*at && (*at)->priority <= x->priority) at = &(*at)->next;
    x->next = *at;
    *at = x;
}

static void remove_active(tutti_engine *e, const tutti_exchange *x)
{
    tutti_exchange **at = &e->active;
    while (*at != x) at = &(*at)->next;
    *at = x->next;
}

static bool has_second_stage(const tutti_exchange *x)
{
    return x->broadcast || x->update;
}

static void finish_if_done(tutti_engine *e, tutti_exchange *x)
{
    if (x->reduce && x->summed_count < x->chunks) return;
    if (has_second_stage(x) && x->broadcast_done < x->chunks) return;
    if (x->gated && !x->gate_open) return; /* even an empty exchange has a gate */
    remove_active(e, x);
    e->exclusive -= x->exclusive;
    x->stats.done = tutti_engine_now(e);
    x->stats.total_busy += x->stats.done - x->stats.begun;
    x->stats.runs++;
    atomic_fetch_add_explicit(&x->done, 1, memory_order_release);
    tutti_bell_ring(&e->finished); /* from here on x is the compute thread's */
}

static void start(tutti_engine *e, tutti_exchange *x)
{
    for (int i = 0; i < x->chunks; i++) x->summed[i] = false;
    x->reduce_posted = x->summed_count = x->broadcast_posted = x->broadcast_done = 0;
    x->gate_open = !x->gated;
    x->stats.begun = x->stats.reduced = tutti_engine_now(e);
    x->last[TUTTI_STAGE_REDUCE] = x->last[TUTTI_STAGE_BROADCAST] = x->stats.begun;
    snprintf(e->last_name, sizeof e->last_name, "%s", x->name);
    e->last_start = x->stats.begun;
    insert_by_urgency(e, x);
    e->exclusive += x->exclusive;
    finish_if_done(e, x);
}

static void open_gate(tutti_engine *e, tutti_exchange *x)
{
    x->gate_open = true;
    x->last[TUTTI_STAGE_BROADCAST] = tutti_engine_now(e);
    finish_if_done(e, x);
}

static void obey(tutti_engine *e, tutti_command command)
{
    tutti_exchange *const x = command.exchange;
    switch (command.kind) {
    case TUTTI_COMMAND_PREPARE:
        x->prepare_status = prepare(e, x);
        atomic_store(&x->prepared, 1);
        tutti_bell_ring(&e->finished);
        break;
    case TUTTI_COMMAND_START:
        if (!has_failed(e)) start(e, x); /* after a failure nobody waits for it */
        break;
    case TUTTI_COMMAND_GATE:
        if (!has_failed(e)) open_gate(e, x);
        break;
    case TUTTI_COMMAND_STOP: e->stopping = true; break;
    case TUTTI_COMMAND_ABORT: tutti_transport_abort(e->transport, e->exit_code);
    }
}

/* --- chunks --- */

tutti_range tutti_chunk_of(const size_t *cuts, size_t piece, int member, int chunk)
{
    const size_t begin = cuts[member] + (size_t)chunk * piece;
    const size_t stop = cuts[member + 1];
    if (begin >= stop) return (tutti_range){stop, stop};
    return (tutti_range){begin, stop - begin < piece ? stop : begin + piece};
}

static int tag_of(const tutti_slot *s)
{
    return 2 * s->x->id + (s->stage == TUTTI_STAGE_BROADCAST);
}

void tutti_slot_send(tutti_engine *e, tutti_slot *s, const void *data, size_t bytes, int member)
{
    if (!bytes) return;
    const int peer = s->x->rank[member];
    tutti_transport_send(e->transport, data, bytes, peer, tag_of(s), (tutti_cookie){s, -1, peer});
    s->x->stats.bytes_sent += bytes;
    s->pending++;
    s->sends++;
}

void tutti_slot_receive(tutti_engine *e, tutti_slot *s, void *data, size_t bytes, int member,
                        int message)
{
    if (!bytes) return;
    const int peer = s->x->rank[member];
    tutti_transport_receive(e->transport, data, bytes, peer, tag_of(s),
                            (tutti_cookie){s, message, peer});
    s->x->stats.bytes_received += bytes;
    s->pending++;
    s->receives++;
}

void tutti_engine_add(tutti_engine *e, float *sum, const float *a, const float *b, size_t count)
{
    if (e->world.add) e->world.add(e->world.user, count);
    else tutti_add((tutti_exec){e->kernels, NULL}, count, a, b, false, sum);
}

void tutti_engine_copy(tutti_engine *e, void *to, const void *from, size_t bytes)
{
    if (e->world.copy) e->world.copy(e->world.user, to, from, bytes);
    else memcpy(to, from, bytes);
}

/* A chunk that took much longer than usual was held up: it hardly counts. */
static void note_through(tutti_engine *e, const tutti_slot *s)
{
    s->x->last[s->stage] = tutti_engine_now(e);
    const double took = s->x->last[s->stage] - s->begun;
    e->usual += (fmin(took, 2 * e->usual + SHORTEST_PATIENCE) - e->usual) / 8;
}

static void chunk_through(tutti_engine *e, tutti_slot *s)
{
    tutti_exchange *const x = s->x;
    if (s->stage == TUTTI_STAGE_REDUCE) {
        x->summed[s->chunk] = true;
        if (++x->summed_count == x->chunks) x->stats.reduced = tutti_engine_now(e);
    } else {
        x->broadcast_done++;
    }
    x->in_flight[s->stage]--;
    note_through(e, s);
    e->used[s->lane]--;
    s->x = NULL;
    finish_if_done(e, x);
}

static void round_through(tutti_engine *e, tutti_slot *s)
{
    while (!s->pending)
        if (!s->algorithm || !s->algorithm->next_round || !s->algorithm->next_round(e, s)) {
            chunk_through(e, s);
            return;
        }
}

/* Hands the finished sum of a chunk to its owner's update, or to where it will be sent from. */
static void update(tutti_exchange *x, int chunk)
{
    if (!x->reduce) return;
    const tutti_range own = tutti_chunk_of(x->cuts, x->piece, x->me, chunk);
    if (own.begin == own.end) return;
    const float *sum = x->partials[0] + own.begin;
    float *const whole = (float *)(void *)x->whole;
    if (x->update) x->update(x->user, sum, NULL, own.begin, own.end);
    else if (whole + own.begin != sum)
        memcpy(whole + own.begin, sum, tutti_range_length(own) * sizeof *sum);
}

/* Algorithms of several rounds have one chunk under way: the rounds of two could get mixed up. A
 * chunk that has not posted all of its messages would be overtaken. */
static bool may_post(const tutti_exchange *x, tutti_stage stage)
{
    const bool reduces = stage == TUTTI_STAGE_REDUCE;
    const tutti_algorithm *algorithm = reduces ? x->reduce : x->broadcast;
    if (algorithm && algorithm->next_round && x->in_flight[stage]) return false;
    if (x->unposted[stage]) return false;
    if (reduces) return x->reduce && x->reduce_posted < x->chunks;
    return has_second_stage(x) && x->gate_open && x->broadcast_posted < x->chunks &&
           (!x->reduce || x->summed[x->broadcast_posted]);
}

/* The slots for a chunk: those for all, or those for the stages of what is awaited. */
static int lane_of(const tutti_engine *e, const tutti_exchange *x, tutti_stage stage)
{
    return x->exclusive || x == e->seen ? LANE_AWAITED + (int)stage : LANE_ALL;
}

static tutti_slot *take_slot(tutti_engine *e, tutti_exchange *x, tutti_stage stage, int lane)
{
    tutti_slot *s = e->slot + lane * e->budget;
    while (s->x) s++;
    s->lane = lane;
    if (fit_slot(e, s, x) != TUTTI_OK) {
        tutti_engine_fail(e, TUTTI_MEMORY, tutti_message());
        return NULL;
    }
    s->x = x;
    s->stage = stage;
    s->pending = s->sends = s->receives = s->round = 0;
    s->items = s->next_to = s->next_from = 0;
    s->begun = s->touched = tutti_engine_now(e);
    x->in_flight[stage]++;
    e->used[lane]++;
    return s;
}

static void post_chunk(tutti_engine *e, tutti_exchange *x, tutti_stage stage, int lane)
{
    tutti_slot *const s = take_slot(e, x, stage, lane);
    if (!s) return;
    if (stage == TUTTI_STAGE_BROADCAST) {
        s->chunk = x->broadcast_posted++;
        s->algorithm = x->broadcast;
        update(x, s->chunk);
    } else {
        s->chunk = x->reduce_posted++;
        s->algorithm = x->reduce;
    }
    if (s->algorithm) s->algorithm->begin(e, s);
    round_through(e, s);
}

static bool has_room(const tutti_engine *e, int lane)
{
    const bool waits = e->exclusive && (lane == LANE_ALL || lane == LANE_BESIDE);
    const int slots = lane == LANE_BESIDE ? TUTTI_MAX_SLOTS - lane * e->budget : e->budget;
    return !waits && e->used[lane] < slots;
}

/* Posts a chunk of the exchange, of its second stage if possible, which is nearer to the end.
 * 'is_first': no more urgent exchange has one to post. Returns false if there is none or no
 * room. */
static bool post_one(tutti_engine *e, tutti_exchange *x, bool *is_first)
{
    for (tutti_stage stage = TUTTI_STAGES; stage-- > 0;) {
        if (!may_post(x, stage)) continue;
        int lane = lane_of(e, x, stage);
        if (!has_room(e, lane) && lane == LANE_ALL && *is_first && !x->in_flight[stage])
            lane = LANE_BESIDE;
        *is_first = false;
        if (!has_room(e, lane)) continue;
        post_chunk(e, x, stage, lane);
        return true;
    }
    return false;
}

static void post_chunks(tutti_engine *e)
{
    bool is_first = true;
    for (tutti_exchange *x = e->active; x && !has_failed(e);) {
        if (post_one(e, x, &is_first)) {
            x = e->active; /* x may be gone; the most urgent comes first again */
            is_first = true;
        } else {
            x = x->next;
        }
    }
}

static bool has_waited(const tutti_exchange *x, tutti_stage stage, double since)
{
    return x->last[stage] < since && !x->in_flight[stage] && may_post(x, stage);
}

static void resolve_jam(tutti_engine *e)
{
    if (e->used[LANE_ALL] < e->budget || e->exclusive) return;
    const double patience = fmax(PATIENCE * e->usual, SHORTEST_PATIENCE);
    const double since = tutti_engine_now(e) - patience;
    for (tutti_exchange *x = e->active, *next; x && !has_failed(e); x = next) {
        next = x->next; /* x may be gone afterwards */
        tutti_stage stage = TUTTI_STAGES;
        while (stage > 0 && !has_waited(x, --stage, since)) continue;
        if (has_waited(x, stage, since) && has_room(e, LANE_BESIDE))
            post_chunk(e, x, stage, LANE_BESIDE);
    }
}

static void message_through(tutti_engine *e, tutti_cookie cookie)
{
    tutti_slot *const s = cookie.owner;
    s->pending--;
    if (cookie.message < 0) s->sends--;
    else s->receives--;
    s->touched = tutti_engine_now(e);
    tutti_in_flight_move(e, s);
    if (cookie.message >= 0 && s->algorithm->arrived) s->algorithm->arrived(e, s, cookie.message);
    if (!s->pending) round_through(e, s);
}

static void note_failure(tutti_engine *e)
{
    char reason[TUTTI_FAILURE_BYTES];
    const tutti_status s = tutti_transport_status(e->transport, reason, sizeof reason);
    if (s != TUTTI_OK) tutti_engine_fail(e, s, reason);
}

bool tutti_engine_step(tutti_engine *e, bool block)
{
    bool moved = false;
    for (tutti_command command; tutti_queue_take(&e->queue, &command); moved = true)
        obey(e, command);
    if (has_failed(e)) return moved;
    const tutti_exchange *awaited = atomic_load(&e->awaited);
    const bool is_news = awaited && awaited != e->seen;
    e->seen = awaited;
    if (moved || is_news) post_chunks(e);
    const tutti_cookie *finished = NULL;
    const int count = tutti_transport_poll(e->transport, &finished, block && !moved);
    for (int i = 0; i < count; i++) message_through(e, finished[i]);
    if (count) post_chunks(e);
    resolve_jam(e);
    note_failure(e);
    return moved || count;
}
