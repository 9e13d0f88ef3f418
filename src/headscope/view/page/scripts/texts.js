// The texts of the page with the attention of all heads, from the JSON in #sentences-data; a live page may begin
// without.
import { find } from "./dom.js";
import { page } from "./numbers.js";
import { unpackBytes } from "./packed.js";

const source = find("sentences-data") ?? find("live-data");
const data = { texts: [], examples: [], reads: {}, rows: [], steps: 1, judged: true, ...(source && JSON.parse(source.textContent)) };
const unpacked = new Map(); // by part, text and attention type: weights in whole percent, and what is right, one byte each

const MOST = 9; // number of texts that have a key

// False for examples from an older version; then the right items are computed from weights in whole percent.
export const isJudged = data.judged;

export const texts = data.texts;

const typed = new Set(); // indices of texts that the reader wrote

// Add a text of the reader after the others, and return its index.
export function addText(text) {
  typed.add(texts.length);
  return texts.push(text) - 1;
}

export const isTyped = (place) => typed.has(place);

export const examplesOf = (row) => data.examples.filter((each) => each.row === row);

// Return the shown attention type of a text: the chosen type, or its only type.
const typeOf = (text, state) => state.attention_type || Object.keys(text.weights)[0];

// Return true if the chosen attention type has a head: a decoder may have fewer layers than its encoder, and in a
// hybrid model some layers have no attention.
export function hasHead(text, state, { layer, head }) {
  const [layers, heads] = text.shapes[typeOf(text, state)];
  return layer < layers && head < heads && !(layer + 1 in page.without_attention);
}

// Return a text as a question to the model needs it. `tokens` is the number of tokens that the model reads of a cut
// text.
export function describeText(text) {
  const { tokens } = text.sides.encoder ?? text.sides.decoder;
  const { words, content, offsets, boundary, random_tokens, messages, begun = false } = text;
  return { words, content, offsets, boundary, random_tokens, messages, begun, tokens: tokens.length };
}

// Return the tokens that attend, and the tokens that are attended to: {tokens, token_words} each.
export const readSides = (text, state) => data.reads[typeOf(text, state)].map((side) => text.sides[side]);

async function unpack(part, place, type) {
  const name = `${part} ${type} ${place}`;
  if (!unpacked.has(name)) unpacked.set(name, await unpackBytes(texts[place][part][type]));
  return unpacked.get(name);
}

// Read which items of a text the first head gets right, and which items count: {counts, right}. In each number, the bit
// 1 is for the first direction, and the bit 2 for the second. Return null for a text that was not judged.
async function readJudged(place, type, [{ layer, head }]) {
  const { items, counts, right, shapes } = texts[place];
  if (!right?.[type]) return null;
  const start = (layer * shapes[type][1] + head) * items.length;
  return { counts: counts[type], right: (await unpack("right", place, type)).subarray(start, start + items.length) };
}

// List words and special tokens, or tokens, in order: {label, word, tokens}.
function listUnits(words, { tokens, token_words }, level) {
  const units = [];
  tokens.forEach((token, place) => {
    const word = token_words[place];
    const last = units.at(-1);
    if (level === "words" && word >= 0 && last && last.word === word) last.tokens.push(place);
    else units.push({ label: level === "words" && word >= 0 ? words[word] : token, word, tokens: [place] });
  });
  return units;
}

// Read the weights of a head between units: attention to the tokens of a word is summed, attention from them is
// averaged (Clark et al. 2019, section 4.1).
function readMap(weights, heads, from, to, { layer, head }) {
  const [queries, keys] = [from, to].map((units) => units.at(-1).tokens.at(-1) + 1);
  const start = (layer * heads + head) * queries * keys;
  const unitOf = new Uint32Array(keys);
  to.forEach((unit, place) => unit.tokens.forEach((token) => (unitOf[token] = place)));
  return from.map(({ tokens }) => {
    const row = new Array(to.length).fill(0);
    for (const query of tokens) {
      for (let key = 0; key < keys; key++) row[unitOf[key]] += weights[start + query * keys + key];
    }
    return row.map((sum) => sum / tokens.length / data.steps);
  });
}

// Read the attention of heads on a text: {from, to, maps, judged, isAlike}. These are the attending units, the units
// attended to, the weights of each head by unit, what the first head gets right, and whether both sides are the same.
export async function readAttention(place, state, level, heads) {
  const text = texts[place], type = typeOf(text, state);
  const [weights, judged] = [await unpack("weights", place, type), await readJudged(place, type, heads)];
  const [from, to] = readSides(text, state).map((side) => listUnits(text.words, side, level));
  const [query, key] = data.reads[type];
  return { from, to, judged, isAlike: query === key, maps: heads.map((head) => readMap(weights, text.shapes[type][1], from, to, head)) };
}

// Return the unit that a unit attends to most in each head, [layer][head] {to, weight}; null in layers without
// attention.
export async function readChoices(place, state, query) {
  const { from, to, maps } = await readWeights(place, state);
  const units = listUnits(texts[place].words, to, "words"), { tokens } = listUnits(texts[place].words, from, "words")[query];
  const unitOf = new Uint32Array(maps.keys), sums = new Float64Array(units.length);
  units.forEach((unit, at) => unit.tokens.forEach((token) => (unitOf[token] = at)));
  const choose = (layer, head) => {
    const start = (layer * maps.heads + head) * maps.queries * maps.keys;
    sums.fill(0);
    for (const token of tokens) for (let key = 0; key < maps.keys; key++) sums[unitOf[key]] += maps.weights[start + token * maps.keys + key];
    const largest = sums.indexOf(Math.max(...sums));
    return { to: largest, weight: sums[largest] / tokens.length / data.steps };
  };
  return askHeads(maps, choose);
}

const askHeads = ({ layers, heads }, choose) => {
  const columns = [...Array(heads).keys()];
  return [...Array(layers).keys()].map((layer) => columns.map((head) => (layer + 1 in page.without_attention ? null : choose(layer, head))));
};

// Return the other word that attends most to a unit in each head, [layer][head] {to, weight}; null if every word gives
// it less than `least`. `queries` has the index of each unit among the attending words; null for a special token.
export async function readAttenders(place, state, unit, queries, least) {
  const { from, to, maps } = await readWeights(place, state), words = listUnits(texts[place].words, from, "words");
  const keys = listUnits(texts[place].words, to, "words")[unit].tokens;
  const choose = (layer, head) => {
    const start = (layer * maps.heads + head) * maps.queries * maps.keys;
    let choice = null;
    queries.forEach((query, at) => {
      if (query === null || at === unit) return;
      let sum = 0;
      for (const token of words[query].tokens) for (const key of keys) sum += maps.weights[start + token * maps.keys + key];
      const weight = sum / words[query].tokens.length / data.steps;
      if (choice ? weight > choice.weight : weight >= least) choice = { to: at, weight };
    });
    return choice;
  };
  return askHeads(maps, choose);
}

// Read the weights of all heads between the tokens of a text, in steps from 0 to 1, and the two sides of tokens.
export async function readWeights(place, state) {
  const type = typeOf(texts[place], state), weights = await unpack("weights", place, type);
  const [from, to] = readSides(texts[place], state), [layers, heads] = texts[place].shapes[type];
  return { from, to, maps: { weights, layers, heads, queries: from.tokens.length, keys: to.tokens.length } };
}

// List the texts for a row, its examples first, one for each key; the chosen text is among them.
export function listTexts(row, chosen) {
  const places = [...new Set([...examplesOf(row).map((each) => each.text), ...texts.keys()])].slice(0, MOST);
  return places.includes(chosen) ? places : [...places.slice(0, MOST - 1), chosen];
}

// Return the index of the first unit of each word.
function indexWords(units) {
  const places = new Map();
  units.forEach((unit, place) => unit.word >= 0 && !places.has(unit.word) && places.set(unit.word, place));
  return places;
}

// Judge each item of a row of a score: {from, to, right, pick}, in units, as the score counted it. It leads from the
// attending word to its gold word; of several gold words, to the one with the largest weight. `pick` is the choice of
// the best rule of the row, {from, to, right} in words; null without one.
export function judge(text, row, direction, attention) {
  const { from, to, judged, maps: [map] } = attention;
  const [queries, keys] = [from, to].map(indexWords), back = row.directed && direction === "head_to_dependent";
  const bit = back ? 2 : 1, number = data.rows.indexOf(row.key);
  if (!judged) return row.directed ? judgeWeights(text, row, direction, attention) : [];
  const picks = [...(text.picks?.[number] ?? [])];
  return text.items.flatMap(([source, targets, rows], item) => {
    if (!rows.includes(number)) return [];
    const pick = readPick(picks.shift(), source, targets);
    if (!(judged.counts[item] & bit)) return [];
    const [query, ends] = back ? [targets[0], [source]] : [source, targets];
    const places = ends.filter((word) => keys.has(word)).map((word) => keys.get(word));
    if (!queries.has(query) || !places.length) return [];
    const at = queries.get(query);
    return [{ from: at, to: places.reduce((a, b) => (map[at][b] > map[at][a] ? b : a)), right: Boolean(judged.right[item] & bit), pick }];
  });
}

// Read the choice of a rule for an item: it leads from one end to a word, and is right if this word is the other end.
function readPick([from, to] = [-1, -1], source, targets) {
  if (to < 0) return null;
  return { from, to, right: from === source ? targets.includes(to) : to === source };
}

// List the links of a text for a row of a score, from the attending word to its gold word.
function listLinks(text, row, direction) {
  const name = row.slice(row.indexOf(":") + 1);
  const base = name.endsWith(":*") ? name.slice(0, -2) : null;
  const belongs = (label) => label === name || (name === "all" && label !== "punct") || (base && (label === base || label.startsWith(base + ":")));
  const links = text.links.filter(([, , label]) => belongs(label));
  return links.map(([source, target]) => (direction === "head_to_dependent" ? [target, source] : [source, target]));
}

// Return true for a decoder alone: a word sees only earlier words, and links that point ahead do not count.
export const isCausal = (text) => Object.keys(text.shapes).join() === "decoder";

// Judge links of an older version by the weights of the page. From a dependent, a link is right if of all other words
// it attends most to its head; to a dependent, if of all other words the head attends most to it.
function judgeWeights(text, { key }, direction, { from, to, maps: [map] }) {
  const [queries, keys] = [from, to].map(indexWords);
  const counts = ([source, target]) => queries.has(source) && keys.has(target) && !(isCausal(text) && source < target);
  return listLinks(text, key, direction).filter(counts).map(([source, target]) => {
    const [query, key] = [queries.get(source), keys.get(target)];
    const others = direction === "head_to_dependent"
      ? from.map((unit, place) => (unit.word >= 0 && unit.word !== target ? map[place][key] : -1))
      : to.map((unit, place) => (unit.word >= 0 && unit.word !== source ? map[query][place] : -1));
    return { from: query, to: key, right: map[query][key] === Math.max(...others) && map[query][key] > 0, pick: null };
  });
}
