// The tabs: one panel is open. A panel without content on this page has no tab.
import { find } from "./dom.js";
import { choose } from "./state.js";

const tabs = [...find("tablist").querySelectorAll('[role="tab"]')];
const panelOf = (tab) => find(tab.getAttribute("aria-controls"));
const nameOf = (tab) => tab.id.replace("tab-", "");
const isEmpty = (panel) => [...panel.children].every((part) => part.hidden);

export function buildTabs() {
  find("tablist").hidden = false;
  for (const tab of tabs) tab.addEventListener("click", () => choose({ tab: nameOf(tab) }));
  find("tablist").addEventListener("keydown", (event) => {
    const shown = tabs.filter((tab) => !tab.hidden), at = shown.indexOf(event.target);
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (at < 0 || next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // elsewhere, arrow keys move between heads
    const tab = shown[(next + shown.length) % shown.length];
    choose({ tab: nameOf(tab) });
    tab.focus();
  });
}

export function drawTabs(state) {
  for (const tab of tabs) tab.hidden = isEmpty(panelOf(tab));
  const open = tabs.find((tab) => nameOf(tab) === state.tab && !tab.hidden) ?? tabs[0];
  for (const tab of tabs) {
    tab.setAttribute("aria-selected", String(tab === open));
    tab.tabIndex = tab === open ? 0 : -1;
    panelOf(tab).hidden = tab !== open;
  }
}

// Open the panel of an element, and scroll to the element.
export function reveal(element, place = { block: "nearest" }) {
  const panel = element.closest('[role="tabpanel"]');
  if (panel) choose({ tab: panel.id.replace("panel-", ""), mode: "one" });
  element.scrollIntoView(place);
}
