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

static bool is_mark(const char *name)
{
    return strncmp(name, TUTTI_MARK, strlen(TUTTI_MARK)) == 0;
}

static bool is_ours(const char *name)
{
    for (int i = 0; i < TUTTI_CHECKPOINT_FILES; i++)
        if (strcmp(name, tutti_checkpoint_files[i]) == 0) return true;
    return strcmp(name, TUTTI_SUMS_FILE) == 0 || is_mark(name);
}

/* Removes the files that 'which' names. Are there others? */
static bool remove_files(const char *path, bool (*which)(const char *name))
{
    bool others = false;
    DIR *dir = opendir(path);
    if (!dir) return false;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        char file[TUTTI_PATH_BYTES];
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        if (!which(name)) others |= strncmp(name, SILLY_RENAMED, strlen(SILLY_RENAMED)) != 0;
        else if (tutti_checkpoint_path(file, path, name, "") == TUTTI_OK) unlink(file);
    }
    closedir(dir);
    return others;
}

/* Removes what is ours from the directory, and the directory. Are there strangers' files in it? */
static bool remove_ours(const char *path)
{
    const bool strangers = remove_files(path, is_ours);
    return rmdir(path) && strangers;
}

void tutti_checkpoint_remove_marks(const char *path)
{
    remove_files(path, is_mark);
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
    char name[TUTTI_STEP_NAME_BYTES], doomed_name[TUTTI_TEMPORARY_BYTES];
    char path[TUTTI_PATH_BYTES], doomed[TUTTI_PATH_BYTES];
    tutti_checkpoint_step_name(name, step);
    tutti_temporary_name(doomed_name, name);
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

void tutti_checkpoint_remove_unfinished(const char *run, bool alone)
{
    char path[TUTTI_PATH_BYTES];
    DIR *dir = opendir(run);
    if (!dir) return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (!tutti_temporary_is_left(entry->d_name, alone)) continue;
        if (tutti_checkpoint_path(path, run, entry->d_name, "") == TUTTI_OK && unlink(path))
            tutti_checkpoint_discard(run, entry->d_name, NULL);
    }
    closedir(dir);
}
