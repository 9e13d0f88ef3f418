// The large sentence: the other word that each word attends to most in the chosen head, and which of these are right. A
// word under the mouse shows its target in all heads, or the words that look at it.
import { element, find, percent, renew, shape, shorten } from "./dom.js";
import { drawGrid } from "./grid.js";
import { layOut } from "./layout.js";
import { headName, page, plainOf, readVariable, scoreOf } from "./numbers.js";
import { chooseText } from "./sentences.js";
import { isLive } from "./server.js";
import { describeSpans, isOfSpans, listSpans } from "./spans.js";
import { choose, WAYS } from "./state.js";
import { hasHead, isCausal, isTyped, judge, listTexts, readAttention, texts } from "./texts.js";
import { explainCounts, followWord, WEAKEST } from "./word.js";

const INSET = 4; // pixels at both ends of a line, since letters and marks are wider than the measured width of a word
const LONGEST = 30; // the largest number of letters of a word
const MANY = 0.01; // share of the heads; a target of fewer heads has no arc
const stage = find("stage");
const narrow = matchMedia("(max-width: 760px)");
let current = null; // {state, place, attention, gold, units} of the drawing
let [pointed, followed] = [null, null]; // the unit under the mouse, and its targets in all heads while they are drawn
let sheet = {}; // the drawn words: {key, svg, behind, before, texts}
let turns = 0; // count of drawings; only the last one is finished

// List the units of a line. `tight` means that no space precedes the unit. `query` is the index of its word among the
// attending units; a special token has one only if both sides are the same.
function listUnits(text, { from, to, isAlike }) {
  const queries = new Map([...from.keys()].map((query) => [from[query].word, query]));
  return to.map((unit, place) => {
    const [before, here] = [text.offsets?.[unit.word - 1], text.offsets?.[unit.word]];
    const query = unit.word >= 0 ? queries.get(unit.word) ?? null : isAlike ? place : null;
    return { ...unit, label: shorten(unit.label, LONGEST), whole: unit.label, tight: Boolean(before && here && before[1] === here[0]), query };
  });
}

// Return true for a question in the reverse direction: which other word attends most to each word?
const leadsBack = (state) => (scoreOf(state)?.directed ?? false) && state.direction === "head_to_dependent";

// List the unit that each word attends to most: among other words for relations, else among all other tokens. With
// `isBack`, list the word that attends to it most. `of` is the word in question. Weak choices are left out unless they
// are judged.
function listChoices({ maps: [map] }, units, isLink, isBack, judged) {
  const asked = units.map(({ word, query }) => word >= 0 && query !== null);
  return units.flatMap(({ query }, place) => {
    if (!asked[place]) return [];
    let [other, weight] = [-1, -1];
    for (let at = 0; at < units.length; at++) {
      if (at === place || (isLink && !asked[at])) continue;
      const each = isBack ? map[units[at].query][place] : map[query][at];
      if (each > weight) [other, weight] = [at, each];
    }
    const ends = isBack ? { from: other, to: place } : { from: place, to: other };
    return weight >= WEAKEST || (judged.has(place) && other >= 0) ? [{ ...ends, of: place, weight }] : [];
  });
}

const fontsOf = (style) => ({ sans: style.getPropertyValue("--sans"), serif: style.getPropertyValue("--serif") });

function write(svg, units, laid) {
  units.forEach((unit, place) => {
    const { x, width, line } = laid.boxes[place], base = laid.bases[line], small = unit.word < 0;
    svg.append(shape("text", { x: x + width / 2, y: base, "font-size": small ? 0.55 * laid.size : laid.size }, unit.label));
  });
  units.forEach((unit, place) => {
    const { x, width, line } = laid.boxes[place];
    const target = shape("rect", { class: "target", x, y: laid.bases[line] - laid.size, width, height: 1.4 * laid.size, "data-unit": place });
    if (unit.label !== unit.whole) target.append(shape("title", {}, unit.whole));
    svg.append(target);
  });
}

// Draw a bar below the words of each span, on each of its lines; a mention has the number of its chain.
function underline(svg, units, laid, spans) {
  for (const { start, end, kind, colour, level, number } of spans) {
    const places = [...units.keys()].filter((place) => units[place].word >= start && units[place].word < end);
    for (const line of new Set(places.map((place) => laid.boxes[place].line))) {
      const boxes = places.map((place) => laid.boxes[place]).filter((box) => box.line === line);
      const [left, right] = [Math.min(...boxes.map((box) => box.x)), Math.max(...boxes.map((box) => box.x + box.width))];
      const y = laid.bases[line] + 0.2 * laid.size + 4 * level, bar = shape("rect", { class: `span ${kind}`, x: left, y, width: right - left, height: 3 });
      bar.style.fill = colour;
      svg.append(bar);
      if (number) svg.append(shape("text", { class: "count", x: right - 10 * level, y: y + 11, "font-size": 11 }, number));
    }
  }
}

// Return the path of an arc; between two lines, it leads from the bottom of the upper line to the top of the lower one.
function trace(laid, { from, to }, way = -1) {
  const [start, end] = [laid.middle(from), laid.middle(to)], [a, b] = [from, to].map((unit) => laid.boxes[unit].line);
  const [top, bottom] = [(line) => laid.bases[line] - 0.82 * laid.size, (line) => laid.bases[line] + 0.3 * laid.size];
  if (a === b) {
    const y = way < 0 ? top(a) : bottom(a), reach = y + way * 1.3 * laid.rise({ from, to });
    return { d: `M${start} ${y}C${start} ${reach} ${end} ${reach} ${end} ${y}`, x: end, y };
  }
  const [y, last] = a < b ? [bottom(a), top(b)] : [top(a), bottom(b)], bend = 0.55 * (last - y);
  return { d: `M${start} ${y}C${start} ${y + bend} ${end} ${last - bend} ${end} ${last}`, x: end, y: last };
}

// Begin a picture and return its layers {behind, before} behind and before the words. Words with an unchanged position
// stay, with the classes of this picture.
function begin(laid, label, kinds) {
  const { place, units } = current, height = Math.max(narrow.matches ? 0 : stage.clientHeight - 4, Math.ceil(laid.height));
  const key = [place, units.length, stage.clientWidth, height, laid.size, ...laid.bases].join();
  if (sheet.key !== key || sheet.svg.parentNode !== stage) {
    const [behind, words, before] = ["behind", "text", "before"].map((name) => shape("g", { class: name }));
    const svg = shape("svg", { width: stage.clientWidth, height, viewBox: `${-INSET} 0 ${stage.clientWidth} ${height}`, role: "img" });
    write(words, units, laid);
    svg.append(behind, words, before);
    stage.replaceChildren(svg);
    sheet = { key, svg, behind, before, texts: [...words.querySelectorAll("text")] };
  }
  sheet.svg.setAttribute("aria-label", label);
  sheet.texts.forEach((text, at) => {
    const name = [units[at].word < 0 && "special", kinds(at)].filter(Boolean).join(" ");
    if ((text.getAttribute("class") ?? "") !== name) text.setAttribute("class", name);
  });
  for (const part of [sheet.behind, sheet.before]) part.replaceChildren();
  return sheet;
}

function layOutStage(above, below) {
  const height = narrow.matches ? 0 : stage.clientHeight - 4;
  const largest = narrow.matches ? 20 : document.body.classList.contains("present") ? Infinity : 38;
  return layOut(current.units, above, below, { width: stage.clientWidth - 2 * INSET, height, fonts: fontsOf(getComputedStyle(stage)), largest });
}

function drawHead() {
  const { state, attention, gold, units, spans, rule } = current;
  const score = scoreOf(state), isLink = (score?.directed ?? false) || isOfSpans(score), isBack = leadsBack(state);
  const places = new Map(units.map((unit, place) => [unit.query, place]));
  const judged = new Map(gold.map((link) => [isBack ? link.to : places.get(link.from), link]));
  const choices = listChoices(attention, units, isLink, isBack, judged);
  const wrong = gold.filter((link) => !link.right).map((link) => ({ from: places.get(link.from), to: link.to }));
  const ofWord = new Map(units.map((unit, place) => [unit.word, place])), picks = gold.flatMap(({ pick }) => (rule && pick ? [{ from: ofWord.get(pick.from), to: ofWord.get(pick.to) }] : []));
  const known = picks.filter(({ from, to }) => from !== undefined && to !== undefined && from !== to);
  const laid = layOutStage(choices, [...wrong, ...known]), kindOf = (place) => judged.has(place) && (judged.get(place).right ? "right" : "wrong");
  const { behind } = begin(laid, units.map((unit) => unit.whole).join(" "), kindOf);
  const nameKind = ({ of, to }) => {
    const link = judged.get(of);
    if (link) return link.right ? "right" : "wrong";
    return gold.length ? "beside" : units[to].word < 0 ? "to-special" : "";
  };
  const strong = (choice) => nameKind(choice) !== "beside";
  for (const choice of choices.toSorted((a, b) => strong(a) - strong(b))) {
    const { d, x, y } = trace(laid, choice);
    const arc = shape("path", { class: nameKind(choice), d, "stroke-width": ((strong(choice) ? 1.2 : 0.7) + 2.2 * choice.weight).toFixed(1) });
    arc.append(shape("title", {}, `${units[choice.from].whole} \u2192 ${units[choice.to].whole}: ${percent(choice.weight)}`));
    behind.append(arc, shape("circle", { class: nameKind(choice), cx: x, cy: y, r: strong(choice) ? 3 : 2 }));
  }
  for (const link of known) behind.append(shape("path", { class: "rule", d: trace(laid, link, 1).d, "stroke-width": 2.6 }));
  for (const link of wrong) behind.append(shape("path", { class: "gold", d: trace(laid, link, 1).d, "stroke-width": 1.7 }));
  underline(behind, units, laid, spans);
  find("stage-about").textContent = describeHead(state, gold);
}

function describeHead(state, gold) {
  const head = headName(state.head), right = gold.filter((link) => link.right).length, isLink = scoreOf(state)?.directed || isOfSpans(scoreOf(state));
  if (current.units.every((unit) => unit.query === null)) return "The two sides of this text share no word; the tab Sentence shows the lines between them.";
  const arcs = leadsBack(state) ? `Arcs lead to each word from the other word that attends to it most in head ${head}` : `Arcs lead from each word to ${isLink ? "the other word" : "what"} it attends to most in head ${head}`;
  const view = state.view === page.name ? "" : ` They are of ${page.name}, whatever the grid shows.`;
  const marks = describeSpans(current.spans), below = [right < gold.length && "dashed: as annotated", marks].filter(Boolean).map((what) => `; ${what}`).join("");
  if (gold.length) return `${right} of ${gold.length} right in this sentence. ${arcs}; grey from ${percent(WEAKEST)} on${below}.${describeRule(gold)}${view}`;
  const { links, items } = texts[current.place], none = links?.length || items?.length ? `This sentence has no \u201c${readVariable(state).title}\u201d.` : "This text has no annotation: nothing is right or wrong.";
  const absent = scoreOf(state)?.directed ? `${none} ` : "";
  return `${absent}${arcs}, from ${percent(WEAKEST)} on${below}.${view}`;
}

// Describe what the best rule, drawn below the sentence, gets right in it.
function describeRule(gold) {
  const right = gold.filter(({ pick }) => pick?.right).length;
  return current.rule && gold.some(({ pick }) => pick) ? ` Brown, below: the rule \u201c${current.rule.plain}\u201d, right for ${right} of ${gold.length}.` : "";
}

// Find the rule whose choices the texts have: the best rule of the row, in the direction of its reported head.
function findRule(state) {
  const row = state.view === page.name && page.rows.find((each) => each.key === state.variable && (!each.direction || each.direction === state.direction));
  return row ? row.rivals.find((rival) => rival.is_best) ?? null : null;
}

function drawWord(word) {
  const { units } = current, total = word.order.reduce((sum, [, count]) => sum + count, 0);
  const arcs = word.order.filter(([to, count]) => to !== word.unit && count >= MANY * total).map(([to, count]) => ({ ...(word.isIn ? { from: to, to: word.unit } : { from: word.unit, to }), other: to, count }));
  const counts = new Map(word.order), laid = layOutStage(arcs, []), box = laid.boxes[word.unit];
  const { behind, before } = begin(laid, `${units[word.unit].whole} through all heads`, (place) => !counts.has(place) && place !== word.unit && "aside");
  behind.append(shape("rect", { class: "chosen", x: box.x - 4, y: laid.bases[box.line] - 0.86 * laid.size, width: box.width + 8, height: 1.18 * laid.size, rx: 5 }));
  for (const arc of arcs.toReversed()) {
    const path = shape("path", { d: trace(laid, arc).d, "stroke-width": (1 + (9 * arc.count) / total).toFixed(1) });
    path.style.stroke = `#${word.colours.get(arc.other)}`;
    behind.append(path);
  }
  for (const [to, count] of word.order) {
    const { x, width, line } = laid.boxes[to], y = laid.bases[line] + 0.2 * laid.size;
    before.append(shape("rect", { x, y, width, height: 3, fill: `#${word.colours.get(to)}` }));
    if (count > 1) before.append(shape("text", { class: "count", x: x + width / 2, y: y + Math.max(13, 0.5 * laid.size), "font-size": Math.max(11, 0.4 * laid.size) }, count));
  }
  find("stage-about").textContent = explainCounts(units[word.unit].whole, word);
}

// Show the targets of a unit in all heads; null shows the chosen head again.
async function point(unit) {
  if (unit === pointed || !current) return;
  pointed = unit;
  const { state, place, units } = current, turn = turns, first = isCausal(texts[place]) ? 0 : null;
  const word = unit === null ? null : await followWord(place, state, units, unit, units.map((each, at) => each.word < 0 || at === unit || at === first));
  if (unit !== pointed || turn !== turns) return;
  followed = word && { ...word, unit };
  drawGrid(state, word && { ...word, place, unit, label: units[unit].whole, labels: units.map((each) => each.whole) });
  drawStage();
}

const drawStage = () => (followed ? drawWord(followed) : drawHead());

// Return the mark of a text: how far the head is right in it, or that the reader wrote it.
async function markText(place, state, score) {
  if (isTyped(place)) return ["yours", "a text of your own"];
  if (!score || !hasHead(texts[place], state, state.head)) return ["", ""];
  const gold = judge(texts[place], score, state.direction, await readAttention(place, state, "words", [state.head]));
  const right = gold.filter((link) => link.right).length;
  if (!gold.length) return ["", `no ${plainOf(score, state.direction).items} here`];
  return [right === gold.length ? "\u2713" : right ? "\u00bd" : "\u2717", `${right} of ${gold.length} right`];
}

async function drawChips(state, score, place, turn) {
  const places = listTexts(score?.key, place);
  const marks = await Promise.all(places.map((each) => markText(each, state, score)));
  if (turn !== turns) return;
  renew(find("chips"), ...places.map((each, at) => {
    const [mark, about] = marks[at];
    const button = element("button", `${at + 1}${mark && " "}${mark}`, { type: "button", "aria-pressed": String(each === place), title: [`Key ${at + 1}`, about].filter(Boolean).join(": ") });
    if (about) button.setAttribute("aria-label", `Sentence ${at + 1}, ${about}`);
    button.addEventListener("click", () => choose({ text: String(each) }));
    return button;
  }));
}

function drawWays({ word, way }) {
  find("ways").hidden = word === null;
  for (const each of WAYS) find(`way-${each}`).setAttribute("aria-pressed", String(way === each));
}

export async function drawSpecimen(state) {
  drawWays(state);
  find("sentence-absent").hidden = texts.length > 0 || isLive;
  stage.hidden = find("stage-about").hidden = !texts.length;
  if (!texts.length) return;
  const score = scoreOf(state), place = chooseText(state, score), turn = ++turns;
  drawChips(state, score, place, turn);
  if (!hasHead(texts[place], state, state.head)) {
    stage.replaceChildren();
    stage.setAttribute("aria-busy", "false");
    find("stage-about").textContent = `Head ${headName(state.head)} has no attention to show.`;
    current = null;
    drawGrid(state);
    return;
  }
  stage.setAttribute("aria-busy", "true");
  const attention = await readAttention(place, state, "words", [state.head]);
  if (turn !== turns) return; // the reader has chosen something else meanwhile
  const gold = score ? judge(texts[place], score, state.direction, attention) : [];
  const units = listUnits(texts[place], attention);
  current = { state, place, attention, gold, units, spans: listSpans(texts[place], score), rule: findRule(state) };
  stage.setAttribute("aria-busy", "false");
  [pointed, followed] = [null, null];
  if (state.word !== null && !(state.word in current.units)) choose({ word: null });
  else if (state.word === null) drawHead();
  else await point(state.word);
}

// Pin the next or the previous attending word in the address.
export function stepWord(step) {
  if (!current) return;
  const { units, state } = current, count = units.length;
  if (units.every((each) => each.query === null)) return;
  let unit = state.word ?? (step > 0 ? -1 : count);
  do unit = (unit + step + count) % count; while (units[unit].query === null);
  choose({ word: unit });
}

export function buildSpecimen() {
  for (const way of WAYS) find(`way-${way}`).addEventListener("click", () => choose({ way }));
  const unitOf = (event) => (event.target.dataset?.unit === undefined ? null : Number(event.target.dataset.unit));
  stage.addEventListener("mouseover", (event) => unitOf(event) !== null && current?.state.word === null && point(unitOf(event)));
  stage.addEventListener("mouseleave", () => current?.state.word === null && point(null));
  stage.addEventListener("click", (event) => unitOf(event) !== null && choose({ word: unitOf(event) === current.state.word ? null : unitOf(event) }));
  stage.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    stepWord(step);
  });
  new ResizeObserver(() => current && drawStage()).observe(stage);
}
