// What if: the model of a live page reads a text without some heads and, for comparison, with placebos of them.
import { element, find, minus, number, percent } from "./dom.js";
import { headName, page } from "./numbers.js";
import { ask, isLive } from "./server.js";
import { describeText, texts } from "./texts.js";

const heads = new Set(); // names of the heads to disable
let shown = null; // the text of the page that is in the text box
let current = ""; // the name of the chosen head

const nameHead = (state) => `${page.attention_types.length ? state.attention_type + " " : ""}${headName(state.head)}`;

function drawHeads() {
  find("what-if-heads").replaceChildren(...[...heads].map((name) => {
    const button = element("button", `${name} \u00d7`, { type: "button", "aria-label": `keep head ${name}` });
    button.addEventListener("click", () => toggle(name));
    return button;
  }));
  find("what-if-add").textContent = heads.has(current) ? `Keep head ${current}` : `Tick off head ${current}`;
  find("what-if-run").disabled = heads.size === 0;
}

function toggle(name) {
  if (!heads.delete(name)) heads.add(name);
  drawHeads();
}

function writeRow(tag, cells) {
  const row = element("tr");
  row.append(...cells.map((cell, place) => element(place === 0 ? "th" : tag, cell, tag === "th" ? { scope: "col" } : place === 0 ? { scope: "row" } : {})));
  return row;
}

// Describe where the change by the heads lies among the changes by the placebos.
function describeValue({ measure, whole, without, placebos }) {
  if (whole === null) return "";
  const change = without - whole, others = placebos.map((value) => value - whole);
  const larger = others.filter((other) => Math.abs(other) >= Math.abs(change)).length;
  const value = (each) => minus((each > 0 ? "+" : "") + number(each, 3));
  return `${measure[0].toUpperCase()}${measure.slice(1)}: ${number(whole, 3)}; without the heads ${number(without, 3)} (${value(change)}). Changes as large in random directions of the same layers: ${value(Math.min(...others))} to ${value(Math.max(...others))}; ${larger} of ${others.length} are no smaller.`;
}

function showAnswer(answer, about) {
  find("what-if-value").textContent = `${about} ${describeValue(answer)}`.trim();
  const table = find("what-if-table");
  table.hidden = answer.likely.length === 0;
  table.tHead.replaceChildren(writeRow("th", [answer.outcome, "all heads", "without"]));
  table.tBodies[0].replaceChildren(...answer.likely.map(([name, whole, without]) => writeRow("td", [name, percent(whole), percent(without)])));
}

async function run() {
  const part = find("what-if-parts");
  const text = find("what-if-text").value, how = find("what-if-how").value, names = [...heads];
  part.setAttribute("aria-busy", "true");
  try {
    const asked = shown && text === shown.words.join(" ") ? describeText(shown) : { text };
    const answer = await ask("what-if", { ...asked, heads: names, how });
    showAnswer(answer, [`Without ${names.join(", ")}.`, answer.note].filter(Boolean).join(" "));
  } catch (error) {
    find("what-if-value").textContent = error.message;
    find("what-if-table").hidden = true;
  } finally {
    part.removeAttribute("aria-busy");
  }
}

export function buildWhatIf() {
  if (!isLive) return;
  find("what-if").parentElement.hidden = false;
  find("what-if-add").addEventListener("click", () => toggle(current));
  find("what-if-run").addEventListener("click", run);
}

// Ask about the shown text, until the reader types another one.
export function drawWhatIf(state) {
  if (!isLive) return;
  current = nameHead(state);
  if (state.text && shown !== texts[Number(state.text)]) {
    shown = texts[Number(state.text)];
    find("what-if-text").value = shown.words.join(" ");
  }
  drawHeads();
}
