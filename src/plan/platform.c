#include "plan/platform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "plan/platforms.h"

const char *const tutti_rate_words[TUTTI_RATE_KINDS + 1] = {"first", "conv", "fc", NULL};

void tutti_platform_destroy(tutti_platform **platform)
{
    tutti_platform *p = *platform;
    if (!p) return;
    tutti_free(p->rates);
    tutti_free(p->nets);
    tutti_free(p->layers);
    tutti_free(p->exchanges);
    tutti_free(p);
    *platform = NULL;
}

/* ---- text ---- */

/* Makes room for one more row in *list, which has 'count': lists double when they are full. */
static tutti_status grow(void *list, int count, size_t size)
{
    void *old, *wider = NULL;
    if (count & (count - 1)) return TUTTI_OK;
    memcpy(&old, list, sizeof old);
    TUTTI_TRY(tutti_alloc(&wider, count ? 2 * (size_t)count : 1, size));
    if (count) memcpy(wider, old, (size_t)count * size);
    tutti_free(old);
    memcpy(list, &wider, sizeof wider);
    return TUTTI_OK;
}

tutti_status tutti_platform_add_layer(tutti_platform *p, const tutti_layer_rate *rate)
{
    TUTTI_TRY(grow(&p->layers, p->layer_count, sizeof *p->layers));
    p->layers[p->layer_count++] = *rate;
    return TUTTI_OK;
}

tutti_status tutti_platform_add_exchange(tutti_platform *p, const tutti_exchange_rate *rate)
{
    TUTTI_TRY(grow(&p->exchanges, p->exchange_count, sizeof *p->exchanges));
    p->exchanges[p->exchange_count++] = *rate;
    return TUTTI_OK;
}

static const tutti_measure bytes_units[] = {{"B", 1},    {"kB", 1e3},  {"MB", 1e6},
                                            {"GB", 1e9}, {"TB", 1e12}, {NULL, 0}};
static const tutti_measure rate_units[] = {{"B/s", 1},         {"MB/s", 1e6},      {"GB/s", 1e9},
                                           {"Gbit/s", 1.25e8}, {"Mbit/s", 1.25e5}, {NULL, 0}};
static const tutti_measure flops_units[] = {{"GF", 1e9}, {"TF", 1e12}, {NULL, 0}};
static const tutti_measure time_units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
static const tutti_measure bare[] = {{"", 1}, {NULL, 0}};

typedef tutti_status line_reader(tutti_text *text, tutti_platform *p);

static tutti_status real(tutti_text *text, const char *what, const tutti_measure *units,
                         double *out)
{
    tutti_word word;
    TUTTI_TRY(tutti_text_need(text, &word, what));
    return tutti_text_quantity(text, word, units, 0, 1e300, out);
}

static tutti_status words(tutti_text *text, const char *what, char *out, size_t size)
{
    tutti_word word;
    TUTTI_TRY(tutti_text_need(text, &word, what));
    if ((size_t)word.length >= size) return tutti_text_fail(text, word, "%s is too long", what);
    snprintf(out, size, "%.*s", word.length, word.start);
    return TUTTI_OK;
}

static tutti_status read_title(tutti_text *text, tutti_platform *p)
{
    return words(text, "the title", p->title, sizeof p->title);
}
static tutti_status read_nodes(tutti_text *text, tutti_platform *p)
{
    return real(text, "a number of nodes", bare, &p->nodes);
}
static tutti_status read_peak(tutti_text *text, tutti_platform *p)
{
    return real(text, "FLOP/s of a node, like 2355GF", flops_units, &p->peak);
}
static tutti_status read_memory(tutti_text *text, tutti_platform *p)
{
    return real(text, "memory of a node, like 128GB", bytes_units, &p->memory);
}
static tutti_status read_bandwidth(tutti_text *text, tutti_platform *p)
{
    return real(text, "a bandwidth, like 136GB/s", rate_units, &p->memory_bandwidth);
}
static tutti_status read_steals(tutti_text *text, tutti_platform *p)
{
    static const tutti_key keys[] = {
        {"beside", TUTTI_KEY_REAL, offsetof(tutti_platform, beside), 1, 1000, false, NULL},
        {.name = NULL}};
    TUTTI_TRY(real(text, "a fraction", bare, &p->steals));
    return tutti_text_keys(text, keys, p);
}
static tutti_status read_meeting(tutti_text *text, tutti_platform *p)
{
    return real(text, "seconds, like 50us", time_units, &p->meeting);
}
static tutti_status read_common(tutti_text *text, tutti_platform *p)
{
    return real(text, "seconds per parameter", bare, &p->common);
}

static tutti_status read_update(tutti_text *text, tutti_platform *p)
{
    return real(text, "seconds per parameter", bare, &p->update);
}
static tutti_status read_topology(tutti_text *text, tutti_platform *p)
{
    static const char *const known[] = {"star", "fat-tree", "dragonfly", "torus", NULL};
    tutti_word word = tutti_text_peek(text);
    if (tutti_word_among(word, known) < 0)
        return tutti_text_fail(text, word, "a topology is star, fat-tree, dragonfly or torus");
    return words(text, "a topology", p->topology, sizeof p->topology);
}

static tutti_status read_link(tutti_text *text, tutti_platform *p)
{
    TUTTI_TRY(real(text, "a bandwidth, like 8GB/s or 10Gbit/s", rate_units, &p->link));
    tutti_word word, key, value;
    while ((word = tutti_text_next(text)).length) {
        if (!tutti_word_split(word, &key, &value))
            return tutti_text_fail(text, word, "expected latency=... or overlap=...");
        if (tutti_word_is(key, "latency"))
            TUTTI_TRY(tutti_text_quantity(text, value, time_units, 0, 10, &p->latency));
        else if (tutti_word_is(key, "overlap"))
            TUTTI_TRY(tutti_text_real(text, value, 0, 1, &p->overlap));
        else return tutti_text_fail(text, word, "a link has latency and overlap");
    }
    return TUTTI_OK;
}

static tutti_status read_rate(tutti_text *text, tutti_platform *p)
{
    TUTTI_TRY(grow(&p->rates, p->rate_count, sizeof *p->rates));
    tutti_rate *r = &p->rates[p->rate_count++];
    tutti_word kind;
    TUTTI_TRY(tutti_text_need(text, &kind, "first, conv or fc"));
    const int at = tutti_word_among(kind, tutti_rate_words);
    if (at < 0) return tutti_text_fail(text, kind, "a rate is for first, conv or fc layers");
    r->kind = (tutti_rate_kind)at;
    TUTTI_TRY(real(text, "samples per node", bare, &r->samples));
    return real(text, "a fraction of the peak", bare, &r->fraction);
}

static tutti_status read_net(tutti_text *text, tutti_platform *p)
{
    TUTTI_TRY(grow(&p->nets, p->net_count, sizeof *p->nets));
    tutti_net_rate *r = &p->nets[p->net_count++];
    TUTTI_TRY(words(text, "a net's name", r->name, sizeof r->name));
    TUTTI_TRY(real(text, "samples/s of one node", bare, &r->samples_per_s));
    return real(text, "the minibatch of that rate", bare, &r->batch);
}

static tutti_status read_machine(tutti_text *text, tutti_platform *p)
{
    static const tutti_key keys[] = {
        {"threads", TUTTI_KEY_INT, offsetof(tutti_platform, threads), 1, 65536, true, NULL},
        {"ranks", TUTTI_KEY_INT, offsetof(tutti_platform, ranks), 1, 65536, true, NULL},
        {.name = NULL}};
    TUTTI_TRY(words(text, "the machine", p->machine, sizeof p->machine));
    return tutti_text_keys(text, keys, p);
}

static tutti_status read_layer(tutti_text *text, tutti_platform *p)
{
    tutti_layer_rate rate = {0}, *r = &rate;
    char part[4][48];
    static const char *const what[] = {"a kind", "an input CxHxW", "an output CxHxW",
                                       "a kernel RxS/STRIDE"};
    for (int i = 0; i < 4; i++) TUTTI_TRY(words(text, what[i], part[i], sizeof part[i]));
    snprintf(r->key, sizeof r->key, "%.31s %.31s %.31s %.31s", part[0], part[1], part[2], part[3]);
    TUTTI_TRY(real(text, "samples", bare, &r->samples));
    TUTTI_TRY(real(text, "seconds forward", bare, &r->seconds.forward));
    TUTTI_TRY(real(text, "seconds backward-weights", bare, &r->seconds.weights));
    TUTTI_TRY(real(text, "seconds backward-data", bare, &r->seconds.data));
    return tutti_platform_add_layer(p, r);
}

static tutti_status read_exchange(tutti_text *text, tutti_platform *p)
{
    tutti_exchange_rate rate, *r = &rate;
    TUTTI_TRY(real(text, "ranks", bare, &r->ranks));
    TUTTI_TRY(real(text, "bytes", bare, &r->bytes));
    TUTTI_TRY(real(text, "seconds of a part-reduce", bare, &r->reduce));
    TUTTI_TRY(real(text, "seconds of a part-broadcast", bare, &r->broadcast));
    return tutti_platform_add_exchange(p, r);
}

static const struct {
    const char *word;
    line_reader *read;
    bool is_list; /* may stand there more than once */
} lines[] = {
    {"title", read_title, false},     {"machine", read_machine, false},
    {"nodes", read_nodes, false},     {"peak", read_peak, false},
    {"memory", read_memory, false},   {"memory-bandwidth", read_bandwidth, false},
    {"link", read_link, false},       {"steals", read_steals, false},
    {"meeting", read_meeting, false}, {"topology", read_topology, false},
    {"rate", read_rate, true},        {"net", read_net, true},
    {"layer", read_layer, true},      {"exchange", read_exchange, true},
    {"update", read_update, false},   {"common", read_common, false},
};
enum { LINES = sizeof lines / sizeof *lines };

/* 'seen' has the number of the line of each word, 0 for those that were not there yet. */
static tutti_status read_line(tutti_text *text, tutti_platform *p, int seen[LINES])
{
    const tutti_word word = tutti_text_next(text);
    for (int i = 0; i < LINES; i++) {
        if (!tutti_word_is(word, lines[i].word)) continue;
        if (seen[i] && !lines[i].is_list)
            return tutti_text_fail(text, word, "line %d says '%s' already", seen[i], lines[i].word);
        seen[i] = word.line;
        TUTTI_TRY(lines[i].read(text, p));
        return tutti_text_end_of_line(text);
    }
    return tutti_text_fail(text, word,
                           "a platform has title, machine, nodes, peak, memory, "
                           "memory-bandwidth, link, steals, meeting, topology, rate, net, "
                           "layer, exchange, update and common");
}

static tutti_status check(const tutti_platform *p, const char *name)
{
    const struct {
        const char *line;
        double value;
    } needed[] = {{"peak", p->peak},
                  {"memory-bandwidth", p->memory_bandwidth},
                  {"link", *p->machine && p->nodes <= 1 ? 1 : p->link}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(needed[i].value > 0))
            return tutti_fail(TUTTI_PARSE, "%s: there is no line '%s'", name, needed[i].line);
    return TUTTI_OK;
}

tutti_status tutti_platform_read(tutti_platform **out, const char *name, tutti_text *text)
{
    tutti_platform *p = NULL;
    int seen[LINES] = {0};
    tutti_status s = tutti_alloc(&p, 1, sizeof *p);
    if (s == TUTTI_OK) {
        snprintf(p->name, sizeof p->name, "%s", name);
        snprintf(p->topology, sizeof p->topology, "star");
        p->nodes = 1;
        p->overlap = 1;
    }
    if (s == TUTTI_OK) s = tutti_text_begin(text, "platform", TUTTI_PLATFORM_VERSION);
    if (s == TUTTI_OK) p->has_sum = tutti_text_has_sum(text);
    while (s == TUTTI_OK && tutti_text_next_line(text)) s = read_line(text, p, seen);
    if (s == TUTTI_OK) s = check(p, tutti_text_name(text));
    if (s == TUTTI_OK) *out = p;
    else tutti_platform_destroy(&p);
    tutti_text_destroy(&text);
    return s;
}

tutti_status tutti_platform_parse(tutti_platform **out, const char *name, const char *content)
{
    tutti_text *text = NULL;
    TUTTI_TRY(tutti_text_create(&text, name, content));
    return tutti_platform_read(out, name, text);
}
