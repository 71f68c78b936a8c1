/* Two panels over the same axis of nodes. Speedup shows how far one gets, both axes logarithmic, so
 * that ideal is a straight line; there 90x and 120x lie close together. Efficiency, the speedup
 * divided by the nodes, shows what is lost. The last point of each curve shows its value. */
#include "forecast/plot.h"

#include <math.h>
#include <string.h>

#include "format/file.h"
#include "format/json.h"

enum {
    WIDTH = 860,
    HEIGHT = 400,
    TOP = 74,
    BOTTOM = 340,
    PANEL_WIDTH = 310,
    LABEL_LINE = 15, /* the least distance of two labels */
    MOST_CURVES = 8,
    MOST_TICKS = 8 /* of powers of two; else of four */
};

static const double nearly = 0.99; /* a pixel or two */

/* A panel's place and what it shows. Nodes go from 1 to 'most', values from 'least' on. */
typedef struct panel {
    int left;
    bool is_efficiency; /* in percent, from 0, not logarithmic */
    double most, least, greatest;
} panel;

static double value_at(const tutti_curve *c, int i, const panel *p)
{
    return p->is_efficiency ? 100 * c->speedup[i] / c->nodes[i] : c->speedup[i];
}

static double most_nodes(const tutti_curve *curves, int count)
{
    double most = 1;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < curves[c].count; i++) most = fmax(most, curves[c].nodes[i]);
    return most;
}

static panel speedup_panel(const tutti_curve *curves, int count)
{
    panel p = {.left = 66, .most = most_nodes(curves, count), .least = 1};
    p.greatest = p.most;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < curves[c].count; i++)
            while (curves[c].speedup[i] > 0 && curves[c].speedup[i] < nearly * p.least)
                p.least /= 2;
    return p;
}

static panel efficiency_panel(const tutti_curve *curves, int count)
{
    panel p = {
        .left = 490, .is_efficiency = true, .most = most_nodes(curves, count), .greatest = 100};
    for (int c = 0; c < count; c++)
        for (int i = 0; i < curves[c].count; i++)
            while (value_at(&curves[c], i, &p) > 1.02 * p.greatest) p.greatest += 20;
    return p;
}

static double x_of(double nodes, const panel *p)
{
    return p->left + PANEL_WIDTH * (p->most > 1 ? log(nodes) / log(p->most) : 0);
}

static double y_of(double value, const panel *p)
{
    double f = 0;
    if (p->is_efficiency) f = value / p->greatest;
    else if (p->greatest > p->least && value > 0)
        f = log(value / p->least) / log(p->greatest / p->least);
    return BOTTOM - (BOTTOM - TOP) * fmax(f, 0);
}

/* ---- axes ---- */

static void draw_row(tutti_string *s, const panel *p, double value)
{
    tutti_string_printf(s,
                        "<path d='M%d %.1fH%d' stroke='#ddd'/>"
                        "<text x='%d' y='%.1f' text-anchor='end'>%g%s</text>\n",
                        p->left, y_of(value, p), p->left + PANEL_WIDTH, p->left - 8,
                        y_of(value, p) + 4, value, p->is_efficiency ? " %" : "x");
}

static void draw_axes(tutti_string *s, const panel *p)
{
    const double step = pow(2, ceil(log2(p->most) / MOST_TICKS));
    if (p->is_efficiency)
        for (double v = 0; v <= p->greatest; v += 20) draw_row(s, p, v);
    else
        for (double v = p->least; v <= p->greatest * 1.0001; v *= fmax(step, 2)) draw_row(s, p, v);
    for (double n = 1; n <= p->most * 1.0001; n *= fmax(step, 2))
        tutti_string_printf(s,
                            "<path d='M%.1f %dV%d' stroke='#eee'/>"
                            "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n",
                            x_of(n, p), TOP, BOTTOM, x_of(n, p), BOTTOM + 20, n);
    const double ideal_first = p->is_efficiency ? 100 : 1,
                 ideal_last = p->is_efficiency ? 100 : p->most;
    tutti_string_printf(s, "<path d='M%.1f %.1fL%.1f %.1f' stroke='#555' stroke-dasharray='4'/>\n",
                        x_of(1, p), y_of(ideal_first, p), x_of(p->most, p), y_of(ideal_last, p));
    tutti_string_printf(s, "<text x='%d' y='%d' text-anchor='middle'>nodes</text>\n",
                        p->left + PANEL_WIDTH / 2, BOTTOM + 44);
    tutti_string_printf(s,
                        "<text transform='translate(%d %d) rotate(-90)' text-anchor='middle'>%s"
                        "</text>\n",
                        p->left - 50, (TOP + BOTTOM) / 2,
                        p->is_efficiency ? "efficiency: speedup / nodes" : "speedup over one node");
}

/* ---- curves ---- */

/* Its last point, -1 where it has none. */
static int last_point(const tutti_curve *c)
{
    for (int i = c->count - 1; i >= 0; i--)
        if (isfinite(c->speedup[i])) return i;
    return -1;
}

static void draw_line(tutti_string *s, const tutti_curve *c, const panel *p)
{
    tutti_string_printf(s, "<polyline stroke='%s' stroke-width='%d' points='", c->color,
                        c->style == TUTTI_CURVE_BAND ? 7 : 2);
    for (int i = 0; i < c->count; i++)
        if (isfinite(c->speedup[i]))
            tutti_string_printf(s, "%.1f,%.1f ", x_of(c->nodes[i], p), y_of(value_at(c, i, p), p));
    tutti_string_printf(s, "'/>\n");
}

static void draw_points(tutti_string *s, const tutti_curve *c, const panel *p)
{
    for (int i = 0; i < c->count; i++) {
        if (!isfinite(c->speedup[i])) continue;
        const double x = x_of(c->nodes[i], p), y = y_of(value_at(c, i, p), p);
        if (c->style == TUTTI_CURVE_POINTS)
            tutti_string_printf(s, "<path d='M%.1f %.1fl6 6l-6 6l-6-6z' fill='%s'/>\n", x, y - 6,
                                c->color);
        else
            tutti_string_printf(s, "<circle cx='%.1f' cy='%.1f' r='4' fill='%s'/>\n", x, y,
                                c->color);
    }
}

/* The values of last points, from the highest down, pushed apart where they would overlap. */
static void draw_labels(tutti_string *s, const tutti_curve *curves, int count, const panel *p)
{
    bool done[MOST_CURVES] = {false};
    double free_from = 0;
    for (int drawn = 0; drawn < count; drawn++) {
        int best = -1;
        for (int c = 0; c < count; c++) {
            const int i = last_point(&curves[c]);
            if (done[c] || i < 0) continue;
            if (best < 0 ||
                value_at(&curves[c], i, p) > value_at(&curves[best], last_point(&curves[best]), p))
                best = c;
        }
        if (best < 0) return;
        done[best] = true;
        const int i = last_point(&curves[best]);
        const double value = value_at(&curves[best], i, p), y = fmax(y_of(value, p) + 4, free_from);
        tutti_string_printf(
            s, "<text x='%.1f' y='%.1f' fill='%s' font-weight='bold'>%.*f%s</text>\n",
            x_of(curves[best].nodes[i], p) + 11, y, curves[best].ink,
            value < 9.95 && !p->is_efficiency ? 1 : 0, value, p->is_efficiency ? " %" : "x");
        free_from = y + LABEL_LINE;
    }
}

static void draw_panel(tutti_string *s, const tutti_curve *curves, int count, const panel *p)
{
    tutti_string_printf(s, "<g fill='#222'>\n");
    draw_axes(s, p);
    tutti_string_printf(s, "</g>\n");
    for (int c = 0; c < count; c++) {
        if (last_point(&curves[c]) < 0) continue;
        if (curves[c].style != TUTTI_CURVE_POINTS) draw_line(s, &curves[c], p);
        if (curves[c].style != TUTTI_CURVE_BAND) draw_points(s, &curves[c], p);
    }
    draw_labels(s, curves, count, p);
}

/* One line below the title: each curve's mark and name, and what the dashes are. */
static void draw_legend(tutti_string *s, const tutti_curve *curves, int count)
{
    int x = 66;
    const int y = 52;
    for (int c = 0; c < count; c++) {
        const tutti_curve *curve = &curves[c];
        if (last_point(curve) < 0) continue;
        if (curve->style == TUTTI_CURVE_POINTS)
            tutti_string_printf(s, "<path d='M%d %dl6 6l-6 6l-6-6z' fill='%s'/>", x + 12, y - 10,
                                curve->color);
        else
            tutti_string_printf(s, "<path d='M%d %dh24' stroke='%s' stroke-width='%d'/>", x, y - 4,
                                curve->color, curve->style == TUTTI_CURVE_BAND ? 7 : 2);
        tutti_string_printf(s, "<text x='%d' y='%d' fill='%s'>%s</text>\n", x + 30, y, curve->ink,
                            curve->name);
        x += 50 + 8 * (int)strlen(curve->name);
    }
    tutti_string_printf(s,
                        "<path d='M%d %dh24' stroke='#555' stroke-dasharray='4'/>"
                        "<text x='%d' y='%d' fill='#222'>ideal</text>\n",
                        x, y - 4, x + 30, y);
}

/* ---- the picture ---- */

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
    const panel panels[] = {speedup_panel(curves, count), efficiency_panel(curves, count)};
    tutti_string_printf(&s,
                        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' "
                        "height='%d' font-family='sans-serif' font-size='13' fill='none'>\n"
                        "<rect width='%d' height='%d' fill='white'/>\n"
                        "<text x='66' y='28' font-size='17' fill='#222'>%s</text>\n",
                        WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, title);
    draw_legend(&s, curves, count);
    for (int i = 0; i < 2; i++) draw_panel(&s, curves, count, &panels[i]);
    tutti_string_printf(&s, "</svg>\n");
    tutti_status status = tutti_string_status(&s);
    if (status == TUTTI_OK) status = tutti_file_save(path, s.data, s.length);
    tutti_string_deinit(&s);
    return status;
}
