#include "forecast/simulate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "forecast/page.h"
#include "forecast/plot.h"
#include "format/file.h"

enum { PATH_BYTES = 4096 };

tutti_simulate_options tutti_simulate_defaults(void)
{
    return (tutti_simulate_options){.platform = "cori-phase1",
                                    .nodes = "1..64",
                                    .plan = "auto",
                                    .overlap = true,
                                    .priority = true,
                                    .straggler = 1};
}

/* ---- the program ---- */

/* $TUTTI_SIM, else beside this program: as built, as installed. */
static tutti_status find_program(char *path, size_t size)
{
    static const char *const places[] = {"sim/tutti-sim", "../libexec/tutti-sim", "tutti-sim"};
    char self[PATH_BYTES];
    const char *named = getenv("TUTTI_SIM");
    snprintf(path, size, "%s", named ? named : "");
    if (named && !access(path, X_OK)) return TUTTI_OK;
    const ssize_t length = named ? -1 : readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        self[length] = 0;
        *(strrchr(self, '/') + 1) = 0;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const int written = snprintf(path, size, "%s%s", self, places[i]);
            if (written > 0 && (size_t)written < size && !access(path, X_OK)) return TUTTI_OK;
        }
    }
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "there is no simulator%s%s: install SimGrid (Debian: apt-get install "
                      "libsimgrid-dev) and build Tutti again",
                      named ? " at TUTTI_SIM=" : "", named ? named : "");
}

/* ---- a folder for SimGrid's files ---- */

static tutti_status make_folder(char *path, size_t size)
{
    const char *where = getenv("TMPDIR");
    snprintf(path, size, "%s/tutti-simulate-XXXXXX", where && *where ? where : "/tmp");
    if (mkdtemp(path)) return TUTTI_OK;
    return tutti_fail(TUTTI_IO, "cannot make a folder %s: set TMPDIR", path);
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0); /* "." and ".." stay */
    if (folder) closedir(folder);
    rmdir(path);
}

/* ---- all rows ---- */

static tutti_status run(tutti_simulation *s, const char *program)
{
    char folder[PATH_BYTES];
    tutti_status status = make_folder(folder, sizeof folder);
    for (int i = 0; status == TUTTI_OK && i < s->planner->count; i++)
        status = tutti_simulation_run(s, i, program, folder);
    remove_folder(folder);
    return status;
}

static tutti_status answer(tutti_simulation *s)
{
    const tutti_simulate_options *o = s->options;
    char program[PATH_BYTES];
    TUTTI_TRY(find_program(program, sizeof program));
    TUTTI_TRY(run(s, program));
    if (o->show && o->json) TUTTI_TRY(tutti_simulation_print_json(s, o->show));
    if (o->show && !o->json) tutti_simulation_print(s, o->show);
    if (o->html) TUTTI_TRY(tutti_forecast_page_save(s->planner, s, o->html));
    return o->plot ? tutti_simulation_plot(s, o->plot) : TUTTI_OK;
}

tutti_status tutti_simulate_show(const tutti_simulate_options *o)
{
    tutti_planner_options plan = tutti_planner_defaults();
    tutti_simulation *s = NULL;
    plan.net = o->net;
    plan.platform = o->platform;
    plan.nodes = o->nodes;
    plan.plan = o->plan;
    plan.precision = o->precision;
    plan.batch_size = o->batch_size;
    plan.micro_batch = o->micro_batch;
    plan.overlap = o->overlap;
    plan.priority = o->priority;
    TUTTI_TRY(tutti_plot_check(o->plot));
    TUTTI_TRY(tutti_forecast_page_check(o->html));
    TUTTI_TRY(tutti_file_check_place(o->trace));
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    s->options = o;
    tutti_status status = tutti_planner_open(&s->planner, &plan);
    if (status == TUTTI_OK) status = answer(s);
    tutti_planner_close(&s->planner);
    tutti_free(s);
    return status;
}
