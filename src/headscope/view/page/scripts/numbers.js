// The numbers of the page, packed in #atlas-data, and the numbers that the grid shows.
import { find, number, signed, words } from "./dom.js";
import { canUnpack, unpackJson } from "./packed.js";

// Hide the parts of the page that show numbers.
export function hideParts() {
  for (const part of ["search", "overview", "verdict", "specimen"]) (part === "search" ? document.querySelector(part) : find(part)).hidden = true;
}

if (!canUnpack) {
  hideParts();
  find("too-old").hidden = false;
  throw new Error(find("too-old").textContent);
}

document.body.setAttribute("aria-busy", "true"); // main.js removes it when the page is built

export const page = await unpackJson(find("atlas-data").textContent);

export const headName = ({ layer, head }) => `${layer + 1}-${head + 1}`;

// Return the layer and head, both counted from 0, of a name such as 3-1, or L2H0, which counts from 0; null if the
// model has no such head. `headscope.layers.find_head` reads the same names.
export function readHead(name) {
  const match = /^\s*(\d{1,9})-(\d{1,9})\s*$|^\s*l(\d{1,9})h(\d{1,9})\s*$/i.exec(name ?? "");
  const place = match && (match[1] ? { layer: Number(match[1]) - 1, head: Number(match[2]) - 1 } : { layer: Number(match[3]), head: Number(match[4]) });
  return place && place.layer in [...Array(page.layers).keys()] && place.head in [...Array(page.heads).keys()] ? place : null;
}

// Return the address of a row with a head.
export function addressOf({ key, direction, attention_type, head }) {
  const places = { variable: key, direction, attention_type, head };
  return String(new URLSearchParams(Object.entries(places).filter(([, value]) => value)));
}

// Describe the held-out score of a row with a head.
export const describeScore = (row) => `${row.measure} ${row.score[0].toFixed(2)}`;

export const attentionType = (state) => Math.max(0, page.attention_types.indexOf(state.attention_type));

// The names of the views: the view that the page is named for, then the other views of the same heads.
export const VIEWS = [page.name, ...page.views.map((view) => view.name)];

// Return the statistics and scores of the shown view.
export const numbersOf = (state) => page.views.find((view) => view.name === state.view) ?? page;

export const statisticOf = (state) => numbersOf(state).statistics.find((row) => row.name === state.variable);

export const scoreOf = (state) => numbersOf(state).scores.find((row) => row.key === state.variable);

// Return the values of the heads that have a value.
export const flat = (values) => values.flat(Infinity).filter((value) => value !== null);

// Return the row of the shown question, with its reported head; only the view that the page is named for has rows.
export const findRow = (state) => (state.view === page.name ? page.rows.find((row) => row.key === state.variable) : undefined);

// Return true if a row has the shown direction and attention type.
export const isShown = (row, state) =>
  (!row.direction || row.direction === state.direction) && (!row.attention_type || row.attention_type === state.attention_type);

// Return the baseline of a score, {baseline, baselineText}: the strongest rule if the shown row has one.
function readBaseline(score, state) {
  const row = findRow(state), rule = row && isShown(row, state) ? row.rivals.find((rival) => rival.is_best) : null;
  if (rule) return { baseline: rule.score[0], baselineText: `strongest rule, held out: ${number(rule.score[0])}` };
  return { baseline: score.offset_value ?? score.control_value, baselineText: describeBaseline(score) };
}

function describeBaseline(score) {
  if (score.offset !== null) return `best fixed offset ${signed(score.offset)}: ${number(score.offset_value)}`;
  return score.control_value === null ? "" : `${score.control}: ${number(score.control_value)}`;
}

// List the rows of all views with the same unit and measure, which share a scale.
const alike = (list, { units, measure }, isSame) =>
  VIEWS.flatMap((view) => numbersOf({ view })[list].filter(isSame)).filter((row) => row.units === units && row.measure === measure);

// Return the ends of the colour scale: from 0 or, for changes, symmetric around 0.
function span(values, baseline, diverging = false) {
  const top = Math.max(...flat(values).map((value) => (diverging ? Math.abs(value) : value)), baseline ?? 0);
  return { low: diverging ? -top : 0, top, diverging };
}

// Return a row in plain words.
export const plainOf = (score, direction) => score.plain[score.directed ? direction : ""];

// Return the plain name of a row.
export const nameScore = (score, direction) => (score.ranked ? plainOf(score, direction).title : score.label);

// Read a variable in one view; null if the view has no such variable.
function readView(state) {
  const score = scoreOf(state);
  if (score) {
    const way = score.directed ? Math.max(0, page.directions.indexOf(state.direction)) : 0;
    const isHeldOut = Boolean(score.held_out) && state.half === "held-out half";
    const plain = score.ranked ? plainOf(score, page.directions[way]) : {};
    const counted = score.count === null ? "All texts." : `${score.count.toLocaleString("en")} in all texts.`;
    const texts = isHeldOut ? "The half of the texts on which heads are scored." : counted;
    const compared = readBaseline(score, state);
    return {
      values: (isHeldOut ? score.held_out : score.values)[way][attentionType(state)],
      ...span(alike("scores", score, (row) => row.key === score.key).map((row) => row.values), compared.baseline),
      label: score.label,
      title: nameScore(score, page.directions[way]),
      units: score.measure,
      directed: score.directed,
      about: [plain.about, plain.example && `${plain.example}.`, `${score.about}.`, texts, `(${score.source})`].filter(Boolean).join(" "),
      ...compared,
    };
  }
  const statistic = statisticOf(state);
  if (!statistic) return null;
  const baseline = statistic.baseline[attentionType(state)] ?? null;
  return {
    values: statistic.values[attentionType(state)],
    ...span(alike("statistics", statistic, (row) => row.name === statistic.name).map((row) => row.values), baseline, statistic.diverging),
    label: statistic.label,
    title: statistic.plain || statistic.label,
    names: statistic.names.length ? statistic.names : null,
    units: statistic.units,
    directed: false,
    about: `${statistic.about} (${statistic.source})`,
    baseline,
    baselineText: baseline === null ? "" : `uniform attention: ${number(baseline)}`,
  };
}

// Return the values of the shown variable in two views, {before, after}, by head; null if the views have no unit in
// common.
export function readChange(state) {
  if (!state.against || state.against === state.view) return null;
  const [before, after] = [state.against, state.view].map((view) => readView({ ...state, view }));
  return before && after && before.units === after.units ? { before: before.values, after: after.values } : null;
}

// Return what the grid shows: {values[layer][head], low, top, diverging, label, title, names, units, about, baseline,
// baselineText}. `title` is the plain name. If values are codes, `names` has their meanings.
export function readVariable(state) {
  const shown = readView(state), change = readChange(state);
  if (!change) return shown;
  const less = (after, before) => (after === null || before === null ? null : after - before);
  const values = change.after.map((row, layer) => row.map((value, head) => less(value, change.before[layer][head])));
  return { ...shown, values, ...span(values, null, true), label: `${shown.label} (${state.view} less ${state.against})`, baseline: null, baselineText: "" };
}

// Find the head with the largest value or, for changes, with the largest change.
export function findBest({ values, diverging }) {
  let [place, largest] = [{ layer: 0, head: 0 }, -Infinity];
  values.forEach((row, layer) => row.forEach((value, head) => {
    const size = value === null ? -Infinity : diverging ? Math.abs(value) : value;
    if (size > largest) [place, largest] = [{ layer, head }, size];
  }));
  return place;
}
