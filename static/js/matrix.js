// Keys in the bars of the matrix: arrows move the focus, Enter follows the link, f opens the first failed trial of the
// open row, and Escape closes this row.
import { onKey } from "./keys.js";

const table = document.querySelector("[data-matrix]");
const listRows = () => [...table.querySelectorAll("tr:has(> td > a.cell)")];
const listLinks = (row) => [...row.querySelectorAll("a")];

function openUrl(url) {
  if (url) location.assign(url);
  return Boolean(url);
}

function moveToRow(step) {
  const rows = listRows();
  const current = rows.indexOf(document.activeElement?.closest("tr"));
  const next = current < 0 ? rows.at(step > 0 ? 0 : -1) : rows[current + step];
  const cell = next?.querySelector("a.cell");
  cell?.focus({ preventScroll: true });
  cell?.scrollIntoView({ block: "nearest" });
  return Boolean(cell);
}

function moveToLink(step) {
  const row = document.activeElement?.closest("[data-matrix] tr");
  if (!row) return false;
  const links = listLinks(row);
  links[links.indexOf(document.activeElement) + step]?.focus();
  return true;
}

if (table) {
  onKey("ArrowDown", () => moveToRow(1));
  onKey("ArrowUp", () => moveToRow(-1));
  onKey("ArrowRight", () => moveToLink(1));
  onKey("ArrowLeft", () => moveToLink(-1));
  onKey("f", () => openUrl(table.querySelector("a[data-failed]")?.href));
  onKey("Escape", () => openUrl(table.querySelector("a[data-close]")?.href));
  table.querySelector('tr[aria-expanded="true"] a.cell')?.focus({ preventScroll: true });
}
