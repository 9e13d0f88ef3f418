// Light or dark: as the system has it, until the reader chooses.
import { find } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const listeners = [];

export const isDark = () => root.dataset.theme === "dark";

export const onTheme = (listener) => listeners.push(listener);

function show(dark) {
  root.dataset.theme = dark ? "dark" : "light";
  for (const listener of listeners) listener();
}

export const switchTheme = () => show(!isDark());

export function buildTheme() {
  find("theme").addEventListener("click", switchTheme);
  system.addEventListener("change", () => show(system.matches));
}

show(system.matches);
