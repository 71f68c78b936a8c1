// Layers: what each was said to take beside what it took, and the net as a drawing: how each layer
// is split over the ranks, and what travels.

function readLayers(raw) {
  return arr(raw).slice(0, 4096).map((l) => {
    const o = obj(l), p = obj(o.predicted);
    return { name: str(o.name), kind: str(o.kind), from: nums(o.from), out: nums(o.out), parameters: num(o.parameters),
      groups: num(o.groups), split: ["data", "model", "hybrid"].includes(o.split) ? o.split : "data", frozen: o.frozen === 1,
      predicted: o.predicted ? { forward: num(p.forward), weights: num(p.weights), data: num(p.data), comm: num(p.comm),
        exposed: num(p.exposed), bytes: num(p.bytes) } : null };
  });
}

function readMeasured(raw) {
  return new Map(arr(raw).slice(0, 4096).map((m) => {
    const o = obj(m);
    return [str(o.name), { forward: num(o.forward), weights: num(o.weights), data: num(o.data), comm: num(o.comm),
      exposed: num(o.exposed), bytes: num(o.bytes) }];
  }));
}

const PARTS = [["forward", "forward"], ["weights", "weight gradients"], ["data", "gradients by inputs"], ["exposed", "waiting for the exchange"]];
const NORMS = ["batchnorm", "layernorm", "groupnorm", "layerscale"]; // drawn into what they follow
const MOST_LINES = 24;
const whole = (t) => (t ? PARTS.reduce((sum, [part]) => sum + (t[part] > 0 ? t[part] : 0), 0) : 0);

// ---- times ----

const stack = (t, longest) => el("div", { class: "stack" }, PARTS.map(([part]) =>
  el("i", { style: { width: (100 * (t && t[part] > 0 ? t[part] : 0)) / longest + "%", background: `var(--${part})` } })));

// The longest, in their order.
function longestOf(rows, count) {
  const time = (r) => Math.max(whole(r.measured), whole(r.predicted));
  const chosen = new Set([...rows].sort((a, b) => time(b) - time(a)).slice(0, count));
  return rows.filter((r) => chosen.has(r));
}

// rows: [{name, split, groups, measured, predicted}]; of many layers the rest is folded away.
function layerTimes(title, rows, note) {
  const longest = Math.max(...rows.map((r) => Math.max(whole(r.measured), whole(r.predicted))), 1e-12);
  const many = rows.length > MOST_LINES * 1.5;
  const measures = rows.some((r) => r.measured), predicts = rows.some((r) => r.predicted);
  const line = (r) => el("tr", {},
    el("td", { class: "w" }, r.name, " ", r.groups > 1 && r.split !== "data" ? el("span", { class: "chip " + r.split }, r.split) : null),
    el("td", { class: "bars" }, measures ? stack(r.measured, longest) : null, predicts ? stack(r.predicted, longest) : null),
    measures ? el("td", { class: "r" }, r.measured ? seconds(whole(r.measured)) : DASH) : null,
    predicts ? el("td", { class: "r phone-off" }, r.predicted ? seconds(whole(r.predicted)) : DASH) : null,
    el("td", { class: "r phone-off" }, r.bytes > 0 ? bytes(r.bytes) : ""));
  const table = (shown) => el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "layer"),
      el("th", {}, measures && predicts ? "measured, and below it predicted" : measures ? "measured" : "predicted"),
      measures ? el("th", { class: "r" }, "measured") : null, predicts ? el("th", { class: "r phone-off" }, "predicted") : null,
      el("th", { class: "r phone-off" }, "sent"))), el("tbody", {}, shown.map(line)));
  return [heading(title, el("div", { class: "legend" }, PARTS.map(([part, text]) =>
      el("span", {}, el("i", { class: "box", style: { "--swatch": `var(--${part})` } }), text)))),
    ...(note ? [el("p", { class: "lead" }, note)] : []),
    table(many ? longestOf(rows, MOST_LINES) : rows),
    ...(many ? [el("details", {}, el("summary", {}, `all ${rows.length} layers; above, the ${MOST_LINES} that take longest`), table(rows))] : [])];
}

function layers(run) {
  if (!run.layers.length && !run.measured.size) return null;
  const names = run.layers.length ? run.layers : [...run.measured.keys()].map((name) => ({ name }));
  const rows = names.map((l) => {
    const measured = run.measured.get(l.name) || null;
    return { name: l.name, split: l.split, groups: l.groups, measured, predicted: l.predicted,
      bytes: measured ? measured.bytes : l.predicted ? l.predicted.bytes : NaN };
  }).filter((r) => whole(r.measured) > 0 || whole(r.predicted) > 0);
  if (!rows.length) return null;
  const note = run.measured.size ? null : "What was measured is known when the run ends.";
  return card({ class: "wide" }, ...layerTimes("Layers, time of a step", rows, note));
}

// ---- the net as a drawing ----

// What learns, joins or ends is drawn; what merely follows its input is drawn into it.
function foldLayers(list) {
  const home = [], boxes = [];
  list.forEach((layer, i) => {
    const inputs = layer.from.filter((f) => f >= 0 && f < i);
    const follows = layer.from.length === 1 && inputs.length === 1 && (!(layer.parameters > 0) || NORMS.includes(layer.kind));
    if (follows && home[inputs[0]] !== undefined) {
      home[i] = home[inputs[0]];
      boxes[home[i]].also.push(layer.name);
      boxes[home[i]].out = layer.out;
    } else {
      home[i] = boxes.length;
      boxes.push({ layer, also: [], out: layer.out, index: i, from: [...new Set(layer.from.map((f) => (f >= 0 && f < i ? home[f] : -1)))] });
    }
  });
  return boxes;
}

const boxShade = (box) => (box.layer.parameters > 0
  ? { data: "var(--c0)", model: "var(--c1)", hybrid: "var(--c6)" }[box.layer.split] : "var(--faint)");

// A stack of sheets: every rank has all of the layer and some samples. Cut: each has some features.
function drawBox(box, x, middle, nodes) {
  const [c, h] = [box.out[0] || 1, box.out[1] || 1], l = box.layer;
  const height = clamp(30 + 13 * Math.log2(Math.max(1, h)), 30, 132), width = clamp(6 + 3.2 * Math.log2(Math.max(1, c)), 8, 42);
  const shade = boxShade(box), out = [], learns = l.parameters > 0 && nodes > 1;
  const sheets = learns && l.split !== "model" ? Math.min(3, nodes) : 1;
  const cuts = learns && l.split !== "data" ? Math.min(4, Math.max(2, Math.round(nodes / Math.max(1, l.groups)))) : 1;
  for (let s = sheets - 1; s >= 0; s--)
    for (let k = 0; k < cuts; k++) {
      const part = height / cuts, gap = cuts > 1 ? 2 : 0;
      out.push(svg("rect", { x: x + s * 4, y: middle - height / 2 + k * part - s * 4, width, height: part - gap, rx: 2,
        fill: shade, "fill-opacity": s ? 0.35 : l.parameters > 0 ? 0.9 : 0.4, stroke: "var(--card)", "stroke-width": 1 }));
    }
  const also = box.also.length ? ", then " + box.also.slice(0, 6).join(", ") : "";
  const shape = box.out.filter(known).join(TIMES);
  out.unshift(svg("title", {}, `${l.name} (${l.kind})${also}: ${shape}` + (l.parameters > 0 ? `, ${grouped(l.parameters)} parameters` : "")
    + (learns ? `, ${l.split} parallel` + (l.split === "hybrid" ? ` in ${l.groups} groups` : "") : "") + (l.frozen ? ", frozen" : "")));
  return { width: width + (sheets - 1) * 4, node: svg("g", {}, out) };
}

function netDrawing(list, nodes, sent) {
  const boxes = foldLayers(list).slice(0, 600), places = [], drawn = [];
  const skips = boxes.some((box, i) => box.from.some((f) => f >= 0 && f !== i - 1));
  const middle = skips ? 132 : 84, roomy = clamp(1040 / boxes.length - 60, 0, 56);
  let x = 10 + roomy / 2, taken = 0; // to the right end of the last label
  boxes.forEach((box, i) => {
    const text = box.layer.name.slice(0, 16), half = text.length * 3.5;
    x = Math.max(x, taken + half - 12);
    const picture = drawBox(box, x, middle, nodes), centre = x + picture.width / 2, b = sent(box);
    taken = centre + half + 8;
    places.push({ left: x, right: x + picture.width, centre });
    for (const f of box.from) {
      const from = places[f];
      if (!from || f < 0) continue;
      if (f === i - 1) drawn.push(svg("path", { class: "edge", d: `M${from.right + 2} ${middle}H${x - 3}` }));
      else {
        const rise = clamp(84 + 5 * (i - f), 90, 112);
        drawn.push(svg("path", { class: "edge", d: `M${from.centre} ${middle - 40}C${from.centre} ${middle - rise} ${centre} ${middle - rise} ${centre} ${middle - 40}`, opacity: 0.55 }));
      }
    }
    drawn.push(picture.node);
    drawn.push(svg("text", { class: "name", x: centre, y: middle + 88, "text-anchor": "middle" }, text));
    if (box.layer.parameters > 0) drawn.push(svg("text", { x: centre, y: middle + 102, "text-anchor": "middle" }, shortly(box.layer.parameters)));
    if (b > 0) drawn.push(svg("text", { x: centre, y: middle + 116, "text-anchor": "middle", style: { fill: boxShade(box) } }, bytes(b)));
    places[i].centre = centre;
    x += roomy + picture.width + 26;
  });
  return svg("svg", { width: x + 30, height: middle + 122, viewBox: `0 0 ${x + 30} ${middle + 122}`, role: "img", "aria-label": "the layers of the net, from its input to its loss" }, drawn);
}

function netCard(list, nodes, sent, lead) {
  const splits = [...new Set(list.filter((l) => l.parameters > 0).map((l) => l.split))];
  const words = { data: "data parallel: all of the layer on every rank", model: "model parallel: some features on every rank", hybrid: "hybrid: groups of ranks, features within" };
  return [heading("The net and its plan", el("div", { class: "legend" }, splits.map((s) =>
      el("span", {}, el("i", { class: "box", style: { "--swatch": `var(--${{ data: "c0", model: "c1", hybrid: "c6" }[s]})` } }), words[s])))),
    el("p", { class: "lead" }, lead),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "the net, to be scrolled" }, netDrawing(list, nodes, sent))];
}

function plan(run) {
  if (!run.layers.length) return null;
  const nodes = Math.max(1, num(run.begun.ranks) || 1);
  const sent = (box) => {
    const m = run.measured.get(box.layer.name);
    return m ? m.bytes : box.layer.predicted && nodes > 1 ? box.layer.predicted.bytes : NaN;
  };
  return card({ class: "wide" }, ...netCard(run.layers, nodes, sent,
    nodes > 1 ? "Height is the size of an image, width the number of channels. Below: parameters, and what a rank sends for the layer in a step."
      : "Height is the size of an image, width the number of channels; below are the parameters. One rank sends nothing."));
}
