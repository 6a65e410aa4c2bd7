// The matrix by keys: arrows move the focus, Enter follows the link, f opens the first failed trial of the open row.
import { onKey } from "./keys.js";

const table = document.querySelector("[data-matrix]");
const rows = () => [...table.querySelectorAll("tr:has(> td > a.cell)")];
const links = (row) => [...row.querySelectorAll("a")];

function go(url) {
  if (url) location.assign(url);
  return Boolean(url);
}

function vertical(step) {
  const all = rows();
  const here = all.indexOf(document.activeElement?.closest("tr"));
  const next = here < 0 ? all[step > 0 ? 0 : all.length - 1] : all[here + step];
  const cell = next?.querySelector("a.cell");
  cell?.focus({ preventScroll: true });
  cell?.scrollIntoView({ block: "nearest" });
  return Boolean(cell);
}

function horizontal(step) {
  const row = document.activeElement?.closest("[data-matrix] tr");
  if (!row) return false;
  const all = links(row);
  all[all.indexOf(document.activeElement) + step]?.focus();
  return true;
}

if (table) {
  onKey("ArrowDown", () => vertical(1));
  onKey("ArrowUp", () => vertical(-1));
  onKey("ArrowRight", () => horizontal(1));
  onKey("ArrowLeft", () => horizontal(-1));
  onKey("f", () => go(table.querySelector("a[data-failed]")?.href));
  onKey("Escape", () => go(table.querySelector("a[data-close]")?.href));
  table.querySelector('tr[aria-expanded="true"] a.cell')?.focus({ preventScroll: true });
}
