#!/usr/bin/env python3
"""A step of SGD with momentum in PyTorch on random data: the opponent of bench/step.

Several processes use DistributedDataParallel over gloo. Pictures are channels_last, which is the
fastest way where PyTorch has oneDNN (Debian's has not). Of the two ways to bf16, autocast and a net of
bfloat16, --precision bf16 tries both and takes the faster one.
"""
import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import opponent

WAYS = ("fp32", "bf16", "autocast", "bfloat16")
asked = opponent.arguments(__doc__, WAYS)
rank = int(os.environ.get("TORCH_STEP_RANK", 0))

import torch
import torch.distributed as dist
import torch_net


def speed(way):
    """Samples per second of two steps, in a process of their own: memory is counted, too."""
    done = subprocess.run([sys.executable, __file__, asked.net, str(asked.batch), str(asked.threads),
                           "--steps", "2", "--precision", way], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["samples_per_s"] if done.returncode == 0 else 0


def start_others():
    """The other processes of the job: this script again, each with a rank."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(s.getsockname()[1]))
    return [subprocess.Popen([sys.executable, *sys.argv, "--precision", precision],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             env=dict(os.environ, TORCH_STEP_RANK=str(r)))
            for r in range(1, asked.processes)]


precision = asked.precision if asked.precision != "bf16" else max("autocast", "bfloat16", key=speed)
others = start_others() if asked.processes > 1 and rank == 0 else []
torch.set_num_threads(asked.threads)
torch.manual_seed(0)
net, shape, classes = torch_net.build(asked.net)
if precision == "bfloat16":
    net = net.to(torch.bfloat16)
if asked.processes > 1:
    dist.init_process_group("gloo", rank=rank, world_size=asked.processes)
    net = torch.nn.parallel.DistributedDataParallel(net)
share = asked.batch // asked.processes + (rank < asked.batch % asked.processes)
x, y = torch.randn(share, *shape), torch.randint(0, classes, (share,))
x = x.to(torch.bfloat16) if precision == "bfloat16" else x
is_last = len(shape) == 3 and torch.backends.mkldnn.is_available()
if is_last:
    net, x = (t.to(memory_format=torch.channels_last) for t in (net, x))
name = ", ".join([f"PyTorch {torch.__version__}", *["channels_last"] * is_last,
                  *{"autocast": ["bf16 by autocast"], "bfloat16": ["all of it bf16"]}.get(precision, [])])
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
cast = torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else contextlib.nullcontext()


def step():
    start = time.perf_counter()
    optimizer.zero_grad()
    with cast:
        scores = net(x)
    criterion(scores.float(), y).backward()
    optimizer.step()
    if asked.processes > 1:
        dist.barrier()
    return time.perf_counter() - start


def is_wanted(wanted):
    """Does rank 0 want another step? All processes hear the same."""
    flag = torch.tensor([int(wanted)])
    if asked.processes > 1:
        dist.broadcast(flag, 0)
    return bool(flag.item())


def step_of_all():
    is_wanted(True)
    return step()


if rank == 0:
    opponent.play(asked, name, step_of_all)
    is_wanted(False)
else:
    while is_wanted(False):
        step()
for other in others:
    other.wait()
