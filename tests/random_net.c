#include "random_maker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers ---- */

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
int random_below(random_numbers *numbers, int bound)
{
    uint64_t z = numbers->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (int)((z ^ (z >> 31)) % (uint64_t)bound);
}

int below(maker *m, int bound)
{
    return random_below(&m->numbers, bound);
}

bool one_in(maker *m, int n)
{
    return below(m, n) == 0;
}

/* ---- text ---- */

void say(maker *m, const char *format, ...)
{
    const size_t used = strlen(m->net->text);
    va_list args;
    va_start(args, format);
    vsnprintf(m->net->text + used, sizeof m->net->text - used, format, args);
    va_end(args);
}

random_layer *value_at(maker *m, int value)
{
    return &m->net->values[value];
}

int last_value(const maker *m)
{
    return m->net->layer_count;
}

int pixels(const random_layer *v)
{
    return v->h * v->w;
}

random_layer *begin(maker *m, const char *kind, int from)
{
    random_layer *layer = value_at(m, ++m->net->layer_count);
    snprintf(layer->name, sizeof layer->name, "%c%d", kind[0], m->net->layer_count);
    layer->from[layer->from_count++] = from;
    value_at(m, from)->readers++;
    layer->c = value_at(m, from)->c;
    layer->h = value_at(m, from)->h;
    layer->w = value_at(m, from)->w;
    say(m, "%s %s", layer->name, kind);
    return layer;
}

void end(maker *m, int from)
{
    if (from != last_value(m) - 1 || one_in(m, 4)) say(m, " from=%s", value_at(m, from)->name);
    say(m, "\n");
}

/* ---- the whole ---- */

static void make_input(maker *m)
{
    static const int features[] = {1, 2, 5, 15, 16, 17, 31, 33, 40, 64, 100};
    static const int channels[] = {1, 1, 2, 3, 3, 3, 4, 5, 8, 15, 16, 17, 20, 32, 33, 48};
    random_layer *input = value_at(m, 0);
    snprintf(input->name, sizeof input->name, "input");
    if (one_in(m, 5)) {
        input->c = ONE_OF(m, features);
        input->h = input->w = 1;
        say(m, "input %d\n", input->c);
        return;
    }
    input->c = ONE_OF(m, channels);
    input->h = 1 + below(m, 13);
    input->w = one_in(m, 2) ? input->h : 1 + below(m, 13);
    say(m, "input %d %d %d\n", input->c, input->h, input->w);
}

/* Mostly the last value, else one that nobody reads yet, or any. */
static int some_value(maker *m)
{
    const int last = last_value(m);
    if (!one_in(m, 3)) return last;
    if (one_in(m, 2)) return below(m, last + 1);
    for (int i = last; i > 0; i--)
        if (!value_at(m, i)->readers && one_in(m, 2)) return i;
    return last;
}

static void make_layer(maker *m)
{
    for (int tries = 0; tries < 20; tries++)
        if (random_makers[below(m, random_maker_count)](m, some_value(m))) return;
}

static int unread(maker *m, int *list)
{
    int count = 0;
    for (int i = 1; i <= last_value(m); i++)
        if (!value_at(m, i)->readers) list[count++] = i;
    return count;
}

/* Joins everything that nobody reads until one value is left. */
static int gather(maker *m)
{
    int list[RANDOM_LAYERS + 1];
    while (unread(m, list) > 1) {
        const random_layer *a = value_at(m, list[0]), *b = value_at(m, list[1]);
        if (a->h == b->h && a->w == b->w)
            join(m, a->c == b->c && one_in(m, 2) ? "add" : "concat", list, 2);
        else if (pixels(a) > 1) make_global_pool(m, list[0]);
        else make_global_pool(m, list[1]);
    }
    return list[0];
}

/* A loss of value 'from'. */
static void put_loss(maker *m, const char *kind, int from, int target)
{
    static const char *const weights[] = {"", "", " weight=0.3", " weight=2.5"};
    static const char *const deltas[] = {"", " delta=0.25", " delta=3 smooth", " smooth"};
    begin(m, kind, from);
    say(m, "%s", ONE_OF(m, weights));
    if (kind[0] == 'h') say(m, "%s", ONE_OF(m, deltas));
    if (target > 1) say(m, " target=%d", target);
    end(m, from);
}

/* An fc before a loss, which has something to train whatever is below. */
static int make_head(maker *m, int from, int features)
{
    m->budget = 1e9;
    if (!m->trains) m->frost = 0;
    make_fc_of(m, from, features);
    return last_value(m);
}

/* A head of its own: of the same target only training has it. */
static void make_other_loss(maker *m, const char *kind, int from, int features, int target)
{
    const bool trains = m->trains;
    put_loss(m, kind, make_head(m, from, features), target);
    m->trains = trains; /* the net's own loss must have something, too */
}

static const char *const of_values[] = {"mse", "l1", "huber", "bce"};

static const char *some_loss(maker *m, int pixels)
{
    if (one_in(m, 2)) return ONE_OF(m, of_values);
    return pixels > 1 || one_in(m, 5) ? "pixelsoftmax" : "softmax";
}

static void make_loss(maker *m, int from)
{
    static const int classes[] = {2, 3, 5, 7, 10, 16, 17, 33, 64, 65, 70, 130};
    const random_layer *in = value_at(m, from);
    const bool whole = pixels(in) > 1 && in->c > 1 && m->trains && one_in(m, 2);
    if (!whole && in->c * pixels(in) > 600) {
        make_global_pool(m, from);
        from = last_value(m);
        in = value_at(m, from);
    }
    const bool has_head =
        !whole && (pixels(in) > 1 || in->c < 2 || in->c > 200 || !m->trains || !one_in(m, 3));
    const int count = has_head ? ONE_OF(m, classes) : in->c;
    const char *kind = some_loss(m, whole ? pixels(in) : 1);
    const bool other = one_in(m, 5);
    if (!whole && one_in(m, 4)) make_other_loss(m, kind, from, count, 1);
    if (other) make_other_loss(m, some_loss(m, 1), from, ONE_OF(m, classes), 2);
    if (has_head) from = make_head(m, from, count);
    put_loss(m, kind, from, 1);
}

void random_net_make(random_net *net, uint64_t seed)
{
    static const double budgets[] = {1e4, 3e4, 1e5, 3e5};
    maker m = {.net = net, .numbers = {seed * 0xD1342543DE82EF95u}};
    memset(net, 0, sizeof *net);
    m.budget = ONE_OF(&m, budgets);
    m.frost = one_in(&m, 2) ? 0 : 1 + below(&m, 4);
    make_input(&m);
    const int layers = 1 + below(&m, one_in(&m, 3) ? 14 : 6);
    for (int i = 0; i < layers; i++) make_layer(&m);
    if (!last_value(&m)) make_fc_of(&m, 0, 3);
    make_loss(&m, gather(&m));
}
