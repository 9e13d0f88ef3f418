// Words in lines, as large as they fit into a place, with room for arcs above and below.

const SIZES = [38, 35, 32, 30, 28, 26, 24, 22, 20, 18, 17, 16, 15, 14]; // pixels, the largest first
const SPECIAL = 0.55; // of the size: special tokens are smaller
const GAP = 0.42, TIGHT = 0.08; // of the size: between words, and where the text has no space between them
const ABOVE = 0.95, BELOW = 0.4, LINE = 0.9; // of the size: at least, around a line of words
const HIGHEST = 2.3, FLATTER = [1.7, 1.2, 0.8, 0.55]; // of the size: how high an arc rises, and where the smallest letters leave less room
const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

// Scripts that break anywhere, and punctuation that begins no line.
const BREAKS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u, CLOSES = /^[^\p{L}\p{N}\p{Ps}\p{Pi}]+$/u;
const RIGHT_TO_LEFT = /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u;

// The font of a style; one with figures of one width has no short form of its own.
export const fontOf = ({ fontWeight, fontSize, fontFamily }) => `${fontWeight} ${fontSize} ${fontFamily}`;

export function measure(label, font) {
  const key = `${font} ${label}`;
  if (!widths.has(key)) {
    pen.font = font;
    widths.set(key, pen.measureText(label).width);
  }
  return widths.get(key);
}

// How far an arc rises: the further its ends are apart, the higher.
const riseOf = (distance, size, highest) => Math.min(highest * size, Math.max(0.55 * size, 0.27 * distance));

// The lines of some boxes, each {width, gap, breaks}, within a width: {x, line} of each box, and the number of lines.
function breakLines(boxes, width) {
  let [x, line] = [0, 0];
  const places = boxes.map((box, at) => {
    const gap = x ? box.gap : 0;
    if (x && box.breaks && x + gap + box.reach > width) [x, line] = [0, line + 1];
    else x += gap;
    const place = { x, line };
    x += box.width;
    return place;
  });
  return { places, lines: line + 1 };
}

// The narrowest width that needs no more lines, so that lines are even.
function balance(boxes, width) {
  const { lines } = breakLines(boxes, width);
  let [low, high] = [width / 2, width];
  for (let turn = 0; lines > 1 && turn < 10; turn++) {
    const middle = (low + high) / 2;
    if (breakLines(boxes, middle).lines === lines) high = middle;
    else low = middle;
  }
  return breakLines(boxes, high);
}

function listBoxes(units, size, fonts) {
  const boxes = units.map(({ label, word, tight }, at) => ({
    width: measure(label, word < 0 ? `${SPECIAL * size}px ${fonts.sans}` : `600 ${size}px ${fonts.serif}`),
    gap: size * (tight ? TIGHT : GAP),
    breaks: at > 0 && (!tight || (BREAKS.test(label) && !CLOSES.test(label))),
  }));
  // A box that may not begin a line goes with the one before it.
  for (let at = boxes.length - 1; at >= 0; at--) {
    const next = boxes[at + 1];
    boxes[at].reach = boxes[at].width + (next && !next.breaks ? next.gap + next.reach : 0);
  }
  return boxes;
}

// Lays units out, each {label, word, tight}, where `tight` says that no space is before it. Arcs, {from, to} each, are
// drawn `above`, others `below`; without a height the largest letters do. Returns the size, of each unit {x, width, line}, from its left edge, the base of each
// line, the rise of an arc, and the height of all.
export function layOut(units, above, below, { width, height, fonts, largest = Infinity }) {
  const sizes = SIZES.filter((size) => size <= largest), written = units.filter(({ word }) => word >= 0);
  const isReversed = 2 * written.filter(({ label }) => RIGHT_TO_LEFT.test(label)).length > written.length;
  // The largest letters that fit; then flatter arcs; then words stand still, whatever the arcs, and the sentence scrolls.
  const attempts = [...sizes.map((size) => ({ size, highest: HIGHEST })), ...(height ? FLATTER.map((highest) => ({ size: sizes.at(-1), highest })) : [])];
  if (height) attempts.push({ size: sizes.at(-1), highest: HIGHEST, isLong: true });
  for (const { size, highest, isLong = false } of attempts) {
    const boxes = listBoxes(units, size, fonts), { places, lines } = balance(boxes, width);
    const laid = boxes.map((box, at) => ({ x: isReversed ? width - places[at].x - box.width : places[at].x, width: box.width, line: places[at].line }));
    const middle = (unit) => laid[unit].x + laid[unit].width / 2;
    const rise = ({ from, to }) => riseOf(Math.abs(middle(from) - middle(to)), size, highest);
    if (height && lines * (ABOVE + LINE + BELOW) * size > height && !isLong) continue;
    // How high the highest arc of each line rises.
    const listHighest = (arcs) => {
      const rises = new Array(lines).fill(0);
      for (const arc of arcs) {
        const { line } = laid[arc.from];
        if (laid[arc.to].line === line) rises[line] = Math.max(rises[line], rise(arc));
      }
      return rises;
    };
    const [higher, lower] = [above, below].map((arcs) => (isLong ? new Array(lines).fill(HIGHEST * size) : listHighest(arcs)));
    let y = 0;
    const bases = higher.map((top, line) => {
      y += Math.max(ABOVE * size, top + 0.35 * size) + 0.72 * LINE * size;
      const base = y;
      y += 0.28 * LINE * size + Math.max(BELOW * size, lower[line] + 0.2 * size);
      return base;
    });
    if (height && y > height && !isLong) continue;
    const shift = Math.max(0, (height - y) / 2);
    return { size, boxes: laid, bases: bases.map((base) => base + shift), middle, rise, height: y };
  }
}
