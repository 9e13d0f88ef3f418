// The tables of reported and of needed heads: they can be sorted, and a click on a row shows its head in the grid.
import { element } from "./dom.js";
import { page } from "./numbers.js";
import { follow, readAddress } from "./state.js";

const links = [...document.querySelectorAll("#reported-rows tbody a, #needed-rows tbody a")];
const rowOf = (link) => link.closest("tr");

// Mark the rows whose links lead to what the page shows.
export function markRows() {
  const address = readAddress();
  for (const link of links) {
    const wanted = [...new URLSearchParams(link.hash.slice(1))];
    if (wanted.every(([name, value]) => (address.get(name) ?? page.name) === value)) rowOf(link).setAttribute("aria-current", "true");
    else rowOf(link).removeAttribute("aria-current");
  }
}

function linkRow(link) {
  rowOf(link).classList.add("linked");
  rowOf(link).addEventListener("click", (event) => {
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey; // the reader opens a link in a new tab
    if (elsewhere || event.defaultPrevented || String(getSelection())) return;
    event.preventDefault();
    follow(link.hash.slice(1));
  });
}

// Sort the rows of each heading separately, since different scores cannot be compared.
function sortBy(table, header) {
  const column = header.cellIndex;
  const way = header.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", way);
  const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  for (const body of table.tBodies) {
    const rows = [...body.querySelectorAll("tr:not(.group)")].sort((a, b) => {
      const [left, right] = [key(a), key(b)];
      if (left === "" || right === "") return (left === "") - (right === ""); // rows without a number come last in both orders
      const order = isNaN(left) || isNaN(right) ? left.localeCompare(right, "en") : left - right;
      return way === "ascending" ? order : -order;
    });
    body.append(...rows);
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

export function buildTables() {
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  links.forEach(linkRow);
}
