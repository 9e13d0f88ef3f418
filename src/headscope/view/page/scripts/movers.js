// The heads that differ most between two views and, for a single model after, how surely they differ.
import { element, find, number } from "./dom.js";
import { addressOf, attentionType, headName, page, readChange, readVariable, scoreOf } from "./numbers.js";

const SHOWN = 8;

const SURE = ["higher", "lower"];

// Return the verdicts on a score on all texts, with the ends of intervals, by layer and head; null if nothing was
// tested.
function readVerdicts(state) {
  const score = scoreOf(state);
  const isTested = score?.change && state.view === page.name && state.against === page.against;
  if (!isTested || (score.held_out && state.half === "held-out half")) return null;
  const way = score.directed ? Math.max(0, page.directions.indexOf(state.direction)) : 0;
  const { words, ...numbers } = score.change;
  const [verdict, lower, upper] = ["verdict", "lower", "upper"].map((name) => numbers[name][way][attentionType(state)]);
  return (layer, head) => ({ verdict: words[verdict[layer][head]], ends: [lower, upper].map((ends) => ends[layer][head]) });
}

function listHeads({ before, after }, verdicts) {
  const heads = [];
  after.forEach((row, layer) => row.forEach((value, head) => {
    const other = before[layer][head];
    if (value !== null && other !== null) heads.push({ name: headName({ layer, head }), before: other, after: value, ...verdicts?.(layer, head) });
  }));
  return heads.sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
}

// Describe a verdict on a head, with the interval of its difference if the verdict is sure.
function describeVerdict({ verdict, ends }) {
  if (!SURE.includes(verdict)) return verdict ? `, ${verdict}` : "";
  const sizes = ends.map(Math.abs).sort((a, b) => a - b).map((end) => number(end, 3));
  return `, ${verdict} by ${sizes.join(" to ")} (95 %)`;
}

function summarizeVerdicts(heads) {
  const counts = SURE.map((verdict) => `${heads.filter((head) => head.verdict === verdict).length} ${verdict}`);
  return `On these texts ${counts.join(" and ")} for sure, paired by text and corrected for all heads, directions and rows.`;
}

export function drawMovers(state) {
  const change = readChange(state);
  find("movers").hidden = !state.against;
  if (!state.against) return;
  const verdicts = readVerdicts(state);
  const heads = change ? listHeads(change, verdicts) : [];
  const mean = (side) => heads.reduce((sum, head) => sum + head[side], 0) / heads.length;
  const higher = heads.filter((head) => head.after > head.before).length;
  find("movers").classList.toggle("judged", Boolean(verdicts));
  find("movers-about").textContent = heads.length
    ? `From ${state.against} to ${state.view}. Mean of ${heads.length} heads: ${number(mean("before"), 3)} to ${number(mean("after"), 3)}; ${higher} are higher.${verdicts ? ` ${summarizeVerdicts(heads)}` : ""}`
    : state.against === state.view ? "Choose another view to compare with." : `${state.against} and ${state.view} do not both have ${readVariable(state).label} in one unit, so the grid shows ${state.view} alone.`;
  find("movers").querySelector("ol").replaceChildren(...heads.slice(0, SHOWN).map((head) => {
    const item = element("li");
    item.append(element("a", head.name, { href: "#" + addressOf({ head: head.name }) }), `: ${number(head.before, 3)} to ${number(head.after, 3)}${describeVerdict(head)}`);
    return item;
  }));
}
