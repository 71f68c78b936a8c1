#include "checkpoint/remove.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "checkpoint/names.h"

/* Files that are open elsewhere when they are removed; NFS removes them itself, later. */
#define SILLY_RENAMED ".nfs"

static bool is_ours(const char *name)
{
    for (int i = 0; i < TUTTI_CHECKPOINT_FILES; i++)
        if (strcmp(name, tutti_checkpoint_files[i]) == 0) return true;
    return strcmp(name, TUTTI_SUMS_FILE) == 0;
}

/* Removes what is ours from the directory, and the directory. Are there strangers' files in it? */
static bool remove_ours(const char *path)
{
    bool strangers = false;
    DIR *dir = opendir(path);
    if (!dir) return false;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        char file[TUTTI_PATH_BYTES];
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        if (!is_ours(name)) strangers |= strncmp(name, SILLY_RENAMED, strlen(SILLY_RENAMED)) != 0;
        else if (tutti_checkpoint_path(file, path, name, "") == TUTTI_OK) unlink(file);
    }
    closedir(dir);
    return rmdir(path) && strangers;
}

void tutti_checkpoint_discard(const char *run, const char *name, const tutti_log *log)
{
    char path[TUTTI_PATH_BYTES], step[TUTTI_STEP_NAME_BYTES], rest[TUTTI_PATH_BYTES];
    snprintf(step, sizeof step, "%.*s", (int)strcspn(name, "."), name);
    if (tutti_checkpoint_path(path, run, name, "") != TUTTI_OK ||
        tutti_checkpoint_path(rest, run, step, ".rest") != TUTTI_OK)
        return;
    if (remove_ours(path) && rename(path, rest) == 0)
        tutti_warn(log, "%s/%s is removed but for files that are not the run's: they are in %s",
                   run, step, rest);
}

/* A finished checkpoint stops being one before its first file goes. */
static void remove_checkpoint(const char *run, int64_t step, const tutti_log *log)
{
    char name[TUTTI_STEP_NAME_BYTES], doomed_name[TUTTI_STEP_NAME_BYTES + 8];
    char path[TUTTI_PATH_BYTES], doomed[TUTTI_PATH_BYTES];
    tutti_checkpoint_step_name(name, step);
    snprintf(doomed_name, sizeof doomed_name, "%s.tmp", name);
    if (tutti_checkpoint_path(path, run, name, "") != TUTTI_OK ||
        tutti_checkpoint_path(doomed, run, doomed_name, "") != TUTTI_OK)
        return;
    if (rename(path, doomed) == 0) tutti_checkpoint_discard(run, doomed_name, log);
}

void tutti_checkpoint_remove_old(const char *run, int64_t step,
                                 const tutti_checkpoint_finish_options *options)
{
    int64_t *steps = NULL;
    int count = 0;
    if (options->keep <= 0 || tutti_checkpoint_steps(&steps, &count, run) != TUTTI_OK) return;
    for (int i = count - 1, kept = 0; i >= 0; i--) {
        if (steps[i] > step || kept++ < options->keep) continue;
        if (steps[i] != 0 && steps[i] != options->best_step)
            remove_checkpoint(run, steps[i], options->log);
    }
    tutti_free(steps);
}

/* Is it "step_00000100.tmp" or "step_00000100.replaced"? */
static bool is_unfinished(const char *entry)
{
    static const char *const suffixes[] = {".tmp", ".replaced"};
    char name[TUTTI_STEP_NAME_BYTES];
    const size_t n = strcspn(entry, ".");
    if (n >= sizeof name) return false;
    memcpy(name, entry, n);
    name[n] = 0;
    if (tutti_checkpoint_step_of(name) < 0) return false;
    return strcmp(entry + n, suffixes[0]) == 0 || strcmp(entry + n, suffixes[1]) == 0;
}

void tutti_checkpoint_remove_unfinished(const char *run)
{
    DIR *dir = opendir(run);
    if (!dir) return;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (is_unfinished(entry->d_name)) tutti_checkpoint_discard(run, entry->d_name, NULL);
    closedir(dir);
}
