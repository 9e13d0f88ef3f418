// The main module: it builds the parts of the page, and draws them when the reader chooses something else.
import { buildAll, drawAll } from "./allheads.js";
import { buildExamples, drawAnswer, drawExamples } from "./answer.js";
import { drawBest } from "./best.js";
import { buildControls, drawControls } from "./controls.js";
import { find } from "./dom.js";
import { buildExports, drawExports } from "./exports.js";
import { buildGrid, drawQuestion } from "./grid.js";
import { buildGuess } from "./guess.js";
import { buildHeadMap, drawHeadMap } from "./headmap.js";
import { buildKeys, drawModes } from "./keys.js";
import { buildLive } from "./live.js";
import { drawLooks } from "./looks.js";
import { drawMovers } from "./movers.js";
import { buildNeurons, drawNeurons } from "./neurons.js";
import { hideParts } from "./numbers.js";
import { drawProfile } from "./profile.js";
import { buildSearch, drawSearch } from "./search.js";
import { buildSentences, drawSentences } from "./sentences.js";
import { buildSpecimen, drawSpecimen } from "./specimen.js";
import { begin, follow, hasVariables, onChange, tell } from "./state.js";
import { buildTables, markRows } from "./tables.js";
import { buildTabs, drawTabs, reveal } from "./tabs.js";
import { buildTheme, isDark, onTheme } from "./theme.js";
import { buildThumbnails, drawThumbnails } from "./thumbnails.js";
import { buildWhatIf, drawWhatIf } from "./whatif.js";

const LATEST = { timeout: 500 }; // milliseconds after which a waiting panel is drawn in any case

// Draw a panel at once if its tab is open. Other panels wait until the browser is idle, so that the visible parts
// respond first.
function drawInTab(name, draw) {
  const panel = find(`panel-${name}`);
  let [waiting, last] = [0, ""];
  return (state) => {
    const shown = JSON.stringify([{ ...state, tab: "", mode: "", word: null }, isDark()]);
    const drawPanel = () => {
      if (shown === last) return;
      last = shown;
      draw(state);
    };
    cancelIdleCallback(waiting);
    if (panel.hidden) waiting = requestIdleCallback(drawPanel, LATEST);
    else drawPanel();
  };
}

let waiting = 0;

// Let the Tab key reach parts that scroll.
function reachLater() {
  cancelIdleCallback(waiting);
  waiting = requestIdleCallback(reachScrolled, LATEST);
}

function reachScrolled() {
  const boxes = [...document.querySelectorAll(".scroll:not([role])")];
  const scrolls = boxes.map((box) => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight);
  boxes.forEach((box, place) => (scrolls[place] ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex")));
}

// Let links to parts of the page open the tab of the part. A page in a notebook has no address, so its links would lead
// to the notebook.
function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const address = link.getAttribute("href").slice(1);
    if (address.includes("=")) follow(address);
    else reveal(find(address));
  });
}

function drawNumbers(state) {
  drawBest(state);
  drawProfile(state);
}

function drawMaps(state) {
  drawThumbnails(state);
  drawHeadMap(state);
}

// Draw the sentences, then the neurons of the tokens of the shown sentence.
function drawTexts(state) {
  drawSentences(state);
  drawNeurons(state);
}

function build() {
  buildTheme();
  buildTables();
  followLinks();
  if (!hasVariables) {
    hideParts(); // and show the content of the tabs one below the other
    return;
  }
  let current = null;
  document.body.classList.add("app");
  buildControls();
  const point = (head) => {
    if (!find("panel-numbers").hidden) drawProfile(current, head ?? current.head);
    drawLooks(current, head ?? current.head);
  };
  buildGrid(point);
  buildThumbnails(point);
  buildHeadMap(point);
  buildExports();
  buildGuess();
  buildSearch();
  buildSentences();
  buildSpecimen();
  buildExamples();
  buildLive();
  buildNeurons();
  buildWhatIf();
  buildAll();
  buildKeys();
  buildTabs();
  onChange((state) => (current = state), drawModes, drawTabs, drawControls, drawSearch, drawAnswer, drawLooks, drawMovers, drawQuestion, drawSpecimen, drawAll, markRows);
  const panels = { numbers: drawNumbers, examples: drawExamples, sentence: drawTexts, "what-if": drawWhatIf, export: drawExports, maps: drawMaps };
  onChange(...Object.entries(panels).map(([name, draw]) => drawInTab(name, draw)), reachLater);
  addEventListener("resize", reachLater);
  begin();
  onTheme(tell);
}

build();
requestIdleCallback(() => {
  document.body.removeAttribute("aria-busy");
  performance.mark("built"); // for measurements of the loading time
}, LATEST);
