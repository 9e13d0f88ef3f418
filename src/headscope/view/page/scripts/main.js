// Builds the parts of the page and draws them whenever the reader chooses something else.
import { drawAnswer } from "./answer.js";
import { drawBest } from "./best.js";
import { buildControls, drawControls } from "./controls.js";
import { find } from "./dom.js";
import { buildExports, drawExports } from "./exports.js";
import { buildGrid, drawGrid } from "./grid.js";
import { buildGuess } from "./guess.js";
import { buildHeadMap, drawHeadMap } from "./headmap.js";
import { buildLive } from "./live.js";
import { drawMovers } from "./movers.js";
import { buildNeurons, drawNeurons } from "./neurons.js";
import { hideParts } from "./numbers.js";
import { drawProfile } from "./profile.js";
import { buildSearch, drawSearch } from "./search.js";
import { buildSentences, drawSentences } from "./sentences.js";
import { begin, follow, hasVariables, onChange } from "./state.js";
import { buildTables, markRows } from "./tables.js";
import { buildThumbnails, drawThumbnails } from "./thumbnails.js";
import { buildWhatIf, drawWhatIf } from "./whatif.js";

const LATEST = { timeout: 500 }; // milliseconds until what waits is done in any case
const inSight = new Set(); // of the parts that are drawn later
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) isIntersecting ? inSight.add(target) : inSight.delete(target);
});

// Draws a part at once where it is in sight. Elsewhere it waits until nothing else is to be done, so that what the reader
// looks at answers first. Until a part is drawn for the first time, its buttons cannot be clicked.
function drawLater(name, draw) {
  const part = find(name).parentElement;
  let waiting = 0;
  const drawPart = (state) => {
    draw(state);
    part.inert = false;
  };
  part.inert = true;
  sight.observe(part);
  return (state) => {
    cancelIdleCallback(waiting);
    if (inSight.has(part)) drawPart(state);
    else waiting = requestIdleCallback(() => drawPart(state), LATEST);
  };
}

// What is larger than its place can be scrolled with the keyboard too. That needs the layout of all parts, also of those
// that are out of sight, so it waits likewise.
let waiting = 0;

function reachLater() {
  cancelIdleCallback(waiting);
  waiting = requestIdleCallback(reachScrolled, LATEST);
}

function reachScrolled() {
  const boxes = [...document.querySelectorAll(".scroll:not([role])")];
  const scrolls = boxes.map((box) => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight);
  boxes.forEach((box, place) => (scrolls[place] ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex")));
}

// A page in a notebook has no address of its own: its links would lead to the notebook.
function followLinks() {
  if (location.protocol !== "about:") return;
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link || event.defaultPrevented) return;
    event.preventDefault();
    const address = link.getAttribute("href").slice(1);
    if (address.includes("=")) follow(address);
    else find(address).scrollIntoView();
  });
}

// The neurons stand below the sentence whose tokens they are of.
function drawTexts(state) {
  drawSentences(state);
  drawNeurons(state);
}

function build() {
  let current = null;
  buildTables();
  followLinks();
  if (!hasVariables) {
    hideParts();
    return;
  }
  buildControls();
  const point = (head) => drawProfile(current, head ?? current.head);
  buildGrid(point);
  buildThumbnails(point);
  buildHeadMap(point);
  buildExports();
  buildGuess();
  buildSearch();
  buildSentences();
  buildLive();
  buildNeurons();
  buildWhatIf();
  onChange((state) => (current = state), drawControls, drawSearch, drawAnswer, drawBest, drawGrid, drawMovers, drawProfile, markRows);
  const below = { thumbnails: drawThumbnails, map: drawHeadMap, sentences: drawTexts, "what-if": drawWhatIf, export: drawExports };
  onChange(...Object.entries(below).map(([name, draw]) => drawLater(name, draw)), reachLater);
  addEventListener("resize", reachLater);
  begin();
}

build();
requestIdleCallback(() => {
  document.body.removeAttribute("aria-busy");
  performance.mark("built"); // for who measures how long it takes
}, LATEST);
