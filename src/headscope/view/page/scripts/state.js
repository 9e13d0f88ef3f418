// The choices of the reader. They are also the address of the page (#variable=entropy&head=3-1), for links.
import { find, words } from "./dom.js";
import { findBest, headName, numbersOf, page, readHead, readVariable, scoreOf, VIEWS } from "./numbers.js";
import { texts } from "./texts.js";

const LEVELS = ["words", "tokens"], PICTURES = ["lines", "arcs", "matrix"], MODES = ["one", "all"], HALVES = ["all texts", "held-out half"];
const TABS = [...document.querySelectorAll('[role="tab"]')].map((tab) => tab.id.replace("tab-", ""));
const listeners = [];

export const WAYS = ["out", "in"]; // the targets of the followed word, or the words that look at it

export const MOST_BESIDE = 4; // number of further heads whose lines can be drawn; each has a colour

// head: {layer, head}, both counted from 0. text: the index of the text; empty for the best example of the row.
// against: the view that is subtracted from the shown view; empty if the values themselves are shown.
// beside: names of the further heads whose lines are drawn in a sentence.
// word: the index of the unit that is followed through all heads, counted from 0; null without one.
// way: what is shown about that word, one of WAYS.
// tab: the panel below the sentence. mode: one head, or the sentence in all heads. half: the texts that the scores of
// the grid come from; heads are chosen on the other half of the texts.
const state = { view: page.name, against: page.against, variable: "", direction: page.directions[0] ?? "", attention_type: page.attention_types[0] ?? "", head: null, text: "", level: LEVELS[0], picture: PICTURES[0], beside: [], word: null, way: WAYS[0], tab: TABS[0], mode: MODES[0], half: HALVES[0] };
const DEFAULTS = { ...state };

export const hasVariables = page.scores.length + page.statistics.length > 0;

export function listVariables() {
  const { scores, statistics } = numbersOf(state);
  return [...scores.map((row) => row.key), ...statistics.map((row) => row.name)];
}

const CHOICES = {
  view: () => VIEWS,
  against: () => ["", ...VIEWS],
  variable: listVariables,
  direction: () => page.directions,
  attention_type: () => page.attention_types,
  text: () => [...texts.keys()].map(String),
  level: () => LEVELS,
  picture: () => PICTURES,
  tab: () => TABS,
  way: () => WAYS,
  mode: () => (texts.length ? MODES : MODES.slice(0, 1)),
  half: () => HALVES,
};

// Take the values from an address or a control, if the page has them.
function take(changes) {
  for (const [name, list] of Object.entries(CHOICES)) {
    if (list().includes(changes[name])) state[name] = changes[name];
  }
  if (!listVariables().includes(state.variable)) state.variable = listVariables()[0];
  if ("variable" in changes && !("text" in changes)) state.text = "";
  if ("variable" in changes || "text" in changes || "attention_type" in changes) state.word = null;
  if ("word" in changes) state.word = /^\d{1,4}$/.test(changes.word) ? Number(changes.word) : null;
  if ("beside" in changes) state.beside = [...new Set(changes.beside.split(",").filter(readHead))].slice(0, MOST_BESIDE);
  const head = readHead(changes.head);
  if (head) state.head = head;
  else if (state.head === null || ("variable" in changes && !("head" in changes))) state.head = findBest(readVariable(state));
}

export function readAddress() {
  const address = new URLSearchParams({ variable: state.variable });
  if (scoreOf(state)?.directed) address.set("direction", state.direction);
  if (page.attention_types.length) address.set("attention_type", state.attention_type);
  if (state.view !== page.name) address.set("view", state.view);
  if (state.against !== page.against) address.set("against", state.against);
  address.set("head", headName(state.head));
  if (state.text) address.set("text", state.text);
  if (state.level !== LEVELS[0]) address.set("level", state.level);
  if (state.picture !== PICTURES[0]) address.set("picture", state.picture);
  if (state.word !== null) address.set("word", state.word);
  if (state.word !== null && state.way !== WAYS[0]) address.set("way", state.way);
  if (state.half !== HALVES[0]) address.set("half", state.half);
  if (state.tab !== TABS[0]) address.set("tab", state.tab);
  if (state.mode !== MODES[0]) address.set("mode", state.mode);
  if (state.beside.length) address.set("beside", state.beside.join());
  return address;
}

// Write the state into the address; a page inside a notebook has no address.
function writeAddress(write) {
  try {
    history[write](null, "", "#" + readAddress());
  } catch {}
}

export const tell = () => listeners.forEach((listener) => listener(state));

export const onChange = (...every) => listeners.push(...every);

// Change what is shown. With `apart`, the back button leads to what was shown before.
export function choose(changes, { apart = false } = {}) {
  find("notice").textContent = "";
  if (apart) writeAddress("replaceState");
  take(changes);
  tell();
  writeAddress(apart ? "pushState" : "replaceState");
}

const parse = (address) => Object.fromEntries(new URLSearchParams(address));

export const follow = (address) => choose(parse(address), { apart: true });

// Explain in a sentence which part of an address this page does not have.
function explainMissing(address) {
  const { head, variable } = address;
  if (head && !readHead(head)) return `There is no head ${head}: this model has ${page.layers} layers of ${page.heads} heads, counted from 1. Shown instead: ${headName(state.head)}.`;
  if (variable && variable !== state.variable) return `This page has no ${variable}. Shown instead: ${state.variable}.`;
  const missing = Object.keys(CHOICES).find((name) => address[name] !== undefined && state[name] !== address[name]);
  return missing ? `This page has no ${words(missing)} ${address[missing]}.` : "";
}

// Take the state from the address; parts that it does not name get their defaults.
function takeAddress() {
  const address = parse(location.hash.slice(1)), { head, variable, direction, attention_type } = state;
  Object.assign(state, DEFAULTS, { head, variable, direction, attention_type });
  take(address);
  find("notice").textContent = explainMissing(address);
  tell();
}

// Begin with the address or, without one, with a reported head.
export function begin() {
  take({});
  state.head = null;
  if (!/[#&](variable|head)=/.test(location.hash)) take(parse(page.opening ?? ""));
  takeAddress();
  addEventListener("hashchange", takeAddress);
}
