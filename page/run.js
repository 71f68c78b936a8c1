// A run, or several: what it is, how it stands, its curves, what happened.

const STATES = { done: "done", running: "running", stalled: "stalled", failed: "failed" };

// What the page has of a run, each field of the kind it should have.
function readRun(raw, index) {
  const r = obj(raw), begun = obj(r.begun), train = obj(r.train);
  return {
    index, name: str(r.name) || "a run", state: STATES[r.state] || "failed", why: str(r.why),
    done: num(r.done), steps: num(r.steps), stepS: num(r.step_s), rate: num(r.samples_per_s),
    left: num(r.left_s), silent: num(r.silent_s), oddLosses: num(r.odd_losses), oddStep: num(r.odd_step),
    damaged: num(r.damaged), begun, net: str(begun.name),
    batch: num(begun.batch), samples: num(begun.samples), peak: num(begun.peak), flops: num(begun.flops),
    facts: Object.entries(obj(begun.facts)).filter(([, v]) => typeof v === "string"),
    hosts: arr(begun.hosts).map(str), version: str(begun.version),
    layers: readLayers(begun.layers), measured: readMeasured(r.measured),
    predictedStep: num(begun.predicted_step_s),
    width: num(train.width), step: nums(train.step), train,
    evaluations: arr(r.evaluations).map((e) => ({
      step: num(obj(e).step), epoch: num(obj(e).epoch), split: str(obj(e).split),
      loss: num(obj(e).loss), top1: num(obj(e).top1), mean_iou: num(obj(e).mean_iou),
      f1: num(obj(e).f1), rmse: num(obj(e).rmse),
    })),
    checkpoints: arr(r.checkpoints).map((c) => [num(arr(c)[0]), str(arr(c)[1])]),
    events: arr(r.events).map((e) => ({
      at: num(obj(e).at), step: num(obj(e).step), kind: str(obj(e).kind), text: str(obj(e).text),
    })),
    ranks: r.ranks ? readRanks(r.ranks) : null,
    confusion: r.confusion ? obj(r.confusion) : null,
    worst: obj(r.worst),
  };
}

const shortName = (run) => run.name.replace(/\/+$/, "").split("/").slice(-2).join("/");
const percentOfPeak = (run, rate) => (run.peak > 0 ? (rate * run.flops) / run.peak : NaN);
const lastOf = (list) => list[list.length - 1];

// What losses find besides themselves, and whether the most of it is best; else the least loss is.
const FIGURES = [
  { field: "top1", word: "top-1", title: "Accuracy", decides: true, format: (v) => percent(v, 1) },
  { field: "mean_iou", word: "mean IoU", title: "Mean IoU", decides: true, format: (v) => percent(v, 1) },
  { field: "f1", title: "F1", format: (v) => percent(v, 1) },
  { field: "rmse", title: "RMSE", format: (v) => digits(v, 3) },
];
const figureOf = (run) => FIGURES.find((f) => run.evaluations.some((e) => known(e[f.field]))) || FIGURES[0];

// The best evaluation, with words for it.
function best(run) {
  const figure = figureOf(run), by = figure.decides ? figure.field : "loss";
  let found = null;
  for (const e of run.evaluations)
    if (known(e[by]) && (!found || (by === "loss" ? e[by] < found[by] : e[by] > found[by]))) found = e;
  return { what: "best " + (by === "loss" ? "loss" : figure.word), evaluation: found,
    value: !found ? DASH : by === "loss" ? digits(found[by], 4) : percent(found[by], 2) };
}

// ---- the head of one run ----

const tile = (k, v, n) => el("div", { class: "tile" }, el("div", { class: "k" }, k),
  el("div", { class: "v" }, v), el("div", { class: "n" }, n || "\u00a0"));

const pill = (run) => el("span", { class: "pill " + run.state }, run.state);

function progress(run) {
  const part = run.steps > 0 ? clamp(run.done / run.steps, 0, 1) : run.state === "done" ? 1 : 0;
  return el("div", { class: "bar " + run.state, role: "progressbar", "aria-label": "steps done",
    "aria-valuenow": Math.round(100 * part) }, el("i", { style: { width: 100 * part + "%" } }));
}

function tiles(run) {
  const top = best(run), latest = lastOf(run.checkpoints);
  const losses = nums(run.train.loss), rates = nums(run.train.samples_per_s).filter(known);
  const loss = lastOf(smooth(losses, 0.3).filter(known));
  const mean = rates.reduce((sum, r) => sum + r, 0) / rates.length;
  const rate = run.state === "running" && known(run.rate) ? run.rate : mean;
  const started = run.events.find((e) => e.kind === "begun"), ended = lastOf(run.events);
  const epoch = run.samples > 0 ? (run.done * run.batch) / run.samples : NaN;
  return el("div", { class: "tiles" },
    tile("step", grouped(run.done), (run.steps > 0 ? "of " + grouped(run.steps) : "") + (known(epoch) ? DOT + "epoch " + epoch.toFixed(2) : "")),
    tile("training loss", known(loss) ? loss.toFixed(4) : DASH, "smoothed"),
    tile(top.what, top.value, top.evaluation ? `${top.evaluation.split}, step ${grouped(top.evaluation.step)}` : "no evaluation yet"),
    tile("samples/s", shortly(rate), run.state === "running" ? "of late" : "on average"),
    tile("of the FMA peak", percent(percentOfPeak(run, rate), 0),
      known(run.stepS) ? seconds(run.batch / rate) + " a step" : ""),
    run.state === "running"
      ? tile("time left", duration(run.left), "for the steps")
      : tile("it took", duration(started && ended ? ended.at - started.at : NaN), started ? moment(started.at) : ""),
    latest ? tile("weights", el("span", { class: "mono", title: latest[1] }, latest[1].slice(0, 7)), "step " + grouped(latest[0])) : null);
}

function head(run) {
  return [
    el("div", { class: "headline" }, el("h1", {}, run.net || shortName(run)), pill(run)),
    el("p", { class: "where mono" }, run.name),
    run.why && run.state !== "running" ? el("p", { class: "why" }, run.why) : null,
    run.oddLosses > 0 ? el("p", { class: "why" }, `The loss was not a finite number in ${grouped(run.oddLosses)} steps, first in step ${grouped(run.oddStep)}.`) : null,
    run.damaged > 0 ? el("p", { class: "why" }, `${grouped(run.damaged)} lines of its files are damaged and left out here.`) : null,
    progress(run), tiles(run),
  ];
}

// ---- several runs ----

// The last step up to which both have kept the same weights, and the first at which they differ.
function equalUpTo(a, b) {
  const other = new Map(b.checkpoints);
  let equal = NaN, differ = NaN;
  for (const [step, hash] of a.checkpoints) {
    if (!other.has(step)) continue;
    if (other.get(step) !== hash) { differ = step; break; }
    equal = step;
  }
  return [equal, differ];
}

function bitsText(first, run) {
  const [equal, differ] = equalUpTo(first, run);
  if (known(equal) && known(differ)) return `equal bits up to step ${grouped(equal)}, others at step ${grouped(differ)}`;
  if (known(equal)) return `equal bits up to step ${grouped(equal)}`;
  if (known(differ)) return `other bits at step ${grouped(differ)}`;
  return "no common checkpoint";
}

function comparison(runs) {
  const row = (run) => {
    const ranks = run.hosts.length;
    return el("tr", {},
      el("td", { class: "w" }, el("span", { class: "legend" }, el("span", {},
        el("i", { class: "box", style: { "--swatch": `var(--c${run.index % 8})` } }), el("b", {}, shortName(run))))),
      el("td", {}, pill(run)),
      el("td", { class: "r" }, grouped(run.done) + (run.steps > 0 ? " / " + grouped(run.steps) : "")),
      el("td", { class: "r" }, best(run).value),
      el("td", { class: "r" }, shortly(run.rate)),
      el("td", { class: "r phone-off" }, ranks ? grouped(ranks) : DASH),
      el("td", { class: "w" }, run.index ? bitsText(runs[0], run) : "the others are compared with this one"));
  };
  return card({ id: "compare" }, heading("Runs side by side"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "runs side by side" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "run"), el("th", {}, "state"), el("th", { class: "r" }, "step"),
        el("th", { class: "r" }, best(runs[0]).what), el("th", { class: "r" }, "samples/s"),
        el("th", { class: "r phone-off" }, "ranks"), el("th", {}, "weights"))),
      el("tbody", {}, runs.map(row)))));
}

// ---- curves ----

class Curves {
  constructor() {
    this.view = new View();
    const one = (title, spec) => new Chart(this.view, { title, ...spec });
    this.loss = one("Loss", { format: (v) => digits(v, 3) });
    this.accuracy = one("Accuracy", { format: (v) => percent(v, 1) });
    this.rate = one("Samples a second", { zero: true, height: 150 });
    this.lr = one("Learning rate", { zero: true, height: 150, format: (v) => digits(v, 3) });
    this.back = el("button", { type: "button", disabled: true, onclick: () => this.view.reset() }, "show all");
    this.view.onzoom = (zoomed) => { this.back.disabled = !zoomed; };
    this.node = el("div", {}, this.tools(), el("div", { class: "grid" },
      this.loss.node, this.accuracy.node, this.rate.node, this.lr.node));
  }

  tools() {
    const smoothing = el("input", { type: "range", min: 0, max: 1, step: 0.05, value: this.view.smoothing,
      oninput: () => { this.view.smoothing = Number(smoothing.value); this.view.redraw(); } });
    const log = el("input", { type: "checkbox",
      onchange: () => { this.loss.spec.ylog = log.checked; this.view.redraw(); } });
    return el("div", { class: "tools" }, el("label", {}, "smoothing", smoothing),
      el("label", {}, log, "logarithmic loss"), this.back,
      el("span", { class: "faint phone-off" }, "drag to zoom, arrow keys to read, + and \u2212 to zoom, Esc for all"));
  }

  lines(run, field, name) {
    return { name, colour: () => runColour(run.index), x: run.step, y: nums(run.train[field]),
      least: run.train[field + "_least"] ? nums(run.train[field + "_least"]) : null,
      most: run.train[field + "_most"] ? nums(run.train[field + "_most"]) : null };
  }

  evaluations(run, field, name, shade) {
    const splits = [...new Set(run.evaluations.map((e) => e.split))];
    return splits.map((split) => {
      const list = run.evaluations.filter((e) => e.split === split && known(e[field]));
      return { name: name ? name + " " + split : split, dots: true, colour: shade,
        x: list.map((e) => e.step), y: list.map((e) => e[field]) };
    });
  }

  set(runs, earlier) {
    const several = runs.length > 1;
    const old = (field) => earlier.map((run) => ({ name: "earlier: " + shortName(run), pale: true, x: run.step,
      y: nums(run.train[field]), colour: () => colour("old") }));
    const dots = (run) => (several ? () => runColour(run.index) : () => colour("c1"));
    const both = (field) => [...old(field), ...runs.flatMap((run) => [
      this.lines(run, field, several ? shortName(run) : "training"),
      ...this.evaluations(run, field, several ? shortName(run) : "", dots(run))])];
    const plain = (field) => [...old(field), ...runs.map((run) => ({ ...this.lines(run, field, several ? shortName(run) : ""),
      plain: field === "lr" }))];
    const marks = several ? [] : runs[0].events.flatMap((e) =>
      e.kind === "begun" && e.step > 0 ? [{ x: e.step, colour: () => colour("c6") }]
        : e.kind === "error" ? [{ x: e.step, colour: () => colour("bad") }] : []);
    this.loss.set(both("loss"), marks);
    const figure = figureOf(runs[0]);
    this.accuracy.call(figure.title, figure.format);
    this.accuracy.set(both(figure.field), marks);
    this.rate.set(plain("samples_per_s"), marks);
    this.lr.set(plain("lr"), marks);
  }
}

// ---- what happened ----

const WORDS = { begun: "began", checkpoint: "checkpoint", warning: "warning", error: "error", ended: "ended" };

function events(run) {
  const shade = { error: "bad", warning: "warn" };
  const entries = run.events.slice().reverse().map((e) => el("li",
    { class: shade[e.kind] || (e.kind === "ended" ? (e.text === "done" ? "good" : "bad") : null) },
    el("span", { class: "t" }, moment(e.at)), el("span", { class: "t" }, "step " + grouped(e.step)),
    el("span", { class: "x" }, el("b", {}, WORDS[e.kind] || e.kind), e.text && e.text !== "written" ? " " + e.text : "")));
  return card({}, heading("What happened"), entries.length
    ? el("ol", { class: "events", tabindex: "0" }, entries)
    : el("p", { class: "none" }, "Nothing was written down: the run was made by an earlier version."));
}

function facts(run) {
  if (!run.facts.length) return null;
  const rows = [...run.facts, ["version", "tutti " + run.version]];
  return card({}, heading("What it is"), el("dl", {}, rows.map(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])));
}

// ---- which class is taken for which ----

function confusion(run) {
  const c = run.confusion;
  if (!c) return null;
  const names = arr(c.classes).map(str), n = names.length, outputs = num(c.outputs), counts = nums(c.counts);
  if (!n || n > 100 || !(outputs >= n) || counts.length !== outputs * outputs) return null;
  const at = (t, a) => counts[t * outputs + a] || 0;
  const sums = names.map((_, t) => names.reduce((sum, _name, a) => sum + at(t, a), 0));
  const read = el("div", { class: "read" });
  let focus = null;
  const area = canvasOf(0, "table of confusions: rows are the truth, columns the answers", (g, w) => {
    const label = n <= 30 ? Math.min(110, w * 0.24) : 8, cell = Math.min(46, (w - label) / n), shade = heatScale();
    area.f = { label, cell };
    g.font = FONT;
    g.textBaseline = "middle";
    for (let t = 0; t < n; t++) {
      if (n <= 30) {
        g.fillStyle = colour("soft");
        g.textAlign = "right";
        g.fillText(names[t].slice(0, 16), label - 8, (t + 0.5) * cell, label - 10);
      }
      for (let a = 0; a < n; a++) {
        const part = sums[t] ? at(t, a) / sums[t] : 0, rgb = shade(part ? 0.06 + 0.9 * Math.sqrt(part) : 0);
        g.fillStyle = `rgb(${rgb.join(",")})`;
        g.fillRect(label + a * cell, t * cell, cell - (cell > 6 ? 1 : 0), cell - (cell > 6 ? 1 : 0));
        if (cell >= 25 && at(t, a)) {
          const dark = rgb[0] * 0.3 + rgb[1] * 0.6 + rgb[2] * 0.1 < 130;
          g.fillStyle = dark ? "#ffffff" : "#15181d";
          g.textAlign = "center";
          g.fillText(shortly(at(t, a)), label + (a + 0.5) * cell, (t + 0.5) * cell);
        }
      }
    }
    if (focus) {
      g.strokeStyle = colour("ink");
      g.lineWidth = 2;
      g.strokeRect(label + focus[1] * cell, focus[0] * cell, cell - 1, cell - 1);
    }
  });
  const fit = () => {
    const w = area.canvas.clientWidth || 500, label = n <= 30 ? Math.min(110, w * 0.24) : 8;
    area.height = Math.min(46, (w - label) / n) * n + 2;
    area.redraw();
  };
  new ResizeObserver(fit).observe(area.canvas);
  const point = (t, a) => {
    focus = [clamp(t, 0, n - 1), clamp(a, 0, n - 1)];
    const count = at(focus[0], focus[1]), part = count / sums[focus[0]];
    read.replaceChildren(el("b", {}, names[focus[0]]), focus[0] === focus[1] ? " right: " : " taken for ",
      focus[0] === focus[1] ? "" : el("b", {}, names[focus[1]]), focus[0] === focus[1] ? "" : ": ",
      `${grouped(count)}${known(part) ? ", " + percent(part) : ""}`);
    area.redraw();
  };
  area.canvas.addEventListener("pointermove", (event) => {
    const box = area.canvas.getBoundingClientRect(), f = area.f;
    const t = Math.floor((event.clientY - box.top) / f.cell), a = Math.floor((event.clientX - box.left - f.label) / f.cell);
    if (t >= 0 && t < n && a >= 0 && a < n) point(t, a);
  });
  area.canvas.addEventListener("keydown", (event) => {
    const [t, a] = focus || [0, 0];
    const to = { ArrowUp: [t - 1, a], ArrowDown: [t + 1, a], ArrowLeft: [t, a - 1], ArrowRight: [t, a + 1] }[event.key];
    if (!to) return;
    event.preventDefault();
    point(...to);
  });
  const pairs = [];
  for (let t = 0; t < n; t++) for (let a = 0; a < n; a++) if (t !== a && at(t, a)) pairs.push([at(t, a), t, a]);
  pairs.sort((x, y) => y[0] - x[0]);
  return card({}, heading("Which class is taken for which", read),
    el("p", { class: "lead" }, `Rows are the truth, columns the answers, of the last evaluation (${str(c.split)}, step ${grouped(num(c.step))}). `,
      pairs.length ? ["Most often ", el("b", {}, names[pairs[0][1]]), " is taken for ", el("b", {}, names[pairs[0][2]]), `: ${grouped(pairs[0][0])} times.`] : ""),
    area.canvas);
}

// ---- the samples with the greatest losses ----

const LONGEST_PICTURE = 200000;
const isBase64 = (text) => text.length > 0 && text.length < LONGEST_PICTURE && /^[A-Za-z0-9+/]+={0,2}$/.test(text);

function badAnswer(sample) {
  const s = obj(sample), truth = str(s.truth), answer = str(s.answer), jpeg = str(s.jpeg);
  if (!isBase64(jpeg)) return null;
  const place = str(s.file) || "sample " + grouped(num(s.id)), isRight = truth === answer;
  const what = !answer ? "" : isRight ? `${truth}, right by ${percent(num(s.sure), 0)}`
    : `${truth} taken for ${answer} by ${percent(num(s.sure), 0)}`;
  return el("figure", { title: place },
    el("img", { src: "data:image/jpeg;base64," + jpeg, alt: (what ? what + ": " : "") + place,
      onload: (event) => event.target.classList.toggle("small", event.target.naturalWidth < 64) }),
    el("figcaption", {},
      answer ? el("div", {}, el("b", {}, truth), isRight ? " is right, " : [" taken for ", el("b", { class: "off" }, answer)],
        " " + percent(num(s.sure), 0)) : null,
      el("div", { class: "faint" }, "loss " + digits(num(s.loss), 3)), el("div", { class: "file faint" }, place)));
}

function worst(run) {
  const figures = arr(run.worst.samples).slice(0, 24).map(badAnswer).filter(Boolean);
  if (!figures.length) return null;
  return card({}, heading("The worst samples"),
    el("p", { class: "lead" }, `Those with the greatest losses of the last evaluation with pictures (${str(run.worst.split)}, step ${grouped(num(run.worst.step))}): hard, odd, or labelled wrongly.`),
    el("div", { class: "worst" }, figures));
}
