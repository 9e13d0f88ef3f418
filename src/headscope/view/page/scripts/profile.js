// The profile of a head next to the grid: its statistics, its nearest heads, and the scores with the largest lead over
// the best fixed offset.
import { element, find, number, signed, words } from "./dom.js";
import { addressOf, attentionType, flat, headName, nameScore, numbersOf, page } from "./numbers.js";

const BEST_SCORES = 6;

// Make a cell from a text, or from a text and a smaller text after it (or below it if there is no room).
function cell(tag, content, attributes) {
  const [text, small] = [content].flat();
  const node = element(tag, text, attributes);
  if (small) node.append(" ", element("small", small));
  return node;
}

function fill(table, rows) {
  const body = find(table).tBodies[0];
  body.replaceChildren(...rows.map((cells) => {
    const row = element("tr");
    row.append(cell("th", cells[0], { scope: "row" }), ...cells.slice(1).map((content) => cell("td", content)));
    return row;
  }));
  find(table).hidden = rows.length === 0;
  find(`${table}-note`).hidden = rows.length === 0;
}

// List statistics; in a comparison, the last column has the other view in place of the baseline.
function listStatistics({ statistics }, side, { layer, head }, against) {
  return statistics.filter((row) => row.listed).map((row) => {
    const other = against && numbersOf({ view: against }).statistics.find(({ name, units }) => name === row.name && units === row.units);
    const beside = against ? other?.values[side][layer][head] : row.baseline[side];
    const all = flat(row.values[side]);
    const mean = all.length ? all.reduce((sum, value) => sum + value, 0) / all.length : null;
    const digits = Math.max(...all.map(Math.abs)) < 0.1 ? 3 : 2;
    return [row.label, ...[row.values[side][layer][head], mean, beside].map((value) => number(value, digits))];
  });
}

function listScores({ scores }, side, { layer, head }) {
  const rows = [];
  scores.filter((score) => score.ranked).forEach((score) => score.values.forEach((values, way) => {
    const value = values[side][layer][head];
    if (!value) return;
    const at = (ends) => (ends ? ends[way][side][layer][head] : null);
    const [lower, upper] = [at(score.lower), at(score.upper)];
    const interval = lower === null || upper === null ? "" : `[${number(lower)}, ${number(upper)}]`;
    const offset = score.offset === null ? "\u2013" : [number(score.offset_value), `at ${signed(score.offset)}`];
    const count = score.count === null ? "\u2013" : score.count.toLocaleString("en");
    const gain = (lower ?? value) - (score.offset_value ?? 0);
    const [from, ...to] = score.directed ? words(page.directions[way]).split(" ") : [score.attends];
    const title = nameScore(score, page.directions[way]), name = title === score.label ? title : [title, score.label];
    rows.push({ gain, cells: [name, [from, to.join(" ")], [number(value), interval], count, offset] });
  }));
  return rows.sort((a, b) => b.gain - a.gain).map((row) => row.cells);
}

// Draw links to the heads with the most similar attention.
function drawNeighbours(side, { layer, head }) {
  const neighbours = page.map?.neighbours[side]?.[layer][head] ?? [];
  const links = neighbours.flatMap(([otherLayer, otherHead, distance]) => {
    const name = headName({ layer: otherLayer, head: otherHead });
    return [element("a", name, { href: "#" + addressOf({ head: name }) }), ` ${number(distance)}, `];
  });
  const last = links.length ? links.pop().replace(", ", ".") : "";
  find("profile-neighbours").replaceChildren(...(links.length ? ["Attends most like (distance in nats): ", ...links, last] : []));
  find("profile-neighbours").hidden = links.length === 0;
}

export function drawProfile(state, place = state.head) {
  const [side, numbers] = [attentionType(state), numbersOf(state)];
  const name = `Head ${headName(place)}${page.attention_types.length ? ", " + page.attention_types[side] : ""}`;
  const scores = listScores(numbers, side, place);
  find("profile-name").textContent = name;
  find("profile-about").textContent = numbers === page ? page.about[side][place.layer][place.head] : ""; // other views have no such sentence
  drawNeighbours(side, place);
  find("shares").textContent = numbers.shares;
  find("scores-name").textContent = `${name}: its best scores, on all texts`;
  fill("profile-statistics", listStatistics(numbers, side, place, state.against));
  find("profile-statistics").tHead.rows[0].cells[3].textContent = state.against || "baseline";
  fill("profile-scores", scores.slice(0, BEST_SCORES));
  find("scores").hidden = scores.length === 0;
}
