// The heads of which two views differ most.
import { element, find, number } from "./dom.js";
import { addressOf, headName, readChange, readVariable } from "./numbers.js";

const SHOWN = 8;

function listHeads({ before, after }) {
  const heads = [];
  after.forEach((row, layer) => row.forEach((value, head) => {
    const other = before[layer][head];
    if (value !== null && other !== null) heads.push({ name: headName({ layer, head }), before: other, after: value });
  }));
  return heads.sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
}

export function drawMovers(state) {
  const change = readChange(state);
  find("movers").hidden = !state.against;
  if (!state.against) return;
  const heads = change ? listHeads(change) : [];
  const mean = (side) => heads.reduce((sum, head) => sum + head[side], 0) / heads.length;
  const higher = heads.filter((head) => head.after > head.before).length;
  find("movers-about").textContent = heads.length
    ? `From ${state.against} to ${state.view}. Mean of ${heads.length} heads: ${number(mean("before"), 3)} to ${number(mean("after"), 3)}; ${higher} are higher.`
    : state.against === state.view ? "Choose another view to compare with." : `${state.against} and ${state.view} do not both have ${readVariable(state).label} in one unit, so the grid shows ${state.view} alone.`;
  find("movers").querySelector("ol").replaceChildren(...heads.slice(0, SHOWN).map(({ name, before, after }) => {
    const item = element("li");
    item.append(element("a", name, { href: "#" + addressOf({ head: name }) }), `: ${number(before, 3)} to ${number(after, 3)}`);
    return item;
  }));
}
