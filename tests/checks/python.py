#!/usr/bin/env python3
"""python.py TUTTI LIBRARY SOURCE [mpirun]: the Python package of a source tree ("installed": the one that
pip has installed) over the shared library: the same bytes as the program, models a step at a time, samples
from arrays and from Python, ranks, and what goes wrong."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, LIBRARY = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
os.environ["TUTTI_LIBRARY"] = LIBRARY
os.environ.setdefault("OMP_NUM_THREADS", "2")
if sys.argv[3] != "installed":
    sys.path.insert(0, str(SOURCE / "python"))
    os.environ["PYTHONPATH"] = str(SOURCE / "python")
try:
    import numpy as np
except ImportError:
    sys.exit("python3-numpy is missing: tools/setup")
import tutti  # noqa: E402

NET = """tutti net 1
input 3 8 8
c1 conv 16 kernel=3 pad=1 nobias
n1 batchnorm relu
f1 fc 32 relu
f2 fc 5
loss softmax
"""
OPTIONS = {"batch_size": 16, "lr": 0.05, "optimizer": "sgd,momentum=0.9", "seed": 3,
           "precision": "bf16"}
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
failures = []


def expect(what, good, seen=""):
    print(f"[{'       OK ' if good else '  FAILED  '}] {what}", flush=True)
    if not good:
        failures.append(what)
        print(seen)


def raises(what, kind, call, *words):
    try:
        call()
    except kind as why:
        expect(what, all(w in str(why) for w in words), repr(why))
    else:
        expect(what, False, "nothing was raised")


def samples():
    chance = np.random.default_rng(7)
    x = chance.integers(0, 256, (96, 3, 8, 8), dtype=np.uint8)
    return x, (x.reshape(96, -1).sum(axis=1) % 5).astype(np.int64)


def weights(run):
    return [hashlib.sha256((run / "latest" / name).read_bytes()).hexdigest()
            for name in ("model.safetensors", "optimizer.safetensors")]


def program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_training(folder, net, x, y):
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    options = [f"--{k.replace('_', '-')}={v}" for k, v in OPTIONS.items()]
    program("train", net, "--data", f"npy:{folder}/x.npy,{folder}/y.npy", "--epochs=2",
            "--run", folder / "program", *options, "-q")
    heard = []
    result = tutti.train(str(net), (x, y), epochs=2, run=folder / "python", watch=heard.append,
                         **OPTIONS)
    expect("tutti.train writes the bytes of tutti train",
           weights(folder / "program") == weights(folder / "python"))
    steps = [n for n in result.history if n.phase == "train"]
    expect("its history has every step", [n.step for n in steps] == list(range(1, result.steps + 1)))
    expect("the watcher heard all of it", heard == result.history)
    expect("the last loss is the result's", steps[-1].loss == result.loss)
    pairs = list(zip(x, y))
    tutti.train(str(net), pairs, epochs=2, run=folder / "pairs", **OPTIONS)
    expect("pairs from Python give the same bytes",
           weights(folder / "pairs") == weights(folder / "python"))
    few = tutti.train(str(net), (x, y), epochs=2, watch=lambda n: n.step < 3, **OPTIONS)
    expect("a watcher that says False ends it", few.steps == 4, few)


def check_model(folder, net, x, y):
    program("train", net, "--data", f"npy:{folder}/x.npy,{folder}/y.npy,holdout=0", "--steps=6",
            "--shuffle=off", "--augment=off", "--eval-every=never", "--run", folder / "plain", "-q",
            *[f"--{k.replace('_', '-')}={v}" for k, v in OPTIONS.items()])
    told = tutti.load_checkpoint(folder / "plain" / "latest")
    mean, std = (np.array(eval(told.about[k]), np.float32) for k in ("mean", "std"))
    with tutti.Model(str(net), dtype="uint8", mean=mean, std=std, run=folder / "steps",
                     **OPTIONS) as model:
        for step in range(6):
            part = slice(step * 16, step * 16 + 16)
            news = model.step(x[part][model.share], y[part][model.share])
        expect("a model's steps are counted", news.step == 6 == model.steps)
        expect("its parameters are those of tutti train, == for ==",
               all((model.parameters[n] == v).all() for n, v in told.parameters.items()
                   if n in model.parameters))
        model.save()
        before = model.forward(x)
        losses = model.losses(x, y)
        expect("losses are those of its probabilities",
               np.allclose(losses, -np.log(before[np.arange(96), y]), rtol=1e-4))
        model.parameters["f2.bias"] = np.arange(5)
        expect("a parameter that was written is read", (model.parameters["f2.bias"] ==
                                                       np.arange(5)).all())
        expect("and counts", not (model.forward(x) == before).all())
    expect("what a model saves is what tutti train saves",
           weights(folder / "steps")[1] == weights(folder / "plain")[1])
    tested = program("test", "--weights", folder / "steps", "--data",
                     f"npy:{folder}/x.npy,{folder}/y.npy,holdout=0,test={folder}/x.npy,"
                     f"test-labels={folder}/y.npy".replace("holdout=0,", ""), "--json")
    expect("tutti test takes it", f'"samples":{len(x)}' in tested.replace(" ", ""), tested)
    with tutti.Model(weights=folder / "steps", dtype="uint8") as again:
        expect("weights know their net and how samples are made",
               (again.forward(x) == before).all())
    with tutti.Model(str(net), dtype="uint8", mean=mean, std=std, run=folder / "steps",
                     resume="auto", **OPTIONS) as more:
        expect("a model goes on where it was saved", more.steps == 6)


def check_own_loss():
    target = np.random.default_rng(1).normal(size=(16, 5)).astype(np.float32)
    x = np.random.default_rng(2).normal(size=(16, 3, 8, 8)).astype(np.float32)

    def squares(outputs, first):
        d = outputs - target[first:first + len(outputs)]
        return (d * d).sum(axis=1), 2 * d

    net = "input 3 8 8\nf1 fc 32 tanh\nf2 fc 5\nl softmax\n"
    with tutti.Model(net, batch_size=16, loss=squares) as model:
        first = model.step(x, lr=0.02).loss
        for _ in range(200):
            last = model.step(x, lr=0.02).loss
        expect("a loss from Python is minimised", last < first / 100, (first, last))
        expect("forward gives its outputs", np.abs(model.forward(x) - target).max() < 0.5)

    def broken(outputs, first):
        raise LookupError("no targets")

    with tutti.Model(net, batch_size=16, loss=broken) as model:
        raises("an exception in a loss comes out", LookupError, lambda: model.step(x, lr=0.1),
               "no targets")


def check_refusals(net, x, y):
    def breaks(_news):
        raise ZeroDivisionError("in watch")

    class Torn(list):
        def __getitem__(self, at):
            if at > 50:
                raise OSError("torn")
            return super().__getitem__(at)

    train = tutti.train
    raises("an exception in watch", ZeroDivisionError,
           lambda: train(str(net), (x, y), epochs=1, watch=breaks, **OPTIONS), "in watch")
    raises("an exception in a source", OSError,
           lambda: train(str(net), Torn(zip(x, y)), epochs=1, **OPTIONS), "torn")
    raises("an unknown option", TypeError, lambda: train(str(net), (x, y), learning=1),
           "'learning'", "batch_size")
    raises("an option of a wrong type", TypeError, lambda: train(str(net), (x, y), epochs="x"),
           "'epochs'")
    raises("labels that do not count", TypeError, lambda: train(str(net), (x, y / 2)), "whole")
    raises("labels that are too few", ValueError, lambda: train(str(net), (x, y[1:])), "96")
    raises("a label that is too large", tutti.Error,
           lambda: train(str(net), (x, y + 1), epochs=1, **OPTIONS), "label 5")
    raises("samples of another shape", tutti.Error,
           lambda: train(str(net), (x[:, :2].astype("f4"), y), **OPTIONS), "the net takes 3")
    raises("a wrong net", tutti.Error, lambda: tutti.Net("input 3\nf fx 3\n"), "did you mean 'fc'")
    precisions = [layer.precision for layer in tutti.Net(str(net), "bf16").layers]
    expect("a net knows its precision", precisions == ["fp32", "", "bf16", "fp32", ""], precisions)
    raises("a wrong precision", tutti.Error, lambda: tutti.Net(str(net), "fp16"), "not 'fp16'")
    raises("a checkpoint that is not there", FileNotFoundError,
           lambda: tutti.load_checkpoint("/nowhere"), "/nowhere")
    with tutti.Model(str(net), **OPTIONS) as model:
        raises("a minibatch of another size", ValueError, lambda: model.step(x[:8], y[:8]), "16")
        raises("a parameter of another shape", ValueError,
               lambda: model.parameters.update({"f2.bias": [1]}), "(5,)")
    raises("a model that is closed", ValueError, lambda: model.forward(x), "closed")


ON_RANKS = """
import sys
import numpy as np
import tutti
folder, net, kind = sys.argv[1:]
x, y = np.load(folder + "/x.npy"), np.load(folder + "/y.npy")
options = dict(batch_size=16, lr=0.05, optimizer="sgd,momentum=0.9", seed=3, precision="bf16")
comm = None
if kind == "mpi4py":
    from mpi4py import MPI
    comm = MPI.COMM_WORLD.Dup()
with tutti.Ranks(comm) as ranks:
    for again in range(2):
        tutti.train(net, (x, y), epochs=2, run=folder + "/" + kind, ranks=ranks, overwrite=True,
                    **options)
    with tutti.Model(net, dtype="uint8", ranks=ranks, mean=0.5, std=0.3, **options) as model:
        for step in range(4):
            part = slice(step * 16, step * 16 + 16)
            news = model.step(x[part][model.share], y[part][model.share])
        if ranks.rank == 0:
            print("loss", news.loss.hex(), "of", ranks.size)
"""


def check_ranks(folder, net):
    def run(*launcher, kind):
        done = subprocess.run([*launcher, sys.executable, "-c", ON_RANKS, folder, net, kind],
                              capture_output=True, text=True,
                              env={**os.environ, **MPI})
        expect(f"{' '.join(launcher)} {kind}", done.returncode == 0, done.stderr)
        return [line.split()[1] for line in done.stdout.split("\n") if line.startswith("loss")]

    alone = run(kind="alone")
    kinds = ["job"] + (["mpi4py"] if has_mpi4py() else [])
    for kind in kinds:
        said = run("mpirun", "--oversubscribe", "-n", "3", kind=kind)
        expect(f"{kind}: 3 ranks have the loss of one, bit for bit", said == alone, (said, alone))
        expect(f"{kind}: and the weights", weights(folder / kind) == weights(folder / "program"))


def has_mpi4py():
    return subprocess.run([sys.executable, "-c", "import mpi4py"],
                          capture_output=True).returncode == 0


def check_example(folder):
    """With the real matplotlib where that is, else with one that draws nothing."""
    path = [os.environ.get("PYTHONPATH", "")]
    if subprocess.run([sys.executable, "-c", "import matplotlib"], capture_output=True).returncode:
        fake = folder / "fake" / "matplotlib"
        fake.mkdir(parents=True)
        (fake / "__init__.py").write_text("class Any:\n    def __getattr__(self, name):\n"
                                          "        return lambda *a, **k: None\npyplot = Any()\n")
        path.append(str(fake.parent))
    done = subprocess.run([sys.executable, str(SOURCE / "examples/train_and_plot.py")], text=True,
                          capture_output=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(path)})
    right = [int(line.split()[0]) for line in done.stdout.split("\n") if "of 100 new" in line]
    expect("the example trains, plots and predicts", done.returncode == 0 and right and
           right[0] > 90, done.stdout + done.stderr)


def main():
    x, y = samples()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        net = folder / "small.net"
        net.write_text(NET)
        check_training(folder, net, x, y)
        check_model(folder, net, x, y)
        check_own_loss()
        check_refusals(net, x, y)
        if "mpirun" in sys.argv[4:]:
            check_ranks(folder, net)
        check_example(folder)
    expect("nets and platforms have names", "lenet" in tutti.nets() and len(tutti.platforms()) > 2)
    plans = tutti.plan("lenet", nodes="1,2", platform=tutti.platforms()[0])
    expect("a plan is a dictionary, or a list of them", plans and "speedup" in str(plans))
    sys.exit(1 if failures else 0)


main()
