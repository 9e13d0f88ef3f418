// The keys of the page; they work everywhere except in form fields and dialogs.
import { find } from "./dom.js";
import { addressOf, findBest, headName, numbersOf, page, readVariable, scoreOf } from "./numbers.js";
import { chooseText } from "./sentences.js";
import { stepWord } from "./specimen.js";
import { choose, follow, listVariables, WAYS } from "./state.js";
import { listTexts, texts } from "./texts.js";
import { switchTheme } from "./theme.js";

let state = null;

function moveHead(down, right) {
  const within = (at, count) => Math.min(count - 1, Math.max(0, at));
  choose({ head: headName({ layer: within(state.head.layer + down, page.layers), head: within(state.head.head + right, page.heads) }) });
}

function nextQuestion(step) {
  const names = listVariables(), name = names[(names.indexOf(state.variable) + step + names.length) % names.length];
  const row = numbersOf(state) === page && page.rows.find((each) => each.key === name);
  follow(row ? addressOf(row) : addressOf({ key: name }));
}

function goHome() {
  const row = page.rows.find((each) => each.key === state.variable);
  choose({ head: row ? row.head : headName(findBest(readVariable(state))) });
}

function present(on) {
  document.body.classList.toggle("present", on);
  find("present").setAttribute("aria-pressed", String(on));
  choose({ mode: "one" });
}

// Leave the followed word, the view of all heads, or the presentation, in this order.
function leave() {
  if (state.word !== null) choose({ word: null });
  else if (state.mode === "all") choose({ mode: "one" });
  else present(false);
}

const ACTS = {
  ArrowUp: () => moveHead(-1, 0), ArrowDown: () => moveHead(1, 0), ArrowLeft: () => moveHead(0, -1), ArrowRight: () => moveHead(0, 1),
  "[": () => nextQuestion(-1), "]": () => nextQuestion(1), Home: goHome,
  ",": () => stepWord(-1), ".": () => stepWord(1),
  w: () => choose({ way: WAYS.find((way) => way !== state.way) }),
  a: () => choose({ mode: state.mode === "all" ? "one" : "all" }),
  m: () => choose({ tab: "maps", mode: "one" }), g: () => choose({ tab: "guess", mode: "one" }),
  p: () => present(!document.body.classList.contains("present")), d: switchTheme,
  t: () => find("live").hidden || find("live-text").focus(),
  "/": () => find("search").focus(), "?": () => find("key-list").showModal(),
  Escape: leave,
};

function chooseSentence(number) {
  const place = listTexts(scoreOf(state)?.key, chooseText(state, scoreOf(state)))[number - 1];
  if (place !== undefined) choose({ text: String(place) });
}

export function buildKeys() {
  find("tools").hidden = false;
  find("mode-one").addEventListener("click", () => choose({ mode: "one" }));
  find("mode-all").addEventListener("click", () => choose({ mode: "all" }));
  find("present").addEventListener("click", ACTS.p);
  find("keys").addEventListener("click", ACTS["?"]);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea, dialog"), isScrolled = event.target.closest?.('[role="tabpanel"], .scroll');
    if (typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isScrolled && /^(Arrow|Home)/.test(event.key)) return; // these keys scroll there
    if (/^[1-9]$/.test(event.key)) return chooseSentence(Number(event.key));
    if (!(event.key in ACTS)) return;
    event.preventDefault();
    ACTS[event.key]();
  });
}

export function drawModes(shown) {
  state = shown;
  document.querySelector(".pair").hidden = !texts.length;
  for (const mode of ["one", "all"]) find(`mode-${mode}`).setAttribute("aria-pressed", String(state.mode === mode));
  for (const name of ["overview", "verdict", "more"]) find(name).hidden = state.mode === "all";
  find("specimen").hidden = state.mode === "all" || page.against !== ""; // a comparison has no single model
  find("all").hidden = state.mode !== "all";
}
