"use strict";
// Draws the head grid and the profile of a head from the JSON in #atlas-data; shows the head of a reported row in it.
// Names come from models and corpora, so they enter the page as text only, never as HTML.
(() => {
  const page = JSON.parse(document.getElementById("atlas-data").textContent);
  let data = page; // the same with the numbers of the view that is shown
  const find = (id) => document.getElementById(id);
  const VIRIDIS = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"];
  const RED_BLUE = ["053061", "2166ac", "4393c3", "92c5de", "f7f7f7", "f4a582", "d6604d", "b2182b", "67001f"]; // of changes
  const BEST_SCORES = 6;
  const selects = { view: find("view"), variable: find("variable"), direction: find("direction"), attention_type: find("attention_type"), text: find("text"), level: find("level"), drawn: find("drawn") };
  const OF_TEXTS = ["text", "level", "drawn"]; // those of the sentences
  let pinned = null; // the head that was clicked: {layer, head}, both counted from 0

  function element(tag, text, attributes = {}) {
    const node = document.createElement(tag);
    if (text !== null) node.textContent = text;
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  const words = (name) => name.replaceAll("_", " ");
  const signed = (offset) => (offset < 0 ? "\u2212" : "+") + Math.abs(offset);
  const number = (value, digits = 2) => (value ?? null) === null ? "\u2013" : value.toFixed(digits).replace(/^-(0\.0*)$/, "$1");
  const headName = (layer, head) => `${layer + 1}-${head + 1}`;
  const attention_type = () => Math.max(0, data.attention_types.indexOf(selects.attention_type.value));
  const flat = (values) => values.flat(Infinity).filter((value) => value !== null);

  function baselineOf(score) {
    if (score.offset !== null) return `best fixed offset ${signed(score.offset)}: ${number(score.offset_value)}`;
    return score.control_value === null ? "" : `${score.control}: ${number(score.control_value)}`;
  }

  // The ends of the colours: from 0 on or, of changes, as far below it as above.
  function span(values, baseline, diverging = false) {
    const top = Math.max(...flat(values).map((value) => (diverging ? Math.abs(value) : value)), baseline ?? 0);
    return { low: diverging ? -top : 0, top, diverging };
  }

  // What the grid shows: {values[layer][head], low, top, diverging, units, about, baseline, baselineText}.
  function shown() {
    const name = selects.variable.value;
    const score = data.scores.find((row) => row.key === name);
    if (score) {
      const way = score.directed ? Math.max(0, data.directions.indexOf(selects.direction.value)) : 0;
      const count = score.count === null ? "" : ` ${score.count.toLocaleString("en")} in all.`;
      const from = score.directed ? ` From ${words(data.directions[way])}.` : "";
      return {
        values: score.values[way][attention_type()],
        ...span(score.values, score.offset_value ?? score.control_value),
        units: score.measure,
        directed: score.directed,
        about: `${score.about}.${from}${count} All texts.${score.offset === null ? "" : " Baseline: the best fixed offset, in words."} (${score.source})`,
        baseline: score.offset_value ?? score.control_value,
        baselineText: baselineOf(score),
      };
    }
    const statistic = data.statistics.find((row) => row.name === name);
    const baseline = statistic.baseline[attention_type()] ?? null;
    return {
      values: statistic.values[attention_type()],
      ...span(statistic.values, baseline, statistic.diverging),
      units: statistic.units,
      about: `${statistic.about} (${statistic.source})`,
      baseline,
      baselineText: baseline === null ? "" : `uniform attention: ${number(baseline)}`,
    };
  }

  function colour(share, palette) {
    const place = Math.min(Math.max(share, 0), 1) * (palette.length - 1);
    const low = Math.min(Math.floor(place), palette.length - 2);
    const mix = [0, 2, 4].map((at) => {
      const [from, to] = [palette[low], palette[low + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
      return Math.round(from + (to - from) * (place - low));
    });
    const light = 0.2126 * mix[0] + 0.7152 * mix[1] + 0.0722 * mix[2];
    return { ground: `rgb(${mix.join()})`, ink: light > 120 ? "#000" : "#fff" };
  }

  function buildGrid() {
    const grid = find("grid");
    grid.style.setProperty("--heads", data.heads);
    grid.classList.toggle("many", data.heads > 16);
    grid.closest(".atlas").classList.toggle("tall", data.layers > 16);
    const top = grid.createTHead().insertRow();
    top.append(element("td", ""));
    for (let head = 0; head < data.heads; head++) top.append(element("th", head + 1, { scope: "col" }));
    const body = grid.createTBody();
    for (let layer = 0; layer < data.layers; layer++) {
      const row = body.insertRow();
      row.append(element("th", layer + 1, { scope: "row" }));
      for (let head = 0; head < data.heads; head++) {
        const button = element("button", "", { type: "button", tabindex: "-1", "data-layer": layer, "data-head": head });
        row.insertCell().append(button);
      }
    }
    const place = (event) => {
      const button = event.target.closest("button");
      return button && { layer: Number(button.dataset.layer), head: Number(button.dataset.head) };
    };
    grid.addEventListener("mouseover", (event) => place(event) && drawProfile(place(event)));
    grid.addEventListener("mouseleave", () => drawProfile(pinned));
    grid.addEventListener("focusin", (event) => {
      if (!place(event)) return;
      reach(place(event));
      drawProfile(place(event));
    });
    grid.addEventListener("click", (event) => {
      if (!place(event)) return;
      pinned = place(event);
      draw();
      remember();
    });
    grid.addEventListener("keydown", (event) => {
      const at = place(event);
      const last = { layer: data.layers - 1, head: data.heads - 1 };
      const move = {
        ArrowUp: (p) => ({ ...p, layer: Math.max(0, p.layer - 1) }),
        ArrowDown: (p) => ({ ...p, layer: Math.min(last.layer, p.layer + 1) }),
        ArrowLeft: (p) => ({ ...p, head: Math.max(0, p.head - 1) }),
        ArrowRight: (p) => ({ ...p, head: Math.min(last.head, p.head + 1) }),
        Home: (p) => ({ ...p, head: 0 }),
        End: (p) => ({ ...p, head: last.head }),
      }[event.key];
      if (!at || !move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      buttonAt(move(at)).focus();
    });
  }

  const buttonAt = ({ layer, head }) => find("grid").querySelector(`button[data-layer="${layer}"][data-head="${head}"]`);

  // One head at a time can be reached with Tab; arrow keys do the rest.
  function reach(place) {
    for (const button of find("grid").querySelectorAll('button[tabindex="0"]')) button.tabIndex = -1;
    buttonAt(place).tabIndex = 0;
  }

  function draw() {
    const view = shown();
    const palette = view.diverging ? RED_BLUE : VIRIDIS;
    const share = (value) => (value - view.low) / (view.top - view.low || 1);
    const digits = view.top < 0.1 ? 3 : 2;
    if (pinned === null) pinned = best(view);
    find("about").textContent = [data.shows, view.about].filter(Boolean).join(" ");
    find("shares").textContent = data.shares;
    selects.direction.parentElement.hidden = !view.directed;
    for (const button of find("grid").querySelectorAll("button")) {
      const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
      const value = view.values[layer][head];
      const name = headName(layer, head);
      const missing = value === null;
      const paint = missing ? { ground: "", ink: "" } : colour(share(value), palette);
      button.classList.toggle("missing", missing);
      button.style.backgroundColor = paint.ground;
      button.style.color = paint.ink;
      button.textContent = missing ? "" : number(value, digits).replace(/^(-?)0\./, "$1.").replace("-", "\u2212");
      button.title = missing ? `${name}: no value` : `${name}: ${number(value, 3)}`;
      button.setAttribute("aria-label", missing ? `head ${name}: no value` : `head ${name}: ${number(value, 3)} ${view.units}`);
      button.setAttribute("aria-pressed", String(layer === pinned.layer && head === pinned.head));
    }
    reach(pinned);
    markRow();
    const scale = find("scale");
    const [mark, base] = [scale.querySelector(".mark"), scale.querySelector(".base")];
    scale.querySelector(".bar").style.background = `linear-gradient(to right, ${palette.map((hex) => "#" + hex).join()})`;
    scale.querySelector(".low").textContent = view.low < 0 ? number(view.low, digits).replace("-", "\u2212") : "0";
    scale.querySelector(".high").textContent = number(view.top, digits);
    mark.hidden = view.baseline === null;
    mark.style.left = `${100 * share(view.baseline ?? 0)}%`;
    base.textContent = view.baselineText && `Mark on the scale, the baseline: ${view.baselineText}.`;
    scale.setAttribute("aria-label", `Colours run from ${number(view.low, digits)} to ${number(view.top, digits)} ${view.units}. ${base.textContent}`);
    drawProfile(pinned);
    const row = data.scores.find((score) => score.key === selects.variable.value);
    const detail = { ...pinned, heads: data.heads, row: selects.variable.value, name: row ? row.name : "", directed: Boolean(row && row.directed), direction: selects.direction.value, attention_type: selects.attention_type.value };
    document.dispatchEvent(new CustomEvent("head", { detail }));
  }

  // The head with the largest value or, of changes, with the largest change.
  function best({ values, diverging }) {
    let [place, largest] = [{ layer: 0, head: 0 }, -Infinity];
    values.forEach((row, layer) => row.forEach((value, head) => {
      const size = value === null ? -Infinity : diverging ? Math.abs(value) : value;
      if (size > largest) [place, largest] = [{ layer, head }, size];
    }));
    return place;
  }

  // A cell is a text, or a text and what stands smaller behind it (below it where there is no room).
  function cell(tag, content, attributes) {
    const [text, small] = [content].flat();
    const node = element(tag, text, attributes);
    if (small) node.append(" ", element("small", small));
    return node;
  }

  function fill(table, rows) {
    const body = find(table).tBodies[0];
    body.replaceChildren(...rows.map((cells) => {
      const row = element("tr", null);
      row.append(cell("th", cells[0], { scope: "row" }), ...cells.slice(1).map((content) => cell("td", content)));
      return row;
    }));
    find(table).hidden = rows.length === 0;
    find(`${table}-note`).hidden = rows.length === 0;
  }

  function drawProfile({ layer, head }) {
    const side = attention_type();
    const name = `Head ${headName(layer, head)}${data.attention_types.length ? ", " + data.attention_types[side] : ""}`;
    find("profile-name").textContent = name;
    find("profile-need").textContent = page.need ? page.need[side][layer][head] : "";
    find("scores-name").textContent = `${name}: its best scores, on all texts`;
    fill("profile-statistics", data.statistics.map((row) => {
      const all = flat(row.values[side]);
      const mean = all.length ? all.reduce((sum, value) => sum + value, 0) / all.length : null;
      const digits = Math.max(...all.map(Math.abs)) < 0.1 ? 3 : 2;
      return [row.label, ...[row.values[side][layer][head], mean, row.baseline[side]].map((value) => number(value, digits))];
    }));
    const scored = [];
    data.scores.filter((score) => score.ranked).forEach((score) => score.values.forEach((values, way) => {
      const value = values[side][layer][head];
      if (value === null) return;
      const at = (ends) => (ends ? ends[way][side][layer][head] : null);
      const [lower, upper] = [at(score.lower), at(score.upper)];
      const interval = lower === null || upper === null ? "" : `[${number(lower)}, ${number(upper)}]`;
      const offset = score.offset === null ? "\u2013" : [number(score.offset_value), `at ${signed(score.offset)}`];
      const count = score.count === null ? "\u2013" : score.count.toLocaleString("en");
      const gain = (lower ?? value) - (score.offset_value ?? 0);
      const [from, ...to] = score.directed ? words(data.directions[way]).split(" ") : [score.attends];
      scored.push({ gain, cells: [score.label, [from, to.join(" ")], [number(value), interval], count, offset] });
    }));
    scored.sort((a, b) => b.gain - a.gain);
    fill("profile-scores", scored.slice(0, BEST_SCORES).map((row) => row.cells));
    find("scores").hidden = scored.length === 0;
  }

  function fillVariables() {
    selects.variable.replaceChildren();
    const group = (label, options) => {
      const node = element("optgroup", null, { label });
      node.append(...options.map(([value, text]) => element("option", text, { value })));
      if (options.length) selects.variable.append(node);
    };
    for (const title of new Set(data.scores.map((score) => score.title))) {
      group(title, data.scores.filter((score) => score.title === title).map((score) => [score.key, score.name]));
    }
    for (const units of new Set(data.statistics.map((row) => row.units))) {
      group(units, data.statistics.filter((row) => row.units === units).map((row) => [row.name, row.label]));
    }
  }

  function fillSelects() {
    fillVariables();
    selects.view.append(...["weights", ...page.views.map((view) => view.name)].map((value) => element("option", value, { value })));
    selects.view.parentElement.hidden = page.views.length === 0;
    for (const name of data.directions) selects.direction.append(element("option", words(name), { value: name }));
    for (const name of data.attention_types) selects.attention_type.append(element("option", name, { value: name }));
    selects.attention_type.parentElement.hidden = data.attention_types.length === 0;
  }

  // Puts the numbers of the chosen view into the place of those before; the variable stays, if the view has it.
  function changeView() {
    data = { ...page, ...page.views[selects.view.selectedIndex - 1] };
    const before = selects.variable.value;
    fillVariables();
    if ([...selects.variable.options].some((option) => option.value === before)) selects.variable.value = before;
  }

  // The state is the address: #variable=entropy&head=3-1, so that a view can be linked to.
  function recall(address) {
    const state = new URLSearchParams(address);
    for (const [name, select] of Object.entries(selects)) {
      if ([...select.options].some((option) => option.value === state.get(name))) select.value = state.get(name);
      if (select === selects.view) changeView();
    }
    selects.text.dataset.chosen = state.has("text") ? "chosen" : "";
    const match = /^(\d+)-(\d+)$/.exec(state.get("head") ?? "");
    const [layer, head] = match ? [Number(match[1]) - 1, Number(match[2]) - 1] : [-1, -1];
    if (layer >= 0 && layer < data.layers && head >= 0 && head < data.heads) pinned = { layer, head };
    else if (state.has("variable") && !state.has("head")) pinned = null; // its best head
  }

  // Without an address, the page opens on a reported head.
  function begin(address) {
    if (!/[#&](variable|head)=/.test(address)) recall(data.opening ?? "");
    recall(address.slice(1));
  }

  function currentState() {
    const state = new URLSearchParams({ variable: selects.variable.value });
    if (!selects.direction.parentElement.hidden) state.set("direction", selects.direction.value);
    if (data.attention_types.length) state.set("attention_type", selects.attention_type.value);
    if (selects.view.selectedIndex > 0) state.set("view", selects.view.value);
    state.set("head", headName(pinned.layer, pinned.head));
    if (selects.text.dataset.chosen) for (const name of OF_TEXTS) state.set(name, selects[name].value);
    return state;
  }

  function remember(write = "replaceState") {
    try {
      history[write](null, "", "#" + currentState());
    } catch {
      // A page shown inside a notebook has no address of its own.
    }
  }

  // The rows of the tables below, by what their links show in the grid.
  const links = [...document.querySelectorAll("#reported-rows tbody a, #needed-rows tbody a")];
  const rowOf = (link) => link.closest("tr");

  function markRow() {
    const state = currentState();
    for (const link of links) {
      const wanted = [...new URLSearchParams(link.hash.slice(1))];
      if (wanted.every(([name, value]) => (state.get(name) ?? "weights") === value)) rowOf(link).setAttribute("aria-current", "true");
      else rowOf(link).removeAttribute("aria-current");
    }
  }

  function linkRows() {
    for (const link of links) {
      rowOf(link).classList.add("linked");
      rowOf(link).addEventListener("click", (event) => {
        const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey; // a link to open in a new tab
        if (elsewhere || event.defaultPrevented || String(getSelection())) return;
        event.preventDefault();
        remember(); // so that the way back leads to what the grid shows now
        recall(link.hash.slice(1));
        draw();
        remember("pushState");
        find("heads").scrollIntoView();
      });
    }
  }

  function makeSortable(table) {
    for (const header of table.querySelectorAll("thead th:not(.picture)")) {
      const button = element("button", null, { type: "button" });
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(table, header));
    }
  }

  // Scores of different kinds do not compare: rows are sorted below their own heading.
  function sortBy(table, header) {
    const column = header.cellIndex;
    const way = header.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
    for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", way);
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    for (const body of table.tBodies) {
      const rows = [...body.querySelectorAll("tr:not(.group)")].sort((a, b) => {
        const [left, right] = [key(a), key(b)];
        if (left === "" || right === "") return (left === "") - (right === ""); // no number: last, either way
        const order = isNaN(left) || isNaN(right) ? left.localeCompare(right, "en") : left - right;
        return way === "ascending" ? order : -order;
      });
      body.append(...rows);
    }
  }

  document.querySelectorAll("table.sortable").forEach(makeSortable);
  fillSelects();
  if (!selects.variable.options.length) {
    find("heads").parentElement.hidden = true;
    return;
  }
  buildGrid();
  begin(location.hash);
  draw();
  linkRows();
  for (const select of Object.values(selects)) {
    select.addEventListener("change", () => {
      if (select === selects.view) changeView();
      if (select === selects.variable) selects.text.dataset.chosen = "";
      if (OF_TEXTS.some((name) => select === selects[name])) selects.text.dataset.chosen = "chosen";
      draw();
      remember();
    });
  }
  addEventListener("hashchange", () => {
    recall(location.hash.slice(1));
    draw();
  });
})();
