// The chosen sentence in all heads: its actual maps, on one canvas.
import { colour, paletteOf } from "./colours.js";
import { element, find, percent, renew } from "./dom.js";
import { headName, page, scoreOf } from "./numbers.js";
import { chooseText } from "./sentences.js";
import { choose } from "./state.js";
import { hasHead, readWeights, texts } from "./texts.js";

const EDGE = 26, GAP = 3, FRAME = 3; // pixels: margin for the numbers of layers and heads, gap between maps, width of the frame
const STEPS = 100;
const [box, canvas, words] = [find("all-box"), find("all-picture"), find("all-words")];
let current = null; // {state, place, maps: {weights, layers, heads, queries, keys}, from, to}
let row = null; // the attending word under the mouse
let turns = 0; // count of drawings; only the last one is finished

function placeCells({ layers, heads }) {
  const [width, height] = [box.clientWidth - EDGE, box.clientHeight - EDGE];
  return { width: width / heads, height: height / layers };
}

const boxOf = ({ layer, head }, { width, height }) => [EDGE + head * width, EDGE + layer * height, width - GAP, height - GAP];

// Return the colours of weights as pixels without opacity.
function listShades() {
  const palette = paletteOf(false);
  return Uint32Array.from({ length: STEPS + 1 }, (_, step) => {
    const [red, green, blue] = colour((step / STEPS) ** 0.7, palette).parts;
    return (blue << 16) | (green << 8) | red;
  });
}

// Return the number of tokens that share a pixel, so that each map fits its box.
const foldOf = ({ queries, keys }, { width, height }, ratio) => Math.max(1, Math.floor(Math.max(keys / (ratio * width), queries / (ratio * height))));

// Paint the map of a head; a pixel shows the largest of its weights.
function paintMap(paper, sheet, image, shades, { maps, from }, place, cell, fold) {
  const { weights, heads, queries, keys } = maps, start = (place.layer * heads + place.head) * queries * keys;
  const pixels = new Uint32Array(image.data.buffer), largest = new Uint8Array(pixels.length), chosen = new Uint8Array(sheet.height);
  for (let query = 0; query < queries; query++) {
    const line = Math.floor(query / fold) * sheet.width, first = start + query * keys;
    if (row === null || from.token_words[query] === row) chosen[line / sheet.width] = 1;
    for (let key = 0, at = line, left = fold; key < keys; key++, left--) {
      if (left === 0) [at, left] = [at + 1, fold];
      if (weights[first + key] > largest[at]) largest[at] = weights[first + key];
    }
  }
  for (let at = 0, y = 0; y < sheet.height; y++) {
    const opacity = (chosen[y] ? 255 : 60) << 24;
    for (const end = at + sheet.width; at < end; at++) pixels[at] = shades[largest[at]] | opacity;
  }
  sheet.getContext("2d").putImageData(image, 0, 0);
  paper.drawImage(sheet, ...boxOf(place, cell));
}

function paint() {
  const { state, maps } = current, cell = placeCells(maps), ratio = devicePixelRatio || 1, style = getComputedStyle(canvas);
  [canvas.width, canvas.height] = [box.clientWidth, box.clientHeight].map((side) => Math.round(side * ratio));
  Object.assign(canvas.style, { width: `${box.clientWidth}px`, height: `${box.clientHeight}px` });
  const paper = canvas.getContext("2d"), sheet = document.createElement("canvas");
  paper.scale(ratio, ratio);
  paper.imageSmoothingEnabled = false;
  const fold = foldOf(maps, cell, ratio), shades = listShades();
  [sheet.width, sheet.height] = [maps.keys, maps.queries].map((tokens) => Math.ceil(tokens / fold));
  const image = new ImageData(sheet.width, sheet.height);
  for (let layer = 0; layer < maps.layers; layer++) {
    if (layer + 1 in page.without_attention) continue;
    for (let head = 0; head < maps.heads; head++) paintMap(paper, sheet, image, shades, current, { layer, head }, cell, fold);
  }
  paper.fillStyle = style.color;
  paper.font = `11px ${style.fontFamily}`;
  paper.textAlign = "center";
  const step = (size) => Math.max(1, Math.ceil(14 / size));
  for (let head = 0; head < maps.heads; head += step(cell.width)) paper.fillText(head + 1, EDGE + (head + 0.5) * cell.width, 16);
  for (let layer = 0; layer < maps.layers; layer += step(cell.height)) paper.fillText(layer + 1, 10, EDGE + (layer + 0.5) * cell.height + 4);
  paper.strokeStyle = getComputedStyle(document.body).color;
  paper.lineWidth = FRAME;
  paper.strokeRect(...boxOf(state.head, cell).map((side, at) => side + (at < 2 ? -1.5 : FRAME)));
}

function headAt(event) {
  if (!current) return null;
  const bounds = canvas.getBoundingClientRect(), cell = placeCells(current.maps);
  const [head, layer] = [Math.floor((event.clientX - bounds.left - EDGE) / cell.width), Math.floor((event.clientY - bounds.top - EDGE) / cell.height)];
  return layer >= 0 && head >= 0 && layer < current.maps.layers && head < current.maps.heads ? { layer, head } : null;
}

function pointWord(word) {
  if (word === row) return;
  row = word;
  paint();
}

function writeWords({ from, place }) {
  const named = new Set();
  renew(words, ...from.tokens.flatMap((token, at) => {
    const word = from.token_words[at];
    if (word < 0) return [element("span", token, { class: "special" }), " "];
    if (named.has(word)) return [];
    named.add(word);
    const button = element("button", texts[place].words[word], { type: "button", "data-word": word });
    return [button, " "];
  }));
}

// Describe the largest weights of a head in words.
function describe(head) {
  const { maps, from, to, place, state } = current;
  if (!hasHead(texts[place], state, head)) return `Head ${headName(head)} has no attention.`;
  const start = (head.layer * maps.heads + head.head) * maps.queries * maps.keys;
  const pairs = from.tokens.map((token, query) => {
    const weights = maps.weights.subarray(start + query * maps.keys, start + (query + 1) * maps.keys);
    const key = weights.indexOf(Math.max(...weights));
    return { text: `${token} \u2192 ${to.tokens[key]} ${percent(weights[key] / STEPS)}`, weight: weights[key] };
  });
  const strongest = pairs.toSorted((a, b) => b.weight - a.weight).slice(0, 5);
  return `Head ${headName(head)}: ${strongest.map((pair) => pair.text).join(", ")}. Rows attend, columns are attended to; darker is more.`;
}

export function buildAll() {
  canvas.addEventListener("mousemove", (event) => headAt(event) && (find("all-about").textContent = describe(headAt(event))));
  canvas.addEventListener("mouseleave", () => current && (find("all-about").textContent = describe(current.state.head)));
  canvas.addEventListener("click", (event) => headAt(event) && choose({ head: headName(headAt(event)), mode: "one" }));
  words.addEventListener("mouseover", (event) => event.target.dataset.word !== undefined && pointWord(Number(event.target.dataset.word)));
  words.addEventListener("mouseleave", () => pointWord(null));
  words.addEventListener("focusin", (event) => event.target.dataset.word !== undefined && pointWord(Number(event.target.dataset.word)));
  words.addEventListener("focusout", () => pointWord(null));
  new ResizeObserver(() => current?.state.mode === "all" && paint()).observe(box);
}

export async function drawAll(state) {
  const turn = ++turns;
  if (state.mode !== "all") return;
  const place = chooseText(state, scoreOf(state)), read = await readWeights(place, state);
  if (turn !== turns) return; // the reader has chosen something else meanwhile
  current = { state, place, ...read };
  row = null;
  find("all-name").textContent = `This sentence in all ${read.maps.layers * read.maps.heads} heads`;
  writeWords(current);
  paint();
  find("all-about").textContent = describe(state.head);
}
