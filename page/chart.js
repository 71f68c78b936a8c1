// Curves over steps. Charts share a view: zooming and the cursor are the same in all of them.
//
// Drag to zoom, double click to see all again. By keyboard: arrows move the cursor, with Shift by a
// tenth; + and - zoom around it; Escape shows all.

const MARGIN = { left: 52, right: 10, top: 8, bottom: 24 };
const FONT = "11.5px system-ui, -apple-system, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif";

class View {
  constructor() {
    this.from = NaN; // NaN: all there is
    this.to = NaN;
    this.cursor = NaN;
    this.smoothing = 0.2;
    this.charts = [];
    this.onzoom = () => {};
  }
  extent() {
    let least = Infinity, most = -Infinity;
    for (const chart of this.charts)
      for (const line of chart.lines)
        if (line.x.length && !line.pale) {
          least = Math.min(least, line.x[0]);
          most = Math.max(most, line.x[line.x.length - 1]);
        }
    return least < most ? [least, most] : known(least) ? [least - 0.5, least + 0.5] : [0, 1];
  }
  range() {
    return known(this.from) ? [this.from, this.to] : this.extent();
  }
  zoom(from, to) {
    const [least, most] = this.extent(), room = Math.max((most - least) * 1e-4, 1e-9);
    from = Math.max(from, least);
    to = Math.min(to, most);
    if (to - from < room) return;
    const all = from <= least && to >= most;
    this.from = all ? NaN : from;
    this.to = all ? NaN : to;
    this.redraw();
    this.onzoom(!all);
  }
  reset() {
    this.from = this.to = NaN;
    this.redraw();
    this.onzoom(false);
  }
  point(x) {
    this.cursor = x;
    this.redraw();
  }
  redraw() {
    for (const chart of this.charts) chart.area.redraw();
  }
}

// "Nice" numbers between least and most, about so many.
function ticks(least, most, count) {
  const span = most - least;
  if (!(span > 0) || !known(span)) return [least];
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw)), f = raw / power;
  const step = power * (f < 1.5 ? 1 : f < 3.5 ? 2 : f < 7.5 ? 5 : 10), out = [];
  for (let i = Math.ceil(least / step - 1e-9); i * step <= most + step * 1e-9 && out.length < 50; i++)
    out.push(i * step);
  return out;
}

function logTicks(least, most) {
  const out = [];
  const few = Math.log10(most / least) > 2.2;
  for (let p = Math.floor(Math.log10(least)); 10 ** p <= most && out.length < 60; p++)
    for (const m of few ? [1] : [1, 2, 5])
      if (m * 10 ** p >= least && m * 10 ** p <= most) out.push(m * 10 ** p);
  return out.length > 1 ? out : ticks(least, most, 4);
}

// An exponential average that begins without a bias; gaps stay gaps.
function smooth(y, amount) {
  const window = 1 + amount * amount * y.length * 0.25, keep = 1 - 2 / (window + 1);
  let sum = 0, weight = 0;
  return y.map((v) => {
    if (!known(v)) return NaN;
    sum = keep * sum + (1 - keep) * v;
    weight = keep * weight + (1 - keep);
    return sum / weight;
  });
}

// The index of the x that is nearest, in an increasing array.
function nearest(x, value) {
  let low = 0, high = x.length - 1;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if (x[mid] <= value) low = mid;
    else high = mid;
  }
  return high >= 0 && value - x[low] > x[high] - value ? high : low;
}

class Chart {
  // spec: {title, format: value -> text, ylog, zero, height}
  // A line: {name, colour, x, y, least, most, dots, pale, plain}
  constructor(view, spec) {
    this.view = view;
    this.spec = spec;
    this.lines = [];
    this.marks = []; // {x, colour}
    this.drag = null;
    this.read = el("div", { class: "read", "aria-live": "off" });
    this.area = canvasOf(spec.height || 210, spec.title, (g, w, h) => this.draw(g, w, h));
    this.legend = el("div", {});
    this.node = card({ class: spec.class }, heading(spec.title, this.read), this.area.canvas, this.legend);
    view.charts.push(this);
    this.listen();
  }

  // Another title, and how values are written.
  call(title, format) {
    this.spec.format = format;
    this.node.querySelector("h2").textContent = title;
  }

  set(lines, marks) {
    this.lines = lines.filter((line) => line.x.length);
    this.marks = marks || [];
    for (const line of this.lines) line.smooth = null;
    const named = this.lines.filter((line) => line.name && !line.hidden);
    this.named = named.length > 1 ? named : [];
    this.legend.replaceChildren();
    if (this.named.length)
      this.legend.append(legend(this.named.map((line) => [line.name, line.colour()])));
    this.area.redraw();
  }

  smoothed(line) {
    if (line.dots || line.plain || !this.view.smoothing) return line.y;
    if (!line.smooth || line.amount !== this.view.smoothing) {
      line.smooth = smooth(line.y, this.view.smoothing);
      line.amount = this.view.smoothing;
    }
    return line.smooth;
  }

  // ---- where things are ----

  bounds() {
    const [from, to] = this.view.range();
    let least = Infinity, most = -Infinity;
    const take = (v) => {
      if (!known(v) || (this.spec.ylog && v <= 0)) return;
      least = Math.min(least, v);
      most = Math.max(most, v);
    };
    for (const line of this.lines) {
      const y = this.smoothed(line), few = [];
      for (let i = 0; i < line.x.length; i++)
        if (line.x[i] >= from && line.x[i] <= to) {
          take(y[i]);
          if (known(line.y[i])) few.push(line.y[i]);
        }
      if (line.pale || !few.length) continue;
      few.sort((a, b) => a - b);
      take(few[Math.floor(few.length * 0.01)]);
      take(few[Math.ceil(few.length * 0.99) - 1]);
    }
    if (this.spec.zero && least > 0) least = 0;
    if (!(least <= most)) return [0, 1];
    if (this.spec.ylog) return least < most ? [least / 1.08, most * 1.08] : [least / 2, least * 2];
    const pad = (most - least) * 0.06 || Math.abs(most) * 0.1 || 1;
    return [this.spec.zero && least >= 0 ? 0 : least - pad, most + pad];
  }

  frame(w, h) {
    const [from, to] = this.view.range(), [least, most] = this.bounds();
    const plot = { left: MARGIN.left, right: w - MARGIN.right, top: MARGIN.top, bottom: h - MARGIN.bottom };
    const log = this.spec.ylog ? Math.log : (v) => v;
    const xlog = this.spec.xlog ? Math.log : (v) => v;
    const low = log(least), high = log(most), first = xlog(from), last = xlog(to);
    return {
      ...plot, from, to, least, most,
      x: (v) => plot.left + ((xlog(v) - first) / (last - first || 1)) * (plot.right - plot.left),
      y: (v) => plot.bottom - ((log(v) - low) / (high - low || 1)) * (plot.bottom - plot.top),
      step: (px) => {
        const v = first + ((px - plot.left) / (plot.right - plot.left)) * (last - first);
        return this.spec.xlog ? Math.exp(v) : v;
      },
    };
  }

  // ---- drawing ----

  // The legend again, whose colours change with light and dark.
  colourLegend() {
    this.legend.querySelectorAll("i").forEach((swatch, i) => swatch.style.setProperty("--swatch", this.named[i].colour()));
  }

  draw(g, w, h) {
    const f = (this.f = this.frame(w, h));
    this.colourLegend();
    g.font = FONT;
    this.drawGrid(g, f, w, h);
    g.save();
    g.beginPath();
    g.rect(f.left - 6, f.top - 6, f.right - f.left + 12, f.bottom - f.top + 12);
    g.clip();
    for (const mark of this.marks) this.drawMark(g, f, mark);
    for (const line of this.lines) this.drawLine(g, f, line);
    if (this.drag) {
      g.fillStyle = colour("c0");
      g.globalAlpha = 0.12;
      g.fillRect(Math.min(this.drag.a, this.drag.b), f.top, Math.abs(this.drag.b - this.drag.a), f.bottom - f.top);
      g.globalAlpha = 1;
    }
    this.drawCursor(g, f);
    g.restore();
    if (!this.lines.length) {
      g.fillStyle = colour("faint");
      g.textAlign = "center";
      g.fillText("nothing yet", (f.left + f.right) / 2, (f.top + f.bottom) / 2);
    }
  }

  drawGrid(g, f, w, h) {
    const format = this.spec.format || shortly;
    g.lineWidth = 1;
    g.textBaseline = "middle";
    g.textAlign = "right";
    for (const t of this.spec.ylog ? logTicks(f.least, f.most) : ticks(f.least, f.most, 4)) {
      const y = Math.round(f.y(t)) + 0.5;
      g.strokeStyle = colour("grid");
      g.beginPath();
      g.moveTo(f.left, y);
      g.lineTo(f.right, y);
      g.stroke();
      g.fillStyle = colour("faint");
      g.fillText(format(t), f.left - 7, y);
    }
    g.textBaseline = "alphabetic";
    g.textAlign = "center";
    const nodes = this.spec.xticks;
    for (const t of nodes || ticks(f.from, f.to, Math.max(2, Math.floor((f.right - f.left) / 90)))) {
      if (t < f.from * (1 - 1e-9) || t > f.to * (1 + 1e-9)) continue;
      const label = nodes ? String(t) : shortly(t), half = g.measureText(label).width / 2;
      g.fillText(label, clamp(f.x(t), f.left + half - 4, w - half - 1), h - 6);
    }
    g.strokeStyle = colour("line");
    g.beginPath();
    g.moveTo(f.left, f.bottom + 0.5);
    g.lineTo(f.right, f.bottom + 0.5);
    g.stroke();
  }

  drawMark(g, f, mark) {
    const x = Math.round(f.x(mark.x)) + 0.5;
    g.strokeStyle = mark.colour();
    g.lineWidth = 1;
    g.globalAlpha = 0.7;
    g.setLineDash([3, 3]);
    g.beginPath();
    g.moveTo(x, f.top);
    g.lineTo(x, f.bottom);
    g.stroke();
    g.setLineDash([]);
    g.globalAlpha = 1;
  }

  drawLine(g, f, line) {
    g.strokeStyle = g.fillStyle = line.colour();
    g.lineJoin = "round";
    if (line.dots) return this.drawDots(g, f, line);
    if (line.least && !line.pale) this.drawBand(g, f, line);
    const soft = this.smoothed(line);
    if (soft !== line.y && !line.pale) {
      g.globalAlpha = 0.28;
      g.lineWidth = 1;
      this.trace(g, f, line.x, line.y);
    }
    g.globalAlpha = line.pale ? 0.8 : 1;
    g.lineWidth = line.pale ? 1.2 : 1.9;
    g.setLineDash(line.dash || []);
    this.trace(g, f, line.x, soft);
    g.setLineDash([]);
    g.globalAlpha = 1;
  }

  // Of many points in one column of pixels the extremes are all that can be seen.
  trace(g, f, x, y) {
    let open = false, column = NaN, low = 0, high = 0, last = 0;
    const flush = () => {
      if (!known(column)) return;
      if (high - low > 0.5) {
        g.lineTo(column, low);
        g.lineTo(column, high);
      }
      g.lineTo(column, last);
    };
    const thin = x.length > 2 * (f.right - f.left);
    g.beginPath();
    for (let i = 0; i < x.length; i++) {
      if (!known(y[i]) || (this.spec.ylog && y[i] <= 0)) {
        flush();
        open = false;
        column = NaN;
        continue;
      }
      const px = f.x(x[i]), py = f.y(y[i]), at = thin ? Math.round(px) : px;
      if (!open) g.moveTo(at, py);
      if (thin && at === column) {
        low = Math.min(low, py);
        high = Math.max(high, py);
        last = py;
      } else {
        flush();
        column = at;
        low = high = last = py;
      }
      open = true;
    }
    flush();
    g.stroke();
  }

  drawBand(g, f, line) {
    g.globalAlpha = 0.13;
    g.beginPath();
    let open = false;
    for (let i = 0; i < line.x.length; i++) {
      if (!known(line.most[i])) continue;
      if (!open) g.moveTo(f.x(line.x[i]), f.y(line.most[i]));
      else g.lineTo(f.x(line.x[i]), f.y(line.most[i]));
      open = true;
    }
    for (let i = line.x.length - 1; i >= 0; i--) {
      if (!known(line.least[i])) continue;
      g.lineTo(f.x(line.x[i]), f.y(this.spec.ylog ? Math.max(line.least[i], f.least * 1e-3) : line.least[i]));
    }
    g.fill();
    g.globalAlpha = 1;
  }

  drawDots(g, f, line) {
    const small = line.x.length > 120;
    if (!line.bare && !small) {
      g.globalAlpha = 0.55;
      g.lineWidth = 1.3;
      this.trace(g, f, line.x, line.y);
      g.globalAlpha = 1;
    }
    for (let i = 0; i < line.x.length; i++) {
      if (!known(line.y[i])) continue;
      g.beginPath();
      g.arc(f.x(line.x[i]), f.y(line.y[i]), line.bare ? 5 : small ? 1.6 : 3.2, 0, 7);
      g.fill();
    }
  }

  drawCursor(g, f) {
    const x = this.view.cursor, parts = [];
    if (!known(x) || x < f.from || x > f.to) return this.read.replaceChildren();
    g.strokeStyle = colour("faint");
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(Math.round(f.x(x)) + 0.5, f.top);
    g.lineTo(Math.round(f.x(x)) + 0.5, f.bottom);
    g.stroke();
    for (const line of this.lines) {
      if (line.pale || line.hidden) continue;
      const i = nearest(line.x, x), y = this.smoothed(line)[i];
      if (!known(y)) continue;
      g.fillStyle = line.colour();
      g.beginPath();
      g.arc(f.x(line.x[i]), f.y(y), 4, 0, 7);
      g.fill();
      const several = this.lines.filter((other) => other.name && !other.pale).length > 1;
      parts.push(DOT, several && line.name ? line.name + " " : "",
        el("b", {}, (this.spec.format || shortly)(line.dots ? line.y[i] : y)));
    }
    this.read.replaceChildren((this.spec.xname || "step") + " " + grouped(x), ...parts);
  }

  // ---- asking ----

  listen() {
    const canvas = this.area.canvas;
    const at = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const snap = (x) => {
      const line = this.lines.find((one) => !one.pale && !one.dots) || this.lines[0];
      return line ? line.x[nearest(line.x, x)] : NaN;
    };
    canvas.addEventListener("pointermove", (event) => {
      if (!this.f) return;
      if (this.drag) this.drag.b = clamp(at(event), this.f.left, this.f.right);
      this.view.point(snap(this.f.step(at(event))));
    });
    canvas.addEventListener("pointerleave", () => { if (!this.drag) this.view.point(NaN); });
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.f || event.button || event.pointerType === "touch" || this.spec.fixed) return;
      const x = clamp(at(event), this.f.left, this.f.right);
      this.drag = { a: x, b: x };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => {
      const drag = this.drag;
      this.drag = null;
      if (drag && Math.abs(drag.b - drag.a) > 5)
        this.view.zoom(this.f.step(Math.min(drag.a, drag.b)), this.f.step(Math.max(drag.a, drag.b)));
      else if (drag) this.area.redraw();
    });
    canvas.addEventListener("dblclick", () => this.view.reset());
    canvas.addEventListener("keydown", (event) => this.key(event, snap));
  }

  key(event, snap) {
    const [from, to] = this.view.range(), span = to - from;
    const here = known(this.view.cursor) ? this.view.cursor : to;
    const line = this.lines.find((one) => !one.pale && !one.dots) || this.lines[0];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const move = (sign) => {
      if (event.shiftKey) return snap(here + sign * span * 0.1);
      const i = nearest(line.x, here) + (known(this.view.cursor) ? sign : 0);
      return line.x[clamp(i, 0, line.x.length - 1)];
    };
    const zoom = (factor) => this.view.zoom(here - (here - from) * factor, here + (to - here) * factor);
    const keys = {
      ArrowLeft: () => this.view.point(move(-1)),
      ArrowRight: () => this.view.point(move(1)),
      Home: () => this.view.point(snap(from)),
      End: () => this.view.point(snap(to)),
      Escape: () => { this.view.cursor = NaN; this.view.reset(); },
    };
    if (!this.spec.fixed) {
      keys["+"] = keys["="] = () => zoom(0.6);
      keys["-"] = () => zoom(1 / 0.6);
    }
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}
