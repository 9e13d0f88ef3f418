// One word in all heads: the word that it attends to most in each head, or the word that attends to it most.
import { percent } from "./dom.js";
import { page } from "./numbers.js";
import { readAttenders, readChoices } from "./texts.js";
import { isDark } from "./theme.js";

export const WEAKEST = 0.1; // share of a word's attention; smaller shares have no arc, and do not count as looking at a word

const HUES = ["E69F00", "56B4E9", "009E73", "CC79A7", "0072B2"]; // colours of Okabe and Ito, which colour-blind readers can tell apart
const PLAIN = "8b949d", FURTHER = "b9a98a";
const GROUNDS = { light: "f1f4f6", dark: "1d2329" };

// Follow a unit through all heads: the word that it attends to most or, with "in", the word that attends to it most.
// Return the choice of each head, {to, weight}, the number of heads that choose each unit, the most frequent first, and
// the colour of each unit. Units in `plain`, such as special tokens, say little and are grey. Return null for a unit
// that does not attend, unless the way is "in".
export async function followWord(place, state, units, unit, plain) {
  const isIn = state.way === "in", queries = units.map(({ word, query }) => (word < 0 ? null : query));
  if (!isIn && units[unit].query === null) return null;
  const choices = await (isIn ? readAttenders(place, state, unit, queries, WEAKEST) : readChoices(place, state, units[unit].query));
  const counts = new Map();
  for (const choice of choices.flat()) if (choice) counts.set(choice.to, (counts.get(choice.to) ?? 0) + 1);
  const order = [...counts].sort((a, b) => b[1] - a[1]), hues = [...HUES], colours = new Map();
  for (const [to] of order) colours.set(to, plain[to] ? PLAIN : hues.shift() ?? FURTHER);
  return { choices, order, colours, isIn };
}

// Explain what the grid shows about a word.
export function explainGrid(label, isIn) {
  const shown = isIn ? `The word that gives \u201c${label}\u201d the largest share of its attention in each head` : `Where each head sends \u201c${label}\u201d first`;
  return `${shown}; the stronger the colour, the larger the share.`;
}

// Explain the numbers below words, over all heads with attention.
export function explainCounts(label, { choices, order, isIn }) {
  const total = order.reduce((sum, [, count]) => sum + count, 0), others = choices.filter((_, layer) => !(layer + 1 in page.without_attention)).flat().length - total;
  if (!isIn) return `\u201c${label}\u201d through all ${total} heads: the number below a word is how many heads attend to it most.`;
  return `Who looks at \u201c${label}\u201d: the number below a word counts the heads in which it does so most. In ${others} of ${total + others} heads no other word gives it ${percent(WEAKEST)}.`;
}

// Return a colour for each name; the first name means none. Names after the coloured ones are grey.
export const colourNames = (names) => names.map((_, code) => (code ? HUES[code - 1] ?? (code % 2 ? PLAIN : FURTHER) : PLAIN));

// Return a colour between the background and the colour of a word, as red, green and blue.
export function shade(hex, weight) {
  const ground = GROUNDS[isDark() ? "dark" : "light"];
  return [0, 2, 4].map((at) => {
    const [from, to] = [ground, hex].map((each) => parseInt(each.slice(at, at + 2), 16));
    return Math.round(from + (to - from) * weight);
  });
}
