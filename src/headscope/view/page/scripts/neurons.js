// Why a token attends to another: its query and the key of the other token, neuron by neuron, from a live model.
import { colour, paletteOf } from "./colours.js";
import { element, find, minus, number, percent, shape } from "./dom.js";
import { headName, scoreOf } from "./numbers.js";
import { chooseText } from "./sentences.js";
import { ask, isLive } from "./server.js";
import { describeText, readSides, texts } from "./texts.js";

const LABELS = 60, WIDEST = 820, HIGH = 22, GAP = 6; // pixels: width of the labels, largest width, height of a row, gap between rows
const ROWS = { query: "query", key: "key", products: "product" };
let state = null;
let listed = ""; // the text and the attention type whose tokens are in the lists

const currentPlace = () => chooseText(state, scoreOf(state));

// Draw a row of cells for each of query, key and products; the colours of each row have their own range around 0.
function drawCells(answer) {
  const size = answer.query.length, width = Math.max(3, Math.min(14, Math.floor(WIDEST / size)));
  const height = 3 * (HIGH + GAP);
  const svg = shape("svg", { viewBox: `0 0 ${LABELS + size * width} ${height}`, width: LABELS + size * width, height, role: "img", "aria-labelledby": "neurons-value" });
  Object.entries(ROWS).forEach(([name, label], row) => {
    const values = answer[name], top = Math.max(...values.map(Math.abs)) || 1, y = row * (HIGH + GAP);
    svg.append(shape("text", { x: 0, y: y + 15 }, label));
    values.forEach((value, neuron) => {
      const cell = shape("rect", { x: LABELS + neuron * width, y, width: width - 1, height: HIGH, fill: colour((value / top + 1) / 2, paletteOf(true)).ground });
      cell.append(shape("title", {}, `neuron ${neuron + 1}, ${label}: ${minus(number(value, 3))}`));
      svg.append(cell);
    });
  });
  return svg;
}

// Describe the neurons with the largest products, positive or negative.
function describe(answer, head, from, to) {
  const order = [...answer.products.keys()].sort((a, b) => Math.abs(answer.products[b]) - Math.abs(answer.products[a]));
  const largest = order.slice(0, 3).map((neuron) => `${neuron + 1} (${minus(number(answer.products[neuron]))})`).join(", ");
  return `Head ${head}, ${from} \u2192 ${to}: score ${minus(number(answer.score))}, attention ${percent(answer.weight)}. Neurons with the largest products: ${largest}.`;
}

async function run() {
  const text = texts[currentPlace()], sides = readSides(text, state);
  const [from, to] = ["from", "to"].map((end) => Number(find(`neurons-${end}`).value));
  const [asked, head] = [listed, headName(state.head)];
  find("neurons").setAttribute("aria-busy", "true");
  try {
    const answer = await ask("neurons", { ...describeText(text), attention_type: state.attention_type, head, from, to });
    if (asked !== listed) return; // the reader has chosen another text meanwhile
    find("neurons-value").textContent = describe(answer, head, sides[0].tokens[from], sides[1].tokens[to]);
    find("neurons-picture").replaceChildren(drawCells(answer));
  } catch (error) {
    find("neurons-value").textContent = error.message;
    find("neurons-picture").replaceChildren();
  } finally {
    find("neurons").removeAttribute("aria-busy");
  }
}

export function buildNeurons() {
  if (!isLive) return;
  find("neurons").hidden = false;
  find("neurons-run").addEventListener("click", run);
}

export function drawNeurons(shown) {
  if (!isLive || !texts.length) return;
  state = shown;
  const place = currentPlace(), sides = readSides(texts[place], state);
  if (listed === `${place} ${state.attention_type}`) return;
  listed = `${place} ${state.attention_type}`;
  ["from", "to"].forEach((end, side) => {
    const { tokens } = sides[side];
    find(`neurons-${end}`).replaceChildren(...tokens.map((token, at) => element("option", `${at + 1}: ${token}`, { value: at })));
    find(`neurons-${end}`).value = String(Math.min(2 - side, tokens.length - 1));
  });
  find("neurons-value").textContent = "";
  find("neurons-picture").replaceChildren();
}
