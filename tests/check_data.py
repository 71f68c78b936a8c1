#!/usr/bin/env python3
"""check_data.py VARIED: how training samples are varied, compared with torchvision and NumPy.

Each picture is cut, scaled, flipped, changed in its colours, holed and mixed as tests/varied.c says
was drawn for it, by torchvision on tensors of floats; the values must agree to 1e-5, times what changes of
colours may enlarge a difference by. What is drawn must be distributed as RandomResizedCrop's own
parameters and NumPy's Beta are (Kolmogorov and Smirnov)."""
import pathlib, subprocess, sys, tempfile

import numpy as np
import torch
from PIL import Image

import torchvision_models  # noqa: F401  (declares what torchvision asks for)
from torchvision import transforms
from torchvision.transforms import functional

HEIGHT, WIDTH, COUNT, SIDE, EPOCHS = 61, 83, 12, 24, 4
MEAN, STD = torch.tensor([0.5, 0.4, 0.3])[:, None, None], torch.tensor([0.2, 0.25, 0.3])[:, None, None]
BOUND = 1e-5
COLOURED = BOUND * 1.6 * 1.5 * 1.7  # the largest factors of COLOURS
CHANGES = [functional.adjust_brightness, functional.adjust_contrast, functional.adjust_saturation,
           functional.adjust_hue]
CROP, COLOURS = "random-resized-crop=on", "color-jitter=0.6/0.5/0.7/0.3"
CASES = {  # keys, side of the hole
    "crop": (CROP, 0),
    "small crops": ("random-resized-crop=0.01/0.1,aspect=0.3/3", 0),
    "colours": (f"{CROP},{COLOURS}", 0),
    "hole": (f"{CROP},cutout=9", 9),
    "mixed": (f"{CROP},mixup=0.4", 0),
    "all": (f"{CROP},{COLOURS},cutout=10,mixup=1", 10),
}


def ours(*words):
    text = subprocess.run([sys.argv[1], *map(str, words)], check=True, capture_output=True, text=True)
    return [[float(word) for word in line.split()] for line in text.stdout.splitlines()]


def make_pictures(folder, random):
    pictures = []
    for i in range(COUNT):
        rgb = random.integers(0, 256, (HEIGHT // 4 + 1, WIDTH // 4 + 1, 3), dtype=np.uint8)
        rgb = np.asarray(Image.fromarray(rgb).resize((WIDTH, HEIGHT), Image.BICUBIC))
        (folder / str(i % 3)).mkdir(exist_ok=True)
        Image.fromarray(rgb).save(folder / str(i % 3) / f"{i:02}.png")
        pictures.append((f"{i % 3}/{i:02}", torch.tensor(rgb.transpose(2, 0, 1) / np.float32(255))))
    return [picture for _, picture in sorted(pictures, key=lambda named: named[0])]


def varied(picture, draws, hole):
    top, left, height, width, flip = map(int, draws[2:7])
    out = functional.resized_crop(picture, top, left, height, width, [SIDE, SIDE], antialias=True)
    out = functional.hflip(out) if flip else out
    order, by = draws[7:15:2], draws[8:16:2]
    for which in map(int, order):
        if by[which] != (which < 3):
            out = CHANGES[which](out, by[which])
    out = (out - MEAN) / STD
    y, x = (int(at) - hole // 2 for at in draws[15:17])
    out[:, max(y, 0):max(y + hole, 0), max(x, 0):max(x + hole, 0)] = 0
    return out


def check(case, folder, pictures):
    keys, hole = CASES[case]
    bound = COLOURED if COLOURS in keys else BOUND
    spec = f"images:{folder},holdout=0,mean=0.5/0.4/0.3,std=0.2/0.25/0.3,{keys}"
    lines = ours(spec, SIDE, HEIGHT, WIDTH, EPOCHS)
    draws = {(int(line[0]), int(line[1])): line for line in lines[::2]}
    theirs = {at: varied(pictures[at[1]], line, hole) for at, line in draws.items()}
    worst = 0
    for (epoch, id), line in zip(draws, lines[1::2]):
        partner, share = int(line[0]), line[1]
        want = share * theirs[epoch, id] + (1 - share) * theirs[epoch, partner]
        got = torch.tensor(line[4:]).reshape(SIDE, SIDE, 3).permute(2, 0, 1)
        worst = max(worst, (got - want).abs().max().item())
        assert [int(label) for label in line[2:4]] == [id // 4, partner // 4], "not their labels"
    print(f"{case:12} {len(draws)} samples differ by {worst:.1e} (<= {bound:.1e}): "
          f"{'ok' if worst <= bound else 'FAILED'}")
    return worst <= bound and len(draws) == COUNT * EPOCHS


def alike(what, a, b):
    """Two samples of one distribution are further apart once in ten thousand times."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    apart = np.abs(np.searchsorted(a, both, "right") / len(a) -
                   np.searchsorted(b, both, "right") / len(b)).max()
    most = np.sqrt(-0.5 * np.log(0.5e-4) * (len(a) + len(b)) / (len(a) * len(b)))
    print(f"{what:12} {len(a)} draws, distributions are {apart:.4f} apart (<= {most:.4f}): "
          f"{'ok' if apart <= most else 'FAILED'}")
    return apart <= most


def check_draws(count=8000):
    torch.manual_seed(1)
    good = []
    picture = torch.zeros(3, HEIGHT, WIDTH)
    theirs = np.array([transforms.RandomResizedCrop.get_params(picture, (0.08, 1), (3 / 4, 4 / 3))
                       for _ in range(count)])
    for alpha in 0.1, 0.4, 1, 3:
        lines = np.array(ours("draws", count, HEIGHT, WIDTH, alpha))
        beta = np.random.default_rng(1).beta(alpha, alpha, count).astype(np.float32)
        good.append(alike(f"Beta({alpha})", lines[:, 5], beta))
    for i, what in enumerate(["top", "left", "height", "width"]):
        good.append(alike(what, lines[:, i], theirs[:, i]))
    good.append(alike("area", lines[:, 2] * lines[:, 3], theirs[:, 2] * theirs[:, 3]))
    good.append(alike("partner", lines[:, 4], np.arange(count)))
    return all(good)


with tempfile.TemporaryDirectory() as name:
    pictures = make_pictures(pathlib.Path(name), np.random.default_rng(1))
    results = [check(case, name, pictures) for case in CASES] + [check_draws()]
sys.exit(0 if all(results) else 1)
