#include "forecast/plot.h"

#include <math.h>

#include "format/file.h"
#include "format/json.h"

enum { WIDTH = 640, HEIGHT = 480, MARGIN = 64, LEGEND_LINE = 18 };

static double x_of(double nodes, double most)
{
    return MARGIN + (WIDTH - 2 * MARGIN) * (most > 1 ? log(nodes) / log(most) : 0);
}

static double y_of(double speedup, double most)
{
    const double f = most > 1 && speedup > 0 ? log(speedup) / log(most) : 0;
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * fmax(f, 0);
}

static void draw_axes(tutti_string *s, double most)
{
    for (double n = 1; n <= most * 1.0001; n *= 2) {
        tutti_string_printf(s,
                            "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>"
                            "<text x='%d' y='%.1f' text-anchor='end'>%gx</text>\n",
                            x_of(n, most), HEIGHT - MARGIN + 20, n, MARGIN - 8, y_of(n, most) + 4,
                            n);
        tutti_string_printf(s, "<path d='M%.1f %dV%d' stroke='#eee'/>\n", x_of(n, most), MARGIN,
                            HEIGHT - MARGIN);
    }
    tutti_string_printf(s, "<path d='M%.1f %.1fL%.1f %.1f' stroke='#999' stroke-dasharray='4'/>\n",
                        x_of(1, most), y_of(1, most), x_of(most, most), y_of(most, most));
    tutti_string_printf(s, "<text x='%d' y='%d' text-anchor='middle'>nodes</text>\n", WIDTH / 2,
                        HEIGHT - 16);
}

static bool has_points(const tutti_curve *c)
{
    for (int i = 0; i < c->count; i++)
        if (isfinite(c->speedup[i])) return true;
    return false;
}

static void draw_curve(tutti_string *s, const tutti_curve *c, double most, int place)
{
    if (!c->is_points) {
        tutti_string_printf(s, "<polyline stroke='%s' stroke-width='2' points='", c->color);
        for (int i = 0; i < c->count; i++)
            if (isfinite(c->speedup[i]))
                tutti_string_printf(s, "%.1f,%.1f ", x_of(c->nodes[i], most),
                                    y_of(c->speedup[i], most));
        tutti_string_printf(s, "'/>\n");
    }
    for (int i = 0; i < c->count; i++)
        if (isfinite(c->speedup[i]))
            tutti_string_printf(s, "<circle cx='%.1f' cy='%.1f' r='%d' %s='%s'/>\n",
                                x_of(c->nodes[i], most), y_of(c->speedup[i], most),
                                c->is_points ? 5 : 4, c->is_points ? "stroke" : "fill", c->color);
    tutti_string_printf(s, "<text x='%d' y='%d' fill='%s'>%s</text>\n", MARGIN + 12,
                        MARGIN + 12 + place * LEGEND_LINE, c->color, c->name);
}

tutti_status tutti_plot_save(const char *path, const char *title, const tutti_curve *curves,
                             int count)
{
    tutti_string s = {0};
    double most = 1;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < curves[c].count; i++) most = fmax(most, curves[c].nodes[i]);
    tutti_string_printf(&s,
                        "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                        "font-family='sans-serif' font-size='12' fill='none'>\n"
                        "<rect width='%d' height='%d' fill='white'/><g fill='black'>\n"
                        "<text x='%d' y='28' font-size='16'>%s</text>\n",
                        WIDTH, HEIGHT, WIDTH, HEIGHT, MARGIN, title);
    draw_axes(&s, most);
    tutti_string_printf(&s, "</g>\n");
    for (int c = 0, place = 0; c < count; c++)
        if (has_points(&curves[c])) draw_curve(&s, &curves[c], most, place++);
    tutti_string_printf(&s, "</svg>\n");
    tutti_status status = tutti_string_status(&s);
    if (status == TUTTI_OK) status = tutti_file_save(path, s.data, s.length);
    tutti_string_deinit(&s);
    return status;
}
