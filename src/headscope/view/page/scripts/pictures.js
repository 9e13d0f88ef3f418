// Pictures of the attention between the units of a text. Each returns the SVG and a sentence about what is drawn.
import { percent, shape, shorten } from "./dom.js";

const MOST_LINES = 400, WEAKEST = 0.03; // of the lines that are drawn
const STEP = 22, GAP = 170; // pixels: from word to word, between the columns of words
const CELL = 16, LABELS = 120, SMALLEST = 2, WIDEST = 960; // pixels, of the matrix
const SPACE = 9, HIGHEST = 90; // pixels: between words in a line, and up to the highest arc

const svgOf = (width, height) => shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-labelledby": "sentence-about" });
const nameLink = (units, from, to, weight) => `${units[from].label} \u2192 ${units[to].label}: ${percent(weight)}`;
const paper = document.createElement("canvas").getContext("2d");
paper.font = `bold 14px ${getComputedStyle(document.body).fontFamily}`;
const widthOf = (label) => paper.measureText(label).width;

// The attention of each unit to each, the largest first.
function listWeights(map, weakest) {
  const weights = [];
  map.forEach((row, from) => row.forEach((weight, to) => weight >= weakest && weights.push({ from, to, weight })));
  return weights.sort((a, b) => b.weight - a.weight);
}

function label(units, place, gold, attributes) {
  const link = attributes.class === "from" && gold.find(({ from }) => from === place);
  const kinds = [attributes.class, units[place].word < 0 && "special", link && (link.right ? "right" : "wrong")];
  const text = shorten(units[place].label);
  const node = shape("text", { ...attributes, class: kinds.filter(Boolean).join(" ") }, text);
  if (text !== units[place].label) node.append(shape("title", {}, units[place].label));
  return node;
}

export function drawLines(units, map, gold) {
  const column = 12 + Math.max(...units.map((unit) => widthOf(shorten(unit.label))));
  const svg = svgOf(2 * column + GAP, units.length * STEP + STEP / 2);
  const y = (place) => (place + 0.75) * STEP;
  for (const { from, to, right } of gold) {
    svg.append(shape("line", { class: right ? "gold right" : "gold", "data-from": from, x1: column, y1: y(from), x2: column + GAP, y2: y(to) }));
  }
  const weights = listWeights(map, WEAKEST);
  const strongest = weights.slice(0, MOST_LINES);
  for (const { from, to, weight } of strongest.toReversed()) {
    const line = shape("line", { class: "weight", "data-from": from, x1: column, y1: y(from), x2: column + GAP, y2: y(to), "stroke-opacity": Math.min(1, 0.1 + weight).toFixed(2), "stroke-width": (0.5 + 3.5 * weight).toFixed(1) });
    line.append(shape("title", {}, nameLink(units, from, to, weight)));
    svg.append(line);
  }
  units.forEach((_, place) => {
    svg.append(label(units, place, gold, { class: "from", x: column - 6, y: y(place) + 5, "text-anchor": "end", "data-from": place }));
    svg.append(label(units, place, gold, { class: "to", x: column + GAP + 6, y: y(place) + 5, "text-anchor": "start", "data-to": place }));
  });
  const held = strongest.reduce((sum, line) => sum + line.weight, 0);
  const most = weights.length > MOST_LINES ? `, the ${MOST_LINES} largest` : "";
  return [svg, `Lines for weights of ${percent(WEAKEST)} and more${most}; they hold ${percent(held / units.length)} of the attention.`];
}

export function drawMatrix(units, map, gold) {
  const cell = units.length > 60 ? Math.max(SMALLEST, Math.floor(WIDEST / units.length)) : CELL;
  const svg = svgOf(LABELS + units.length * cell, LABELS + units.length * cell);
  const square = (from, to, attributes) => shape("rect", { "data-from": from, x: LABELS + to * cell, y: LABELS + from * cell, width: cell, height: cell, ...attributes });
  for (const { from, to, weight } of listWeights(map, 0.01)) {
    const node = square(from, to, { class: "cell", "fill-opacity": Math.sqrt(Math.min(1, weight)).toFixed(2) });
    node.append(shape("title", {}, nameLink(units, from, to, weight)));
    svg.append(node);
  }
  for (const { from, to, right } of gold) svg.append(square(from, to, { class: right ? "gold right" : "gold" }));
  if (cell === CELL) units.forEach((unit, place) => {
    const middle = LABELS + (place + 0.75) * cell;
    svg.append(shape("text", { class: "from", x: LABELS - 4, y: middle, "text-anchor": "end", "data-from": place }, shorten(unit.label, 15)));
    svg.append(shape("text", { class: "to", x: 0, y: 0, transform: `translate(${middle} ${LABELS - 4}) rotate(-90)` }, shorten(unit.label, 15)));
  });
  return [svg, "Rows attend, columns are attended to; the darker, the more."];
}

// Arcs above a line of words, from each to the other word that it attends to most; below it the gold links. `only` leaves
// the arcs of other units out. A score compares words alone, so special tokens have no arcs either.
export function drawArcs(units, map, gold, only = null) {
  const labels = units.map((unit) => shorten(unit.label));
  const middles = [];
  let width = SPACE;
  for (const text of labels) {
    middles.push(width + widthOf(text) / 2);
    width += widthOf(text) + SPACE;
  }
  const best = map.map((row, from) => {
    const others = row.map((weight, to) => (to === from || units[to].word < 0 ? -1 : weight));
    const to = others.indexOf(Math.max(...others));
    return { from, to, weight: row[to] };
  }).filter(({ from, to, weight }) => weight >= WEAKEST && units[from].word >= 0 && units[to].word >= 0 && to !== from && (!only || only.includes(from)));
  const height = ({ from, to }) => Math.min(HIGHEST, 14 + Math.abs(middles[to] - middles[from]) / 3);
  const above = Math.max(20, ...best.map(height)) + 4, below = Math.max(0, ...gold.map(height));
  const svg = svgOf(width, above + STEP + below + 4);
  const path = (link, base, way) => {
    const [start, end, side] = [middles[link.from], middles[link.to], way * height(link)];
    return `M${start} ${base}C${start} ${base + 1.3 * side} ${end} ${base + 1.3 * side} ${end} ${base}`;
  };
  for (const link of best.toReversed()) {
    const arc = shape("path", { class: "weight", "data-from": link.from, d: path(link, above, -1), "stroke-opacity": Math.min(1, 0.15 + link.weight).toFixed(2), "stroke-width": (0.8 + 2.2 * link.weight).toFixed(1) });
    arc.append(shape("title", {}, nameLink(units, link.from, link.to, link.weight)));
    svg.append(arc, shape("circle", { class: "end", "data-from": link.from, cx: middles[link.to], cy: above, r: 2.5 }));
  }
  for (const link of gold) {
    svg.append(shape("path", { class: link.right ? "gold right" : "gold", "data-from": link.from, d: path(link, above + STEP, 1) }));
  }
  units.forEach((_, place) => {
    svg.append(label(units, place, gold, { class: "from", x: middles[place], y: above + 15, "text-anchor": "middle", "data-from": place }));
  });
  return [svg, `Arcs: the other word that each word attends to most, from ${percent(WEAKEST)} on; the dot is on the word that is attended to.`];
}
