"use strict";
// Draws the attention of a head between the words of a text, from the JSON in #sentences-data. The head grid says which
// head ("head" events of the document). Words come from corpora, so they enter the page as text only, never as HTML.
(() => {
  const find = (id) => document.getElementById(id);
  if (!find("sentences-data")) return;
  const data = JSON.parse(find("sentences-data").textContent);
  const [section, picture, list] = [find("sentences").parentElement, find("sentence-picture"), find("sentence-table")];
  const SVG = picture.querySelector("svg").namespaceURI;
  const MOST_LINES = 400, WEAKEST = 0.03; // of the lines that are drawn
  const STEP = 22, GAP = 170, LETTER = 9.5; // pixels: from word to word, between the columns of words, for a letter
  const CELL = 16, LABELS = 120;
  const unpacked = new Map(); // weights by place of the text
  let shown = null; // what is drawn: {head, row, direction, text}
  let pointed = null; // the unit that attends and is pointed at

  function node(tag, attributes = {}, text = null, namespace = SVG) {
    const made = document.createElementNS(namespace, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== null) made.textContent = text;
    return made;
  }
  const html = (tag, text = null, attributes = {}) => node(tag, attributes, text, section.namespaceURI);
  const percent = (share) => `${(100 * share).toFixed(0)}\u202f%`;
  const shorten = (text, length = 24) => ([...text].length > length ? [...text].slice(0, length - 1).join("") + "\u2026" : text);

  async function unpack(place) {
    if (unpacked.has(place)) return unpacked.get(place);
    const bytes = Uint8Array.from(atob(data.texts[place].weights), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const weights = new Uint8Array(await new Response(stream).arrayBuffer());
    unpacked.set(place, weights);
    return weights;
  }

  // Words and special tokens, or tokens: {label, word, tokens}, in order.
  function listUnits(text, level) {
    const units = [];
    text.tokens.forEach((token, place) => {
      const word = text.token_words[place];
      const last = units.at(-1);
      if (level === "words" && word >= 0 && last && last.word === word) last.tokens.push(place);
      else units.push({ label: level === "words" && word >= 0 ? text.words[word] : token, word, tokens: [place] });
    });
    return units;
  }

  // To a word the attention to its tokens is added up, from a word it is averaged (Clark et al. 2019, section 4.1).
  function readMap(weights, text, units, { layer, head }, heads) {
    const size = text.tokens.length;
    const start = (layer * heads + head) * size * size;
    return units.map((from) => units.map((to) => {
      let sum = 0;
      for (const query of from.tokens) for (const key of to.tokens) sum += weights[start + query * size + key];
      return sum / from.tokens.length / data.steps;
    }));
  }

  // The gold links of a row that has directions, from the word that attends to the one that it is to attend to.
  function listGold(text, { row, directed, direction }) {
    if (!directed) return [];
    const name = row.slice(row.indexOf(":") + 1);
    const base = name.endsWith(":*") ? name.slice(0, -2) : null;
    const belongs = (label) => label === name || (name === "all" && label !== "punct") || (base && (label === base || label.startsWith(base + ":")));
    const links = text.links.filter(([, , label]) => belongs(label));
    return links.map(([source, target]) => (direction === "head_to_dependent" ? [target, source] : [source, target]));
  }

  // For each gold link, whether the word attends most, of all other words, to the right one.
  function judge(gold, map, units) {
    const unitOf = new Map();
    units.forEach((unit, place) => unit.word >= 0 && !unitOf.has(unit.word) && unitOf.set(unit.word, place));
    return gold.filter((pair) => pair.every((word) => unitOf.has(word))).map(([from, to]) => {
      const [query, key] = [unitOf.get(from), unitOf.get(to)];
      const others = units.map((unit, place) => (unit.word >= 0 && unit.word !== from ? map[query][place] : -1));
      return { from: query, to: key, right: others[key] === Math.max(...others) && others[key] > 0 };
    });
  }

  function drawLines(units, map, gold) {
    const column = 12 + LETTER * Math.max(...units.map((unit) => [...shorten(unit.label)].length));
    const width = 2 * column + GAP, height = units.length * STEP + STEP / 2;
    const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-labelledby": "sentence-about" });
    const y = (place) => (place + 0.75) * STEP;
    const links = node("g");
    for (const { from, to, right } of gold) {
      links.append(node("line", { class: right ? "gold right" : "gold", "data-from": from, x1: column, y1: y(from), x2: column + GAP, y2: y(to) }));
    }
    const lines = [];
    map.forEach((row, from) => row.forEach((weight, to) => weight >= WEAKEST && lines.push({ from, to, weight })));
    lines.sort((a, b) => b.weight - a.weight);
    const drawn = lines.slice(0, MOST_LINES);
    for (const { from, to, weight } of drawn.toReversed()) {
      const line = node("line", { class: "weight", "data-from": from, x1: column, y1: y(from), x2: column + GAP, y2: y(to), "stroke-opacity": Math.min(1, 0.1 + weight).toFixed(2), "stroke-width": (0.5 + 3.5 * weight).toFixed(1) });
      line.append(node("title", {}, `${units[from].label} \u2192 ${units[to].label}: ${percent(weight)}`));
      links.append(line);
    }
    svg.append(links);
    const verdicts = new Map(gold.map(({ from, right }) => [from, right ? "right" : "wrong"]));
    units.forEach((unit, place) => {
      for (const [side, x, anchor] of [["from", column - 6, "end"], ["to", column + GAP + 6, "start"]]) {
        const special = unit.word < 0 ? " special" : "";
        const verdict = side === "from" && verdicts.has(place) ? ` ${verdicts.get(place)}` : "";
        const label = node("text", { class: side + special + verdict, x, y: y(place) + 5, "text-anchor": anchor, [`data-${side}`]: place }, shorten(unit.label));
        label.append(node("title", {}, unit.label));
        svg.append(label);
      }
    });
    const all = units.length, held = drawn.reduce((sum, line) => sum + line.weight, 0);
    return [svg, `Lines for weights of ${percent(WEAKEST)} and more${lines.length > MOST_LINES ? `, the ${MOST_LINES} largest` : ""}; they hold ${percent(held / all)} of the attention.`];
  }

  function drawMatrix(units, map, gold) {
    const cell = units.length > 60 ? Math.max(2, Math.floor(960 / units.length)) : CELL;
    const side = LABELS + units.length * cell;
    const svg = node("svg", { viewBox: `0 0 ${side} ${side}`, width: side, height: side, role: "img", "aria-labelledby": "sentence-about" });
    map.forEach((row, from) => row.forEach((weight, to) => {
      if (weight < 0.01) return;
      const square = node("rect", { class: "cell", "data-from": from, x: LABELS + to * cell, y: LABELS + from * cell, width: cell, height: cell, "fill-opacity": Math.sqrt(Math.min(1, weight)).toFixed(2) });
      square.append(node("title", {}, `${units[from].label} \u2192 ${units[to].label}: ${percent(weight)}`));
      svg.append(square);
    }));
    for (const { from, to, right } of gold) svg.append(node("rect", { class: right ? "gold right" : "gold", "data-from": from, x: LABELS + to * cell, y: LABELS + from * cell, width: cell, height: cell }));
    if (cell === CELL) units.forEach((unit, place) => {
      const middle = LABELS + (place + 0.75) * cell;
      svg.append(node("text", { class: "from", x: LABELS - 4, y: middle, "text-anchor": "end", "data-from": place }, shorten(unit.label, 15)));
      svg.append(node("text", { class: "to", x: 0, y: 0, transform: `translate(${middle} ${LABELS - 4}) rotate(-90)` }, shorten(unit.label, 15)));
    });
    return [svg, "Rows attend, columns are attended to; the darker, the more."];
  }

  function fillTable(units, map, gold) {
    const verdicts = new Map(gold.map((link) => [link.from, link]));
    list.tBodies[0].replaceChildren(...units.map((unit, from) => {
      const row = html("tr");
      const best = map[from].map((weight, to) => ({ weight, to })).sort((a, b) => b.weight - a.weight).slice(0, 3);
      const link = verdicts.get(from);
      const verdict = link ? `${units[link.to].label}: ${link.right ? "right" : "wrong"}` : "";
      row.append(html("th", unit.label, { scope: "row" }));
      row.append(html("td", best.filter(({ weight }) => weight >= 0.01).map(({ weight, to }) => `${units[to].label} ${percent(weight)}`).join(", ")), html("td", verdict));
      return row;
    }));
  }

  // Only the lines of the word that is pointed at.
  function point(place) {
    pointed = place;
    picture.classList.toggle("pointed", place !== null);
    for (const each of picture.querySelectorAll("[data-from]")) each.classList.toggle("this", Number(each.dataset.from) === place);
    if (place === null || !shown) return;
    const row = list.tBodies[0].rows[place];
    find("sentence-pointed").textContent = `${row.cells[0].textContent} \u2192 ${row.cells[1].textContent || "nothing above 1\u202f%"}`;
  }

  async function draw(detail) {
    if (!data.texts.length) return;
    const text = find("text");
    if (!text.dataset.chosen) {
      const examples = data.examples.filter((each) => each.row === detail.row);
      const best = examples.find((each) => each.kind === "clear") ?? examples[0];
      if (best) text.value = String(best.text);
    }
    const place = Number(text.value);
    let weights;
    try {
      weights = await unpack(place);
    } catch {
      find("sentence-about").textContent = "This browser cannot unpack the weights (DecompressionStream is missing); a newer one can.";
      return;
    }
    if (place !== Number(find("text").value)) return; // another text was chosen meanwhile
    const current = data.texts[place];
    const units = listUnits(current, find("level").value);
    const map = readMap(weights, current, units, detail, detail.heads);
    const gold = judge(listGold(current, detail), map, units);
    const [svg, about] = find("drawn").value === "matrix" ? drawMatrix(units, map, gold) : drawLines(units, map, gold);
    picture.replaceChildren(svg);
    fillTable(units, map, gold);
    const right = gold.filter((link) => link.right).length;
    const links = gold.length ? ` Dashed: gold links of ${detail.name}; head ${detail.layer + 1}-${detail.head + 1} gets ${right} of ${gold.length} right.` : "";
    find("sentence-about").textContent = `Head ${detail.layer + 1}-${detail.head + 1}. ${about}${links}`;
    find("sentence-pointed").textContent = "";
    shown = detail;
    point(null);
    listExamples(detail);
  }

  // The texts, those that are examples of the row first.
  function listExamples({ row, name }) {
    const text = find("text");
    const before = text.value;
    const say = (place) => `${place + 1}: ${shorten(data.texts[place].words.join(" "), 70)}`;
    const group = (label, places) => {
      const made = html("optgroup", null, { label });
      made.append(...places.map((place) => html("option", say(place), { value: place })));
      return made;
    };
    const kinds = { clear: `${name}: the reported head does well`, fails: `${name}: it does badly` };
    const examples = Object.entries(kinds).map(([kind, label]) => [label, data.examples.filter((each) => each.row === row && each.kind === kind).map((each) => each.text)]);
    const used = new Set(examples.flatMap(([, places]) => places));
    const others = data.texts.map((_, place) => place).filter((place) => !used.has(place));
    text.replaceChildren(...[...examples, [used.size ? "other texts" : "texts", others]].filter(([, places]) => places.length).map(([label, places]) => group(label, places)));
    text.value = before;
  }

  listExamples({ row: "", name: "" });
  find("text").value = "0";
  document.addEventListener("head", (event) => {
    section.hidden = false;
    const other = event.detail.attention_type && event.detail.attention_type !== data.attention_type;
    picture.hidden = list.hidden = Boolean(other);
    if (other) find("sentence-about").textContent = `The texts have the attention of the ${data.attention_type} alone.`;
    else draw(event.detail);
  });
  picture.addEventListener("mouseover", (event) => {
    const place = event.target.dataset.from;
    if (place !== undefined) point(Number(place));
  });
  picture.addEventListener("mouseleave", () => point(null));
  picture.addEventListener("keydown", (event) => {
    const last = list.tBodies[0].rows.length - 1;
    const next = { ArrowDown: Math.min(last, (pointed ?? -1) + 1), ArrowUp: Math.max(0, (pointed ?? last + 1) - 1), Escape: null }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    point(next);
  });
})();
