#include "comm/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECONDS_TO_END = 5, MOST_FILES = 4096 };

/* The fields after the name, which may hold anything: "4711 (a name) S 4700 ...". */
static tutti_process read_state(int pid, int *parent)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT && tutti_process_space() ? TUTTI_PROCESS_ENDED
                                                        : TUTTI_PROCESS_UNKNOWN;
    const size_t used = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[used] = 0;
    char state;
    const char *name_end = strrchr(text, ')');
    if (!name_end || sscanf(name_end + 1, " %c %d", &state, parent) != 2)
        return TUTTI_PROCESS_UNKNOWN;
    return strchr("Tt", state)    ? TUTTI_PROCESS_STOPPED
           : strchr("ZXx", state) ? TUTTI_PROCESS_ENDED
                                  : TUTTI_PROCESS_RUNS;
}

tutti_process tutti_process_look(int pid)
{
    int parent;
    return read_state(pid, &parent);
}

uint64_t tutti_process_space(void)
{
    struct stat space;
    return stat("/proc/self/ns/pid", &space) ? 0 : (uint64_t)space.st_ino;
}

tutti_siblings tutti_process_siblings(void)
{
    tutti_siblings found = {0, (int)getpid()};
    const int ours = (int)getppid();
    DIR *all = opendir("/proc");
    if (!all) return found;
    for (const struct dirent *entry; (entry = readdir(all));) {
        int parent = 0;
        const int pid = atoi(entry->d_name);
        const tutti_process state = pid > 0 ? read_state(pid, &parent) : TUTTI_PROCESS_UNKNOWN;
        if (parent != ours) continue;
        if (state == TUTTI_PROCESS_STOPPED) found.stopped = pid;
        if (state == TUTTI_PROCESS_RUNS && pid < found.lowest) found.lowest = pid;
    }
    closedir(all);
    return found;
}

/* ---- ends ---- */

static void *end(void *exit_code)
{
    sleep(SECONDS_TO_END);
    _exit((int)(intptr_t)exit_code);
}

void tutti_process_end_soon(int exit_code)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end, (void *)(intptr_t)exit_code) == 0)
        pthread_detach(thread);
}

/* Its name, as the system cuts it: "mpirun.openmpi" fits. */
static bool is_launcher(int pid)
{
    static const char *const known[] = {"mpirun", "mpiexec", "orterun", "prterun"};
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, name, sizeof name - 1);
    close(fd);
    for (size_t i = 0; got > 0 && i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i], strlen(known[i]))) return true;
    return false;
}

/* Beside the job, without its pipes: the launcher waits for their end. No gentler signal: it has
 * been told to end, and Open MPI's 4.1 dies of a second one with a trace of its stack. */
static _Noreturn void outlive(int launcher)
{
    setsid();
    for (int fd = 0; fd < MOST_FILES; fd++) close(fd);
    for (int s = 0; s < 2 * SECONDS_TO_END && is_launcher(launcher); s++) sleep(1);
    if (is_launcher(launcher)) kill(launcher, SIGKILL);
    _exit(0);
}

void tutti_process_end_launcher_soon(void)
{
    const int launcher = (int)getppid();
    if (is_launcher(launcher) && fork() == 0) outlive(launcher);
}
