// Ranks and time: who computed, who waited, and the one that kept the others waiting.

const SHARES = [
  ["compute_us", "computing", "forward"],
  ["exposed_us", "waiting for parameters", "exposed"],
  ["waiting_us", "waiting for news", "wait"],
  ["data_us", "reading", "weights"],
];

function readRanks(raw) {
  const r = obj(raw), v = obj(r.verdict);
  const out = { count: num(r.ranks), aLine: num(r.ranks_a_line) || 1, step: nums(r.step), memory: nums(r.memory_mib),
    verdict: r.verdict ? { kind: str(v.kind), rank: num(v.rank), cost: num(v.cost), share: num(v.share),
      step: num(v.step), worst: num(v.worst_s) } : null };
  for (const [name] of SHARES) out[name] = arr(r[name]).map(nums);
  out.lines = out.compute_us.length;
  return out;
}

function verdictText(run) {
  const v = run.ranks.verdict;
  if (!v) return ["One rank: nobody waits for anybody."];
  const host = run.hosts[v.rank], who = el("b", {}, `Rank ${grouped(v.rank)}` + (host ? ` (${host})` : ""));
  const costs = ["costs ", el("b", {}, percent(v.cost)), " of the time."];
  if (v.kind === "chronic")
    return [who, " is slow, ", el("b", {}, "chronically"), `: in ${percent(v.share, 0)} of the steps it computes or reads more than 5${THIN}% longer than the rank in the middle. That `, costs];
  if (v.kind === "once")
    return [who, " was slow ", el("b", {}, "once"), `: around step ${grouped(v.step)} it kept the others waiting ${seconds(v.worst)} a step. That `, costs];
  if (v.kind === "sometimes")
    return [who, " is slow ", el("b", {}, "now and then"), `, in ${percent(v.share, 0)} of the steps, worst around step ${grouped(v.step)}. That `, costs];
  return ["The ranks ", el("b", {}, "keep pace"), ": the slowest costs the others ", percent(v.cost), " of the time."];
}

class Heat {
  constructor() {
    this.what = "compute_us";
    this.focus = null;
    this.run = null;
    this.read = el("div", { class: "read" });
    this.lead = el("p", { class: "lead" });
    this.area = canvasOf(120, "ranks from top to bottom, time from left to right", (g, w, h) => this.draw(g, w, h));
    this.key = el("div", { class: "legend" });
    const words = [...SHARES.map(([name, text]) => [name, text]), ["busy", "what others wait for"]];
    this.node = card({ class: "wide" }, heading("Ranks over time", this.read), this.lead,
      el("div", { class: "tools" }, choice("heat" + Math.random(), words, this.what, "what the colour shows", (v) => { this.what = v; this.area.redraw(); })),
      this.area.canvas, this.key);
    this.area.canvas.addEventListener("pointermove", (event) => this.pointer(event));
    this.area.canvas.addEventListener("pointerleave", () => this.point(null));
    this.area.canvas.addEventListener("keydown", (event) => this.keyboard(event));
  }

  set(run) {
    this.run = run;
    this.lead.replaceChildren(...verdictText(run).flat().map((x) => (x instanceof Node ? x : document.createTextNode(x))));
    const lines = run.ranks.lines;
    this.cell = clamp(Math.floor(300 / Math.max(1, lines)), 2, 26);
    this.area.height = Math.max(1, lines) * this.cell + 26;
    this.area.redraw();
  }

  value(line, column) {
    const r = this.run.ranks, at = (name) => num(arr(r[name][line])[column]);
    const v = this.what === "busy" ? at("compute_us") + at("data_us") : at(this.what);
    return v >= 0 ? v : NaN;
  }

  draw(g, w) {
    if (!this.run) return;
    const r = this.run.ranks, columns = r.step.length, lines = r.lines, cell = this.cell;
    const left = cell >= 10 ? 64 : 52, right = 118, width = Math.max(40, w - left - right);
    this.f = { left, width, columns, lines };
    g.font = FONT;
    const image = this.picture(columns, lines);
    g.imageSmoothingEnabled = false;
    if (image) g.drawImage(image, left, 0, width, lines * cell);
    this.drawLabels(g, left, width, lines, cell);
    this.drawShares(g, left + width + 12, right - 14, lines, cell);
    if (!this.focus) return;
    g.strokeStyle = colour("ink");
    g.lineWidth = 1.5;
    g.strokeRect(left + (this.focus[1] / columns) * width, this.focus[0] * cell, Math.max(2, width / columns), cell);
  }

  // The 98th percentile is the top of the scale: one hiccup does not make all others pale.
  picture(columns, lines) {
    if (!columns || !lines) return null;
    const values = [];
    for (let l = 0; l < lines; l++) for (let c = 0; c < columns; c++) values.push(this.value(l, c));
    const sorted = values.filter(known).sort((a, b) => a - b);
    const low = this.what === "compute_us" || this.what === "busy" ? sorted[Math.floor(sorted.length * 0.02)] || 0 : 0;
    const high = Math.max(sorted[Math.ceil(sorted.length * 0.98) - 1] || 0, low * 1.1, 1), scale = heatScale();
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = lines;
    const g = canvas.getContext("2d"), image = g.createImageData(columns, lines);
    values.forEach((v, i) => {
      if (known(v)) image.data.set([...scale((v - low) / (high - low)), 255], 4 * i);
    });
    g.putImageData(image, 0, 0);
    this.key.replaceChildren(el("span", {}, seconds(low * 1e-6) + " a step"),
      el("span", { class: "ramp", style: { background: `linear-gradient(90deg, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map((t) => `rgb(${scale(t).join(",")})`).join(", ")})` } }),
      el("span", {}, seconds(high * 1e-6) + " and more"),
      el("span", { class: "push" }, "right, each rank's time:"),
      ...SHARES.map(([, text, shade]) => el("span", {}, el("i", { class: "box", style: { "--swatch": `var(--${shade})` } }), text)));
    return canvas;
  }

  drawLabels(g, left, width, lines, cell) {
    const r = this.run.ranks, every = Math.max(1, Math.ceil(13 / cell)), v = r.verdict;
    g.fillStyle = colour("soft");
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (let l = 0; l < lines; l += every) g.fillText((every === 1 && lines <= 16 ? "rank " : "") + l * r.aLine, left - 10, Math.max(6, (l + 0.5) * cell));
    if (v && v.kind !== "even" && v.rank / r.aLine < lines) {
      g.fillStyle = colour("bad");
      g.beginPath();
      const y = (Math.floor(v.rank / r.aLine) + 0.5) * cell;
      g.moveTo(left - 2, y);
      g.lineTo(left - 7, y - 4);
      g.lineTo(left - 7, y + 4);
      g.fill();
    }
    g.fillStyle = colour("faint");
    g.textBaseline = "alphabetic";
    const n = r.step.length, count = Math.max(2, Math.floor(width / 110));
    for (let i = 0; i <= count; i++) {
      const c = Math.min(n - 1, Math.round((i / count) * (n - 1)));
      g.textAlign = i === 0 ? "left" : i === count ? "right" : "center";
      if (n) g.fillText(shortly(r.step[c]), left + (i / count) * width, lines * cell + 18);
    }
  }

  // Where each rank's time went, over all columns.
  drawShares(g, left, width, lines, cell) {
    const r = this.run.ranks;
    for (let l = 0; l < lines; l++) {
      const sums = SHARES.map(([name]) => arr(r[name][l]).reduce((sum, v) => sum + (v > 0 ? v : 0), 0));
      const all = sums.reduce((a, b) => a + b, 0);
      let x = left;
      sums.forEach((sum, i) => {
        const part = all ? (sum / all) * width : 0;
        g.fillStyle = colour(SHARES[i][2]);
        g.fillRect(x, l * cell + (cell > 8 ? 2 : 0), part, cell - (cell > 8 ? 4 : cell > 3 ? 1 : 0));
        x += part;
      });
    }
  }

  point(focus) {
    this.focus = focus;
    if (!focus) this.read.replaceChildren();
    else {
      const [line, column] = focus, r = this.run.ranks, rank = line * r.aLine;
      const parts = SHARES.map(([name, text]) => [num(arr(r[name][line])[column]), text]).filter(([v]) => v >= 0);
      this.read.replaceChildren(el("b", {}, "rank " + rank + (this.run.hosts[rank] ? " " + this.run.hosts[rank] : "")),
        ` step ${grouped(r.step[column])}`, ...parts.flatMap(([v, text]) => [DOT, text + " ", el("b", {}, seconds(v * 1e-6))]));
    }
    this.area.redraw();
  }

  pointer(event) {
    if (!this.f) return;
    const box = this.area.canvas.getBoundingClientRect();
    const line = Math.floor((event.clientY - box.top) / this.cell);
    const column = Math.floor(((event.clientX - box.left - this.f.left) / this.f.width) * this.f.columns);
    const inside = line >= 0 && line < this.f.lines && column >= 0 && column < this.f.columns;
    if (inside || this.focus) this.point(inside ? [line, column] : null);
  }

  keyboard(event) {
    if (!this.f || !this.f.columns || !this.f.lines) return;
    const [line, column] = this.focus || [0, 0], far = event.shiftKey ? Math.ceil(this.f.columns / 10) : 1;
    const to = { ArrowUp: [line - 1, column], ArrowDown: [line + 1, column], ArrowLeft: [line, column - far],
      ArrowRight: [line, column + far], Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.point(to && [clamp(to[0], 0, this.f.lines - 1), clamp(to[1], 0, this.f.columns - 1)]);
  }
}

// ---- memory ----

function memory(run) {
  if (!run.ranks || !run.ranks.memory.some((m) => m > 0)) return null;
  const all = run.ranks.memory, most = Math.max(...all.filter(known));
  const shown = all.length <= 12 ? all.map((m, r) => [r, m])
    : all.map((m, r) => [r, m]).sort((a, b) => b[1] - a[1]).slice(0, 8);
  const sum = all.reduce((total, m) => total + (m > 0 ? m : 0), 0);
  return card({}, heading("Memory"),
    el("p", { class: "lead" }, `${bytes(sum * 1048576)} in all`,
      all.length > 1 ? `, at most ${bytes(most * 1048576)} on a rank` : "", all.length > 12 ? "; the 8 largest:" : "."),
    el("table", {}, el("tbody", {}, shown.map(([r, m]) => el("tr", {},
      el("td", {}, "rank " + r), el("td", { class: "bars" }, el("div", { class: "stack" },
        el("i", { style: { width: (100 * m) / most + "%", background: "var(--c0)" } }))),
      el("td", { class: "r" }, bytes(m * 1048576)))))));
}
