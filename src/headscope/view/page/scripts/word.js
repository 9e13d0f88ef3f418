// One word through all heads: what each head sends it to first.
import { isDark } from "./theme.js";
import { readChoices } from "./texts.js";

const HUES = ["E69F00", "56B4E9", "009E73", "CC79A7", "0072B2"]; // of Okabe and Ito, which the colour-blind can tell apart
const PLAIN = "8b949d", FURTHER = "b9a98a";
const GROUNDS = { light: "f1f4f6", dark: "1d2329" };

// Where all heads send a unit: the choice of each, {to, weight}, how many heads choose each unit, the most first, and the
// colour of each unit. What says little is grey; `plain` says of which units that is so, as of special tokens.
export async function followWord(place, state, unit, plain) {
  const choices = await readChoices(place, state, unit);
  const counts = new Map();
  for (const choice of choices.flat()) if (choice) counts.set(choice.to, (counts.get(choice.to) ?? 0) + 1);
  const order = [...counts].sort((a, b) => b[1] - a[1]), hues = [...HUES], colours = new Map();
  for (const [to] of order) colours.set(to, plain[to] ? PLAIN : hues.shift() ?? FURTHER);
  return { choices, order, colours };
}

// The colours of some names, of which the first is that of nothing; after the hues come greys.
export const colourNames = (names) => names.map((_, code) => (code ? HUES[code - 1] ?? (code % 2 ? PLAIN : FURTHER) : PLAIN));

// A colour between the ground and that of a word, as red, green and blue.
export function shade(hex, weight) {
  const ground = GROUNDS[isDark() ? "dark" : "light"];
  return [0, 2, 4].map((at) => {
    const [from, to] = [ground, hex].map((each) => parseInt(each.slice(at, at + 2), 16));
    return Math.round(from + (to - from) * weight);
  });
}
