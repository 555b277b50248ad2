// The page of a report: counts runs under moved limits, redraws, and keeps tables and words in step.
// No network, no storage; words reach the page as text nodes only.
"use strict";

const data = JSON.parse(document.getElementById("page-data").textContent);
const pictures = JSON.parse(document.getElementById("pictures").textContent);
const asked = { deadline: data.deadline_s, budget: data.budget_usd, confidence: data.confidence };
const limits = { ...asked };
const views = new Map();
const phone = matchMedia("(max-width: 40rem)");
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
let chosen = data.lead;

// Numbers as the command line writes them (recommender/text.py).

// Python rounds a tie to the even digit, and a tie is one of the binary number, not of its decimals.
function whole(x) {
  const up = Math.round(x);
  return Math.abs(x % 1) === 0.5 && up % 2 !== 0 ? up - 1 : up;
}

function toPlaces(x, places) {
  const tie = Math.abs((x * 10 ** places) % 1) === 0.5 && Number.isInteger(x * 2 ** (places + 1));
  return tie || places <= 0 ? whole(x * 10 ** places) / 10 ** places : Number(x.toFixed(Math.min(places, 20)));
}

function three(x) {
  if (!Number.isFinite(x)) return "unknown";
  if (x === 0) return "0";
  const places = 2 - Math.floor(Math.log10(Math.abs(x)));
  const shown = Math.max(0, Math.min(places, 20));
  return toPlaces(x, places).toLocaleString("en-US", { maximumFractionDigits: shown });
}

function usd(x) {
  return Math.abs(x) >= 10 && Math.abs(x) < 1000 ? three(whole(x)) : three(x);
}

function short(x) {
  return x >= 9.95 ? whole(x).toLocaleString("en-US") : three(toPlaces(x, 1));
}

function duration(s) {
  if (!Number.isFinite(s)) return "unknown";
  if (s > 0 && s < 1) return `${three(s * 1e3)} ms`;
  for (const [most, unit, name] of [[90, 1, "s"], [5400, 60, "min"], [360000, 3600, "h"]])
    if (s < most) return `${short(s / unit)} ${name}`;
  return `${short(s / 86400)} d`;
}

function share(x) {
  const percent = 100 * x;
  if (percent > 0 && percent < 1) return "<1 %";
  return percent >= 99.5 ? ">99 %" : `${Math.floor(percent + 1e-9)} %`;
}

// Runs: whole numbers on a logarithmic scale around the limits asked (page_data.py).

function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Int16Array.from({ length: bytes.length / 2 }, (_, i) => view.getInt16(2 * i, true));
}

function codeOf(limit, origin) {
  return limit === null ? 32767 : Math.floor(data.steps * Math.log(limit / origin) + 1e-9);
}

function figureOf(code, origin) {
  return origin * Math.exp(code / data.steps);
}

for (const plan of data.plans) {
  plan.times = decoded(plan.time_codes);
  plan.costs = decoded(plan.cost_codes);
}

function chanceOf(plan) {
  if (data.hourly_usd !== null && plan.max_usd_per_hour > data.hourly_usd + 1e-9) return 0;
  const time = codeOf(limits.deadline, data.scale.origin_s);
  const cost = codeOf(limits.budget, data.scale.origin_usd);
  let kept = 0;
  for (let i = 0; i < plan.times.length; i++)
    if (plan.times[i] <= time && plan.costs[i] <= cost) kept++;
  return kept / plan.times.length;
}

function keepsMeans(plan) {
  return data.max_overhead === null || plan.overhead <= data.max_overhead;
}

function refresh() {
  for (const plan of data.plans) {
    plan.chance = chanceOf(plan);
    plan.keeps = keepsMeans(plan) && plan.chance >= limits.confidence - 1e-12;
  }
  let best = Infinity;
  const ordered = [...data.plans].sort((a, b) => a.mean_usd - b.mean_usd || a.median_s - b.median_s);
  for (const plan of ordered) {
    plan.best = plan.keeps && plan.median_s < best;
    if (plan.best) best = plan.median_s;
  }
}

function byGoal() {
  const kept = data.plans.filter((plan) => plan.keeps);
  const first = data.goal === "time" ? "median_s" : "mean_usd";
  const second = data.goal === "time" ? "mean_usd" : "median_s";
  return kept.sort((a, b) => a[first] - b[first] || a[second] - b[second] || a.id - b.id);
}

function moved() {
  return ["deadline", "budget", "confidence"].some((name) => limits[name] !== asked[name]);
}

// Pictures

function colour(tree, names) {
  if (typeof tree === "string") return names[tree] ?? tree;
  if (Array.isArray(tree)) return tree.map((each) => colour(each, names));
  if (tree && typeof tree === "object")
    return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, colour(value, names)]));
  return tree;
}

function planRows() {
  return data.plans.map((plan) => ({
    ...plan,
    times: null,
    costs: null,
    time_codes: null,
    cost_codes: null,
    barred: plan.kind !== "followed" || plan.best || plan.id === chosen,
    chosen: plan.id === chosen,
    tag: phone.matches && !printing ? (plan.kind === "table" ? String(plan.number) : "") : plan.label,
    title: titleOf(plan),
    cost_words: `${plan.cost} (${plan.cost_span})`,
    time_words: `${plan.time} (${plan.time_span})`,
    chance_words: share(plan.chance),
  }));
}

function titleOf(plan) {
  if (plan.kind === "table") return `plan ${plan.number}: ${plan.name}`;
  return plan.plain ? `${plan.plain}: ${plan.name}` : plan.name;
}

function limitRows() {
  const rows = [];
  if (limits.deadline !== null)
    rows.push({ axis: "x", at: limits.deadline / data.scale.unit_s, name: `deadline ${duration(limits.deadline)}` });
  if (limits.budget !== null)
    rows.push({ axis: "y", at: limits.budget, name: `budget ${usd(limits.budget)} USD` });
  return rows;
}

function spread(codes, origin, unit, limit, write) {
  // Thirty bins from the 1st to the 98th percentile; what lies beyond stands in the outer ones.
  const values = Array.from(codes, (code) => figureOf(code, origin) / unit).sort((a, b) => a - b);
  const at = (level) => values[Math.max(Math.ceil(level * values.length - 1e-9) - 1, 0)];
  const low = at(0.01);
  const high = Math.max(at(0.98), low * 1.001);
  const width = (high - low) / 30;
  const counts = new Array(30).fill(0);
  for (const value of values) counts[Math.max(0, Math.min(29, Math.floor((value - low) / width)))]++;
  const bins = counts.map((count, i) => ({
    low: low + i * width,
    high: low + (i + 1) * width,
    share: count / values.length,
    beyond: limit !== null && low + (i + 0.5) * width > limit / unit,
    span: `${write((low + i * width) * unit)} to ${write((low + (i + 1) * width) * unit)}`,
  }));
  const marks = [[0.05, "5 %"], [0.5, "50 %"], [0.95, "95 %"]].map(([level, name]) => ({ at: at(level), name }));
  const shown = limit !== null && limit / unit >= low && limit / unit <= high;
  return { bins, marks, limit: shown ? [{ at: limit / unit }] : [] };
}

function rowsOf(name) {
  const plan = data.plans[chosen];
  if (name === "frontier") return { plans: planRows(), limits: limitRows() };
  if (name === "costs") return spread(plan.costs, data.scale.origin_usd, 1, limits.budget, (x) => `${usd(x)} USD`);
  if (name === "times")
    return spread(plan.times, data.scale.origin_s, data.scale.unit_s, limits.deadline, duration);
  if (name === "runs") return strips(plan);
  return pictures.rows[name] ?? {};
}

const MOST_TICKS = 150; // checkpoints of one run that are drawn; more would be a grey bar

function strips(plan) {
  const found = { segments: [], saves: [], interruptions: [] };
  for (const strip of pictures.runs.filter((each) => plan.kind === "table" && each.plan === plan.number)) {
    const say = (x) => duration(x * data.scale.unit_s);
    const saves = [];
    for (const [doing, start, end] of strip.segments) {
      found.segments.push({ run: strip.run, doing, start, end, from: say(start), to: say(end) });
      if (strip.cycle && doing === "work")
        for (let at = start + strip.cycle; at < end; at += strip.cycle) saves.push({ run: strip.run, at, words: say(at) });
    }
    if (saves.length <= MOST_TICKS) found.saves.push(...saves);
    found.interruptions.push(...strip.interruptions.map((at) => ({ run: strip.run, at, words: say(at) })));
  }
  return found;
}

async function draw(name) {
  const place = document.getElementById(name);
  if (!place) return;
  const theme = pictures.themes[dark.matches && !printing ? "dark" : "light"];
  const spec = colour(pictures.specs[name], theme.variables);
  spec.config = theme.config;
  spec.datasets = rowsOf(name);
  views.get(name)?.finalize();
  const made = await vegaEmbed(place, spec, {
    actions: false,
    ast: true,
    defaultStyle: false,
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  });
  views.set(name, made);
  place.querySelector("svg").setAttribute("aria-hidden", "true"); // its place has the words
  if (name === "frontier")
    made.view.addEventListener("click", (_, item) => {
      if (item?.datum && Number.isInteger(item.datum.id)) choose(item.datum.id);
    });
}

async function update(name) {
  const made = views.get(name);
  if (!made) return;
  for (const [key, rows] of Object.entries(rowsOf(name))) made.view.data(key, rows);
  await made.view.resize().runAsync();
}

async function drawAll() {
  for (const name of Object.keys(pictures.specs)) await draw(name);
  document.documentElement.dataset.drawn = "yes";
}

// Words and tables

function cell(tag, words, kind) {
  const made = document.createElement(tag);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

function planLine(plan) {
  const row = document.createElement("tr");
  const first = cell("th", "");
  first.scope = "row";
  const button = cell("button", plan.kind === "table" ? `plan ${plan.number}` : plan.plain || "look");
  button.type = "button";
  button.setAttribute("aria-pressed", String(plan.id === chosen));
  button.setAttribute("aria-label", `Look at ${titleOf(plan)}`);
  button.addEventListener("click", () => choose(plan.id));
  first.append(button);
  const machines = cell("td", plan.name);
  machines.append(cell("small", plan.fallback ? `${plan.where}; then ${plan.fallback}` : plan.where));
  const cost = cell("td", plan.cost, "number");
  cost.append(cell("small", plan.cost_span));
  const time = cell("td", plan.time, "number");
  time.append(cell("small", plan.time_span));
  row.append(first, machines, cost, time, cell("td", share(plan.chance), "number"), cell("td", plan.price, "number"));
  if (plan.id === chosen) row.className = "chosen";
  return row;
}

function list() {
  const everything = document.getElementById("every-plan").checked;
  const kept = byGoal();
  const others = everything ? data.plans.filter((plan) => !plan.keeps) : [];
  const most = everything ? data.plans.length : 10;
  const focused = document.activeElement?.getAttribute?.("aria-label");
  const body = document.querySelector("#plans tbody");
  body.replaceChildren(...kept.slice(0, most).map(planLine), ...others.map(planLine));
  if (focused)
    [...body.querySelectorAll("button")].find((each) => each.getAttribute("aria-label") === focused)?.focus();
  document.getElementById("count").textContent =
    `${kept.length} of ${data.plans.length} plans keep the limits with ${share(limits.confidence)} chance`;
}

function verdict() {
  const [first] = byGoal();
  const words = [];
  if (limits.deadline !== null) words.push(`within ${duration(limits.deadline)}`);
  if (limits.budget !== null) words.push(`for ${usd(limits.budget)} USD`);
  const kept = words.length ? ` ${words.join(" and ")} with ${share(limits.confidence)} chance` : "";
  const best = data.goal === "time" ? "Fastest" : "Cheapest";
  const told = first
    ? `${best}${kept}: ${first.name}, about ${first.cost}, about ${first.time}, chance ${share(first.chance)}.`
    : `None of the ${data.plans.length} plans that were followed finishes${kept}. Loosen a limit, or ask again.`;
  document.getElementById("verdict").textContent = told;
  document.getElementById("as-asked").hidden = !moved();
  document.getElementById("moved-note").hidden = !moved();
  askAnew();
}

function askAnew() {
  // Of a page that a server has made: a form that plans under the limits of the sliders.
  const form = document.getElementById("ask");
  if (!form) return;
  form.hidden = !moved();
  document.getElementById("ask-deadline").value = limits.deadline === null ? "" : `${Math.round(limits.deadline)}s`;
  document.getElementById("ask-budget").value = limits.budget === null ? "" : String(limits.budget);
  document.getElementById("ask-confidence").value = `${Math.round(1000 * limits.confidence) / 10}%`;
}

function describeChosen() {
  const plan = data.plans[chosen];
  for (const place of document.querySelectorAll(".chosen-name")) place.textContent = titleOf(plan);
  const none = document.getElementById("no-timeline");
  if (none) none.hidden = plan.kind === "table";
}

async function changed() {
  refresh();
  verdict();
  list();
  describeChosen();
  await Promise.all(["frontier", "costs", "times"].map(update));
}

async function choose(id) {
  chosen = id;
  await changed();
  document.getElementById("runs")?.toggleAttribute("hidden", data.plans[id].kind !== "table");
  await update("runs");
}

// Controls: sliders on a logarithmic scale whose right end is "no limit"

const END = 1000;

function span(name) {
  const values = data.plans.flatMap((plan) =>
    name === "deadline" ? [plan.x_low, plan.x_high].map((x) => x * data.scale.unit_s) : [plan.y_low, plan.y_high],
  );
  if (asked[name] !== null) values.push(asked[name] / 1.5, asked[name] * 1.5);
  return [Math.min(...values) * 0.9, Math.max(...values) * 1.1];
}

function rounded(x) {
  const step = 10 ** (Math.floor(Math.log10(x)) - 1);
  return Math.round(x / step) * step;
}

function roundedTime(s) {
  for (const [most, step] of [[600, 10], [5400, 60], [36000, 600], [360000, 3600], [Infinity, 43200]])
    if (s < most) return Math.max(step, Math.round(s / step) * step);
  return s;
}

function worded(name) {
  const value = limits[name];
  if (name === "confidence") return share(value);
  if (value === null) return "no limit";
  return name === "deadline" ? duration(value) : `${usd(value)} USD`;
}

function place(name) {
  const slider = document.getElementById(name);
  if (name === "confidence") slider.value = String(Math.round(100 * limits[name]));
  else if (limits[name] === null) slider.value = String(END);
  else {
    const [low, high] = span(name);
    slider.value = String(Math.round(((END - 1) * Math.log(limits[name] / low)) / Math.log(high / low)));
  }
  tell(name);
}

function tell(name) {
  document.getElementById(`${name}-value`).textContent = worded(name);
  document.getElementById(name).setAttribute("aria-valuetext", worded(name));
}

function read(name) {
  const slider = document.getElementById(name);
  const at = Number(slider.value);
  if (name === "confidence") limits[name] = at / 100;
  else if (at >= END) limits[name] = null;
  else {
    const [low, high] = span(name);
    const value = low * Math.exp((Math.log(high / low) * at) / (END - 1));
    limits[name] = name === "deadline" ? roundedTime(value) : rounded(value);
  }
  tell(name);
}

function controls() {
  for (const name of ["deadline", "budget", "confidence"]) {
    place(name);
    let waiting = 0;
    document.getElementById(name).addEventListener("input", () => {
      read(name);
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(changed);
    });
  }
  document.getElementById("every-plan").addEventListener("change", list);
  document.getElementById("as-asked").addEventListener("click", () => {
    Object.assign(limits, asked);
    for (const name of ["deadline", "budget", "confidence"]) place(name);
    document.getElementById("deadline").focus();
    changed();
  });
}

function buttons() {
  for (const button of document.querySelectorAll("[data-copy]"))
    button.addEventListener("click", async () => {
      await navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "copied";
    });
  document.getElementById("save-json").addEventListener("click", () => {
    const text = document.getElementById("answer").textContent;
    const link = document.createElement("a");
    link.href = `data:application/json;charset=utf-8,${encodeURIComponent(text)}`;
    link.download = "answer.json";
    link.click();
  });
}

function ages() {
  const day = 86400e3;
  for (const place of document.querySelectorAll("time[datetime]")) {
    const days = Math.floor((Date.now() - Date.parse(place.dateTime)) / day);
    if (days >= 0) place.append(` (${days === 0 ? "today" : days === 1 ? "1 day old" : `${days} days old`})`);
  }
}

async function paper(on) {
  printing = on;
  for (const part of document.querySelectorAll("details")) {
    if (on && !part.open) part.dataset.closed = "yes";
    part.open = on || part.dataset.closed !== "yes";
    if (!on) delete part.dataset.closed;
  }
  await drawAll();
}

for (const part of document.querySelectorAll(".needs-script")) part.hidden = false;
refresh();
controls();
buttons();
ages();
verdict();
list();
describeChosen();
drawAll();
dark.addEventListener("change", drawAll);
phone.addEventListener("change", drawAll);
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
