// Guess the head: three sentences with the attention of a hidden head, and four rows to choose from. The share of right
// guesses tells whether the attention shows what the labels say.
import { element, find, percent } from "./dom.js";
import { addressOf, describeScore, numbersOf, page, readHead } from "./numbers.js";
import { drawArcs } from "./pictures.js";
import { follow } from "./state.js";
import { examplesOf, judge, readAttention, texts } from "./texts.js";

const OPTIONS = 4, SENTENCES = 3;
const guesses = { right: 0, all: 0 };
let question = null; // {row, options}

const pick = (list) => list[Math.floor(Math.random() * list.length)];

function shuffle(list) {
  const rest = [...list];
  return list.map(() => rest.splice(Math.floor(Math.random() * rest.length), 1)[0]);
}

const scoreOfRow = (row) => numbersOf({ view: page.name }).scores.find((score) => score.key === row.key);
const baseOf = (row) => row.name.split(":")[0];
const nameRow = (row) => row.plain.title;

// List the rows with a direction and a sentence in which the head is right; arcs cannot show other rows.
function listRows() {
  const directed = page.rows.filter((row) => scoreOfRow(row)?.directed);
  return directed.filter((row) => baseOf(row) !== "all" && examplesOf(row.key).some((each) => each.kind === "clear"));
}

// Choose a row, and other rows with other heads that are not subtypes of the same relation.
function ask(rows) {
  const row = pick(rows);
  const options = [row];
  for (const other of shuffle(rows)) {
    const alike = options.some((each) => each.head === other.head || baseOf(each) === baseOf(other));
    if (!alike && options.length < OPTIONS) options.push(other);
  }
  return { row, options: shuffle(options) };
}

// Draw a sentence with the arcs of the head; after the answer, also with its gold links.
async function drawSentence(row, place, answered) {
  const text = texts[place];
  const attention = await readAttention(place, row, "words", [readHead(row.head)]);
  const gold = answered ? judge(text, scoreOfRow(row), row.direction, attention) : [];
  const [svg] = drawArcs(attention, gold);
  svg.removeAttribute("aria-labelledby");
  svg.setAttribute("aria-label", text.words.join(" "));
  const box = element("div", null, { class: "scroll sentence", role: "group", "aria-label": "Sentence", tabindex: "0" });
  box.append(svg);
  return box;
}

async function drawSentences(answered) {
  const places = examplesOf(question.row.key).filter((each) => each.kind === "clear").slice(0, SENTENCES).map((each) => each.text);
  const boxes = await Promise.all(places.map((place) => drawSentence(question.row, place, answered)));
  find("guess-sentences").replaceChildren(...boxes);
}

function answer(chosen) {
  const { row, options } = question;
  const right = chosen === row;
  guesses.all += 1;
  guesses.right += right ? 1 : 0;
  [...find("guess-options").children].forEach((button, place) => {
    button.disabled = true;
    if (options[place] === row) button.classList.add("right");
  });
  const link = element("a", `Head ${row.head}`, { href: "#answer" });
  link.addEventListener("click", (event) => {
    event.preventDefault();
    follow(addressOf(row));
  });
  find("guess-result").replaceChildren(right ? "Right. " : `It is ${nameRow(row)}. `, link, `: ${describeScore(row)}.`);
  find("guess-share").textContent = `${guesses.right} of ${guesses.all} guesses are right, ${percent(guesses.right / guesses.all)}; by chance it would be ${percent(1 / OPTIONS)}.`;
  drawSentences(true);
}

async function next(rows) {
  question = ask(rows);
  find("guess-result").textContent = "";
  await drawSentences(false);
  find("guess-options").replaceChildren(...question.options.map((row) => {
    const button = element("button", nameRow(row), { type: "button" });
    button.addEventListener("click", () => answer(row));
    return button;
  }));
  find("guess-next").textContent = "Another head";
}

export function buildGuess() {
  const rows = listRows();
  const kinds = new Set(rows.map(baseOf)), heads = new Set(rows.map((row) => row.head));
  if (Math.min(kinds.size, heads.size) < OPTIONS) return;
  find("guess").parentElement.hidden = false;
  find("guess-next").addEventListener("click", () => next(rows));
}
