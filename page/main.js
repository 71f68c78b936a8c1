// The page as a whole: what it was given, the theme, and, where it is served, news.

const POLL_MS = 2000, PATIENCE_MS = 30000;
const root = document.documentElement, top_ = document.getElementById("top"),
  main = document.getElementById("main"), foot = document.getElementById("foot");

// ---- light and dark ----

const dark = window.matchMedia("(prefers-color-scheme: dark)");
let theme = null; // as chosen on the page; null: as the system says
const redraws = [];

function applyTheme() {
  root.dataset.theme = theme || (dark.matches ? "dark" : "light");
  palette = null;
  for (const redraw of redraws) redraw();
}
dark.addEventListener("change", applyTheme);

const themeButton = el("button", { type: "button", onclick: () => {
  theme = root.dataset.theme === "dark" ? "light" : "dark";
  applyTheme();
} }, "light / dark");

// ---- runs ----

class RunsPage {
  constructor() {
    this.curves = new Curves();
    this.heats = [];
    this.note = el("span", {});
    this.head = el("div", {});
    this.below = el("div", {});
    top_.append(el("div", { class: "brand" }, el("span", {}, el("b", {}, "tutti"), " ", this.note), themeButton), this.head);
    main.append(this.curves.node, this.below);
    redraws.push(() => { this.curves.view.redraw(); this.rest(false); });
  }

  show(data, isNews) {
    this.runs = arr(data.runs).map(readRun);
    this.earlier = arr(data.earlier).map(readRun);
    if (!this.runs.length) return this.head.replaceChildren(el("p", { class: "none" }, "There is no run here."));
    const first = this.runs[0];
    document.title = `${this.runs.map((r) => `${r.state === "running" && r.steps > 0 ? percent(r.done / r.steps, 0) + " " : ""}${shortName(r)}`).join(", ")} ${DASH} tutti`;
    this.head.replaceChildren(...(this.runs.length > 1
      ? [el("div", { class: "headline" }, el("h1", {}, `${this.runs.length} runs`)), el("div", { style: { height: "14px" } }), comparison(this.runs)]
      : head(first)).filter(Boolean));
    this.curves.set(this.runs, this.earlier);
    this.rest(isNews);
  }

  // News do not take away what somebody holds with the keyboard: only the heat maps go on then.
  rest(isNews) {
    if (!this.runs || !this.runs.length) return;
    if (isNews && this.below.contains(document.activeElement)) {
      this.heats.forEach((heat, i) => { if (this.runs[i].ranks) heat.set(this.runs[i]); });
      return;
    }
    this.below.replaceChildren(...this.runs.flatMap((run, i) => {
      const title = this.runs.length > 1 ? el("h2", { style: { margin: "22px 0 12px" } }, shortName(run)) : null;
      let heat = null;
      if (run.ranks && run.ranks.lines) {
        heat = this.heats[i] = this.heats[i] || new Heat();
        heat.set(run);
      }
      const pair = (...cards) => {
        const some = cards.filter(Boolean);
        return some.length > 1 ? el("div", { class: "grid" }, some) : some[0] || null;
      };
      const table = confusion(run), list = events(run), used = memory(run), bad = worst(run);
      return [title, heat && heat.node, plan(run), layers(run),
        ...(table ? [pair(table, el("div", { class: "column" }, used, list)), bad, facts(run)]
          : [bad, pair(list, el("div", { class: "column" }, used, facts(run)))])].filter(Boolean);
    }));
  }
}

// ---- news ----

class News {
  constructor(page, data) {
    this.page = page;
    this.generation = num(data.generation) || 0;
    this.heard = Date.now();
    this.token = new URLSearchParams(location.search).get("token");
    this.say("live");
    setTimeout(() => this.ask(), POLL_MS);
  }

  say(word) {
    this.page.note.textContent = word;
  }

  async ask() {
    try {
      const query = new URLSearchParams({ since: String(this.generation) });
      if (this.token) query.set("token", this.token);
      const answer = await fetch("data.json?" + query, { cache: "no-store", credentials: "omit" });
      if (answer.status === 200) this.take(await answer.json());
      else if (answer.status !== 204) throw new Error(String(answer.status));
      this.heard = Date.now();
      this.say("live");
    } catch (failure) {
      this.say(Date.now() - this.heard > PATIENCE_MS ? "tutti watch has ended; this is what was last known" : "connecting again");
    }
    setTimeout(() => this.ask(), document.hidden ? 5 * POLL_MS : POLL_MS);
  }

  take(data) {
    this.generation = num(data.generation) || 0;
    const top = window.scrollY;
    this.page.show(obj(data), true);
    window.scrollTo(0, top);
  }
}

// ---- begin ----

applyTheme();
let data = {};
try {
  data = obj(JSON.parse(document.getElementById("data").textContent));
} catch (failure) {
  main.append(el("p", { class: "none" }, "The data in this page are damaged."));
}
if (data.kind === "plan") {
  const page = new PlanPage(data);
  document.title = `${page.plan.net} ${DASH} tutti`;
  top_.append(el("div", { class: "brand" }, el("b", {}, "tutti"), themeButton), ...page.head());
  main.append(...page.nodes());
  page.show();
  redraws.push(() => { page.view.redraw(); });
} else {
  const page = new RunsPage();
  page.show(data);
  if (data.live === 1 && location.protocol.startsWith("http")) new News(page, data);
}
foot.append(data.kind === "plan" ? "made by tutti plan" : "made from the files of the run alone", known(num(data.at)) ? ", " + moment(num(data.at)) : "");
root.dataset.ready = "1"; // for tests
