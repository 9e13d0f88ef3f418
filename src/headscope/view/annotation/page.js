"use strict";

const find = (id) => document.getElementById(id);
const CELLS = 48;
const MARGIN = 10;
// Viridis at nine places, between which colours are mixed.
const COLOURS = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98],
  [173, 220, 48], [253, 231, 37]];

let state = null;   // maps: numbers in order; labels: pattern by number; patterns: [name, definition]
let place = 0;
let busy = false;

async function ask(path, body) {
  const headers = { "X-Headscope-Token": new URLSearchParams(location.search).get("token") ?? "" };
  const options = body === undefined ? { headers } :
    { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

function colour(value) {
  const along = value / 255 * (COLOURS.length - 1);
  const low = Math.min(Math.floor(along), COLOURS.length - 2);
  const mixed = COLOURS[low].map((part, index) => part + (COLOURS[low + 1][index] - part) * (along - low));
  return `rgb(${mixed.map(Math.round).join(",")})`;
}

function draw(map) {
  const canvas = find("map"), context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  const size = (canvas.width - MARGIN) / CELLS;
  map.values.forEach((value, index) => {
    context.fillStyle = colour(value);
    const column = index % CELLS, row = Math.floor(index / CELLS);
    context.fillRect(MARGIN + column * size, row * size, size + 1, size + 1);
  });
  context.fillStyle = "#e0312f";
  for (const end of map.ends) {
    context.fillRect(0, end * (canvas.height - MARGIN) - 1, MARGIN, 3);
    context.fillRect(MARGIN + end * (canvas.width - MARGIN) - 1, canvas.height - MARGIN, 3, MARGIN);
  }
}

async function show(to) {
  place = Math.max(0, Math.min(state.maps.length - 1, to));
  const number = state.maps[place];
  find("number").textContent = `Map ${place + 1} of ${state.maps.length}`;
  const map = await ask(`map/${number}`);
  if (number === state.maps[place]) draw(map);
  const done = state.maps.filter((each) => state.labels[each]).length;
  find("progress").textContent = `${done} of ${state.maps.length} labelled${state.second ? " a second time" : ""}`;
  find("bar").max = state.maps.length;
  find("bar").value = done;
  state.patterns.forEach(([name], index) => {
    const button = find("patterns").children[index].firstChild;
    button.setAttribute("aria-pressed", String(state.labels[number] === name));
    button.querySelector(".count").textContent = Object.values(state.labels).filter((each) => each === name).length;
  });
}

function say(text, failed) {
  find("message").textContent = text;
  find("message").className = failed ? "failed" : "";
}

async function label(name) {
  if (busy) return;
  busy = true;
  const number = state.maps[place];
  try {
    state.labels = (await ask("label", { map: number, label: name })).labels; // others may have labelled meanwhile
    say("Saved.", false);
    if (name) {
      const rest = [...state.maps.keys()].filter((each) => !state.labels[state.maps[each]]);
      await show(rest.find((each) => each > place) ?? rest[0] ?? place);
    } else await show(place);
  } catch (error) {
    say(`The label was not saved: ${error.message}`, true);
  } finally {
    busy = false;
  }
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const number = Number(event.key);
  if (event.key >= "1" && number <= state.patterns.length) label(state.patterns[number - 1][0]);
  else if (event.key === "0" || event.key === "Backspace") label("");
  else if (event.key === "ArrowLeft") show(place - 1);
  else if (event.key === "ArrowRight") show(place + 1);
  else return;
  event.preventDefault();
}

async function begin() {
  state = await ask("state");
  state.patterns.forEach(([name, definition], index) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.innerHTML = "<kbd></kbd><span><b></b><small></small></span><span class=\"count\"></span>";
    button.querySelector("kbd").textContent = index + 1;
    button.querySelector("b").textContent = name;
    button.querySelector("small").textContent = definition;
    button.addEventListener("click", () => label(name));
    item.append(button);
    find("patterns").append(item);
  });
  document.addEventListener("keydown", press);
  find("finish").addEventListener("click", async () => {
    try {
      await ask("finish", {});
      document.removeEventListener("keydown", press);
      say("All labels are saved; close this page.", false);
    } catch (error) {
      say(`The program does not answer: ${error.message}`, true);
    }
  });
  const first = state.maps.findIndex((number) => !state.labels[number]);
  await show(first < 0 ? 0 : first);
}

begin().catch((error) => say(error.message, true));
