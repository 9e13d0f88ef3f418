// The lists above the grid and the sentences; the id of each list is the name of what it selects.
import { element, find, words } from "./dom.js";
import { nameScore, numbersOf, page, readVariable, scoreOf, VIEWS } from "./numbers.js";
import { fontOf, measure } from "./layout.js";
import { choose } from "./state.js";

const NAMES = ["half", "view", "against", "variable", "direction", "attention_type", "text", "level", "picture"];
const ARROW = 22, SMALLEST = 9; // pixels: width of a list's arrow, smallest font size
let listed = null; // the view whose variables are in the list

function nameOption(score) {
  const title = nameScore(score, page.directions[0]);
  return title === score.name ? title : `${title} (${score.name})`;
}

function listVariables({ scores, statistics }) {
  const groups = [];
  const group = (label, options) => {
    const node = element("optgroup", null, { label });
    node.append(...options.map(([value, text]) => element("option", text, { value })));
    groups.push(node);
  };
  for (const title of new Set(scores.map((score) => score.title))) {
    group(title, scores.filter((score) => score.title === title).map((score) => [score.key, nameOption(score)]));
  }
  for (const units of new Set(statistics.map((row) => row.units))) {
    group(units, statistics.filter((row) => row.units === units).map((row) => [row.name, row.plain || row.label]));
  }
  find("variable").replaceChildren(...groups);
}

export function buildControls() {
  const list = (name, values) => find(name).append(...values.map((value) => element("option", words(value), { value })));
  list("view", VIEWS);
  find("against").append(element("option", "nothing", { value: "" }));
  list("against", VIEWS);
  list("direction", page.directions);
  list("attention_type", page.attention_types);
  for (const name of ["view", "against"]) find(name).parentElement.hidden = VIEWS.length === 1;
  find("attention_type").parentElement.hidden = page.attention_types.length === 0;
  for (const name of NAMES) find(name).addEventListener("change", (event) => choose({ [name]: event.target.value }));
}

// Show the whole chosen question, in a smaller font if it is long.
function fitQuestion() {
  const select = find("variable");
  select.style.fontSize = "";
  const style = getComputedStyle(select), [size, left, right] = [style.fontSize, style.paddingLeft, style.paddingRight].map(parseFloat);
  const room = select.clientWidth - left - right - ARROW, width = measure(select.selectedOptions[0].textContent, fontOf(style));
  if (width > room) select.style.fontSize = `${Math.max(SMALLEST, (size * room) / width).toFixed(1)}px`;
}

export function drawControls(state) {
  if (listed !== state.view) listVariables(numbersOf(state));
  listed = state.view;
  find("direction").parentElement.hidden = !readVariable(state).directed;
  find("half").parentElement.hidden = !scoreOf(state)?.held_out;
  for (const name of NAMES) if (state[name] || name === "against") find(name).value = state[name];
  fitQuestion();
}
