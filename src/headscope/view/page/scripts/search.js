// The search for a row, a variable or a head by name, with a link to each result.
import { element, find, number } from "./dom.js";
import { addressOf, describeScore, findBest, flat, headName, numbersOf, page, readHead, readVariable, VIEWS } from "./numbers.js";
import { follow } from "./state.js";
import { reveal } from "./tabs.js";

const MOST = 12; // the largest number of shown entries
const [box, list] = [find("search"), find("search-results")];
let state = null;
let active = -1; // the index of the entry that the Enter key chooses

// List the lists of heads, which come first: needed heads, and heads that another view changes most. An entry is {name,
// text to search in, detail, address, target}; its address may lead to a part of the page.
function listLists() {
  const heads = page.needed;
  const needed = { name: "Needed heads", text: ["needed heads", "without a head"], detail: `${heads.length}: ${heads.slice(0, 5).join(", ")}`, address: "", target: "needed" };
  const other = state.against || VIEWS.find((view) => view !== state.view);
  const changed = { name: "Heads that changed most", text: ["heads that changed most", "heads that differ most"], detail: `${state.view} less ${other}`, address: String(new URLSearchParams({ against: other })), target: "movers" };
  return [...(heads.length ? [needed] : []), ...(other ? [changed] : [])];
}

// List the rows with a head; rows whose head stands out come first.
function listRows() {
  const order = (row) => (row.mark === "*" ? 1 : 0);
  return page.rows.toSorted((a, b) => order(b) - order(a)).map((row) => ({
    name: row.plain.title,
    text: [row.name, row.label, row.plain.title, ...row.plain.title.split(" \u2192 "), row.plain.items, row.plain.about, row.title],
    detail: `${row.label === row.plain.title ? "" : `${row.label}, `}head ${row.head}${row.mark}, ${describeScore(row)}`,
    address: addressOf(row),
  }));
}

function listVariables() {
  const { scores, statistics } = numbersOf(state);
  const reported = new Set(page.rows.map((row) => row.key));
  const names = [...statistics.map((row) => row.name), ...scores.map((row) => row.key).filter((key) => !reported.has(key))];
  return names.map((name) => {
    const variable = readVariable({ ...state, variable: name });
    const { layer, head } = findBest(variable);
    const value = flat(variable.values).length ? `, ${number(variable.values[layer][head])} ${variable.units}` : "";
    return { name: variable.title, text: [variable.title, variable.label, name], detail: `head ${headName({ layer, head })}${value}`, address: addressOf({ key: name }) };
  });
}

// List the terms of the page, each with its explanation.
function listTerms() {
  return Object.entries(page.terms).map(([key, meaning]) => {
    const name = key.replaceAll("_", " ");
    return { name: `What is \u201c${name}\u201d?`, text: [name], detail: meaning, address: "", target: "answer" };
  });
}

function listHeads(query) {
  const head = readHead(query);
  if (!head) return [];
  const about = page.about[Math.max(0, page.attention_types.indexOf(state.attention_type))][head.layer][head.head];
  const name = headName(head);
  return [{ name: `Head ${name}`, text: [query], detail: about, address: addressOf({ head: name }) }];
}

// Rank an entry: 0 if the query is its whole name, 1 the beginning of its name, 2 the beginning of a word, 3 any part;
// null without a match.
function rank({ text }, query) {
  const texts = text.map((part) => part.toLowerCase());
  if (texts.includes(query)) return 0;
  if (texts.some((part) => part.startsWith(query))) return 1;
  if (texts.some((part) => part.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(query)))) return 2;
  return query.split(/\s+/).every((part) => texts.some((each) => each.includes(part))) ? 3 : null;
}

function search(query) {
  const entries = [...listLists(), ...listRows(), ...listVariables()];
  if (!query) return entries;
  const ranked = [...entries, ...listTerms()].map((entry) => ({ ...entry, rank: rank(entry, query) })).filter((entry) => entry.rank !== null);
  return [...listHeads(query), ...ranked.toSorted((a, b) => a.rank - b.rank)];
}

function show() {
  const query = box.value.trim().toLowerCase();
  const entries = search(query);
  list.replaceChildren(...entries.slice(0, MOST).map(({ name, detail, address, target }, place) => {
    const entry = element("li", null, { role: "option", id: `search-result-${place}`, "aria-selected": "false", "data-address": address, "data-target": target ?? "answer" });
    entry.append(element("strong", name), " ", element("small", detail));
    return entry;
  }));
  const rest = entries.length - MOST;
  find("search-count").textContent = entries.length === 0 ? `Nothing here is called \u201c${box.value.trim()}\u201d.` : rest > 0 ? `and ${rest} more; type to find them` : "";
  list.hidden = entries.length === 0;
  find("search-panel").hidden = false;
  box.setAttribute("aria-expanded", "true");
  mark(query && entries.length ? 0 : -1);
}

function hide() {
  find("search-panel").hidden = true;
  box.setAttribute("aria-expanded", "false");
  mark(-1);
}

function mark(place) {
  active = place;
  [...list.children].forEach((entry, at) => entry.setAttribute("aria-selected", String(at === place)));
  if (place < 0) box.removeAttribute("aria-activedescendant");
  else box.setAttribute("aria-activedescendant", list.children[place].id);
  list.children[place]?.scrollIntoView({ block: "nearest" });
}

function lead(entry) {
  box.value = "";
  list.replaceChildren();
  box.blur();
  follow(`${entry.dataset.address}&mode=one`);
  reveal(find(entry.dataset.target));
}

export function buildSearch() {
  box.addEventListener("input", show);
  box.addEventListener("focus", show);
  box.addEventListener("blur", hide);
  box.addEventListener("keydown", (event) => {
    const count = list.children.length;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && count) mark((active + steps[event.key] + count + (active < 0 && event.key === "ArrowUp" ? 1 : 0)) % count);
    else if (event.key === "Enter" && active >= 0) lead(list.children[active]);
    else if (event.key === "Escape") {
      box.value = "";
      box.blur();
    }
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the text box keeps the focus until the click
  list.addEventListener("click", (event) => event.target.closest("li") && lead(event.target.closest("li")));
}

export const drawSearch = (shown) => (state = shown);
