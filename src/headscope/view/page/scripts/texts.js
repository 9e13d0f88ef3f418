// The texts of the page with the attention of all heads, from the JSON in #sentences-data; a live page may begin without.
import { find } from "./dom.js";
import { page } from "./numbers.js";
import { unpackBytes } from "./packed.js";

const source = find("sentences-data") ?? find("live-data");
const data = { texts: [], examples: [], attention_type: "", steps: 1, ...(source && JSON.parse(source.textContent)) };
const unpacked = new Map(); // weights by place of the text, whole percent, a byte each

export const texts = data.texts;

// The place of a text that was added behind the others.
export const addText = (text) => texts.push(text) - 1;

export const examplesOf = (row) => data.examples.filter((each) => each.row === row);

// The attention type that the texts have.
export const onlyType = data.attention_type;

export const hasType = (state) => state.attention_type === "" || state.attention_type === onlyType;

export async function unpack(place) {
  if (!unpacked.has(place)) unpacked.set(place, await unpackBytes(texts[place].weights));
  return unpacked.get(place);
}

// Words and special tokens, or tokens: {label, word, tokens}, in order.
export function listUnits(text, level) {
  const units = [];
  text.tokens.forEach((token, place) => {
    const word = text.token_words[place];
    const last = units.at(-1);
    if (level === "words" && word >= 0 && last && last.word === word) last.tokens.push(place);
    else units.push({ label: level === "words" && word >= 0 ? text.words[word] : token, word, tokens: [place] });
  });
  return units;
}

// To a word the attention to its tokens is added up, from a word it is averaged (Clark et al. 2019, section 4.1).
export function readMap(weights, text, units, { layer, head }) {
  const size = text.tokens.length;
  const start = (layer * page.heads + head) * size * size;
  const unitOf = new Uint32Array(size);
  units.forEach((unit, place) => unit.tokens.forEach((token) => (unitOf[token] = place)));
  return units.map((from) => {
    const row = new Array(units.length).fill(0);
    for (const query of from.tokens) {
      for (let key = 0; key < size; key++) row[unitOf[key]] += weights[start + query * size + key];
    }
    return row.map((sum) => sum / from.tokens.length / data.steps);
  });
}

// The links of a text that a row of a score is about, from the word that attends to the one that it is to attend to.
function listLinks(text, row, direction) {
  const name = row.slice(row.indexOf(":") + 1);
  const base = name.endsWith(":*") ? name.slice(0, -2) : null;
  const belongs = (label) => label === name || (name === "all" && label !== "punct") || (base && (label === base || label.startsWith(base + ":")));
  const links = text.links.filter(([, , label]) => belongs(label));
  return links.map(([source, target]) => (direction === "head_to_dependent" ? [target, source] : [source, target]));
}

// For each link of a row with directions: {from, to, right}, in units; right if the word attends most, of all other
// words, to the other end.
export function judge(text, { key, directed }, direction, map, units) {
  if (!directed) return [];
  const unitOf = new Map();
  units.forEach((unit, place) => unit.word >= 0 && !unitOf.has(unit.word) && unitOf.set(unit.word, place));
  return listLinks(text, key, direction).filter((pair) => pair.every((word) => unitOf.has(word))).map(([from, to]) => {
    const [query, target] = [unitOf.get(from), unitOf.get(to)];
    const others = units.map((unit, place) => (unit.word >= 0 && unit.word !== from ? map[query][place] : -1));
    return { from: query, to: target, right: others[target] === Math.max(...others) && others[target] > 0 };
  });
}
