#include "nn/kinds/channels.h"

#include "base/memory.h"
#include "kernel/channels.h"

/* Of channels of the output those of the input, and the other way round, -1: of none. */
typedef struct maps {
    int *forth, *back;
} maps;

void tutti_channels_destroy(void *own)
{
    maps *m = own;
    tutti_free(m->forth);
    tutti_free(m->back);
    tutti_free(m);
}

tutti_status tutti_channels_create(void **own, const tutti_layer *layer,
                                   int (*source)(const tutti_layer *layer, int k))
{
    maps *m = NULL;
    TUTTI_TRY(tutti_alloc(&m, 1, sizeof *m));
    *own = m;
    TUTTI_TRY(tutti_alloc(&m->forth, (size_t)layer->out.c, sizeof *m->forth));
    TUTTI_TRY(tutti_alloc(&m->back, (size_t)layer->in.c, sizeof *m->back));
    for (int c = 0; c < layer->in.c; c++) m->back[c] = -1;
    for (int k = 0; k < layer->out.c; k++) {
        m->forth[k] = source(layer, k);
        m->back[m->forth[k]] = k;
    }
    return TUTTI_OK;
}

void tutti_channels_forward(const tutti_call *c)
{
    const maps *m = c->own;
    tutti_map_channels(c->exec, c->out, c->layer->in.c, m->forth, c->in->x, NULL, c->y);
}

void tutti_channels_backward(const tutti_call *c)
{
    const maps *m = c->own;
    const tutti_extent in = {c->out.n, c->layer->in.c, c->out.pixels};
    tutti_map_channels(c->exec, in, c->layer->out.c, m->back, c->dy, c->in->gate, c->in->dx);
}
