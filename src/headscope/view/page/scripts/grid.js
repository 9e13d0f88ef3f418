// The head grid: a button for each head, coloured by the chosen variable or by the target of a word; and the meaning of
// the colours.
import { colour, paintOf, paletteOf } from "./colours.js";
import { element, find, minus, number, percent, shorten } from "./dom.js";
import { fontOf, measure } from "./layout.js";
import { flat, headName, numbersOf, page, readVariable } from "./numbers.js";
import { choose } from "./state.js";
import { texts } from "./texts.js";
import { isDark } from "./theme.js";
import { colourNames, explainGrid, shade, WEAKEST } from "./word.js";

const MOST_NUMBERS = 16; // the largest number of heads in a layer for which cells show numbers
const STEP = 4; // with more heads, only every fourth head number is written above the grid
// Pixels: a cell is SMALLEST to LARGEST high. With cells below ROOMY, there is no room under the grid; in a cell below
// LOW, there is no room for text. EDGE is the margin of a text in a cell, and WORD the least width for a word.
const SMALLEST = 6, LARGEST = 62, ROOMY = 28, LOW = 13, EDGE = 2, WORD = 20;
const LISTED = 5; // number of words in the legend
const narrow = matchMedia("(max-width: 760px)");
let painted = ""; // a key for what the buttons show
const followsWord = (state) => state.word !== null && texts.length > 0; // specimen.js then draws the grid

const buttonAt = ({ layer, head }) => find("grid").querySelector(`button[data-layer="${layer}"][data-head="${head}"]`);

// Let the Tab key reach one head of the grid; arrow keys reach the others.
function reach(place) {
  for (const button of find("grid").querySelectorAll('button[tabindex="0"]')) button.tabIndex = -1;
  buttonAt(place).tabIndex = 0;
}

// Build the grid. `point` is called with the head under the mouse or the focus, and with null when the mouse leaves.
export function buildGrid(point) {
  const grid = find("grid");
  grid.style.setProperty("--heads", page.heads);
  grid.classList.toggle("many", page.heads > MOST_NUMBERS);
  new ResizeObserver(fitGrid).observe(find("overview"));
  const top = grid.createTHead().insertRow();
  top.append(element("td", ""));
  const isNamed = (number) => page.heads <= MOST_NUMBERS || number === 1 || number % STEP === 0;
  for (let number = 1; number <= page.heads; number++) {
    const name = element("th", null, { scope: "col" });
    name.append(element("span", number, isNamed(number) ? {} : { class: "unseen" }));
    top.append(name);
  }
  const body = grid.createTBody();
  for (let layer = 0; layer < page.layers; layer++) {
    const row = body.insertRow();
    row.append(element("th", layer + 1, { scope: "row" }));
    for (let head = 0; head < page.heads; head++) {
      const button = element("button", "", { type: "button", tabindex: "-1", "aria-pressed": "false", "data-layer": layer, "data-head": head });
      row.insertCell().append(button);
    }
  }
  const place = (event) => {
    const button = event.target.closest("button");
    return button && { layer: Number(button.dataset.layer), head: Number(button.dataset.head) };
  };
  grid.addEventListener("mouseover", (event) => place(event) && point(place(event)));
  grid.addEventListener("mouseleave", () => point(null));
  grid.addEventListener("focusin", (event) => {
    if (!place(event)) return;
    reach(place(event));
    point(place(event));
  });
  grid.addEventListener("click", (event) => place(event) && choose({ head: headName(place(event)) }));
  grid.addEventListener("keydown", (event) => {
    const at = place(event);
    const last = { layer: page.layers - 1, head: page.heads - 1 };
    const move = {
      ArrowUp: (p) => ({ ...p, layer: Math.max(0, p.layer - 1) }),
      ArrowDown: (p) => ({ ...p, layer: Math.min(last.layer, p.layer + 1) }),
      ArrowLeft: (p) => ({ ...p, head: Math.max(0, p.head - 1) }),
      ArrowRight: (p) => ({ ...p, head: Math.min(last.head, p.head + 1) }),
      Home: (p) => ({ ...p, head: 0 }),
      End: (p) => ({ ...p, head: last.head }),
    }[event.key];
    if (!at || !move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault(); // the page handles other keys
    choose({ head: headName(move(at)) });
    buttonAt(move(at)).focus();
  });
}

// Mark the button of the chosen head as pressed.
function press(head) {
  for (const button of find("grid").querySelectorAll('[aria-pressed="true"]')) button.setAttribute("aria-pressed", "false");
  buttonAt(head).setAttribute("aria-pressed", "true");
  reach(head);
}

// Set the height of a cell so that the grid fills the space that its column leaves.
function fitGrid() {
  const [column, grid] = [find("overview"), find("grid")];
  if (narrow.matches) {
    column.classList.remove("crowded"); // the column is as high as its content
    grid.classList.remove("low");
    grid.style.removeProperty("--cell");
    return;
  }
  const others = [...column.children].filter((part) => part !== find("grid-box") && !part.hidden && part !== find("looks"));
  const gaps = 10 * (others.length + 2), taken = others.reduce((sum, part) => sum + part.offsetHeight, 0);
  const room = (column.clientHeight - taken - gaps - 24) / page.layers;
  column.classList.toggle("crowded", room < ROOMY);
  const left = room - (room < ROOMY ? 0 : (find("looks").offsetHeight + 10) / page.layers);
  grid.classList.toggle("low", left < LOW);
  grid.style.setProperty("--cell", `${Math.max(SMALLEST, Math.min(LARGEST, left)).toFixed(1)}px`);
}

// Draw the grid by the chosen variable or, with `word`, by the target of a word in each head (word.js). Buttons are
// painted only if their content has changed.
export function drawGrid(state, word = null) {
  const question = [state.view, state.against, state.variable, state.direction, state.half];
  const shown = [...(word ? [word.place, word.unit, word.isIn] : question), state.attention_type, isDark()].join("\n");
  const variable = readVariable(state);
  if (shown !== painted) word ? paintWord(word) : variable.names ? paintNames(variable) : paint(state);
  painted = shown;
  find("legend").hidden = !word && !variable.names;
  find("scale").hidden = find("about").hidden = !find("legend").hidden;
  press(state.head);
  fitGrid();
}

export const drawQuestion = (state) => followsWord(state) || drawGrid(state);

const listButtons = () => [...find("grid").querySelectorAll("button")].map((button) => [button, { layer: Number(button.dataset.layer), head: Number(button.dataset.head) }]);

// Set the colour, the text and the description of a button; without a colour, the head has no value.
function dress(button, place, { paint, text, says, spoken = says }) {
  const name = headName(place);
  button.classList.toggle("missing", !paint);
  Object.assign(button.style, { backgroundColor: paint?.ground ?? "", color: paint?.ink ?? "" });
  button.textContent = paint ? text : "";
  button.title = `${name}: ${says}`;
  button.setAttribute("aria-label", `head ${name}: ${spoken}`);
}

// Write the meaning of colours that are not amounts: {hex, label, count} each; `rest` sums up the unlisted colours.
function writeLegend(sentence, entries, rest = "") {
  find("legend").replaceChildren(sentence, ...entries.flatMap(({ hex, label, count }) => {
    const entry = element("span"), square = element("i");
    square.style.background = `#${hex}`;
    entry.append(square, element("b", label), ` ${count}`);
    return [" ", entry];
  }), rest);
}

// Set the font of the cells, smaller with `isSmall`, and return it with the room in a cell.
function setLetters([[button]], isSmall) {
  find("grid").classList.toggle("small", isSmall);
  return { font: fontOf(getComputedStyle(button)), room: button.offsetWidth - EDGE };
}

// Fit words to the width of a cell, with the words of a name on separate lines if necessary.
function fitWords(buttons) {
  const { font, room } = setLetters(buttons, true);
  const isFit = (word) => measure(word, font) <= room;
  return (word) => {
    if (room < WORD) return "";
    if (!isFit(word) && word.split(" ").every(isFit)) return word.replaceAll(" ", "\n");
    let text = word;
    for (let length = Math.min(text.length, room); length > 1 && measure(text, font) > room; length--) text = shorten(word, length);
    return measure(text, font) > room ? "" : text;
  };
}

function paintWord({ label, labels, choices, order, colours, isIn }) {
  const buttons = listButtons(), write = fitWords(buttons);
  for (const [button, place] of buttons) {
    const choice = choices[place.layer]?.[place.head];
    const paint = choice && paintOf(shade(colours.get(choice.to), 0.15 + 0.85 * choice.weight));
    const [from, to] = isIn ? [labels[choice?.to], label] : [label, labels[choice?.to]];
    const says = choice ? `${from} \u2192 ${to}, ${percent(choice.weight)}` : isIn && !(place.layer + 1 in page.without_attention) ? `no other word gives \u201c${label}\u201d ${percent(WEAKEST)}` : "no attention";
    dress(button, place, { paint, says, text: choice ? write(labels[choice.to]) : "" });
  }
  writeLegend(
    explainGrid(label, isIn),
    order.slice(0, LISTED).map(([to, count]) => ({ hex: colours.get(to), label: labels[to], count })),
    order.length > LISTED ? ` \u00b7 others ${order.slice(LISTED).reduce((sum, [, count]) => sum + count, 0)}` : "",
  );
}

// Paint heads by a name instead of a number, such as their main role; a name without room is only in the legend.
function paintNames({ values, names, about }) {
  const buttons = listButtons(), write = fitWords(buttons), colours = colourNames(names);
  const isWhole = (name) => write(name).replaceAll("\n", " ") === name;
  for (const [button, place] of buttons) {
    const code = values[place.layer][place.head], name = names[code];
    dress(button, place, { paint: name && paintOf(shade(colours[code], 0.75)), says: name || "none", text: name && isWhole(name) ? write(name) : "" });
  }
  const counts = names.map((name, code) => ({ hex: colours[code], label: name, count: flat(values).filter((value) => value === code).length }));
  writeLegend(about, counts.filter((each) => each.label && each.count).sort((a, b) => b.count - a.count));
}

// Fit numbers to the width of a cell, in a smaller font and with fewer digits if necessary.
function fitNumbers(buttons, values, digits) {
  const name = (value, places) => minus(number(value, places).replace(/^(-?)0\./, "$1."));
  const isFit = (places, isSmall) => {
    const { font, room } = setLetters(buttons, isSmall);
    return values.every((value) => measure(name(value, places), font) <= room);
  };
  if (page.heads > MOST_NUMBERS) return () => "";
  let places = digits;
  if (!isFit(places, false)) while (places >= 0 && !isFit(places, true)) places--;
  return (value) => (places < 0 ? "" : name(value, places));
}

function paint(state) {
  const view = readVariable(state), buttons = listButtons();
  const palette = paletteOf(view.diverging);
  const share = (value) => (value - view.low) / (view.top - view.low || 1);
  const isWhole = flat(view.values).every(Number.isInteger), digits = isWhole ? 0 : view.top < 0.1 ? 3 : 2;
  const write = fitNumbers(buttons, flat(view.values), digits);
  find("about").textContent = [numbersOf(state).shows, view.about].filter(Boolean).join(" ");
  for (const [button, place] of buttons) {
    const value = view.values[place.layer][place.head], missing = value === null;
    const text = missing ? "" : write(value);
    const says = missing ? "no value" : number(value, isWhole ? 0 : 3);
    dress(button, place, { paint: missing ? null : colour(share(value), palette), text, says, spoken: missing ? says : `${says} ${view.units}` });
  }
  const scale = find("scale");
  const [mark, base] = [scale.querySelector(".mark"), scale.querySelector(".base")];
  scale.querySelector(".ramp").style.background = `linear-gradient(to right, ${palette.map((hex) => "#" + hex).join()})`;
  scale.querySelector(".low").textContent = view.low < 0 ? number(view.low, digits).replace("-", "\u2212") : "0";
  scale.querySelector(".high").textContent = number(view.top, digits);
  mark.hidden = view.baseline === null;
  mark.style.left = `${100 * share(view.baseline ?? 0)}%`;
  base.textContent = view.baselineText && `Mark on the scale: ${view.baselineText}.`;
  scale.setAttribute("aria-label", `Colours run from ${number(view.low, digits)} to ${number(view.top, digits)} ${view.units}. ${base.textContent}`);
}
