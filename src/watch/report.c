/* The page as a file. */
#include "watch/page.h"
#include "watch/runs.h"

enum { PIECE = 16 << 20 }; /* bytes of a file at a time */

static tutti_status read_all(tutti_runs *runs)
{
    bool more = true;
    while (more) TUTTI_TRY(tutti_runs_read(runs, PIECE, &more));
    return TUTTI_OK;
}

tutti_status tutti_report_write(const char *const *runs, int count, const char *path)
{
    tutti_runs r;
    tutti_string json = {0};
    TUTTI_TRY(tutti_runs_open(&r, runs, count));
    tutti_status s = read_all(&r);
    if (s == TUTTI_OK) {
        tutti_runs_json(&r, 0, &json);
        s = tutti_page_save(path, &json);
    }
    tutti_string_deinit(&json);
    tutti_runs_close(&r);
    return s;
}
