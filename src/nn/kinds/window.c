#include "nn/kinds/window.h"

#include <stdio.h>
#include <string.h>

static int reach(const tutti_window *w, int way)
{
    return (w->kernel[way] - 1) * w->dilation[way] + 1;
}

int tutti_window_pad_end(const tutti_window *w, int way)
{
    return w->pad_end[way] < 0 ? w->pad[way] : w->pad_end[way];
}

void tutti_window_settle(tutti_window *w)
{
    if (tutti_window_pad_end(w, 0) == w->pad[0] && tutti_window_pad_end(w, 1) == w->pad[1])
        w->pad_end[0] = w->pad_end[1] = -1;
}

/* How many windows there are in one direction. Rounded up, the last one still begins on the image
 * or in the padding before it, as in Caffe and torch. */
static int windows(const tutti_window *w, int way, int size)
{
    const int room = size + w->pad[way] + tutti_window_pad_end(w, way) - reach(w, way);
    const int rest = room % w->stride[way];
    int count = room / w->stride[way] + 1;
    if (w->ceil && rest && count * w->stride[way] < size + w->pad[way]) count++;
    return count;
}

tutti_status tutti_window_slide(tutti_window *w, tutti_layer *layer)
{
    const int padded[2] = {layer->in.h + w->pad[0] + tutti_window_pad_end(w, 0),
                           layer->in.w + w->pad[1] + tutti_window_pad_end(w, 1)};
    if (!w->kernel[0])
        return tutti_fail(TUTTI_PARSE, "%s needs a window: kernel=N or kernel=HxW", layer->name);
    if (reach(w, 0) > padded[0] || reach(w, 1) > padded[1])
        return tutti_fail(TUTTI_SHAPE, "%s: a window of %dx%d does not fit in its input of %dx%d%s",
                          layer->name, reach(w, 0), reach(w, 1), padded[0], padded[1],
                          padded[0] > layer->in.h || padded[1] > layer->in.w ? " (with padding)"
                                                                             : "");
    tutti_window_settle(w);
    layer->out.h = windows(w, 0, layer->in.h);
    layer->out.w = windows(w, 1, layer->in.w);
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
