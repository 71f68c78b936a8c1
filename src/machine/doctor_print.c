#include "machine/doctor.h"

#include <jansson.h>

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

/* 48 KiB, 1.25 MiB, 32 MiB */
static void print_size(size_t bytes, FILE *out)
{
    const bool large = bytes >= 1 << 20;
    fprintf(out, "%.4g %s", (double)bytes / (large ? 1 << 20 : 1 << 10), large ? "MiB" : "KiB");
}

static void print_caches(const tutti_facts *m, FILE *out)
{
    const char *separator = "caches   ";
    for (int i = 0; i < 3; i++) {
        if (!m->cache[i]) continue;
        fprintf(out, "%s L%d ", separator, i + 1);
        print_size(m->cache[i], out);
        if (m->sharers[i] > 1) fprintf(out, " shared by %d cores", m->sharers[i]);
        separator = ",";
    }
    fputs(*separator == ',' ? "\n" : "caches    unknown\n", out);
}

static void print_slowest(const tutti_facts *m, FILE *out)
{
    if (m->all_ranks > 1)
        fprintf(out, "slowest   rank %d with %.1f GFLOP/s, half of the ranks reach %.1f\n",
                m->slow_rank, m->slow_speed, m->median_speed);
}

static void print_speeds(const tutti_facts *m, FILE *out)
{
    const tutti_speeds *s = &m->speeds;
    if (s->fma_one <= 0) return;
    fprintf(out, "fma       %.1f GFLOP/s with 1 thread, %.1f with %d\n", s->fma_one, s->fma_all,
            m->team);
    fprintf(out, "bf16      %.1f GFLOP/s with 1 thread, %.1f with %d\n", s->bf16_one, s->bf16_all,
            m->team);
    fprintf(out, "bandwidth %.1f GB/s read, %.1f write, %.1f copy with %d thread%s\n", s->read,
            s->write, s->copy, m->team, m->team == 1 ? "" : "s");
    print_slowest(m, out);
}

static void print_facts(const tutti_facts *m, FILE *out)
{
    fprintf(out, "cpu       %s\n", m->cpu);
    fprintf(out, "cores     %d of %d allowed", m->cores, m->machine_cores);
    if (m->threads > m->cores) fprintf(out, ", %d hardware threads", m->threads);
    fprintf(out, "; %d NUMA node%s\n", m->numa_nodes, m->numa_nodes == 1 ? "" : "s");
    print_caches(m, out);
    fprintf(out, "memory    %.1f GiB, %.1f free", gib(m->memory), gib(m->memory_free));
    if (*m->huge_pages) fprintf(out, "; huge pages: %s", m->huge_pages);
    fprintf(out, "\nkernels   %s\n", m->isa);
    fprintf(out, "threads   %d%s\n", m->team, m->pinned ? ", pinned one to a core" : "");
    fprintf(out, "mpi       %s\n", *m->mpi ? m->mpi : "none: one rank only");
    if (m->all_ranks > 1)
        fprintf(out, "ranks     %d, %d on this host with %d threads\n", m->all_ranks, m->ranks,
                m->host_threads);
    if (m->net)
        fprintf(out, "net       %s with %d samples a step: %.2f GiB a rank\n", m->net, m->batch,
                gib(m->net_bytes));
}

void tutti_machine_print(const tutti_machine *machine, FILE *out)
{
    if (machine->facts.rank) return;
    print_facts(&machine->facts, out);
    print_speeds(&machine->facts, out);
    for (int i = 0; i < machine->finding_count; i++)
        fprintf(out, "\n! %s\n  %s\n", machine->findings[i].sentence, machine->findings[i].remedy);
    if (!machine->finding_count) fprintf(out, "\nnothing to complain about\n");
}

/* --- JSON --- */

static json_t *caches_json(const tutti_facts *m)
{
    json_t *list = json_array();
    for (int i = 0; list && i < 3; i++)
        if (m->cache[i])
            json_array_append_new(list, json_pack("{s:i, s:I, s:i}", "level", i + 1, "bytes",
                                                  (json_int_t)m->cache[i], "shared_by_cores",
                                                  m->sharers[i]));
    return list;
}

static json_t *findings_json(const tutti_machine *machine)
{
    json_t *list = json_array();
    for (int i = 0; list && i < machine->finding_count; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "sentence", machine->findings[i].sentence,
                                        "remedy", machine->findings[i].remedy));
    return list;
}

static json_t *speed_json(double speed)
{
    return speed > 0 ? json_real(speed) : json_null(); /* null: not measured */
}

static json_t *machine_json(const tutti_machine *machine)
{
    const tutti_facts *m = &machine->facts;
    return json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:o, s:{s:I, s:I, s:s}, s:{s:i, s:b}, s:i, s:i, s:o,"
        " s:{s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o, s:o}, s:o}",
        "cpu", m->cpu, "cores", m->cores, "machine_cores", m->machine_cores, "hardware_threads",
        m->threads, "machine_hardware_threads", m->machine_threads, "numa_nodes", m->numa_nodes,
        "isa", m->isa, "caches", caches_json(m), "memory", "bytes", (json_int_t)m->memory, "free",
        (json_int_t)m->memory_free, "huge_pages", m->huge_pages, "team", "threads", m->team,
        "pinned", m->pinned, "ranks", m->all_ranks, "ranks_on_host", m->ranks, "mpi",
        *m->mpi ? json_string(m->mpi) : json_null(), "fma_gflops", "1",
        speed_json(m->speeds.fma_one), "all", speed_json(m->speeds.fma_all), "bf16_gflops", "1",
        speed_json(m->speeds.bf16_one), "all", speed_json(m->speeds.bf16_all), "memory_gbps",
        "read", speed_json(m->speeds.read), "write", speed_json(m->speeds.write), "copy",
        speed_json(m->speeds.copy), "findings", findings_json(machine));
}

tutti_status tutti_machine_print_json(const tutti_machine *machine, FILE *out)
{
    if (machine->facts.rank) return TUTTI_OK;
    json_t *json = machine_json(machine);
    if (!json) return tutti_fail(TUTTI_MEMORY, "no memory for the report");
    const int failed = json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    json_decref(json);
    if (failed || fputc('\n', out) == EOF)
        return tutti_fail(TUTTI_IO, "the report could not be written");
    return TUTTI_OK;
}
