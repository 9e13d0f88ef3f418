// The average attention maps of all heads on one canvas, and a larger map of the chosen head.
import { find } from "./dom.js";
import { listColours } from "./colours.js";
import { attentionType, headName, numbersOf, page } from "./numbers.js";
import { readBase64 } from "./packed.js";
import { choose } from "./state.js";

const CELL = 2, GAP = 4, LABELS = 24, LARGE = 14, FRAME = 3; // pixels: size of a cell, gap between maps, margin for labels, size of a cell of the large map, width of the chosen head's frame
const STEPS = 254, MISSING = 255; // steps of the square root of a weight; the byte of a cell without a value
const [canvas, large] = [find("thumbnails-picture"), find("thumbnails-head")];
const bytes = new Map(); // the cells of each view, one byte each
const base = { sheet: document.createElement("canvas"), shows: "", frame: null }; // all maps of a view without the frame of the chosen head, and the place of that frame
let current = null;

function readCells(numbers) {
  if (!bytes.has(numbers)) bytes.set(numbers, readBase64(numbers.maps.cells));
  return bytes.get(numbers);
}

// Paint the map of a head as an image with `cell` pixels for each cell.
function paintMap(state, { layer, head }, cell, colours = listColours(STEPS + 1)) {
  const numbers = numbersOf(state), { bins } = numbers.maps, cells = readCells(numbers);
  const start = (((attentionType(state) * page.layers + layer) * page.heads) + head) * bins * bins;
  const side = bins * cell, image = new ImageData(side, side);
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) {
    const value = cells[start + Math.floor(y / cell) * bins + Math.floor(x / cell)];
    if (value !== MISSING) image.data.set(colours[value], 4 * (y * side + x));
  }
  return image;
}

const pitch = (state) => numbersOf(state).maps.bins * CELL + GAP;

function placeOf(event) {
  const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
  const [head, layer] = [event.clientX - box.left, event.clientY - box.top].map((at) => Math.floor((at * scale - LABELS) / pitch(current)));
  return layer >= 0 && head >= 0 && layer < page.layers && head < page.heads ? { layer, head } : null;
}

// Build the maps. `point` is called with the head under the mouse, and with null when the mouse leaves.
export function buildThumbnails(point) {
  if (!page.maps) return;
  find("thumbnails").parentElement.hidden = false;
  canvas.addEventListener("mousemove", (event) => {
    const place = placeOf(event);
    canvas.title = place ? headName(place) : "";
    point(place);
  });
  canvas.addEventListener("mouseleave", () => point(null));
  canvas.addEventListener("click", (event) => placeOf(event) && choose({ head: headName(placeOf(event)) }));
  canvas.parentElement.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if ((!down && !right) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const within = (at, count) => Math.min(count - 1, Math.max(0, at));
    choose({ head: headName({ layer: within(current.head.layer + down, page.layers), head: within(current.head.head + right, page.heads) }) });
  });
}

function drawBase(state, style) {
  const step = pitch(state), { sheet } = base, colours = listColours(STEPS + 1);
  [sheet.width, sheet.height] = [LABELS + page.heads * step, LABELS + page.layers * step];
  const paper = sheet.getContext("2d");
  paper.font = `12px ${style.fontFamily}`;
  paper.fillStyle = style.color;
  paper.textAlign = "center";
  for (let head = 0; head < page.heads; head++) paper.fillText(head + 1, LABELS + (head + 0.5) * step - GAP / 2, 15);
  for (let layer = 0; layer < page.layers; layer++) {
    paper.fillText(layer + 1, LABELS / 2 - 2, LABELS + (layer + 0.5) * step + 2);
    for (let head = 0; head < page.heads; head++) {
      paper.putImageData(paintMap(state, { layer, head }, CELL, colours), LABELS + head * step, LABELS + layer * step);
    }
  }
}

function drawAll(state) {
  const step = pitch(state), style = getComputedStyle(canvas);
  const shows = [state.view, state.attention_type, style.color].join("\n");
  const paper = canvas.getContext("2d"), { sheet } = base;
  if (shows !== base.shows) {
    drawBase(state, style);
    [canvas.width, canvas.height] = [sheet.width, sheet.height];
    paper.drawImage(sheet, 0, 0);
  } else { // restore what the frame of the previous head hides
    const { x, y } = base.frame;
    paper.clearRect(x - FRAME, y - FRAME, step + 2 * FRAME, step + 2 * FRAME);
    paper.drawImage(sheet, x - FRAME, y - FRAME, step + 2 * FRAME, step + 2 * FRAME, x - FRAME, y - FRAME, step + 2 * FRAME, step + 2 * FRAME);
  }
  base.shows = shows;
  base.frame = { x: LABELS + state.head.head * step - 2, y: LABELS + state.head.layer * step - 2 };
  paper.strokeStyle = style.outlineColor;
  paper.lineWidth = FRAME;
  paper.strokeRect(base.frame.x, base.frame.y, step, step);
}

export function drawThumbnails(state) {
  current = state;
  if (!page.maps) return;
  const { maps } = numbersOf(state);
  find("thumbnails-parts").hidden = !maps;
  find("thumbnails-about").textContent = maps
    ? `${maps.about} Each text is divided into ${maps.bins} parts; rows attend, columns are attended to, both from the first part on. The stronger the colour, the more. (${maps.source})`
    : `${state.view} has no average maps.`;
  if (!maps) return;
  drawAll(state);
  large.width = large.height = maps.bins * LARGE;
  large.getContext("2d").putImageData(paintMap(state, state.head, LARGE), 0, 0);
  large.setAttribute("aria-label", `Average map of head ${headName(state.head)}`);
  find("thumbnails-name").textContent = `Head ${headName(state.head)}`;
}
