/* The scaling curve as SVG: both axes logarithmic, the ideal as a thin line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/file.h"
#include "format/json.h"
#include "train/planner.h"

enum { WIDTH = 640, HEIGHT = 480, MARGIN = 64 };

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

tutti_status tutti_planner_plot(const tutti_planner *p, const char *path)
{
    tutti_string s = {0};
    double most = 1;
    for (int i = 0; i < p->count; i++) most = fmax(most, p->rows[i].nodes);
    tutti_string_printf(&s,
                        "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                        "font-family='sans-serif' font-size='12' fill='none'>\n"
                        "<rect width='%d' height='%d' fill='white'/><g fill='black'>\n"
                        "<text x='%d' y='28' font-size='16'>%s, minibatch %d, %s</text>\n",
                        WIDTH, HEIGHT, WIDTH, HEIGHT, MARGIN, p->net->name, p->batch,
                        p->platform->name);
    draw_axes(&s, most);
    tutti_string_printf(&s, "</g>\n<polyline stroke='#06c' stroke-width='2' points='");
    for (int i = 0; i < p->count; i++)
        tutti_string_printf(&s, "%.1f,%.1f ", x_of(p->rows[i].nodes, most),
                            y_of(p->rows[i].speedup, most));
    tutti_string_printf(&s, "'/>\n");
    for (int i = 0; i < p->count; i++) {
        const tutti_planner_row *r = &p->rows[i];
        tutti_string_printf(&s, "<circle cx='%.1f' cy='%.1f' r='4' fill='#06c'/>\n",
                            x_of(r->nodes, most), y_of(r->speedup, most));
        if (isfinite(r->paper_speedup))
            tutti_string_printf(&s,
                                "<circle cx='%.1f' cy='%.1f' r='5' stroke='#c30'/>"
                                "<text x='%.1f' y='%.1f' fill='#c30'>paper %gx</text>\n",
                                x_of(r->nodes, most), y_of(r->paper_speedup, most),
                                x_of(r->nodes, most) - 70, y_of(r->paper_speedup, most) + 18,
                                r->paper_speedup);
    }
    tutti_string_printf(&s, "</svg>\n");
    tutti_status status = tutti_string_status(&s);
    if (status == TUTTI_OK) status = tutti_file_save(path, s.data, s.length);
    tutti_string_deinit(&s);
    return status;
}
