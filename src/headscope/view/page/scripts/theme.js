// The light or dark theme: that of the system, until the reader chooses one.
import { find } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const listeners = [];
let isChosen = false;

export const isDark = () => root.dataset.theme === "dark";

export const onTheme = (listener) => listeners.push(listener);

function show(dark) {
  root.dataset.theme = dark ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function switchTheme() {
  isChosen = true;
  show(!isDark());
}

export function buildTheme() {
  find("theme").addEventListener("click", switchTheme);
  system.addEventListener("change", () => isChosen || show(system.matches));
}

show(system.matches);
