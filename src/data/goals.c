/* Targets that are more than one label: values, and classes of pixels. */
#define _GNU_SOURCE
#include <math.h>

#include "data/source.h"

bool tutti_data_has_goals(const tutti_data *data)
{
    const tutti_data_options *o = &data->options;
    if (data->unlabelled || !o->target_count) return false;
    return o->target_count > 1 || o->targets[0].form != TUTTI_TARGET_CLASS;
}

static tutti_status refuse(const tutti_data *data, const tutti_target *target)
{
    static const char *const wants[] = {
        [TUTTI_TARGET_CLASS] = "several targets: give them as arrays, npy:X.npy,Y.npy,Y2.npy",
        [TUTTI_TARGET_PIXELS] = "a class for each pixel: give images:DIR,masks=DIR, or arrays, "
                                "npy:X.npy,Y.npy",
        [TUTTI_TARGET_VALUES] = "values: give them as arrays, npy:X.npy,Y.npy",
        [TUTTI_TARGET_SHARES] = "for each class whether a sample is of it: give arrays, "
                                "npy:X.npy,Y.npy",
    };
    return tutti_fail(TUTTI_ARGUMENT,
                      "--data %s: there is a class for each sample, but the net's loss wants %s",
                      data->source->kind, wants[target->form]);
}

tutti_status tutti_goals_check(const tutti_data *data)
{
    const tutti_data_options *o = &data->options;
    const tutti_source *source = data->source;
    for (int t = 0; tutti_data_has_goals(data) && t < o->target_count; t++) {
        const bool masked = source->mask && o->targets[t].form == TUTTI_TARGET_PIXELS;
        if (!source->goal && !masked) return refuse(data, &o->targets[t]);
    }
    return TUTTI_OK;
}

tutti_status tutti_goals_check_mixing(const tutti_data *data)
{
    if (!tutti_data_has_goals(data) || !tutti_data_mixes(data)) return TUTTI_OK;
    return tutti_fail(
        TUTTI_ARGUMENT,
        "--data %s: mixup= mixes samples that have one label each, but the net's loss "
        "wants other targets: leave it out",
        data->source->kind);
}

tutti_status tutti_goals_fetch(tutti_reader *r, tutti_split split, uint32_t id,
                               const tutti_view *view, const tutti_sample_room *room)
{
    const tutti_data_options *o = &r->data->options;
    const tutti_source *source = r->data->source;
    for (int t = 0; tutti_data_has_goals(r->data) && t < o->target_count; t++) {
        if (!room->targets[t]) continue;
        if (source->goal) {
            TUTTI_TRY(source->goal(r, split, id, t, view, room->targets[t]));
            continue;
        }
        TUTTI_TRY(source->mask(r, split, id));
        TUTTI_TRY(tutti_goals_render(r, view, &o->targets[t], room->targets[t]));
    }
    return TUTTI_OK;
}

/* ---- masks ---- */

/* Where place 'at' of a view's axis is in a mask of 'mask' pixels that belongs to a picture of
 * 'picture'; -1: beyond its border. */
static int source_pixel(const tutti_view_axis *axis, double at, int picture, int mask)
{
    const double centre = axis->origin + (at + axis->first) / axis->scale;
    if (!(centre >= axis->begin && centre < axis->end)) return -1;
    const int pixel = (int)floor(centre * mask / picture);
    return pixel < mask ? pixel : mask - 1;
}

static tutti_status bad_class(int class, const tutti_target *target)
{
    return tutti_fail(TUTTI_DATA, "a mask has class %d, but the net tells %d classes apart", class,
                      target->c);
}

tutti_status tutti_goals_render(const tutti_reader *r, const tutti_view *view,
                                const tutti_target *target, int32_t *classes)
{
    enum { NONE = 255 };
    const tutti_image *image = &r->image, *mask = &r->mask;
    const double down = (double)view->rows.size / target->h;
    const double right = (double)view->columns.size / target->w;
    for (int y = 0; y < target->h; y++) {
        const int row = source_pixel(&view->rows, (y + 0.5) * down, image->height, mask->height);
        for (int x = 0; x < target->w; x++, classes++) {
            const int at = view->flip ? target->w - 1 - x : x;
            const int column =
                source_pixel(&view->columns, (at + 0.5) * right, image->width, mask->width);
            const int class =
                row < 0 || column < 0 ? NONE : mask->pixels[row * mask->width + column];
            if (class != NONE && class >= target->c) return bad_class(class, target);
            *classes = class == NONE ? TUTTI_IGNORED : class;
        }
    }
    return TUTTI_OK;
}
