// Small things that all parts use. Whatever comes from a run becomes text nodes and numbers, and
// nothing else: it may hold anything.

const num = (x) => (typeof x === "number" && Number.isFinite(x) ? x : NaN);
const str = (x) => (typeof x === "string" ? x : "");
const arr = (x) => (Array.isArray(x) ? x : []);
const obj = (x) => (x && typeof x === "object" && !Array.isArray(x) ? x : {});
const nums = (x) => arr(x).map(num);
const clamp = (x, least, most) => Math.min(Math.max(x, least), most);
const known = Number.isFinite;

// el("p", {class: "lead"}, "text", node, ...)
function make(namespace, tag, attributes, children) {
  const node = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(3))
    if (child !== null && child !== undefined && child !== false)
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return node;
}
const el = (tag, attributes, ...children) => make(null, tag, attributes, children);
const svg = (tag, attributes, ...children) =>
  make("http://www.w3.org/2000/svg", tag, attributes, children);

// ---- numbers for people ----

const DASH = "\u2013", TIMES = "\u00d7", THIN = "\u202f", DOT = " \u00b7 ";
const grouped = (x) => (known(x) ? Math.round(x).toLocaleString("en-US") : DASH);
const digits = (x, n) => (known(x) ? Number(x.toPrecision(n)).toString() : DASH);
const percent = (x, n = 1) => (known(x) ? (100 * x).toFixed(n) + THIN + "%" : DASH);

function shortly(x) {
  if (!known(x)) return DASH;
  const a = Math.abs(x);
  if (a >= 1e9) return digits(x / 1e9, 3) + "G";
  if (a >= 1e6) return digits(x / 1e6, 3) + "M";
  if (a >= 1e4) return digits(x / 1e3, 3) + "k";
  if (a && a < 1e-3) return x.toExponential(1);
  return digits(x, 4);
}

function seconds(s) {
  if (!known(s) || s < 0) return DASH;
  if (s < 1e-3) return digits(s * 1e6, 3) + THIN + "\u00b5s";
  if (s < 1) return digits(s * 1e3, 3) + THIN + "ms";
  return digits(s, 3) + THIN + "s";
}

function duration(s) {
  if (!known(s) || s < 0 || s > 1e10) return DASH;
  const t = Math.round(s), d = Math.floor(t / 86400), h = Math.floor(t / 3600) % 24,
    m = Math.floor(t / 60) % 60, two = (x) => String(x).padStart(2, "0");
  if (d) return `${d}d ${h}h`;
  return h ? `${h}:${two(m)}:${two(t % 60)}` : `${m}:${two(t % 60)}`;
}

function bytes(b) {
  if (!known(b)) return DASH;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  for (; b >= 1000 && u < 4; u++) b /= 1024;
  return (u && b < 10 ? b.toFixed(1) : Math.round(b)) + THIN + units[u];
}

function moment(at) {
  const d = new Date(at * 1000);
  if (!known(at) || at <= 0 || Number.isNaN(d.getTime())) return "";
  const two = (x) => String(x).padStart(2, "0");
  return `${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

// ---- colours, by their names in page.css ----

let palette = null;
function colour(name) {
  if (!palette) palette = getComputedStyle(document.documentElement);
  return palette.getPropertyValue("--" + name).trim() || "#888";
}
const runColour = (i) => colour("c" + (i % 8));

function channels(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

// A function from 0..1 to a colour between those of the heat map.
function heatScale() {
  const stops = [0, 1, 2, 3, 4, 5].map((i) => channels(colour("h" + i)));
  return (t) => {
    const at = clamp(t, 0, 1) * 5, i = Math.min(4, Math.floor(at)), f = at - i;
    return stops[i].map((c, k) => Math.round(c + f * (stops[i + 1][k] - c)));
  };
}

// ---- pieces ----

const card = (attributes, title, ...children) =>
  el("section", { ...attributes, class: "card " + (attributes.class || "") }, title, ...children);
const heading = (text, ...more) => el("div", { class: "title" }, el("h2", {}, text), ...more);
const legend = (entries, box) =>
  el("div", { class: "legend" }, entries.map(([name, value]) =>
    el("span", {}, el("i", { class: box ? "box" : null, style: { "--swatch": value } }), name)));

// One of several words, as radio buttons: arrow keys work by themselves.
function choice(name, words, chosen, label, onchange) {
  return el("fieldset", { class: "seg", "aria-label": label },
    words.map(([value, text]) => el("label", {},
      el("input", { type: "radio", name, value, checked: value === chosen,
        onchange: () => onchange(value) }),
      el("span", {}, text))));
}

// A canvas that is as wide as its place, sharp, and drawn again when that changes.
function canvasOf(height, label, draw) {
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
  const state = { canvas, width: 0, height, redraw: null };
  state.redraw = () => {
    const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    if (!width) return;
    state.width = width;
    canvas.style.height = state.height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(state.height * ratio);
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, state.height);
    draw(g, width, state.height);
  };
  new ResizeObserver(() => { if (canvas.clientWidth !== state.width) state.redraw(); }).observe(canvas);
  return state;
}
