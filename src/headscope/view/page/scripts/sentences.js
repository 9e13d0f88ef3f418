// The sentences: a text of the corpus with the attention of the head that the grid shows.
import { element, find, percent, shorten, words } from "./dom.js";
import { headName, nameScore, page, readHead, scoreOf } from "./numbers.js";
import { drawArcs, drawLines, drawMatrix } from "./pictures.js";
import { isLive } from "./server.js";
import { choose, MOST_BESIDE } from "./state.js";
import { examplesOf, hasHead, isJudged, judge, readAttention, texts } from "./texts.js";

const DRAW = { lines: drawLines, arcs: (attention, gold) => drawArcs(attention, gold), matrix: drawMatrix };
const KINDS = { clear: "the reported head does well", fails: "it does badly" };
const [picture, table] = [find("sentence-picture"), find("sentence-table")];
const MOST = 3; // number of units that the table names
let shown = null; // the shown state
let pointed = null; // the attending unit under the mouse
let turns = 0; // count of drawings; only the last one is finished

// Return the indices of the largest weights of 1 % or more: at most `MOST`, the largest first.
function listLargest(weights) {
  const places = [];
  weights.forEach((weight, place) => {
    if (weight < 0.01 || (places.length === MOST && weight <= weights[places.at(-1)])) return;
    const before = places.findIndex((other) => weight > weights[other]);
    places.splice(before < 0 ? places.length : before, 0, place);
    places.length = Math.min(places.length, MOST);
  });
  return places;
}

function fillTable({ from, to, maps: [map] }, gold) {
  const links = new Map(gold.map((link) => [link.from, link]));
  table.tBodies[0].replaceChildren(...from.map((unit, query) => {
    const attends = listLargest(map[query]).map((key) => `${to[key].label} ${percent(map[query][key])}`);
    const link = links.get(query);
    const verdict = link ? `${to[link.to].label}: ${link.right ? "right" : "wrong"}` : "";
    const row = element("tr");
    row.append(element("th", unit.label, { scope: "row" }), element("td", attends.join(", ")), element("td", verdict));
    return row;
  }));
}

// Show only the lines of the word under the mouse.
function point(place) {
  pointed = place;
  picture.classList.toggle("pointed", place !== null);
  for (const each of picture.querySelectorAll("[data-from]")) each.classList.toggle("this", Number(each.dataset.from) === place);
  const row = place === null ? null : table.tBodies[0].rows[place];
  find("sentence-pointed").textContent = row ? `${row.cells[0].textContent} \u2192 ${row.cells[1].textContent || "nothing above 1\u202f%"}` : "";
}

// List the texts; examples of the row come first.
function listTexts(row) {
  const name = (place) => `${place + 1}: ${shorten(texts[place].words.join(" "), 70)}`, question = row && nameScore(row, shown.direction);
  const group = (label, places) => {
    const node = element("optgroup", null, { label });
    node.append(...places.map((place) => element("option", name(place), { value: place })));
    return node;
  };
  const examples = row ? examplesOf(row.key) : [];
  const used = new Set(examples.map((each) => each.text));
  const others = texts.map((_, place) => place).filter((place) => !used.has(place));
  const groups = Object.entries(KINDS).map(([kind, label]) => [`${question}: ${label}`, examples.filter((each) => each.kind === kind).map((each) => each.text)]);
  groups.push([used.size ? "other texts" : "texts", others]);
  find("text").replaceChildren(...groups.filter(([, places]) => places.length).map(([label, places]) => group(label, places)));
}

// Return the index of the shown text: the chosen text, or the best example of the row.
export function chooseText(state, row) {
  if (state.text) return Number(state.text);
  const examples = row ? examplesOf(row.key) : [];
  return (examples.find((each) => each.kind === "clear") ?? examples[0])?.text ?? 0;
}

function describe(state, row, gold, about) {
  const right = gold.filter((link) => link.right).length;
  const rounded = isJudged ? "" : " An older version wrote these sentences: right and wrong follow from weights in whole percent, and may differ from the score.";
  const links = gold.length ? ` Dashed: annotated links of \u201c${nameScore(row, state.direction)}\u201d; head ${headName(state.head)} gets ${right} of ${gold.length} right.${rounded}` : "";
  return `Head ${headName(state.head)}. ${about}${links}`;
}

export function buildSentences() {
  find("sentences").parentElement.hidden = page.against !== "" || !(texts.length || isLive); // a comparison has no single model
  find("beside-add").addEventListener("click", () => choose({ beside: [...shown.beside, headName(shown.head)].join() }));
  picture.addEventListener("mouseover", (event) => {
    const place = event.target.dataset.from;
    if (place !== undefined) point(Number(place));
  });
  picture.addEventListener("mouseleave", () => point(null));
  picture.addEventListener("keydown", (event) => {
    const last = table.tBodies[0].rows.length - 1;
    const next = { ArrowDown: Math.min(last, (pointed ?? -1) + 1), ArrowUp: Math.max(0, (pointed ?? last + 1) - 1), Escape: null }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    point(next);
  });
}

// Draw buttons for the further heads, and return the heads whose lines are drawn in the sentence.
function drawBeside(state) {
  const name = headName(state.head);
  find("beside").hidden = state.picture !== "lines";
  find("beside-add").textContent = `Keep the lines of head ${name}`;
  find("beside-add").disabled = state.beside.includes(name) || state.beside.length === MOST_BESIDE;
  const others = state.beside.filter((other) => other !== name);
  find("beside-heads").replaceChildren(...state.beside.map((other) => {
    const button = element("button", `${other} \u00d7`, { type: "button", "aria-label": `drop the lines of head ${other}`, class: `beside-${others.indexOf(other) + 1}` });
    button.addEventListener("click", () => choose({ beside: state.beside.filter((each) => each !== other).join() }));
    return button;
  }));
  return state.picture === "lines" ? others : [];
}

export async function drawSentences(state) {
  find("sentence-parts").hidden = texts.length === 0;
  if (!texts.length) return;
  shown = state;
  const row = scoreOf(state);
  const place = chooseText(state, row);
  const turn = ++turns;
  listTexts(row);
  find("text").value = String(place);
  const absent = !hasHead(texts[place], state, state.head);
  picture.hidden = table.hidden = absent;
  if (absent) {
    const kind = page.without_attention[state.head.layer + 1];
    find("sentence-about").textContent = kind
      ? `Layer ${state.head.layer + 1} has no attention (${words(kind)}).`
      : `${words(state.attention_type)} attention has no head ${headName(state.head)}.`;
    return;
  }
  const names = [headName(state.head), ...drawBeside(state).filter((name) => hasHead(texts[place], state, readHead(name)))];
  picture.setAttribute("aria-busy", "true");
  const attention = await readAttention(place, state, state.level, names.map(readHead));
  if (turn !== turns) return; // the reader has chosen something else meanwhile
  picture.setAttribute("aria-busy", "false");
  const gold = row ? judge(texts[place], row, state.direction, attention) : [];
  const [svg, about] = DRAW[state.picture](attention, gold, names);
  picture.replaceChildren(svg);
  fillTable(attention, gold);
  find("sentence-about").textContent = describe(state, row, gold, about);
  point(null);
}
