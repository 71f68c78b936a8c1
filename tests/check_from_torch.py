#!/usr/bin/env python3
"""check_from_torch.py NET_OUTPUTS: tools/from-torch on small modules, written in every way people
write them; and what it says about those that cannot be brought over."""
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
import torch_to_net  # noqa: E402
from check_torchvision import OUTPUTS, error_of, randomise  # noqa: E402


class Functional(nn.Module):
    """Functions and parameters of its own instead of modules."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.weight = nn.Parameter(torch.randn(12, 8, 3, 3) / 8)
        self.norm = nn.BatchNorm2d(12)
        self.out = nn.Linear(12 * 4, 7)

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.first.weight, self.first.bias, stride=2, padding=1))
        x = F.conv2d(x, self.weight, padding="same")
        n = self.norm
        x = F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, self.training)
        x = F.leaky_relu(x, 0.2, inplace=True)
        x = F.adaptive_avg_pool2d(F.max_pool2d(x, 3, 2, ceil_mode=True), 2)
        return F.linear(x.view(x.size(0), -1), self.out.weight, self.out.bias)


class Shared(nn.Module):
    """A ReLU and a pool that are used twice; changes in place that others see."""

    def __init__(self):
        super().__init__()
        self.relu, self.pool = nn.ReLU(inplace=True), nn.AvgPool2d(2, count_include_pad=False)
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 7)

    def forward(self, x):
        y = self.a(x)
        self.relu(y)  # y itself changes
        z = self.pool(self.relu(self.b(y)) + y)
        z += z.sigmoid()
        return self.head(self.pool(z).mean((2, 3)))


class Views(nn.Module):
    """Channels chosen, shuffled, put last and back; a scale for each channel."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, padding=1)
        self.norm, self.inner = nn.LayerNorm(6), nn.Linear(6, 6, bias=False)
        self.gamma = nn.Parameter(torch.rand(6, 1, 1))
        self.squeeze = nn.Conv2d(6, 6, 1)
        self.head = nn.Linear(12, 7)

    def forward(self, x):
        x = self.stem(x)
        n, c, h, w = x.shape
        x = x.reshape(n, 3, c // 3, h, w).transpose(1, 2).flatten(1, 2)
        a, b = torch.chunk(x, 2, 1)
        b = self.inner(self.norm(b.permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        b = self.gamma * F.gelu(b)
        scale = torch.sigmoid(self.squeeze(a.mean([2, 3], keepdim=True)))
        x = torch.cat([a * scale, b], dim=1)
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class UNet(nn.Module):
    """Down, up and across: both ways to enlarge images, and zeros on two sides."""

    def __init__(self):
        super().__init__()
        self.one, self.two = self.twice(3, 8), self.twice(8, 12)
        self.three = self.twice(12, 16)
        self.up2 = nn.ConvTranspose2d(16, 12, 3, stride=2, padding=1, output_padding=1)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.back2, self.back1 = self.twice(24, 12), self.twice(20, 8)
        self.same = nn.Conv2d(8, 7, 2)

    @staticmethod
    def twice(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                             nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(inplace=True))

    def pixels(self, x):
        one = self.one(x)
        two = self.two(F.max_pool2d(one, 2))
        three = self.up2(self.three(F.max_pool2d(two, 2)))
        rest = [two.size(i) - three.size(i) for i in (3, 2)]
        three = F.pad(three, [rest[0] // 2, rest[0] - rest[0] // 2,
                              rest[1] // 2, rest[1] - rest[1] // 2])
        two = self.back2(torch.cat([two, three], dim=1))
        one = self.back1(torch.cat((one, self.up1(two)), 1))
        return self.same(F.pad(one, (0, 1, 1, 0)))

    def forward(self, x):
        x = self.pixels(x)
        return x.flatten(2).mean(-1) + F.interpolate(x, (4, 5)).mean((-2, -1))


def sequential():
    return nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.ReLU6(), nn.Dropout(0.3), nn.Flatten(),
                         nn.Linear(6 * 14 * 14, 20), nn.BatchNorm1d(20), nn.Tanh(), nn.Linear(20, 7))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 3, 3, padding=1), nn.Linear(3 * 256, 7)

    def forward(self, x):
        return self.head(self.conv(self.conv(x)).flatten(1))


class Attention(Twice):
    def forward(self, x):
        x = x.flatten(2)
        return torch.softmax(x @ x.transpose(1, 2), -1)


class Two(Twice):
    def forward(self, x):
        y = self.conv(x).flatten(1)
        return self.head(y), y


class Branch(Twice):
    def forward(self, x):
        return self.head(x.flatten(1)) if x.sum() > 0 else x


class Square(Twice):
    def forward(self, x):
        return self.head((self.conv(x) ** 2).flatten(1))


class Padded(Twice):
    def forward(self, x):
        x = F.pad(self.conv(x), (1, 1))
        return self.head(x[:, :, :, 1:-1].flatten(1))


class Reflected(Twice):
    def forward(self, x):
        return self.head(self.conv(F.pad(x, (1, 1, 1, 1), mode="reflect"))[:, :, 1:-1, 1:-1].flatten(1))


class Rows(Twice):
    def forward(self, x):
        return self.head(self.conv(x.transpose(2, 3)).flatten(1))


def normalised():
    """Layer normalisation of all values, of an image and flattened."""
    net = nn.Sequential(nn.Conv2d(3, 17, 3, padding=1), nn.LayerNorm([17, 16, 16], eps=1e-3), nn.ReLU(),
                        nn.Conv2d(17, 5, 3, stride=3), nn.Flatten(), nn.LayerNorm(125), nn.Linear(125, 7))
    nn.init.uniform_(net[1].weight, 0.5, 1.5)
    nn.init.uniform_(net[1].bias, -1, 1)
    return net


GOOD = {"functions": Functional, "shared modules": Shared, "views": Views, "a UNet": UNet,
        "a sequence": sequential, "whole norms": normalised}
BAD = {
    Twice: "module 'conv' (Conv2d): weights are used twice",
    Attention: "operation 'matmul': there is nothing like it",
    Two: "operation 'output': the module gives several outputs",
    Branch: "torch.fx cannot trace the module",
    Square: "operation 'pow': there is nothing like it",
    Rows: "module 'conv' (Conv2d): elements in an order that no layer makes",
    lambda: nn.Sequential(nn.Conv2d(3, 3, 3, padding_mode="circular")):
        "module '0' (Conv2d): padding with 'circular'",
    lambda: nn.Sequential(nn.PReLU()): "module '0' (PReLU): there is nothing like it",
    Padded: "operation 'getitem': zeros around an image are known before convolutions only",
    Reflected: "operation 'pad': padding with something else than zeros",
    lambda: nn.Sequential(nn.Upsample(scale_factor=1.5)):
        "module '0' (Upsample): images 1.5 x 1.5 times as large",
    lambda: nn.Sequential(nn.Upsample(scale_factor=2, mode="bicubic")):
        "module '0' (Upsample): interpolation by 'bicubic'",
    lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.LayerNorm([16, 16])):
        "module '1' (LayerNorm): layer normalisation of something else than all channels or all values",
}


def check_good(program, name, make):
    torch.manual_seed(1)
    module = make()
    randomise(module)
    samples = torch.randn(3, 3, 16, 16)
    with tempfile.TemporaryDirectory() as scratch:
        net = pathlib.Path(scratch) / "net.net"
        text, tensors = torch_to_net.convert(module, (3, 16, 16))
        net.write_text(text)
        torch_to_net.write_safetensors(net.with_suffix(".safetensors"), tensors)
        with torch.no_grad():
            wanted = module.double().eval()(samples.double())
        error = error_of(program, net, net.with_suffix(".safetensors"), samples, wanted)
    print(f"{name:16} outputs {error:.1e}: {'ok' if error <= OUTPUTS else 'FAILED'}")
    return error <= OUTPUTS


def check_bad(make, says):
    said = "nothing"
    try:
        torch_to_net.convert(make(), (3, 16, 16))
    except torch_to_net.Unknown as error:
        said = str(error)
    good = said.startswith(says)
    print(f"says {said.splitlines()[0]}: {'ok' if good else 'FAILED, wants ' + says}")
    return good


def check_program():
    """Nothing is written when something is unknown, and the exit code says so."""
    with tempfile.TemporaryDirectory() as scratch:
        place = pathlib.Path(scratch)
        (place / "mine.py").write_text("import torch.nn as nn\n"
                                       "def good():\n    return nn.Sequential(nn.Linear(4, 3))\n"
                                       "def bad():\n    return nn.Sequential(nn.PReLU())\n")
        codes = [subprocess.run([sys.executable, ROOT / "tools/from-torch", place / f"mine.py:{name}",
                                 "--input", size, "--output", place / name],
                                capture_output=True).returncode
                 for name, size in (("good", "4"), ("bad", "4"), ("good", "4x"), ("none", "4"))]
        files = sorted(p.name for p in place.iterdir() if p.is_file())
    good = codes == [0, 1, 1, 1] and files == ["good.net", "good.safetensors", "mine.py"]
    print(f"the program: {'ok' if good else f'FAILED {codes} {files}'}")
    return good


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    results = [check_good(sys.argv[1], name, make) for name, make in GOOD.items()]
    results += [check_bad(make, says) for make, says in BAD.items()]
    sys.exit(0 if all([*results, check_program()]) else 1)
