"""What the opponents of bench/step share: their arguments, and steps on request.

    SCRIPT NET BATCH THREADS [--precision WAY] [--processes N] [--steps N | --serve]

BATCH counts the samples of all processes together, each of which has THREADS threads. After two steps
to warm up, --steps N (5) times N and prints one line of JSON: net, batch, threads, processes, name,
samples_per_s (of the best step), step_s [...], max_rss_bytes (of the first process).

With --serve it prints "ready" and what it is after the steps to warm up; then, for each line it reads,
it does a step and prints its seconds; at the end of its input it prints the JSON. So steps of both sides
can alternate, and the machine's moods affect both alike.
"""
import argparse
import json
import os
import resource
import sys


def arguments(doc, ways):
    """What was asked for; the number of threads is in the environment, too."""
    parser = argparse.ArgumentParser(description=doc + __doc__.split("\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net")
    parser.add_argument("batch", type=int)
    parser.add_argument("threads", type=int)
    parser.add_argument("--precision", choices=ways, default=ways[0])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--serve", action="store_true")
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(asked.threads)
    return asked


def wishes(asked, name):
    """Something for every step that is wanted."""
    if not asked.serve:
        yield from range(asked.steps)
        return
    print("ready", name, flush=True)
    yield from sys.stdin


def play(asked, name, step):
    """Does what is wanted by step(), which gives its seconds."""
    seconds = []
    for _ in range(2):
        step()
    for _ in wishes(asked, name):
        seconds.append(step())
        if asked.serve:
            print(f"{seconds[-1]:.6f}", flush=True)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"net": asked.net, "batch": asked.batch, "threads": asked.threads,
                      "processes": asked.processes, "name": name,
                      "samples_per_s": asked.batch / min(seconds) if seconds else None,
                      "step_s": seconds, "max_rss_bytes": rss}), flush=True)
