/* What would hurt, from the facts alone: one rule a function, all rules in one table. */
#include "machine/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_found(tutti_finding *f, const char *format, ...) TUTTI_PRINTF(2, 3);

static bool is_found(tutti_finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->sentence, sizeof f->sentence, format, args);
    va_end(args);
    return true;
}

static void remedy(tutti_finding *f, const char *format, ...) TUTTI_PRINTF(2, 3);

static void remedy(tutti_finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->remedy, sizeof f->remedy, format, args);
    va_end(args);
}

static bool more_threads_than_cores(tutti_finding *f, const tutti_facts *m)
{
    if (m->team <= m->cores) return false;
    remedy(f, "export OMP_NUM_THREADS=%d", m->cores);
    if (m->team <= m->threads)
        return is_found(f,
                        "%d threads on %d cores share cores as SMT siblings, which slows each "
                        "of them down",
                        m->team, m->cores);
    return is_found(f, "%d threads are asked for but this process may use only %d core%s", m->team,
                    m->cores, m->cores == 1 ? "" : "s");
}

static bool fewer_threads_than_cores(tutti_finding *f, const tutti_facts *m)
{
    if (m->ranks > 1 || m->team >= m->cores) return false;
    remedy(f, "export OMP_NUM_THREADS=%d", m->cores);
    return is_found(f, "%d of %d cores are idle: only %d thread%s asked for", m->cores - m->team,
                    m->cores, m->team, m->team == 1 ? " is" : "s are");
}

static bool confined_to_some_cores(tutti_finding *f, const tutti_facts *m)
{
    if (m->ranks > 1 || m->cores >= m->machine_cores) return false;
    remedy(f, "taskset -c 0-%d tutti ..., or mpirun --bind-to none, or srun --cpus-per-task=%d",
           m->machine_threads - 1, m->machine_cores);
    return is_found(f, "this process may use only %d of the machine's %d cores", m->cores,
                    m->machine_cores);
}

static bool two_threads_on_one_core(tutti_finding *f, const tutti_facts *m)
{
    for (int i = 0; i < m->seat_count; i++)
        for (int j = 0; j < i; j++) {
            const tutti_seat a = m->seats[j], b = m->seats[i];
            if (a.core < 0 || a.core != b.core || a.host != b.host) continue;
            if (a.rank == b.rank) {
                remedy(f, "unset OMP_PLACES GOMP_CPU_AFFINITY KMP_AFFINITY OMP_PROC_BIND");
                return is_found(f, "threads %d and %d are bound to the same core %d", a.thread,
                                b.thread, a.core);
            }
            remedy(f, "mpirun --map-by slot:PE=%d --bind-to core, or srun --cpus-per-task=%d",
                   m->team, m->team);
            return is_found(f, "ranks %d and %d are bound to the same core %d", a.rank, b.rank,
                            a.core);
        }
    return false;
}

static bool ranks_crowd_the_machine(tutti_finding *f, const tutti_facts *m)
{
    if (m->ranks < 2 || m->host_threads <= m->machine_cores || m->team > m->cores) return false;
    const int each = m->machine_cores / m->ranks;
    if (each) remedy(f, "export OMP_NUM_THREADS=%d", each);
    else remedy(f, "mpirun --map-by ppr:%d:node", m->machine_cores);
    return is_found(f, "%d ranks with %d threads together run on this host of %d cores", m->ranks,
                    m->host_threads, m->machine_cores);
}

static bool processor_time_is_limited(tutti_finding *f, const tutti_facts *m)
{
    if (m->cpu_limit <= 0 || m->cpu_limit >= m->team - 0.01) return false;
    remedy(f, "docker run --cpus=%d, or export OMP_NUM_THREADS=%d", m->team,
           m->cpu_limit < 2 ? 1 : (int)m->cpu_limit);
    return is_found(f, "the control group grants the time of %.2g processors to %d threads",
                    m->cpu_limit, m->team);
}

static bool memory_is_limited(tutti_finding *f, const tutti_facts *m)
{
    const double gib = 1.0 / (1 << 30);
    if (!m->memory_limit || m->memory_limit >= m->memory / 2) return false;
    remedy(f, "docker run --memory=%.0fg, or sbatch --mem=0", (double)m->memory * gib);
    return is_found(f, "the control group grants %.1f of %.1f GiB of memory",
                    (double)m->memory_limit * gib, (double)m->memory * gib);
}

static bool huge_pages_are_off(tutti_finding *f, const tutti_facts *m)
{
    if (strcmp(m->huge_pages, "never")) return false;
    remedy(f, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    return is_found(f, "huge pages are off, so large arrays miss the TLB often");
}

static bool clock_saves_power(tutti_finding *f, const tutti_facts *m)
{
    if (strcmp(m->governor, "powersave") && strcmp(m->governor, "conservative")) return false;
    remedy(f, "sudo cpupower frequency-set -g performance");
    return is_found(f, "the clock's governor is '%s', which may hold the processor back",
                    m->governor);
}

static bool kernels_are_lowered(tutti_finding *f, const tutti_facts *m)
{
    if (!strcmp(m->isa, m->best_isa)) return false;
    remedy(f, "unset TUTTI_ISA");
    return is_found(f, "TUTTI_ISA lowers the kernels from %s to %s", m->best_isa, m->isa);
}

static bool threads_do_not_add_up(tutti_finding *f, const tutti_facts *m)
{
    const double gain = m->speeds.fma_one > 0 ? m->speeds.fma_all / m->speeds.fma_one : m->team;
    if (m->team > m->cores || gain >= 0.7 * m->team) return false;
    remedy(f, "top -H, to see who else computes here");
    return is_found(f,
                    "%d threads compute only %.1f times as fast as one: something else uses the "
                    "cores",
                    m->team, gain);
}

static bool one_rank_is_slow(tutti_finding *f, const tutti_facts *m)
{
    if (m->all_ranks < 2 || m->slow_speed >= 0.8 * m->median_speed) return false;
    remedy(f, "leave its host out: mpirun --hostfile, or sbatch --exclude");
    return is_found(f,
                    "rank %d computes at %.0f GFLOP/s where half of the ranks reach %.0f: all "
                    "will wait for it",
                    m->slow_rank, m->slow_speed, m->median_speed);
}

static bool net_does_not_fit(tutti_finding *f, const tutti_facts *m)
{
    const double gib = 1.0 / (1 << 30);
    const uint64_t limit = m->memory_limit ? m->memory_limit : m->memory_free;
    const uint64_t have = limit < m->memory_free ? limit : m->memory_free;
    const uint64_t need = m->net_bytes * (uint64_t)m->ranks;
    if (!m->net || need <= have) return false;
    const int fits = (int)(0.9 * m->batch * ((double)have / (double)need));
    remedy(f, "tutti train %s --batch-size %d, or more hosts", m->net, fits > 1 ? fits : 1);
    return is_found(f,
                    "training %s with %d samples a step takes %.1f GiB a rank, but %.1f GiB are "
                    "free for %d rank%s",
                    m->net, m->batch, (double)m->net_bytes * gib, (double)have * gib, m->ranks,
                    m->ranks == 1 ? "" : "s");
}

/* A request to stop is heard of at the end of one step, by all ranks at the end of the next. */
static bool launcher_kills_early(tutti_finding *f, const tutti_facts *m)
{
    const double step = m->speeds.fma_all > 0 ? m->net_flops / (m->speeds.fma_all * 1e9) : 0;
    if (!m->net || m->grace <= 0 || 2 * step <= m->grace) return false;
    remedy(f, "mpirun --mca odls_base_sigkill_timeout %.0f", 60 + 4 * step);
    return is_found(f,
                    "a step of %s takes at least %.1f s, but mpirun kills %g s after Ctrl-C or "
                    "SIGTERM: too early for a last checkpoint",
                    m->net, step, m->grace);
}

typedef bool rule(tutti_finding *f, const tutti_facts *m);

static rule *const rules[] = {
    more_threads_than_cores, fewer_threads_than_cores, confined_to_some_cores,
    two_threads_on_one_core, ranks_crowd_the_machine,  processor_time_is_limited,
    memory_is_limited,       huge_pages_are_off,       clock_saves_power,
    kernels_are_lowered,     threads_do_not_add_up,    one_rank_is_slow,
    net_does_not_fit,        launcher_kills_early,
};

int tutti_findings(tutti_finding out[TUTTI_MAX_FINDINGS], const tutti_facts *facts)
{
    int count = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i](&out[count], facts)) count++;
    return count;
}
