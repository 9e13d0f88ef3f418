// The map of heads: heads that attend alike are close together. It has the colours of the grid.
import { colour, paletteOf } from "./colours.js";
import { find, number, shape } from "./dom.js";
import { attentionType, headName, page, readVariable } from "./numbers.js";
import { choose } from "./state.js";

const SIZE = 900, MARGIN = 24; // pixels
const MOST_NAMES = 160; // with more heads, names have no room
const picture = find("map-picture");
let points = []; // {layer, head, x, y, cluster} of the heads of the shown attention type, in pixels
let chosen = null; // the index of the chosen head in points

// Return the coordinates of the heads in pixels; both axes have one scale, since the map shows distances.
function listPoints(side) {
  const { x, y, clusters } = page.map;
  const known = [];
  x[side].forEach((row, layer) => row.forEach((value, head) => {
    if (value !== null) known.push({ layer, head, x: value, y: y[side][layer][head], cluster: clusters[side][layer][head] });
  }));
  const [left, top] = [Math.min(...known.map((each) => each.x)), Math.max(...known.map((each) => each.y))];
  const extent = Math.max(...known.map((each) => each.x)) - left || 1;
  const scale = (SIZE - 2 * MARGIN) / extent;
  return known.map((each) => ({ ...each, x: MARGIN + (each.x - left) * scale, y: MARGIN + (top - each.y) * scale }));
}

// Find the nearest head in the direction of an arrow key.
function findNext(key) {
  const [right, down] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
  const from = points[chosen];
  let [next, nearest] = [null, Infinity];
  for (const point of points) {
    const [x, y] = [point.x - from.x, point.y - from.y];
    const ahead = x * right + y * down, aside = Math.abs(x * down) + Math.abs(y * right);
    const distance = Math.hypot(x, y);
    if (ahead > 0 && aside <= ahead && distance < nearest) [next, nearest] = [point, distance];
  }
  return next;
}

// Build the map. `point` is called with the head under the mouse, and with null when the mouse leaves.
export function buildHeadMap(point) {
  if (!page.map) return;
  find("map").parentElement.hidden = false;
  const place = (event) => points[event.target.closest("[data-point]")?.dataset.point];
  picture.addEventListener("mouseover", (event) => place(event) && point(place(event)));
  picture.addEventListener("mouseleave", () => point(null));
  picture.addEventListener("click", (event) => place(event) && choose({ head: headName(place(event)) }));
  picture.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow") || chosen < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = findNext(event.key);
    if (next) choose({ head: headName(next) });
  });
}

function drawPoint({ layer, head, x, y, cluster }, place, { values, low, top, diverging }, radius) {
  const value = values[layer][head];
  const paint = value === null ? { ground: "transparent", ink: "currentColor" } : colour((value - low) / (top - low || 1), paletteOf(diverging));
  const classes = ["head", cluster === points[chosen]?.cluster && "alike", place === chosen && "chosen"];
  const node = shape("g", { class: classes.filter(Boolean).join(" "), "data-point": place });
  node.append(shape("title", {}, `head ${headName({ layer, head })}: ${number(value, 3)}; cluster ${cluster}`));
  node.append(shape("circle", { cx: x, cy: y, r: radius, fill: paint.ground }));
  if (points.length <= MOST_NAMES) node.append(shape("text", { x, y: y + 3, fill: paint.ink }, headName({ layer, head })));
  return node;
}

export function drawHeadMap(state) {
  if (!page.map) return;
  const side = attentionType(state), view = readVariable(state);
  points = listPoints(side);
  chosen = points.findIndex(({ layer, head }) => layer === state.head.layer && head === state.head.head);
  const height = Math.max(...points.map(({ y }) => y)) + MARGIN;
  const svg = shape("svg", { viewBox: `0 0 ${SIZE} ${height}`, width: SIZE, height, role: "img", "aria-labelledby": "map-about" });
  for (const [layer, head] of page.map.neighbours[side]?.[state.head.layer][state.head.head] ?? []) {
    const other = points.find((each) => each.layer === layer && each.head === head);
    if (chosen >= 0 && other) svg.append(shape("line", { x1: points[chosen].x, y1: points[chosen].y, x2: other.x, y2: other.y }));
  }
  const radius = points.length > MOST_NAMES ? 6 : 13;
  const nodes = points.map((each, place) => drawPoint(each, place, view, radius));
  if (chosen >= 0) nodes.push(...nodes.splice(chosen, 1)); // draw it above its neighbours
  svg.append(...nodes);
  picture.replaceChildren(svg);
  find("map-about").textContent =
    `Heads that attend alike are near: Jensen-Shannon divergences in the plane, ${page.map.documents.toLocaleString("en")} documents, stress ${number(page.map.stress[side])} (0: all distances as measured). ` +
    `Colours: ${view.label}. ${page.map.neighbours.length ? `Lines lead from head ${headName(state.head)} to the heads that are nearest by their distances; rings` : "Rings"} mark its cluster.`;
}
