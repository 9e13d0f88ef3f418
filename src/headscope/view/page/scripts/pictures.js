// Pictures of the attention between the units of a text, which texts.js reads. Each function returns the SVG and a
// sentence about the picture.
import { percent, shape, shorten } from "./dom.js";

const MOST_LINES = 400, WEAKEST = 0.03; // the largest number of lines, and the smallest weight of a line
const STEP = 22, GAP = 170; // pixels: between words in a column, between the columns of words
const CELL = 16, LABELS = 120, SMALLEST = 2, WIDEST = 960; // pixels: size of a cell of the matrix, margin for labels, smallest cell, largest width
const ASIDE = 2; // pixels between the lines of different heads
const SPACE = 9, HIGHEST = 90; // pixels: between words in a line, and height of the highest arc

const svgOf = (width, height) => shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-labelledby": "sentence-about" });
const nameLink = (attention, from, to, weight) => `${attention.from[from].label} \u2192 ${attention.to[to].label}: ${percent(weight)}`;
const paper = document.createElement("canvas").getContext("2d");
paper.font = `bold 14px ${getComputedStyle(document.body).fontFamily}`;
const widthOf = (label) => paper.measureText(label).width;

// List the weights between units, the largest first.
function listWeights(map, weakest) {
  const weights = [];
  map.forEach((row, from) => row.forEach((weight, to) => weight >= weakest && weights.push({ from, to, weight })));
  return weights.sort((a, b) => b.weight - a.weight);
}

function label(unit, link, attributes) {
  const kinds = [attributes.class, unit.word < 0 && "special", link && (link.right ? "right" : "wrong")];
  const text = shorten(unit.label);
  const node = shape("text", { ...attributes, class: kinds.filter(Boolean).join(" ") }, text);
  if (text !== unit.label) node.append(shape("title", {}, unit.label));
  return node;
}

// Return the gold link of each attending unit.
const indexLinks = (gold) => new Map(gold.toReversed().map((link) => [link.from, link]));

// Draw the lines of the first head and, in other colours, of any further heads.
export function drawLines(attention, gold, names) {
  const { from, to, maps } = attention;
  const column = 12 + Math.max(...[...from, ...to].map((unit) => widthOf(shorten(unit.label))));
  const svg = svgOf(2 * column + GAP, Math.max(from.length, to.length) * STEP + STEP / 2);
  const y = (place) => (place + 0.75) * STEP;
  for (const link of gold) {
    svg.append(shape("line", { class: link.right ? "gold right" : "gold", "data-from": link.from, x1: column, y1: y(link.from), x2: column + GAP, y2: y(link.to) }));
  }
  const weights = maps.flatMap((map, head) => listWeights(map, WEAKEST).map((link) => ({ ...link, head }))).sort((a, b) => b.weight - a.weight);
  const strongest = weights.slice(0, MOST_LINES);
  for (const { from: query, to: key, weight, head } of strongest.toReversed()) {
    const aside = maps.length > 1 ? ASIDE * (head - (maps.length - 1) / 2) : 0; // so that no line hides another one
    const line = shape("line", { class: head ? `weight beside beside-${head}` : "weight", "data-from": query, x1: column, y1: y(query) + aside, x2: column + GAP, y2: y(key) + aside, "stroke-opacity": Math.min(1, 0.1 + weight).toFixed(2), "stroke-width": (0.5 + 3.5 * weight).toFixed(1) });
    line.append(shape("title", {}, `${maps.length > 1 ? `head ${names[head]}, ` : ""}${nameLink(attention, query, key, weight)}`));
    svg.append(line);
  }
  const links = indexLinks(gold);
  from.forEach((unit, place) => svg.append(label(unit, links.get(place), { class: "from", x: column - 6, y: y(place) + 5, "text-anchor": "end", "data-from": place })));
  to.forEach((unit, place) => svg.append(label(unit, null, { class: "to", x: column + GAP + 6, y: y(place) + 5, "text-anchor": "start", "data-to": place })));
  const held = strongest.reduce((sum, line) => sum + line.weight, 0);
  const most = weights.length > MOST_LINES ? `, the ${MOST_LINES} largest` : "";
  const whose = maps.length > 1 ? ` of heads ${names.join(", ")}` : "";
  return [svg, `Lines for weights of ${percent(WEAKEST)} and more${most}; they hold ${percent(held / from.length / maps.length)} of the attention${whose}.`];
}

export function drawMatrix(attention, gold) {
  const { from, to, maps: [map] } = attention;
  const longest = Math.max(from.length, to.length);
  const cell = longest > 60 ? Math.max(SMALLEST, Math.floor(WIDEST / longest)) : CELL;
  const svg = svgOf(LABELS + to.length * cell, LABELS + from.length * cell);
  const square = (query, key, attributes) => shape("rect", { "data-from": query, x: LABELS + key * cell, y: LABELS + query * cell, width: cell, height: cell, ...attributes });
  for (const { from: query, to: key, weight } of listWeights(map, 0.01)) {
    const node = square(query, key, { class: "cell", "fill-opacity": Math.sqrt(Math.min(1, weight)).toFixed(2) });
    if (cell === CELL) node.append(shape("title", {}, nameLink(attention, query, key, weight))); // smaller cells are too small for a tooltip
    svg.append(node);
  }
  for (const link of gold) svg.append(square(link.from, link.to, { class: link.right ? "gold right" : "gold" }));
  const middle = (place) => LABELS + (place + 0.75) * cell;
  if (cell === CELL) {
    from.forEach((unit, place) => svg.append(shape("text", { class: "from", x: LABELS - 4, y: middle(place), "text-anchor": "end", "data-from": place }, shorten(unit.label, 15))));
    to.forEach((unit, place) => svg.append(shape("text", { class: "to", x: 0, y: 0, transform: `translate(${middle(place)} ${LABELS - 4}) rotate(-90)` }, shorten(unit.label, 15))));
  }
  return [svg, "Rows attend, columns are attended to; the darker, the more."];
}

// Return the position of each attending unit in the line of units that are attended to. Both sides of an
// encoder-decoder read the same words; special tokens of the decoder have no position there.
function placeInLine({ from, to }) {
  const [queries, keys] = [from, to].map((units) => [...units.keys()].filter((place) => units[place].word >= 0));
  return new Map(queries.map((query, word) => [query, keys[word]]));
}

// Draw arcs above a line of words, from each word to the other word that it attends to most, and the gold links below.
// With `only`, draw the arcs of this unit alone. Special tokens have no arcs, since scores compare words only.
export function drawArcs(attention, gold, only = null) {
  const { from, to, maps: [map] } = attention;
  const places = placeInLine(attention), links = indexLinks(gold);
  const middles = [];
  let width = SPACE;
  for (const unit of to) {
    const space = widthOf(shorten(unit.label));
    middles.push(width + space / 2);
    width += space + SPACE;
  }
  const best = [...places].map(([query, place]) => {
    const others = map[query].map((weight, key) => (key === place || to[key].word < 0 ? -1 : weight));
    const key = others.indexOf(Math.max(...others));
    return { from: query, to: key, weight: others[key] };
  }).filter(({ from: query, weight }) => weight >= WEAKEST && (!only || only.includes(query)));
  const height = (link) => Math.min(HIGHEST, 14 + Math.abs(middles[link.to] - middles[places.get(link.from)]) / 3);
  const above = Math.max(20, ...best.map(height)) + 4, below = Math.max(0, ...gold.map(height));
  const svg = svgOf(width, above + STEP + below + 4);
  const path = (link, base, way) => {
    const [start, end, side] = [middles[places.get(link.from)], middles[link.to], way * height(link)];
    return `M${start} ${base}C${start} ${base + 1.3 * side} ${end} ${base + 1.3 * side} ${end} ${base}`;
  };
  for (const link of best.toReversed()) {
    const arc = shape("path", { class: "weight", "data-from": link.from, d: path(link, above, -1), "stroke-opacity": Math.min(1, 0.15 + link.weight).toFixed(2), "stroke-width": (0.8 + 2.2 * link.weight).toFixed(1) });
    arc.append(shape("title", {}, nameLink(attention, link.from, link.to, link.weight)));
    svg.append(arc, shape("circle", { class: "end", "data-from": link.from, cx: middles[link.to], cy: above, r: 2.5 }));
  }
  for (const link of gold) {
    svg.append(shape("path", { class: link.right ? "gold right" : "gold", "data-from": link.from, d: path(link, above + STEP, 1) }));
  }
  const queries = new Map([...places].map(([query, place]) => [place, query]));
  to.forEach((unit, place) => {
    const query = queries.get(place);
    const attends = query === undefined ? {} : { "data-from": query };
    svg.append(label(unit, links.get(query), { class: "from", x: middles[place], y: above + 15, "text-anchor": "middle", ...attends }));
  });
  return [svg, `Arcs: the other word that each word attends to most, from ${percent(WEAKEST)} on; the dot is on the word that is attended to.`];
}
