// The grid by keys and mouse: arrows walk it, a click on a cell opens its trials beside it, Escape closes them.
import { onKey } from "./keys.js";

const grid = document.querySelector("[data-grid]");
const panel = document.getElementById("panel");
const lines = () => [...grid.querySelectorAll("tbody tr")];
const stops = (line) => [...line.querySelectorAll("td > a")];
let opened = null;
let asked = 0;

function walk(down, right) {
  const line = document.activeElement?.closest("[data-grid] tbody tr");
  const all = lines();
  if (!line) {
    stops(all[0] ?? grid)[0]?.focus();
    return true;
  }
  const column = stops(line).indexOf(document.activeElement);
  const next = stops(all[all.indexOf(line) + down] ?? line);
  const target = next[Math.min(Math.max(column + right, 0), next.length - 1)];
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: "nearest", inline: "nearest" });
  return true;
}

function close() {
  if (!opened) return false;
  opened.removeAttribute("aria-expanded");
  opened.focus({ preventScroll: true });
  opened = null;
  panel.hidden = true;
  return true;
}

async function open(link) {
  opened?.removeAttribute("aria-expanded");
  opened = link;
  link.setAttribute("aria-expanded", "true");
  const number = ++asked;
  const response = await fetch(link.href);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (number !== asked) return;
  const name = link.closest("tr").querySelector("th").innerText.replaceAll("\n", ", ");
  const heading = document.createElement("h2");
  const place = [...link.closest("tr").querySelectorAll(".c")].indexOf(link.parentElement);
  heading.textContent = `${name}: ${grid.querySelectorAll("thead .sc")[place].innerText}`;
  const all = document.createElement("a");
  all.href = link.href;
  all.textContent = "Open all trials";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn plain";
  button.textContent = "Close";
  button.addEventListener("click", close);
  const header = document.createElement("header");
  header.append(heading, button);
  const found = page.querySelector("[data-panel]");
  panel.replaceChildren(header, all, found ?? document.createTextNode("The trials could not be read. Open the link."));
  panel.hidden = false;
}

if (grid) {
  onKey("ArrowDown", () => walk(1, 0));
  onKey("ArrowUp", () => walk(-1, 0));
  onKey("ArrowRight", () => walk(0, 1));
  onKey("ArrowLeft", () => walk(0, -1));
  onKey("Escape", close);
  onKey("f", () => {
    const failed = panel.querySelector("a[data-failed]");
    if (failed) location.assign(failed.href);
    return Boolean(failed);
  });
  grid.addEventListener("click", (event) => {
    const link = event.target.closest(".c > a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    if (link === opened) close();
    else open(link);
  });
}
