// The texts of the page with the attention of all heads, from the JSON in #sentences-data; a live page may begin without.
import { find } from "./dom.js";
import { page } from "./numbers.js";
import { unpackBytes } from "./packed.js";

const source = find("sentences-data") ?? find("live-data");
const data = { texts: [], examples: [], reads: {}, rows: [], steps: 1, judged: true, ...(source && JSON.parse(source.textContent)) };
const unpacked = new Map(); // by part, text and attention type: weights in whole percent, and what is right, a byte each

const MOST = 9; // texts that have a key

// False of examples that an older version wrote: what is right then follows from weights in whole percent.
export const isJudged = data.judged;

export const texts = data.texts;

const typed = new Set(); // places of texts that the reader wrote

// The place of a text of the reader's own, which is added behind the others.
export function addText(text) {
  typed.add(texts.length);
  return texts.push(text) - 1;
}

export const isTyped = (place) => typed.has(place);

export const examplesOf = (row) => data.examples.filter((each) => each.row === row);

// The attention type of a text that is shown: the chosen one, or the only one that it has.
const typeOf = (text, state) => state.attention_type || Object.keys(text.weights)[0];

// True if the chosen attention type has a head: a decoder may have fewer layers than its encoder, and in a hybrid model
// not all layers have attention.
export function hasHead(text, state, { layer, head }) {
  const [layers, heads] = text.shapes[typeOf(text, state)];
  return layer < layers && head < heads && !(layer + 1 in page.without_attention);
}

// A text of the page as the model behind it is asked about it. `tokens` is what the model reads of it, where that is cut.
export function describeText(text) {
  const { tokens } = text.sides.encoder ?? text.sides.decoder;
  const { words, content, offsets, boundary, random_tokens, messages, begun = false } = text;
  return { words, content, offsets, boundary, random_tokens, messages, begun, tokens: tokens.length };
}

// The tokens that attend, and those that are attended to: {tokens, token_words} each.
export const readSides = (text, state) => data.reads[typeOf(text, state)].map((side) => text.sides[side]);

async function unpack(part, place, type) {
  const name = `${part} ${type} ${place}`;
  if (!unpacked.has(name)) unpacked.set(name, await unpackBytes(texts[place][part][type]));
  return unpacked.get(name);
}

// Where the first of some heads gets each item of a text right, and where the item counts: {counts, right}, a number each
// that holds 1 for the first direction and 2 for the second; null of a text that was not judged.
async function readJudged(place, type, [{ layer, head }]) {
  const { items, counts, right, shapes } = texts[place];
  if (!right?.[type]) return null;
  const start = (layer * shapes[type][1] + head) * items.length;
  return { counts: counts[type], right: (await unpack("right", place, type)).subarray(start, start + items.length) };
}

// Words and special tokens, or tokens: {label, word, tokens}, in order.
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

// The weights of a head between units. To a word the attention to its tokens is added up, from a word it is averaged
// (Clark et al. 2019, section 4.1).
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

// The attention of heads on the text at a place: {from, to, maps, judged, isAlike}: units that attend, units that are
// attended to, of each head the weights by unit, what the first head gets right, and whether both sides are one.
export async function readAttention(place, state, level, heads) {
  const text = texts[place], type = typeOf(text, state);
  const [weights, judged] = [await unpack("weights", place, type), await readJudged(place, type, heads)];
  const [from, to] = readSides(text, state).map((side) => listUnits(text.words, side, level));
  const [query, key] = data.reads[type];
  return { from, to, judged, isAlike: query === key, maps: heads.map((head) => readMap(weights, text.shapes[type][1], from, to, head)) };
}

// The unit that a unit attends to most in each head: [layer][head], {to, weight}; null where a layer has no attention.
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

// The other word that attends most to a unit in each head: [layer][head], {to, weight}; null where every word gives it less
// than `least`. Of each unit, `queries` has the place of the word among those that attend; null of a special token.
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

// The weights of all heads between the tokens of a text, in steps from 0 to 1, and the sides that they are between.
export async function readWeights(place, state) {
  const type = typeOf(texts[place], state), weights = await unpack("weights", place, type);
  const [from, to] = readSides(texts[place], state), [layers, heads] = texts[place].shapes[type];
  return { from, to, maps: { weights, layers, heads, queries: from.tokens.length, keys: to.tokens.length } };
}

// The texts to show for a row, its examples first, as many as there are keys; the chosen one is among them.
export function listTexts(row, chosen) {
  const places = [...new Set([...examplesOf(row).map((each) => each.text), ...texts.keys()])].slice(0, MOST);
  return places.includes(chosen) ? places : [...places.slice(0, MOST - 1), chosen];
}

// The place of the first unit of each word.
function indexWords(units) {
  const places = new Map();
  units.forEach((unit, place) => unit.word >= 0 && !places.has(unit.word) && places.set(unit.word, place));
  return places;
}

// For each item of a row of a score: {from, to, right, pick}, in units, as the score counted it: from the word that attends
// to the one that it is to attend to; of several, to that which gets most. `pick` is what the best rule of the row does:
// {from, to, right} in words; null where there is none.
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

// What a rule does with an item: from the one end it leads to a word, which is right if it is the other end.
function readPick([from, to] = [-1, -1], source, targets) {
  if (to < 0) return null;
  return { from, to, right: from === source ? targets.includes(to) : to === source };
}

// The links of a text that a row of a score is about, from the word that attends to the one that it is to attend to.
function listLinks(text, row, direction) {
  const name = row.slice(row.indexOf(":") + 1);
  const base = name.endsWith(":*") ? name.slice(0, -2) : null;
  const belongs = (label) => label === name || (name === "all" && label !== "punct") || (base && (label === base || label.startsWith(base + ":")));
  const links = text.links.filter(([, , label]) => belongs(label));
  return links.map(([source, target]) => (direction === "head_to_dependent" ? [target, source] : [source, target]));
}

// True of a decoder that is alone: a word sees only what stands before it, and links that point ahead do not count.
export const isCausal = (text) => Object.keys(text.shapes).join() === "decoder";

// The same of links that were not judged, by the weights that the page has. From dependents: right if the dependent
// attends most, of all other words, to its head. To dependents: right if, of all other words, the head attends most to it.
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
