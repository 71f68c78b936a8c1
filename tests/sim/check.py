#!/usr/bin/env python3
"""check.py TUTTI: simulates a few nodes and looks at what tutti simulate says; in a
build without a simulator, that it names what to install."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TUTTI = pathlib.Path(sys.argv[1]).resolve()
NET, BATCH = "lenet", 64
KEYS = {"nodes", "step_s", "samples_per_s", "speedup", "efficiency", "exposed_s", "bytes_sent",
        "busiest_link", "busiest_share", "predicted_step_s", "predicted_speedup", "paper_speedup"}
failures = 0


def simulate(*arguments, net=NET, **environment):
    """coreutils' timeout ends the simulator, too, should it hang."""
    return subprocess.run(["timeout", "60", TUTTI, "simulate", net, "-b", str(BATCH), *arguments],
                          text=True, capture_output=True, env={**os.environ, **environment})


def rows(*arguments, net=NET, platform="workstations-1g"):
    done = simulate("--platform", platform, "--json", *arguments, net=net)
    if done.returncode:
        sys.exit(f"tutti simulate {net} {' '.join(map(str, arguments))}: status "
                 f"{done.returncode} {done.stderr}")
    return json.loads(done.stdout)["rows"]


def check(name, good, seen=""):
    global failures
    failures += not good
    print(f"[{'       OK ' if good else '  FAILED  '}] {name}", "" if good else seen, flush=True)


def check_rows():
    table = rows("--nodes", "1,2,3,4", "--plan", "data")
    check("keys", all(set(r) == KEYS for r in table), table[0].keys())
    check("one_node_is_the_measure", abs(table[0]["speedup"] - 1) < 1e-6, table[0])
    check("more_nodes_are_not_super", all(r["speedup"] <= r["nodes"] * 1.001 for r in table), table)
    return table


def check_bytes(table):
    """Part-reduce and part-broadcast each send (N-1)/N of the parameters; what the step that is not
    counted left under way may make a small difference."""
    info = json.loads(subprocess.run([TUTTI, "info", NET, "--json"], text=True, check=True,
                                     capture_output=True).stdout)
    for row in table:
        if row["nodes"] not in (2, 4):
            continue
        wanted = 2 * info["weight_bytes"] * (row["nodes"] - 1) / row["nodes"]
        check(f"bytes_of_{row['nodes']}_nodes", abs(row["bytes_sent"] / wanted - 1) < 0.005,
              (row["bytes_sent"], wanted))


def check_passes():
    """Activations of split layers travel in every pass, gradients in the last one."""
    for plan in "data", "model":
        one, four = (rows("--nodes", "2", "--plan", plan, *extra)[0]
                     for extra in ([], ["--micro-batch", "8"]))
        check(f"passes_with_plan_{plan}_take_longer", four["step_s"] > one["step_s"], (one, four))
        check(f"passes_with_plan_{plan}_send_as_much",
              abs(four["bytes_sent"] / one["bytes_sent"] - 1) < 0.01, (one, four))
        check(f"passes_with_plan_{plan}_are_predicted",
              abs(four["predicted_step_s"] / four["step_s"] - 1) < 0.1, four)


def check_options():
    plain = rows("--nodes", "4", "--plan", "data")[0]["step_s"]
    again = rows("--nodes", "4", "--plan", "data")[0]["step_s"]
    check("the_same_again", plain == again, (plain, again))
    late = rows("--nodes", "4", "--plan", "data", "--overlap", "off")[0]["step_s"]
    check("overlap_helps", plain < late, (plain, late))
    slow = rows("--nodes", "4", "--plan", "data", "--straggler", "2")[0]["step_s"]
    check("a_straggler_hurts", slow > plain, (plain, slow))
    shaken = rows("--nodes", "4", "--plan", "data", "--jitter", "10%")[0]["step_s"]
    check("jitter_changes", shaken != plain, (plain, shaken))


def check_files():
    with tempfile.TemporaryDirectory() as folder:
        plot, trace = pathlib.Path(folder, "a.svg"), pathlib.Path(folder, "a.json")
        rows("--nodes", "1,2", "--plan", "model", "--plot", plot, "--trace", trace)
        check("a_plot", plot.read_text().startswith("<svg"))
        events = json.loads(trace.read_text())
        events = events["traceEvents"] if isinstance(events, dict) else events
        check("a_trace", {e["pid"] for e in events if e.get("ph") == "X"} == {0, 1})


def made_up(folder, topology, more=""):
    path = pathlib.Path(folder, "made-up.platform")
    path.write_text("tutti platform 1\npeak 1000GF\nmemory-bandwidth 50GB/s\nlink 1GB/s latency=10us overlap=1\n"
                    f"topology {topology}\nrate conv 1 0.5\nrate fc 1 0.3\n{more}")
    return str(path)


def check_topologies():
    """A platform of every topology that can be simulated, and one that cannot."""
    with tempfile.TemporaryDirectory() as folder:
        for topology in ("star", "fat-tree", "dragonfly", "torus", "ring"):
            done = simulate("--platform", made_up(folder, topology), "--nodes", "5", "--json")
            good = (done.returncode == 1 and "ring" in done.stderr) if topology == "ring" \
                else done.returncode == 0
            check(f"topology_{topology}", good, done.stderr)


def check_hosts():
    """A node is a host; of a platform measured with several ranks on each, one of its ranks. Ranks
    of one host exchange in longer chunks, so the times differ."""
    steps = []
    with tempfile.TemporaryDirectory() as folder:
        for more in ("", 'machine "made up" threads=1 ranks=1\n',
                     'machine "made up" threads=1 ranks=4\n'):
            platform = made_up(folder, "star", more)
            steps.append(rows("--nodes", "4", "--plan", "data", platform=platform)[0]["step_s"])
    check("a_node_is_a_host", steps[0] == steps[1], steps)
    check("ranks_of_one_host", steps[0] != steps[2], steps)


def check_many_layers():
    """Many layers are large, too, and each rank has its own. ReLUs work where the features are:
    they send nothing."""
    sent = []
    with tempfile.TemporaryDirectory() as folder:
        for relus in (0, 500):
            path = pathlib.Path(folder, f"{relus}.net")
            path.write_text("input 64\nfc1 fc 128\n" +
                            "".join(f"r{i} relu\n" for i in range(relus)) +
                            "fc2 fc 128\nfc3 fc 64\nloss softmax\n")
            table = rows("--nodes", "2", "--plan", "model", net=str(path))
            sent.append(table[0]["bytes_sent"])
    check("many_layers", sent[0] == sent[1] > 0, sent)


def check_complaints():
    for name, words, arguments in [
            ("bad_jitter", "--jitter", ["--jitter", "much"]),
            ("bad_straggler", "--straggler", ["--straggler", "0.5"]),
            ("bad_nodes", "--nodes", ["--nodes", "few"]),
            ("too_many_nodes", "more than the 64 samples", ["--nodes", "65"]),
            ("bad_platform", "nowhere", ["--platform", "nowhere"])]:
        done = simulate(*arguments)
        check(name, done.returncode and words in done.stderr, done.stderr)


def check_absence(**environment):
    done = simulate(**environment)
    check("no_simulator", done.returncode == 1 and done.stderr.count("\n") == 1
          and "libsimgrid-dev" in done.stderr, done.stderr)


def main():
    if len(sys.argv) > 2 and sys.argv[2] == "none":
        check_absence()
        sys.exit(1 if failures else 0)
    check_bytes(check_rows())
    check_passes()
    check_options()
    check_files()
    check_topologies()
    check_hosts()
    check_many_layers()
    check_complaints()
    check_absence(TUTTI_SIM="/nonexistent")
    sys.exit(1 if failures else 0)


main()
