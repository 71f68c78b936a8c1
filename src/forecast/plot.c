#include "forecast/plot.h"

#include <math.h>
#include <string.h>

#include "format/file.h"
#include "format/json.h"

enum { WIDTH = 640, HEIGHT = 480, MARGIN = 64, LEGEND_LINE = 18 };

static const double nearly = 0.99; /* a pixel or two */

/* Nodes go from 1 to 'most', speedups from 'least'. */
typedef struct axes {
    double most, least;
} axes;

static axes axes_of(const tutti_curve *curves, int count)
{
    axes a = {1, 1};
    for (int c = 0; c < count; c++)
        for (int i = 0; i < curves[c].count; i++) {
            const double speedup = curves[c].speedup[i];
            a.most = fmax(a.most, curves[c].nodes[i]);
            while (speedup > 0 && speedup < nearly * a.least) a.least /= 2;
        }
    return a;
}

static double x_of(double nodes, axes a)
{
    return MARGIN + (WIDTH - 2 * MARGIN) * (a.most > 1 ? log(nodes) / log(a.most) : 0);
}

static double y_of(double speedup, axes a)
{
    const double octaves = log(a.most / a.least);
    const double f = octaves > 0 && speedup > 0 ? log(speedup / a.least) / octaves : 0;
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * fmax(f, 0);
}

static void draw_axes(tutti_string *s, axes a)
{
    for (double n = a.least; n < 1; n *= 2)
        tutti_string_printf(s, "<text x='%d' y='%.1f' text-anchor='end'>%gx</text>\n", MARGIN - 8,
                            y_of(n, a) + 4, n);
    for (double n = 1; n <= a.most * 1.0001; n *= 2) {
        tutti_string_printf(s,
                            "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>"
                            "<text x='%d' y='%.1f' text-anchor='end'>%gx</text>\n",
                            x_of(n, a), HEIGHT - MARGIN + 20, n, MARGIN - 8, y_of(n, a) + 4, n);
        tutti_string_printf(s, "<path d='M%.1f %dV%d' stroke='#eee'/>\n", x_of(n, a), MARGIN,
                            HEIGHT - MARGIN);
    }
    tutti_string_printf(s, "<path d='M%.1f %.1fL%.1f %.1f' stroke='#999' stroke-dasharray='4'/>\n",
                        x_of(1, a), y_of(1, a), x_of(a.most, a), y_of(a.most, a));
    tutti_string_printf(s, "<text x='%d' y='%d' text-anchor='middle'>nodes</text>\n", WIDTH / 2,
                        HEIGHT - 16);
}

static bool has_points(const tutti_curve *c)
{
    for (int i = 0; i < c->count; i++)
        if (isfinite(c->speedup[i])) return true;
    return false;
}

static void draw_curve(tutti_string *s, const tutti_curve *c, axes a, int place)
{
    if (!c->is_points) {
        tutti_string_printf(s, "<polyline stroke='%s' stroke-width='2' points='", c->color);
        for (int i = 0; i < c->count; i++)
            if (isfinite(c->speedup[i]))
                tutti_string_printf(s, "%.1f,%.1f ", x_of(c->nodes[i], a), y_of(c->speedup[i], a));
        tutti_string_printf(s, "'/>\n");
    }
    for (int i = 0; i < c->count; i++)
        if (isfinite(c->speedup[i]))
            tutti_string_printf(s, "<circle cx='%.1f' cy='%.1f' r='%d' %s='%s'/>\n",
                                x_of(c->nodes[i], a), y_of(c->speedup[i], a), c->is_points ? 5 : 4,
                                c->is_points ? "stroke" : "fill", c->color);
    tutti_string_printf(s, "<text x='%d' y='%d' fill='%s'>%s</text>\n", MARGIN + 12,
                        MARGIN + 12 + place * LEGEND_LINE, c->color, c->name);
}

tutti_status tutti_plot_check(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (!path || (dot && !strcmp(dot, ".svg"))) return tutti_file_check_place(path);
    return tutti_fail(TUTTI_ARGUMENT,
                      "--plot %s: curves are drawn as SVG; give a name that ends in .svg", path);
}

tutti_status tutti_plot_save(const char *path, const char *title, const tutti_curve *curves,
                             int count)
{
    tutti_string s = {0};
    const axes a = axes_of(curves, count);
    tutti_string_printf(&s,
                        "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                        "font-family='sans-serif' font-size='12' fill='none'>\n"
                        "<rect width='%d' height='%d' fill='white'/><g fill='black'>\n"
                        "<text x='%d' y='28' font-size='16'>%s</text>\n",
                        WIDTH, HEIGHT, WIDTH, HEIGHT, MARGIN, title);
    draw_axes(&s, a);
    tutti_string_printf(&s, "</g>\n");
    for (int c = 0, place = 0; c < count; c++)
        if (has_points(&curves[c])) draw_curve(&s, &curves[c], a, place++);
    tutti_string_printf(&s, "</svg>\n");
    tutti_status status = tutti_string_status(&s);
    if (status == TUTTI_OK) status = tutti_file_save(path, s.data, s.length);
    tutti_string_deinit(&s);
    return status;
}
