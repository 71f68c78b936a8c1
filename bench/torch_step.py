#!/usr/bin/env python3
"""A step of SGD with momentum in PyTorch, one process, random data: the opponent of bench/step.

    torch_step.py NET BATCH THREADS [STEPS]     times STEPS steps (5) after one to warm up, prints
                                                {"net", "batch", "threads", "samples_per_s" (best),
                                                 "step_s": [...], "max_rss_bytes", "torch"}
    torch_step.py NET BATCH THREADS serve       prints "ready" after the step to warm up; then for
                                                each line it reads does a step and prints its
                                                seconds; at the end of its input prints the same
                                                JSON. So steps of both sides can alternate, and
                                                the machine's moods hit both alike.
"""
import json, os, resource, sys, time

net_name, batch, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
mode = sys.argv[4] if len(sys.argv) > 4 else "5"
os.environ.setdefault("OMP_NUM_THREADS", str(threads))

import torch
import torch_net

torch.set_num_threads(threads)
torch.manual_seed(0)
net, shape, classes = torch_net.build(net_name)
x, y = torch.randn(batch, *shape), torch.randint(0, classes, (batch,))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
seconds = []


def step():
    start = time.perf_counter()
    optimizer.zero_grad()
    criterion(net(x), y).backward()
    optimizer.step()
    return time.perf_counter() - start


step()
if mode == "serve":
    print("ready", flush=True)
    for _ in sys.stdin:
        seconds.append(step())
        print(f"{seconds[-1]:.6f}", flush=True)
else:
    seconds = [step() for _ in range(int(mode))]

rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"net": net_name, "batch": batch, "threads": threads,
                  "samples_per_s": batch / min(seconds) if seconds else None, "step_s": seconds,
                  "max_rss_bytes": rss, "torch": torch.__version__}))
