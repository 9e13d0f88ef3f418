"use strict";
// Draws the head grid and the profile of a head from the JSON in #atlas-data.
// Names come from models and corpora, so they enter the page as text only, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("atlas-data").textContent);
  const find = (id) => document.getElementById(id);
  const VIRIDIS = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"];
  const BEST_RELATIONS = 6;
  const selects = { variable: find("variable"), direction: find("direction"), attention_type: find("attention_type") };
  let kept = null; // the head that was clicked: {layer, head}, both counted from 0

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== null) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  const words = (name) => name.replaceAll("_", " ");
  const signed = (offset) => (offset < 0 ? "\u2212" : "+") + Math.abs(offset);
  const number = (value, digits = 2) => (value === null || value === undefined ? "\u2013" : value.toFixed(digits));
  const headName = (layer, head) => `${layer + 1}-${head + 1}`;
  const attention_type = () => Math.max(0, data.attention_types.indexOf(selects.attention_type.value));
  const flat = (values) => values.flat(Infinity).filter((value) => value !== null);

  // What the grid shows: {values[layer][head], top, units, about, baseline, baselineText}.
  function shown() {
    const name = selects.variable.value;
    if (name.startsWith("relation:")) {
      const place = data.relations.findIndex((relation) => "relation:" + relation.name === name);
      const relation = data.relations[place];
      const direction = Math.max(0, data.directions.indexOf(selects.direction.value));
      const count = relation.count === null ? "" : `${relation.count.toLocaleString("en")} `;
      const ends = data.directions[direction] === "head_to_dependent" ? ["head", "dependent"] : ["dependent", "head"];
      return {
        values: data.accuracy[place][direction][attention_type()],
        top: Math.max(...flat(data.accuracy[place]), relation.offset_accuracy ?? 0),
        units: "accuracy",
        about: `Share of the ${count}links “${relation.name}” for which the word that the ${ends[0]} attends to most is its ${ends[1]}; ` +
          `all documents. Baseline: the best fixed offset, in words. (${data.relation_source})`,
        baseline: relation.offset_accuracy,
        baselineText: relation.offset === null ? "" : `best fixed offset ${signed(relation.offset)}: ${number(relation.offset_accuracy)}`,
      };
    }
    const surface = data.surface.find((one) => one.name === name);
    const baseline = surface.baseline[attention_type()] ?? null;
    return {
      values: surface.values[attention_type()],
      top: Math.max(...flat(surface.values), baseline ?? 0),
      units: surface.units,
      about: `${surface.about} (${surface.source})`,
      baseline,
      baselineText: baseline === null ? "" : `uniform attention: ${number(baseline)}`,
    };
  }

  function colour(share) {
    const place = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
    const low = Math.min(Math.floor(place), VIRIDIS.length - 2);
    const mix = [0, 2, 4].map((at) => {
      const [from, to] = [VIRIDIS[low], VIRIDIS[low + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
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
    grid.addEventListener("mouseleave", () => drawProfile(kept));
    grid.addEventListener("focusin", (event) => {
      if (!place(event)) return;
      reach(place(event));
      drawProfile(place(event));
    });
    grid.addEventListener("click", (event) => {
      if (!place(event)) return;
      kept = place(event);
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
    if (kept === null) kept = best(view.values);
    find("about").textContent = view.about;
    selects.direction.parentElement.hidden = view.units !== "accuracy";
    for (const button of find("grid").querySelectorAll("button")) {
      const [layer, head] = [Number(button.dataset.layer), Number(button.dataset.head)];
      const value = view.values[layer][head];
      const name = headName(layer, head);
      const missing = value === null;
      const paint = missing ? { ground: "", ink: "" } : colour(value / (view.top || 1));
      button.classList.toggle("missing", missing);
      button.style.backgroundColor = paint.ground;
      button.style.color = paint.ink;
      button.textContent = missing ? "" : number(value).replace(/^0/, "");
      button.title = missing ? `${name}: no value` : `${name}: ${number(value, 3)}`;
      button.setAttribute("aria-label", missing ? `head ${name}: no value` : `head ${name}: ${number(value, 3)} ${view.units}`);
      button.setAttribute("aria-pressed", String(layer === kept.layer && head === kept.head));
    }
    reach(kept);
    const scale = find("scale");
    const [mark, base] = [scale.querySelector(".mark"), scale.querySelector(".base")];
    scale.querySelector(".bar").style.background = `linear-gradient(to right, ${VIRIDIS.map((hex) => "#" + hex).join()})`;
    scale.querySelector(".high").textContent = number(view.top);
    mark.hidden = view.baseline === null;
    mark.style.left = `${(100 * (view.baseline ?? 0)) / (view.top || 1)}%`;
    base.textContent = view.baselineText && `Mark on the scale, the baseline: ${view.baselineText}.`;
    scale.setAttribute("aria-label", `Colours run from 0 to ${number(view.top)} ${view.units}. ${base.textContent}`);
    drawProfile(kept);
  }

  function best(values) {
    let found = { layer: 0, head: 0 };
    values.forEach((row, layer) => row.forEach((value, head) => {
      if (value !== null && value > (values[found.layer][found.head] ?? -1)) found = { layer, head };
    }));
    return found;
  }

  // A cell is a text, or a text and what stands smaller behind it (below it where there is no room).
  function cell(tag, content, attributes) {
    const [text, small] = [content].flat();
    const made = element(tag, text, attributes);
    if (small) made.append(" ", element("small", small));
    return made;
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
    find("relations-name").textContent = `${name}: its relations`;
    fill("profile-surface", data.surface.map((one) => {
      const all = flat(one.values[side]);
      const mean = all.length ? all.reduce((sum, value) => sum + value, 0) / all.length : null;
      return [one.label, number(one.values[side][layer][head]), number(mean), number(one.baseline[side])];
    }));
    const scored = [];
    data.relations.forEach((relation, place) => data.directions.forEach((direction, way) => {
      const accuracy = data.accuracy[place][way][side][layer][head];
      if (accuracy === null) return;
      const at = (values) => (values ? values[place][way][side][layer][head] : null);
      const [lower, upper] = [at(data.lower), at(data.upper)];
      const interval = lower === null || upper === null ? "" : `[${number(lower)}, ${number(upper)}]`;
      const offset = relation.offset === null ? "\u2013" : [number(relation.offset_accuracy), `at ${signed(relation.offset)}`];
      const count = relation.count === null ? "\u2013" : relation.count.toLocaleString("en");
      const gain = (lower ?? accuracy) - (relation.offset_accuracy ?? 0);
      const [from, ...to] = words(direction).split(" ");
      scored.push({ gain, cells: [relation.name, [from, to.join(" ")], [number(accuracy), interval], count, offset] });
    }));
    scored.sort((a, b) => b.gain - a.gain);
    fill("profile-relations", scored.slice(0, BEST_RELATIONS).map((one) => one.cells));
    find("relations").hidden = data.relations.length === 0;
  }

  function fillSelects() {
    const group = (label, options) => {
      const made = element("optgroup", null, { label });
      made.append(...options.map(([value, text]) => element("option", text, { value })));
      if (options.length) selects.variable.append(made);
    };
    group("relation accuracy", data.relations.map((relation) => ["relation:" + relation.name, relation.name]));
    const groups = [["share of attention", "share of attention"], ["entropy (nats)", "nats"], ["reach (tokens)", "tokens"]];
    for (const [title, units] of groups) {
      group(title, data.surface.filter((one) => one.units === units).map((one) => [one.name, one.label]));
    }
    for (const name of data.directions ?? []) selects.direction.append(element("option", words(name), { value: name }));
    for (const name of data.attention_types) selects.attention_type.append(element("option", name, { value: name }));
    selects.attention_type.parentElement.hidden = data.attention_types.length === 0;
  }

  // The state is the address: #variable=entropy&head=3-1, so that a view can be linked to.
  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const [name, select] of Object.entries(selects)) {
      if ([...select.options].some((option) => option.value === state.get(name))) select.value = state.get(name);
    }
    const match = /^(\d+)-(\d+)$/.exec(state.get("head") ?? "");
    const [layer, head] = match ? [Number(match[1]) - 1, Number(match[2]) - 1] : [-1, -1];
    if (layer >= 0 && layer < data.layers && head >= 0 && head < data.heads) kept = { layer, head };
  }

  function remember() {
    const state = new URLSearchParams({ variable: selects.variable.value });
    if (!selects.direction.parentElement.hidden) state.set("direction", selects.direction.value);
    if (data.attention_types.length) state.set("attention_type", selects.attention_type.value);
    state.set("head", headName(kept.layer, kept.head));
    try {
      history.replaceState(null, "", "#" + state);
    } catch {
      // A page shown inside a notebook has no address of its own.
    }
  }

  function makeSortable(table) {
    for (const header of table.querySelectorAll("thead th:not(.picture)")) {
      const button = element("button", header.textContent, { type: "button" });
      header.replaceChildren(button);
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
        const [one, two] = [key(a), key(b)];
        if (one === "" || two === "") return (one === "") - (two === ""); // no number: last, either way
        const order = isNaN(one) || isNaN(two) ? one.localeCompare(two, "en") : one - two;
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
  recall();
  draw();
  for (const select of Object.values(selects)) {
    select.addEventListener("change", () => {
      draw();
      remember();
    });
  }
  addEventListener("hashchange", () => {
    recall();
    draw();
  });
})();
