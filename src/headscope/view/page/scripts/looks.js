// The targets of the chosen head in all texts: the shares of its attention, with the mean of all heads.
import { drawBars } from "./bars.js";
import { find, percent } from "./dom.js";
import { attentionType, flat, headName, numbersOf } from "./numbers.js";

const NAMES = {
  mass_self: "itself", mass_previous: "the token before", mass_next: "the token after", mass_first: "the first token",
  mass_cls: "[CLS]", mass_sep: "[SEP]", mass_punctuation: ". and ,",
};
const LEAST = 0.005; // a target to which no head gives a larger share is left out

export function drawLooks(state, place = state.head) {
  const side = attentionType(state), { layer, head } = place, name = headName(place);
  const rows = Object.keys(NAMES).flatMap((mass) => numbersOf(state).statistics.filter((row) => row.name === mass));
  const shown = rows.filter((row) => Math.max(0, ...flat(row.values[side])) > LEAST && !(row.name === "mass_first" && rows.some((each) => each.name === "mass_cls")));
  find("looks").hidden = !shown.length;
  find("looks-name").textContent = `Where head ${name} looks in all texts; shares may overlap`;
  drawBars(find("looks-bars"), shown.map((row) => {
    const all = flat(row.values[side]), mean = all.reduce((sum, value) => sum + value, 0) / all.length;
    const value = row.values[side][layer][head];
    return { label: NAMES[row.name], value, tick: mean, text: value === null ? "\u2013" : percent(value), about: `${row.about} Head ${name}: ${value === null ? "no value" : percent(value)}; the mark is the mean of all heads, ${percent(mean)}.` };
  }));
}
