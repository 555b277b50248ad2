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
  const size = Math.abs(x);
  if (x === 0 || size >= 1000 || !Number.isFinite(x)) return three(x);
  return three(toPlaces(x, size >= 9.95 ? 0 : 1 - Math.floor(Math.log10(size))));
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

// Round figures of an axis (recommender/report/axis.py).

const LEAST_TICKS = 3;

function ticks(low, high) {
  const found = [];
  for (let ten = Math.floor(Math.log10(low)); ten <= Math.ceil(Math.log10(high)); ten++)
    for (const step of [1, 2, 5]) found.push(Number(`${step}e${ten}`));
  const inside = found.filter((value) => low <= value && value <= high);
  return inside.length >= LEAST_TICKS ? inside : evenTicks(low, high);
}

function evenTicks(low, high) {
  const widest = (high - low) / LEAST_TICKS;
  const ten = Math.floor(Math.log10(widest));
  const step = [5, 2, 1].map((n) => Number(`${n}e${ten}`)).find((each) => each <= widest);
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count <= Math.floor(high / step + 1e-9); count++)
    found.push(Number((count * step).toPrecision(6)));
  return found;
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
  let met = 0;
  for (let i = 0; i < plan.times.length; i++)
    if (plan.times[i] <= time && plan.costs[i] <= cost) met++;
  return Math.min(plan.weight * met / plan.times.length, 1);
}

function meetsMeans(plan) {
  return data.max_overhead === null || plan.overhead <= data.max_overhead;
}

function refresh() {
  for (const plan of data.plans) {
    plan.chance = chanceOf(plan);
    plan.meets = meetsMeans(plan) && plan.chance >= limits.confidence - 1e-12;
  }
  let best = Infinity;
  const ordered = [...data.plans].sort((a, b) => a.mean_usd - b.mean_usd || a.median_s - b.median_s);
  for (const plan of ordered) {
    plan.best = plan.meets && plan.median_s < best;
    if (plan.best) best = plan.median_s;
  }
}

// What is minimised: as asked, or what the first limit set leaves open.
function goal() {
  if (data.goal !== "frontier") return data.goal;
  if (limits.deadline !== null) return "cost";
  return limits.budget !== null ? "time" : "frontier";
}

// Best first; where nothing is minimised, the answer's plans before all others.
function byGoal(plans) {
  const [first, second] = goal() === "time" ? ["median_s", "mean_usd"] : ["mean_usd", "median_s"];
  const later = (plan) => goal() === "frontier" && plan.kind !== "table";
  return plans.sort(
    (a, b) => later(a) - later(b) || a[first] - b[first] || a[second] - b[second] || a.id - b.id,
  );
}

function meeting() {
  return byGoal(data.plans.filter((plan) => plan.meets));
}

// The closest first: by chance, then by how far beyond a limit they usually end.
function missing() {
  const beyond = (plan) =>
    Math.max(plan.median_s / (limits.deadline ?? Infinity), plan.mean_usd / (limits.budget ?? Infinity));
  return data.plans
    .filter((plan) => !plan.meets)
    .sort((a, b) => b.chance - a.chance || beyond(a) - beyond(b) || a.id - b.id);
}

// Plans that the picture draws with bars: those of the answer, baselines, and the frontier.
function barred(plan) {
  return plan.kind !== "other" || plan.best || plan.id === chosen;
}

function limited() {
  return [limits.deadline, limits.budget, data.hourly_usd, data.max_overhead].some((limit) => limit !== null);
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
    barred: barred(plan),
    chosen: plan.id === chosen,
    tag: phone.matches && !printing ? (plan.kind === "table" ? String(plan.number) : "") : plan.label,
    title: titleOf(plan),
    fallback: plan.fallback || "none",
    cost_words: `${plan.cost} USD (${plan.cost_span})`,
    time_words: `${plan.time} (${plan.time_span})`,
    chance_words: limited() ? share(plan.chance) : "",
  }));
}

function titleOf(plan) {
  if (plan.kind === "table") return `plan ${plan.number}: ${plan.name}`;
  return plan.baseline ? `${plan.baseline}: ${plan.name}` : plan.name;
}

function limitRows() {
  const rows = [];
  if (limits.deadline !== null)
    rows.push({ axis: "x", at: limits.deadline / data.scale.unit_s, name: `deadline ${worded("deadline")}` });
  if (limits.budget !== null) rows.push({ axis: "y", at: limits.budget, name: `budget ${worded("budget")}` });
  return rows;
}

const BINS = 30;

// Bins of equal width on a logarithmic axis that holds all but one run in a hundred at most, and the
// limit where it is near; the few runs beyond stand in the outer bins. A limit parts two bins.
function spread(codes, origin, unit, name, write, middle = null) {
  const limit = limits[name] === null ? null : limits[name] / unit;
  const values = Array.from(codes, (code) => figureOf(code, origin) / unit).sort((a, b) => a - b);
  const at = (level) => values[Math.max(Math.ceil(level * values.length - 1e-9) - 1, 0)];
  let [low, high] = [Math.max(at(0.005), at(0.05) / 3), Math.min(at(0.995), at(0.95) * 3)];
  const near = limit !== null && limit > low / 3 && limit < high * 3;
  if (near) [low, high] = [Math.min(low, limit), Math.max(high, limit)];
  high = Math.max(high, low * 1.01);
  const step = Math.log(high / low) / BINS;
  if (near) low = limit / Math.exp(step * Math.ceil(Math.log(limit / low) / step - 1e-9));
  const count = Math.ceil(Math.log(high / low) / step - 1e-9);
  const counts = new Array(count).fill(0);
  for (const value of values)
    counts[Math.max(0, Math.min(count - 1, Math.ceil(Math.log(value / low) / step - 1e-6) - 1))]++;
  const edge = (i) => low * Math.exp(i * step);
  const bins = counts.map((runs, i) => ({
    low: edge(i),
    high: edge(i + 1),
    share: runs / values.length,
    words: `${three((100 * runs) / values.length)} %`,
    beyond: limit !== null && edge(i) > limit * (1 - 1e-9),
    span: `${write(edge(i) * unit)} to ${write(edge(i + 1) * unit)}`,
  }));
  const [figure, word] = middle ?? [at(0.5), "50 %"]; // as it is printed elsewhere on the page
  const marks = [[at(0.05), "5 %", -2], [figure, word, -14], [at(0.95), "95 %", -2]].map(
    ([place, name, dy]) => ({ at: place, name, dy }),
  );
  return { bins, marks, limits: near ? [{ axis: "x", at: limit, name: `${name} ${worded(name)}` }] : [] };
}

function rowsOf(name) {
  const plan = data.plans[chosen];
  if (name === "frontier") return { plans: planRows(), limits: limitRows() };
  if (name === "costs") {
    const write = (x) => `${usd(x)} USD`;
    return spread(plan.costs, data.scale.origin_usd, 1, "budget", write, [plan.mean_usd, "mean"]);
  }
  if (name === "times") return spread(plan.times, data.scale.origin_s, data.scale.unit_s, "deadline", duration);
  if (name === "runs") return strips(plan);
  return pictures.rows[name] ?? {};
}

function ticksOf({ bins }) {
  return ticks(bins[0].low, bins.at(-1).high);
}

const APART = 5; // times as long as another: runs on one axis could not be read

// The runs of a plan, each along its axis from 0 to 1.
function strips(plan) {
  const mine = pictures.runs.filter((each) => plan.kind === "table" && each.plan === plan.number);
  const ends = mine.map(({ segments }) => segments.at(-1)[2]);
  const apart = Math.max(...ends) > APART * Math.min(...ends);
  const found = { segments: [], saves: [], interruptions: [], strips: [], ticks: [] };
  mine.forEach((strip, i) => {
    const whole = apart ? ends[i] : Math.max(...ends);
    const moment = (x) => ({ run: strip.run, at: x / whole, words: duration(x * data.scale.unit_s) });
    found.strips.push({ run: strip.run });
    for (const [doing, start, end] of strip.segments) {
      const [from, to] = [moment(start), moment(end)];
      found.segments.push({ run: strip.run, doing, start: from.at, end: to.at, from: from.words, to: to.words });
    }
    found.saves.push(...saves(strip, whole).map(moment));
    found.interruptions.push(...strip.interruptions.map(moment));
    if (apart || i === mine.length - 1) found.ticks.push(...stripTicks(whole).map((x) => axisTick(moment(x), x)));
  });
  return found;
}

// When checkpoints are written, unless they are too close to be told apart.
function saves(strip, whole) {
  const found = [];
  if (!strip.cycle || strip.cycle < whole / (phone.matches ? 60 : 200)) return found;
  for (const [doing, start, end] of strip.segments)
    if (doing === "work") for (let at = start + strip.cycle; at < end; at += strip.cycle) found.push(at);
  return found;
}

function stripTicks(whole) {
  const all = evenTicks(0, whole);
  return all.filter((_, i) => !phone.matches || all.length < 6 || i % 2 === 0);
}

function axisTick(moment, x) {
  return { ...moment, words: `${three(x)} ${data.scale.unit}` };
}

async function draw(name) {
  const place = document.getElementById(name);
  if (!place) return;
  const theme = pictures.themes[dark.matches && !printing ? "dark" : "light"];
  const spec = colour(pictures.specs[name], theme.variables);
  spec.config = theme.config;
  spec.datasets = rowsOf(name);
  if (spec.params) spec.params[0].value = ticksOf(spec.datasets);
  views.get(name)?.finalize();
  const made = await vegaEmbed(place, spec, {
    actions: false,
    ast: true,
    defaultStyle: false,
    logLevel: 1, // errors; Vega warns of layers without rows, as of a limit that is not set
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
  const found = rowsOf(name);
  for (const [key, rows] of Object.entries(found)) made.view.data(key, rows);
  if (found.bins) made.view.signal("ticks", ticksOf(found));
  await made.view.resize().runAsync();
}

async function drawAll() {
  for (const name of Object.keys(pictures.specs)) await draw(name);
  document.documentElement.dataset.drawn = "yes";
}

// Words and tables

// No line parts a number from its unit (_UNITS in formatting.py).
function unbroken(words) {
  return words.replace(/(?<=\d) (?=(?:%|ms|s|min|h|d|USD|vCPU|GPUs?|[kMGT]?B|[kMT])\b|%)|(?<=[×±≥≤+]) (?=\w)| (?=\+\d)/g, "\u00a0");
}

function cell(tag, words, kind) {
  const made = document.createElement(tag);
  made.textContent = unbroken(words);
  if (kind) made.className = kind;
  return made;
}

// Names of machines and places: lines end at blanks and underscores, not at hyphens (elements.py).
const MOST_UNBROKEN = 26;

function named(tag, words) {
  const made = document.createElement(tag);
  words.split(/(?<= [+·]) /).forEach((part, i) => made.append(...(i ? [" "] : []), nameOf(part)));
  return made;
}

function nameOf(words) {
  const pieces = words.split(/(?<=_)|(?<=[^×] )/);
  const made = document.createElement("span");
  made.className = pieces.every((piece) => piece.length <= MOST_UNBROKEN) ? "name" : "name long";
  pieces.forEach((piece, i) => made.append(...(i ? [document.createElement("wbr")] : []), piece));
  return made;
}

function planLine(plan) {
  const row = document.createElement("tr");
  const first = cell("th", "");
  first.scope = "row";
  const name = plan.kind === "table" ? `plan ${plan.number}` : plan.baseline;
  const button = cell("button", name || "show", name ? "" : "unnamed");
  button.type = "button";
  button.setAttribute("aria-pressed", String(plan.id === chosen));
  button.setAttribute("aria-label", `Show ${titleOf(plan)}`);
  button.addEventListener("click", () => choose(plan.id));
  first.append(button);
  const machines = named("td", plan.name);
  const where = named("small", plan.where);
  where.append(plan.fallback ? `; then ${plan.fallback}` : "");
  machines.append(where);
  const cost = cell("td", plan.cost, "number");
  cost.append(cell("small", plan.cost_span));
  const time = cell("td", plan.time, "number");
  time.append(cell("small", plan.time_span));
  row.append(first, machines, cost, time, cell("td", limited() ? share(plan.chance) : "", "number"), cell("td", plan.price, "number"));
  if (plan.id === chosen) row.className = "chosen";
  return row;
}

const CLOSEST = 10; // rows where no plan meets the limits

function list() {
  const everything = document.getElementById("every-plan").checked;
  const [met, others] = [meeting(), missing()];
  const few = met.length ? met.filter(barred) : others.slice(0, CLOSEST);
  const focused = document.activeElement?.getAttribute?.("aria-label");
  const body = document.querySelector("#plans tbody");
  body.replaceChildren(...(everything ? [...met, ...others] : few).map(planLine));
  if (focused)
    [...body.querySelectorAll("button")].find((each) => each.getAttribute("aria-label") === focused)?.focus();
  document.getElementById("count").textContent = counted(met.length);
}

function counted(met) {
  const all = data.plans.length;
  if (!limited()) return `${all} plans, no limit set`;
  const words = `${met} of ${all} plans meet the limits with ${share(limits.confidence)} chance`;
  return met ? words : `${words}; the closest come first`;
}

function verdict() {
  document.getElementById("verdict").textContent = unbroken(verdictWords());
  document.getElementById("as-asked").hidden = !moved();
  document.getElementById("moved-note").hidden = !moved();
  askAnew();
}

function verdictWords() {
  const met = meeting();
  const words = [];
  if (limits.deadline !== null) words.push(`within ${worded("deadline")}`);
  if (limits.budget !== null) words.push(`for ${worded("budget")}`);
  const promise = words.length ? ` ${words.join(" and ")} with ${share(limits.confidence)} chance` : "";
  if (!met.length)
    return `None of the ${data.plans.length} simulated plans finishes${promise}. Loosen a limit, or ask again.`;
  if (goal() === "frontier") return `Without a limit: from ${figures(least(met, "mean_usd"))} to ${figures(least(met, "median_s"))}.`;
  const best = goal() === "time" ? "Fastest" : "Cheapest";
  const chance = limited() ? `, chance ${share(met[0].chance)}` : "";
  return `${best}${promise}: ${figures(met[0])}${chance}.`;
}

function least(plans, figure) {
  return plans.reduce((best, plan) => (plan[figure] < best[figure] ? plan : best));
}

function figures(plan) {
  return `${plan.name}, about ${plan.cost} USD, about ${plan.time}`;
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
  for (const place of document.querySelectorAll(".chosen-name")) place.textContent = unbroken(titleOf(plan));
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
  if (value === asked[name]) return data[name];
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
