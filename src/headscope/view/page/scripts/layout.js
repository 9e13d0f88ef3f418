// The layout of words in lines: the largest font that fits into a box, with room for arcs above and below.

const SIZES = [38, 35, 32, 30, 28, 26, 24, 22, 20, 18, 17, 16, 15, 14]; // pixels, the largest first
const SPECIAL = 0.55; // times the font size: special tokens are smaller
const GAP = 0.42, TIGHT = 0.08; // times the font size: between words, and between words without a space in the text
const ABOVE = 0.95, BELOW = 0.4, LINE = 0.9; // times the font size: least room above and below a line, and the height of its words
const HIGHEST = 2.3, FLATTER = [1.7, 1.2, 0.8, 0.55]; // times the font size: height of the highest arc, and lower heights to try with the smallest font
const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

// Scripts with line breaks anywhere, and punctuation that cannot begin a line.
const BREAKS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u, CLOSES = /^[^\p{L}\p{N}\p{Ps}\p{Pi}]+$/u;
const RIGHT_TO_LEFT = /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u;

// Return the font of a style; the shorthand `font` is empty for a font with tabular figures.
export const fontOf = ({ fontWeight, fontSize, fontFamily }) => `${fontWeight} ${fontSize} ${fontFamily}`;

export function measure(label, font) {
  const key = `${font} ${label}`;
  if (!widths.has(key)) {
    pen.font = font;
    widths.set(key, pen.measureText(label).width);
  }
  return widths.get(key);
}

// Return the height of an arc, which grows with the distance between its ends.
const riseOf = (distance, size, highest) => Math.min(highest * size, Math.max(0.55 * size, 0.27 * distance));

// Break boxes {width, gap, breaks} into lines of a width; return {x, line} of each box, and the number of lines.
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

// Break boxes at the narrowest width with the same number of lines, so that lines are even.
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
  // A box that cannot begin a line moves together with the box before it.
  for (let at = boxes.length - 1; at >= 0; at--) {
    const next = boxes[at + 1];
    boxes[at].reach = boxes[at].width + (next && !next.breaks ? next.gap + next.reach : 0);
  }
  return boxes;
}

// Lay out units {label, word, tight}; `tight` means that no space precedes the unit. Arcs {from, to} are drawn `above`
// or `below`. Without a height, the largest font is used. Return the font size, {x, width, line} of each unit from its
// left edge, the base of each line, the height of an arc, and the total height.
export function layOut(units, above, below, { width, height, fonts, largest = Infinity }) {
  const sizes = SIZES.filter((size) => size <= largest), written = units.filter(({ word }) => word >= 0);
  const isReversed = 2 * written.filter(({ label }) => RIGHT_TO_LEFT.test(label)).length > written.length;
  // Try the largest font that fits, then flatter arcs; if none fits, give words a place that suits any arcs, and let
  // the sentence scroll.
  const attempts = [...sizes.map((size) => ({ size, highest: HIGHEST })), ...(height ? FLATTER.map((highest) => ({ size: sizes.at(-1), highest })) : [])];
  if (height) attempts.push({ size: sizes.at(-1), highest: HIGHEST, isLong: true });
  for (const { size, highest, isLong = false } of attempts) {
    const boxes = listBoxes(units, size, fonts), { places, lines } = balance(boxes, width);
    const laid = boxes.map((box, at) => ({ x: isReversed ? width - places[at].x - box.width : places[at].x, width: box.width, line: places[at].line }));
    const middle = (unit) => laid[unit].x + laid[unit].width / 2;
    const rise = ({ from, to }) => riseOf(Math.abs(middle(from) - middle(to)), size, highest);
    if (height && lines * (ABOVE + LINE + BELOW) * size > height && !isLong) continue;
    // Return the height of the highest arc of each line.
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
