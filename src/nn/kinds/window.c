#include "nn/kinds/window.h"

#include <stdio.h>
#include <string.h>

static int reach(const tutti_window *w, int way)
{
    return (w->kernel[way] - 1) * w->dilation[way] + 1;
}

tutti_status tutti_window_slide(const tutti_window *w, tutti_layer *layer)
{
    const int padded[2] = {layer->in.h + 2 * w->pad[0], layer->in.w + 2 * w->pad[1]};
    if (!w->kernel[0])
        return tutti_fail(TUTTI_PARSE, "%s needs a window: kernel=N or kernel=HxW", layer->name);
    if (reach(w, 0) > padded[0] || reach(w, 1) > padded[1])
        return tutti_fail(TUTTI_SHAPE, "%s: a window of %dx%d does not fit in its input of %dx%d%s",
                          layer->name, reach(w, 0), reach(w, 1), padded[0], padded[1],
                          w->pad[0] || w->pad[1] ? " (with padding)" : "");
    layer->out.h = (padded[0] - reach(w, 0)) / w->stride[0] + 1;
    layer->out.w = (padded[1] - reach(w, 1)) / w->stride[1] + 1;
    return TUTTI_OK;
}

void tutti_window_work(const tutti_window *w, int groups, char text[32])
{
    enum { ROOM = 32 };
    int n = snprintf(text, ROOM, "%dx%d/%d", w->kernel[0], w->kernel[1], w->stride[0]);
    if (w->stride[1] != w->stride[0] && n < ROOM)
        n += snprintf(text + n, (size_t)(ROOM - n), "x%d", w->stride[1]);
    if (groups != 1 && n < ROOM) n += snprintf(text + n, (size_t)(ROOM - n), ",g%d", groups);
    if ((w->dilation[0] != 1 || w->dilation[1] != 1) && n < ROOM)
        snprintf(text + n, (size_t)(ROOM - n), ",d%dx%d", w->dilation[0], w->dilation[1]);
}
