// Exports of what the page shows: Python that reads the same number, tables as CSV, pictures as SVG and PNG.
import { colour, paletteOf } from "./colours.js";
import { element, find, number, shape } from "./dom.js";
import { attentionType, headName, numbersOf, page, readChange, readVariable, scoreOf, statisticOf } from "./numbers.js";

const CELL = 42, ROW = 24, LABELS = 34, TITLE = 30; // pixels, in the picture of the grid
const SCALE = 2; // pixels of a PNG for each pixel of the page
const PAINT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "font-size", "font-weight", "font-style", "font-family", "text-anchor", "visibility"];
let state = null;

// Return true for a part that the page has, even in a closed tab.
const isShown = (part) => part !== null && !part.closest('[hidden]:not([role="tabpanel"])');
const REPORTED = document.querySelector("#reported-rows .sortable"), NEEDED = document.querySelector("#needed-rows .sortable");

const quote = (text) => JSON.stringify(text);

// Write Python that reads the number of the chosen head from the table's file, and that disables the head.
function writePython() {
  const { variable, place } = (scoreOf(state) ?? statisticOf(state)).select;
  const directed = readVariable(state).directed ? { direction: state.direction } : {};
  const named = state.attention_type ? { attention_type: state.attention_type } : {};
  const labels = Object.entries({ ...place, ...directed, ...named }).map(([dim, label]) => `${dim}=${quote(label)}`);
  const where = [...labels, `layer=${state.head.layer + 1}`, `head=${state.head.head + 1}`].join(", ");
  const value = (name) => `${name}[${quote(variable)}].sel(${where})`;
  const against = readChange(state) ? { read: `\nagainst = ${numbersOf({ view: state.against }).python}`, less: ` - ${value("against")}` } : { read: "", less: "" };
  const head = `${state.attention_type} ${headName(state.head)}`.trim();
  return `import headscope

table = ${numbersOf(state).python}${against.read}
${value("table")}${against.less}

with headscope.disable(model, [${quote(head)}]):
    ...  # run the model without the head`;
}

function save(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  element("a", null, { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Return the name of a file: the model and the content, without characters that a file system may refuse.
function nameFile(what, ending) {
  const parts = [document.querySelector("h1").textContent, what].join("-");
  return `${parts.replaceAll(/[^\p{L}\p{N}]+/gu, "-").replaceAll(/^-+|-+$/g, "").slice(0, 80)}.${ending}`;
}

// Return a cell of a CSV file. Text that a spreadsheet would read as a formula gets an apostrophe.
function writeCell(content) {
  const text = String(content ?? "").replaceAll(/\s+/g, " ").trim();
  const safe = /^[=+\-@]/.test(text) && isNaN(text) ? `'${text}` : text;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const writeTable = (rows) => rows.map((row) => row.map(writeCell).join(",")).join("\r\n") + "\r\n";

// Return the text of a cell, or the code of a row; separate lines of a cell stay separate.
function readCell(cell) {
  if (cell.dataset.code) return cell.dataset.code;
  if (!cell.childElementCount) return cell.textContent;
  const copy = cell.cloneNode(true);
  for (const lines of copy.querySelectorAll("br")) lines.replaceWith("; ");
  for (const picture of copy.querySelectorAll("svg")) picture.replaceWith(picture.querySelector("title")?.textContent ?? "");
  return copy.textContent.replaceAll("\u2195", "");
}

// Read the rows of a table; a heading across all columns becomes a column with the name `parts`.
function readTable(table, parts = "") {
  const rows = [];
  let group = null;
  for (const row of table.rows) {
    if (row.classList.contains("group")) group = row.querySelector("h3").textContent;
    else rows.push([...(group === null ? [] : [group]), ...[...row.cells].map(readCell)]);
  }
  if (group !== null) rows[0].unshift(parts);
  return rows;
}

function readGrid() {
  const { values, label, units } = readVariable(state);
  const rows = values.flatMap((row, layer) => row.map((value, head) => [layer + 1, head + 1, value]));
  return [["layer", "head", `${label} (${units})`], ...rows];
}

function drawGridPicture() {
  const view = readVariable(state);
  const palette = paletteOf(view.diverging);
  const width = LABELS + page.heads * CELL + 8, height = TITLE + ROW * (page.layers + 1) + 8;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "system-ui, sans-serif", "font-size": 12 });
  const text = (content, x, y, attributes = {}) => svg.append(shape("text", { x, y, "text-anchor": "middle", fill: "#1b1f24", ...attributes }, content));
  svg.append(shape("rect", { width, height, fill: "#ffffff" }));
  text(`${view.label} (${view.units})`, 4, 18, { "text-anchor": "start", "font-weight": "bold" });
  for (let head = 0; head < page.heads; head++) text(head + 1, LABELS + (head + 0.5) * CELL, TITLE + 16);
  view.values.forEach((row, layer) => {
    const y = TITLE + ROW * (layer + 1);
    text(layer + 1, LABELS / 2, y + 16);
    row.forEach((value, head) => {
      if (value === null) return;
      const paint = colour((value - view.low) / (view.top - view.low || 1), palette);
      svg.append(shape("rect", { x: LABELS + head * CELL, y, width: CELL - 1, height: ROW - 1, fill: paint.ground }));
      text(number(value, view.top < 0.1 ? 3 : 2), LABELS + (head + 0.5) * CELL, y + 16, { fill: paint.ink });
    });
  });
  return svg;
}

// Copy a picture with its computed colours, on the background of the page.
function drawAlone(picture) {
  const copy = picture.cloneNode(true);
  const [originals, copies] = [picture, copy].map((svg) => svg.querySelectorAll("*"));
  originals.forEach((original, place) => {
    const style = getComputedStyle(original);
    for (const name of PAINT) copies[place].setAttribute(name, style.getPropertyValue(name));
  });
  copy.prepend(shape("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor }));
  return copy;
}

const writePicture = (svg) => new XMLSerializer().serializeToString(svg);

async function paint(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(writePicture(svg))}`;
  await image.decode();
  const canvas = element("canvas", null, { width: SCALE * svg.getAttribute("width"), height: SCALE * svg.getAttribute("height") });
  const paper = canvas.getContext("2d");
  paper.scale(SCALE, SCALE);
  paper.drawImage(image, 0, 0);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

const nameGrid = () => `${readVariable(state).label}${state.view === page.name || readChange(state) ? "" : "-" + state.view}`;
const nameHead = (what) => () => `head-${headName(state.head)}-${what}`;
const copyPicture = (name) => () => drawAlone(find(name).querySelector("svg"));
const copyTable = (name) => () => readTable(find(name));

// Copy a canvas into a picture, on the background of the page.
function copyCanvas(name) {
  const { width, height } = find(name);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  svg.append(shape("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }), shape("image", { width, height, href: find(name).toDataURL() }));
  return svg;
}

function readMap() {
  const type = attentionType(state);
  const rows = page.map.x[type].flatMap((row, layer) => row.map((x, head) => [layer + 1, head + 1, x, page.map.y[type][layer][head], page.map.clusters[type][layer][head]]));
  return [["layer", "head", "x", "y", "cluster"], ...rows.filter((row) => row[2] !== null)];
}

// The exports: {label, name, table, picture, shown}, where `name` is the name of the file.
const EXPORTS = {
  grid: { label: "head grid", name: nameGrid, table: readGrid, picture: drawGridPicture },
  statistics: { label: "statistics of the head", name: nameHead("statistics"), table: copyTable("profile-statistics"), shown: () => isShown(find("profile-statistics")) },
  scores: { label: "best scores of the head", name: nameHead("scores"), table: copyTable("profile-scores"), shown: () => isShown(find("profile-scores")) },
  maps: { label: "average maps", name: () => "average-maps", picture: () => copyCanvas("thumbnails-picture"), shown: () => isShown(find("thumbnails-parts")) },
  map: { label: "map of heads", name: () => "map-of-heads", table: readMap, picture: copyPicture("map-picture"), shown: () => isShown(find("map-picture")) },
  sentence: { label: "sentence", name: nameHead("sentence"), table: copyTable("sentence-table"), picture: copyPicture("sentence-picture"), shown: () => isShown(find("sentence-picture")) },
  neurons: { label: "neurons", name: nameHead("neurons"), picture: copyPicture("neurons-picture"), shown: () => find("neurons-picture").childElementCount > 0 },
  reported: { label: "reported heads", name: () => "reported-heads", table: () => readTable(REPORTED, "score"), shown: () => isShown(REPORTED) },
  needed: { label: "needed heads", name: () => "needed-heads", table: () => readTable(NEEDED, "role"), shown: () => isShown(NEEDED) },
};

const FORMATS = {
  csv: ({ name, table }) => save(nameFile(name(), "csv"), "text/csv", writeTable(table())),
  svg: ({ name, picture }) => save(nameFile(name(), "svg"), "image/svg+xml", writePicture(picture())),
  png: async ({ name, picture }) => save(nameFile(name(), "png"), "image/png", await paint(picture())),
};

function buildButtons(name, thing) {
  const part = element("span", `${thing.label} `, { id: `export-${name}` });
  for (const [format, run] of Object.entries(FORMATS)) {
    if (!(format === "csv" ? thing.table : thing.picture)) continue;
    const button = element("button", format.toUpperCase(), { type: "button", id: `export-${name}-${format}`, "aria-label": `${thing.label} as ${format.toUpperCase()}` });
    button.addEventListener("click", () => run(thing));
    part.append(button, " ");
  }
  return part;
}

export function buildExports() {
  find("export").parentElement.hidden = false;
  find("export-parts").append(...Object.entries(EXPORTS).map(([name, thing]) => buildButtons(name, thing)));
}

export function drawExports(shown) {
  state = shown;
  find("python").textContent = writePython();
  for (const [name, { shown: isThere = () => true }] of Object.entries(EXPORTS)) find(`export-${name}`).hidden = !isThere();
}
