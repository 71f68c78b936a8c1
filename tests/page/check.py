#!/usr/bin/env python3
"""check.py TUTTI [--pictures DIR] [--rows N]: the page in a real browser: of a finished run, a running
one, two compared, a hostile directory, a long one, a plan. No complaint in the console, no request
beyond what was opened; pictures to look at go to DIR."""
import argparse
import fcntl
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import made_runs
from browser import Browser

FAILURES = []
SECONDS, MEGABYTES = 2, 100  # in which the page of 100,000 steps of 64 ranks opens
WIDTHS = (("desktop", 1280, False), ("desktop-dark", 1280, True), ("phone", 390, False), ("phone-dark", 390, True))


def expect(what, is_true, *more):
    print("[       OK ]" if is_true else "[  FAILED  ]", what, *(more if not is_true else ()))
    if not is_true:
        FAILURES.append(what)


class Lab:
    def __init__(self, browser, tutti, scratch, pictures):
        self.browser, self.tutti, self.scratch, self.pictures = browser, tutti, scratch, pictures

    def run(self, *words):
        return subprocess.run([self.tutti, *map(str, words)], check=True, capture_output=True, text=True)

    def report(self, *runs):
        page = self.scratch / "page.html"
        self.run("report", *runs, "--output", page)
        return page.as_uri()

    def text(self, selector="body"):
        return self.browser.run("return document.querySelector(arguments[0]).innerText", selector)

    def quiet(self, what, *allowed):
        """No complaints, and no requests but of these beginnings."""
        complaints, requests = self.browser.complaints(), self.browser.requests()
        expect(f"{what}: nothing in the console", not complaints, complaints)
        others = [r for r in requests if not r.startswith((*allowed, "data:"))]
        expect(f"{what}: no request leaves it", not others, others)

    def look(self, name):
        """Four pictures; nothing is wider than the screen."""
        for suffix, width, dark in WIDTHS:
            self.browser.screen(width, dark=dark)
            time.sleep(0.3)
            wide = self.browser.run("return document.documentElement.scrollWidth")
            expect(f"{name} fits {suffix}", wide <= width, wide)
            if self.pictures:
                self.browser.picture(self.pictures / f"{name}-{suffix}.png")
        self.browser.screen(1280)

    def serving(self, *runs):
        process = subprocess.Popen([self.tutti, "watch", "--port", "0", *map(str, runs)], text=True,
                                   stdout=subprocess.PIPE)
        return process, process.stdout.readline().strip()


def finished(lab):
    lab.browser.open(lab.report(made_runs.make(lab.scratch / "finished", ranks=8, slow=3)))
    text = lab.text()
    for words in ("made", "done", "1,000", "Rank 3 (node3)", "chronically", "cat", "fc3", "checkpoint"):
        expect(f"a finished run shows '{words}'", words in text or words == "cat" and "Which class" in text)
    seen = lab.browser.run("return [...document.querySelectorAll('.worst img')].map((i) => [i.alt, i.naturalWidth])")
    expect("the worst samples are pictures", len(seen) == 12 and all(width > 0 for _, width in seen)
           and seen[0][0] == "dog taken for cat by 99\u202f%: dog/photo-0000.jpg", seen)
    canvases = lab.browser.run("return [...document.querySelectorAll('canvas')].map((c) => c.tabIndex)")
    expect("every picture can be reached by keyboard", len(canvases) >= 6 and not any(canvases), canvases)
    lab.quiet("a finished run", "file:")
    lab.look("finished")


def keyboard(lab):
    lab.browser.open(lab.report(made_runs.make(lab.scratch / "keys", ranks=4)))
    lab.browser.run("document.querySelector('canvas').focus()")
    read = lambda: lab.browser.run("return document.querySelector('.read').innerText")
    lab.browser.press("End")
    expect("the cursor reads the last step", "step 1,000" in read(), read())
    lab.browser.press("ArrowLeft")
    expect("an arrow moves it", "step 999" in read(), read())
    disabled = "return [...document.querySelectorAll('button')].find((b) => b.innerText === 'show all').disabled"
    lab.browser.press("+")
    expect("+ zooms", lab.browser.run(disabled) is False)
    lab.browser.press("Escape")
    expect("Escape shows all", lab.browser.run(disabled) is True)
    lab.quiet("keys", "file:")


def running(lab):
    made = made_runs.make(lab.scratch / "running", steps=200, of=400, ended=False)
    with open(made / "lock", "w") as lock:

        lock.write("host x\n")
        lock.flush()
        fcntl.lockf(lock, fcntl.LOCK_EX)
        process, address = lab.serving(made)
        try:
            lab.browser.open(address)
            expect("a running run says so", "running" in lab.text("#top"), lab.text("#top"))
            with open(made / "metrics.jsonl", "ab") as f:
                f.writelines(made_runs.train_row(s) for s in range(201, 251))
            lab.browser.wait_for("return document.querySelector('#top').innerText.includes('250')")
            expect("its numbers grow", True)
            lab.look("running")
            process.send_signal(signal.SIGINT)
            process.wait(20)
            lab.browser.wait_for("return document.querySelector('#top').innerText.includes('connecting again')")
            expect("the page outlives its server", "250" in lab.text("#top"))
        finally:
            process.kill()
            process.wait()
        lost = [c for c in lab.browser.complaints() if "ERR_CONNECTION_REFUSED" not in c]
        expect("a running run: nothing in the console", not lost, lost)
        others = [r for r in lab.browser.requests() if not r.startswith((address, "data:"))]
        expect("a running run: no request goes elsewhere", not others, others)


def compared(lab):
    one = made_runs.make(lab.scratch / "one", seed=1)
    two = made_runs.make(lab.scratch / "two", seed=2, ranks=2)
    lab.browser.open(lab.report(one, two))
    expect("two runs are compared", "equal bits up to step 500, others at step 1,000" in lab.text("#compare"),
           lab.text("#compare"))
    lab.quiet("two runs", "file:")
    lab.look("compared")


def losses(lab):
    """Runs whose losses find other figures; what decides is shown as best."""
    for figures, words in (({"mean_iou": 0.75}, ("best mean IoU", "75.00\u202f%", "Mean IoU")),
                           ({"rmse": 0.25}, ("best loss", "0.5", "RMSE"))):
        made = made_runs.make(lab.scratch / next(iter(figures)), figures=figures)
        lab.browser.open(lab.report(made))
        text = lab.text()
        for word in words:
            expect(f"{next(iter(figures))} is shown as '{word}'", word in text, text[:400])
        expect("... and no accuracy", "Accuracy" not in text and "top-1" not in text, text[:400])
        lab.quiet("other losses", "file:")
    swatch = "return getComputedStyle(document.querySelector('.grid .legend i')).backgroundColor"
    lab.browser.screen(1280, dark=False)
    light = lab.browser.run(swatch)
    lab.browser.screen(1280, dark=True)
    time.sleep(0.3)
    dark = lab.browser.run(swatch)
    lab.browser.screen(1280)
    expect("a legend has the colours of its curves in the dark, too", light != dark, light, dark)


def hostile(lab):
    lab.browser.open(lab.report(made_runs.make_hostile(lab.scratch / "hostile")))
    title, images = lab.browser.run("return [document.title, document.images.length]")
    expect("names are text", "hacked" not in title and images == 0 and "</script>" in lab.text(), title)
    lab.quiet("a hostile run", "file:")
    lab.look("hostile")


def long_run(lab):
    made = made_runs.make(lab.scratch / "long", steps=100_000, ranks=64, slow=17)
    address = lab.report(made)
    seconds, megabytes = lab.browser.open(address), lab.browser.megabytes()
    expect(f"100,000 steps of 64 ranks open in {seconds:.2f} s", seconds < SECONDS)
    expect(f"... and take {megabytes:.0f} MB", megabytes < MEGABYTES)
    expect("the slow one of 64 is named", "Rank 17 (node17)" in lab.text())
    lab.quiet("a long run", "file:")
    lab.look("long")


def many_rows(lab, rows):
    """Ten million rows behind a server: it answers, and the page opens."""
    made = made_runs.make(lab.scratch / "many", steps=4, of=rows, ranks=2, ended=False)
    block = b"".join(made_runs.train_row(s) for s in range(1, 100_001))
    with open(made / "metrics.jsonl", "wb") as f:
        for _ in range(rows // 100_000):
            f.write(block)
    begin = time.monotonic()
    process, address = lab.serving(made)
    try:
        print(f"             {rows:,} rows were read in {time.monotonic() - begin:.1f} s")
        seconds = lab.browser.open(address)
        expect(f"{rows:,} rows open in {seconds:.2f} s", seconds < 5)
        lab.quiet("many rows", address)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
    shutil.rmtree(made)


def planned(lab):
    page = lab.scratch / "plan.html"
    lab.run("plan", "vgg-a", "--nodes", "1..128", "--batch-size", "512", "--html", page)
    lab.browser.open(page.as_uri())
    text = lab.text()
    for words in ("vgg-a on", "Speedup", "128", "the paper: 90", "fc6"):
        expect(f"a plan shows '{words}'", words in text)
    lab.browser.run("const s = document.querySelector('input.long'); s.value = 0; s.dispatchEvent(new Event('input'))")
    expect("the slider chooses the nodes", "On one node" in lab.text())
    lab.browser.run("const s = document.querySelector('input.long'); s.value = 99; s.dispatchEvent(new Event('input'))")
    lab.quiet("a plan", "file:")
    lab.look("plan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tutti")
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
    checks = [finished, keyboard, running, compared, losses, hostile, long_run, planned]
    with tempfile.TemporaryDirectory(prefix="tutti-page-") as scratch, Browser() as browser:
        lab = Lab(browser, str(pathlib.Path(given.tutti).resolve()), pathlib.Path(scratch), given.pictures)
        browser.screen(1280)
        for check in checks:
            if not given.only or check.__name__ in given.only:
                check(lab)
        if given.rows and (not given.only or "many_rows" in given.only):
            many_rows(lab, given.rows)
    sys.exit(1 if FAILURES else 0)


main()
