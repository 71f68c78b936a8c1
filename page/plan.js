// The answer of tutti plan or tutti simulate: how a net would run on so many nodes.

function readPlan(data) {
  const layers = readLayers(data.layers);
  return {
    net: str(data.net), platform: str(data.platform), title: str(data.title), batch: num(data.batch),
    simulated: data.simulated === 1, layers, note: str(data.note), memoryRoom: num(data.node_memory),
    rows: arr(data.rows).slice(0, 256).map((raw) => {
      const r = obj(raw);
      return { nodes: num(r.nodes), step: num(r.step_s), speedup: num(r.speedup), efficiency: num(r.efficiency),
        compute: num(r.compute_s), exposed: num(r.exposed_s), paper: num(r.paper_speedup), epoch: num(r.epoch_s),
        nodeHours: num(r.node_hours), memory: num(r.memory_bytes), simulated: num(r.simulated_speedup),
        simulatedStep: num(r.simulated_step_s), link: str(r.busiest_link), busiest: num(r.busiest_share),
        layers: arr(r.layers).map(nums).filter((l) => l.length >= 8 && layers[l[0]]) };
    }).filter((r) => r.nodes >= 1).sort((a, b) => a.nodes - b.nodes),
  };
}

class PlanPage {
  constructor(data) {
    this.plan = readPlan(data);
    this.at = this.plan.rows.length - 1;
    this.view = new View();
    this.view.smoothing = 0;
    const nodes = this.plan.rows.map((r) => r.nodes);
    const common = { xname: "nodes", xlog: nodes.length > 1, xticks: nodes.length <= 12 ? nodes : nodes.filter((_, i) => i % Math.ceil(nodes.length / 8) === 0), fixed: true };
    this.speedup = new Chart(this.view, { ...common, title: "Speedup", ylog: nodes.length > 1, height: 270, format: (v) => digits(v, 3) + TIMES });
    this.efficiency = new Chart(this.view, { ...common, title: "Efficiency", zero: true, height: 270, format: (v) => percent(v, 0) });
    this.slider = el("input", { type: "range", class: "long", min: 0, max: Math.max(0, nodes.length - 1), step: 1, value: this.at,
      "aria-label": "number of nodes", oninput: () => { this.at = Number(this.slider.value); this.show(); } });
    this.tiles = el("div", {});
    this.times = card({});
    this.drawing = card({});
    this.chosen = el("b", {});
  }

  head() {
    const p = this.plan;
    return [el("div", { class: "headline" }, el("h1", {}, `${p.net} on ${p.title || p.platform}`)),
      el("p", { class: "where" }, `minibatch ${grouped(p.batch)}, `, p.simulated ? "simulated and predicted" : "predicted", p.note ? ". " + p.note : "")];
  }

  nodes() {
    return [el("div", { class: "tools" }, el("label", {}, "nodes", this.slider, this.chosen)), this.tiles,
      el("div", { class: "grid" }, this.speedup.node, this.efficiency.node), this.drawing, this.times];
  }

  curves() {
    const rows = this.plan.rows, x = rows.map((r) => r.nodes);
    const line = (name, shade, value, more) => ({ name, colour: () => colour(shade), x, y: rows.map(value), plain: true, ...more });
    const paper = rows.filter((r) => known(r.paper));
    const points = (value) => ({ name: "measured in the paper", colour: () => colour("c1"), dots: true, bare: true,
      x: paper.map((r) => r.nodes), y: paper.map(value) });
    const marks = [{ x: rows[this.at].nodes, colour: () => colour("faint") }];
    this.speedup.set([line("ideal", "old", (r) => r.nodes, { dash: [4, 4] }),
      line("predicted", "c0", (r) => r.speedup), line("simulated", "c2", (r) => r.simulated), points((r) => r.paper)]
      .filter((l) => l.y.some(known)), marks);
    this.efficiency.set([line("predicted", "c0", (r) => r.efficiency),
      line("simulated", "c2", (r) => r.simulated / r.nodes), points((r) => r.paper / r.nodes)].filter((l) => l.y.some(known)), marks);
  }

  show() {
    const p = this.plan, r = p.rows[this.at];
    if (!r) return;
    this.chosen.textContent = grouped(r.nodes);
    this.tiles.replaceChildren(el("div", { class: "tiles" },
      tile("a step", seconds(r.step), known(r.simulatedStep) ? "simulated " + seconds(r.simulatedStep) : "predicted"),
      tile("samples/s", shortly(p.batch / r.step), ""),
      tile("speedup", digits(r.speedup, 3) + TIMES, known(r.paper) ? `the paper: ${digits(r.paper, 3)}${TIMES}` : ""),
      tile("efficiency", percent(r.efficiency, 0), ""),
      tile("waiting", percent(r.exposed / r.step, 0), seconds(r.exposed) + " a step"),
      tile("an epoch", duration(r.epoch), ""), tile("node hours", shortly(r.nodeHours), "for the training"),
      tile("memory", bytes(r.memory), "a node" + (r.memory > p.memoryRoom ? ": more than it has" : "")),
      r.link ? tile("busiest link", percent(r.busiest, 0), r.link) : null));
    this.curves();
    const per = new Map(r.layers.map((l) => [l[0], { groups: l[1], forward: l[2], weights: l[3], data: l[4], comm: l[5], exposed: l[6], bytes: l[7] }]));
    const list = p.layers.map((l, i) => {
      const t = per.get(i), groups = t ? t.groups : r.nodes;
      return { ...l, groups, split: groups === r.nodes ? "data" : groups === 1 ? "model" : "hybrid" };
    });
    const rows = list.map((l, i) => ({ name: l.name, split: l.split, groups: l.groups, measured: null, predicted: per.get(i) || null,
      bytes: per.get(i) ? per.get(i).bytes : NaN })).filter((row) => whole(row.predicted) > 0);
    const on = r.nodes === 1 ? "one node" : grouped(r.nodes) + " nodes";
    this.times.replaceChildren(...layerTimes(`Where the time of a step goes, on ${on}`, rows));
    this.drawing.replaceChildren(...netCard(list, r.nodes, (box) => (per.get(box.index) || {}).bytes,
      `On ${on}. Height is the size of an image, width the number of channels. Below: parameters, and what a node sends for the layer in a step.`));
  }
}
