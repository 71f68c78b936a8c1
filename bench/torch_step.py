#!/usr/bin/env python3
"""A step of SGD with momentum in PyTorch on random data: the opponent of bench/step.

    torch_step.py NET BATCH THREADS [STEPS|serve] [PROCESSES]

BATCH counts the samples of all processes together; several processes use DistributedDataParallel
over gloo, with THREADS threads each. Times STEPS steps (5) after one to warm up and prints one line
of JSON: net, batch, threads, processes, samples_per_s (of the best step), step_s [...],
max_rss_bytes (of the first process), torch.

Pictures are channels_last, which is the fastest way where PyTorch has oneDNN (Debian's has not).

With "serve" it prints "ready" and what it is after the step to warm up; then, for each line it reads, it does a
step and prints its seconds; at the end of its input it prints the JSON. So steps of both sides can
alternate, and the machine's moods affect both alike.
"""
import json, os, resource, socket, subprocess, sys, time

if len(sys.argv) < 4:
    sys.exit(__doc__)
arguments = sys.argv[1:] + ["5", "1"][len(sys.argv) - 4:]
net_name, batch, threads = arguments[0], int(arguments[1]), int(arguments[2])
mode, processes = arguments[3], int(arguments[4])
rank = int(os.environ.get("TORCH_STEP_RANK", 0))
os.environ["OMP_NUM_THREADS"] = str(threads)

import torch
import torch.distributed as dist
import torch_net


def start_others():
    """The other processes of the job: this script again, each with a rank."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(s.getsockname()[1]))
    return [subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL,
                             env=dict(os.environ, TORCH_STEP_RANK=str(r)))
            for r in range(1, processes)]


others = start_others() if processes > 1 and rank == 0 else []
torch.set_num_threads(threads)
torch.manual_seed(0)
net, shape, classes = torch_net.build(net_name)
if processes > 1:
    dist.init_process_group("gloo", rank=rank, world_size=processes)
    net = torch.nn.parallel.DistributedDataParallel(net)
share = batch // processes + (rank < batch % processes)
x, y = torch.randn(share, *shape), torch.randint(0, classes, (share,))
is_last = len(shape) == 3 and torch.backends.mkldnn.is_available()
if is_last:
    net, x = (t.to(memory_format=torch.channels_last) for t in (net, x))
name = f"PyTorch {torch.__version__}{', channels_last' if is_last else ''}"
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()


def go_on(wanted):
    """Does rank 0 want another step? All processes hear the same."""
    flag = torch.tensor([int(wanted)])
    if processes > 1:
        dist.broadcast(flag, 0)
    return bool(flag.item())


def step():
    start = time.perf_counter()
    optimizer.zero_grad()
    criterion(net(x), y).backward()
    optimizer.step()
    if processes > 1:
        dist.barrier()
    return time.perf_counter() - start


def wishes():
    """True for every step that rank 0 is asked for."""
    if mode == "serve":
        print("ready", name, flush=True)
        for _ in sys.stdin:
            yield True
    else:
        for _ in range(int(mode)):
            yield True


seconds = []
step()
if rank > 0:
    while go_on(False):
        step()
    sys.exit(0)
for wanted in wishes():
    go_on(True)
    seconds.append(step())
    if mode == "serve":
        print(f"{seconds[-1]:.6f}", flush=True)
go_on(False)
for other in others:
    other.wait()

rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"net": net_name, "batch": batch, "threads": threads, "processes": processes,
                  "samples_per_s": batch / min(seconds) if seconds else None, "step_s": seconds,
                  "max_rss_bytes": rss, "torch": torch.__version__}))
