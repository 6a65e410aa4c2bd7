// Keys in the list of trials: j and k move the focus, f moves to the next failed trial, Enter opens a trial, p shows its
// summary beside the list. Typing in the query searches after a pause.
import { onKey } from "./keys.js";

const form = document.querySelector("[data-query]");
const listLinks = () => [...document.querySelectorAll("a[data-trial]")];
const panel = () => document.getElementById("peek");
let lastSearch = 0; // number of the last search; older answers are ignored
let searchTimer = 0;
let peekedId = ""; // id of the row whose summary is shown; empty without one
let lastPeek = 0; // number of the last request for a summary; older answers are ignored

function move(step, isWanted = () => true) {
  const links = listLinks();
  let index = links.indexOf(document.activeElement);
  if (index < 0 && peekedId) index = links.findIndex((link) => link.closest("tr").id === peekedId);
  if (index < 0 && step < 0) index = links.length;
  for (index += step; index >= 0 && index < links.length; index += step) {
    if (!isWanted(links[index])) continue;
    links[index].focus({ preventScroll: true });
    links[index].scrollIntoView({ block: "nearest" });
    if (peekedId) peek(links[index]);
    return true;
  }
  return false;
}

// Returns the page at an address; null if it cannot be read.
async function readPage(address) {
  try {
    const response = await fetch(address);
    return response.ok ? new DOMParser().parseFromString(await response.text(), "text/html") : null;
  } catch {
    return null;
  }
}

async function search() {
  const number = ++lastSearch;
  const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
  const page = await readPage(address);
  if (number !== lastSearch) return;
  if (!page?.getElementById("found")) {
    document.querySelector("[data-total]").textContent = "The trials could not be read. Press Enter to search again.";
    return;
  }
  forgetPeek();
  // Links and forms outside the list have the query, too.
  for (const part of ["#found", "#clear-filters", "#scope-switch", ".table-tools", ".tabs", ".tab-tools"]) {
    document.querySelector(part).replaceChildren(...page.querySelector(part).childNodes);
  }
  history.replaceState(null, "", address);
}

// Returns the parts of the trial's page that are marked data-peek, changed for a place beside the list: links are
// resolved against the trial's page, headings are lower, and ids, which the list may have too, are removed. The result
// is empty if the page cannot be read.
async function readSummary(address) {
  const page = await readPage(address);
  const parts = [...(page?.querySelectorAll("[data-peek]") ?? [])];
  for (const part of parts) {
    for (const link of part.querySelectorAll("a[href]")) link.href = new URL(link.getAttribute("href"), new URL(address, location.href));
    for (const heading of part.querySelectorAll("h1")) {
      const lowerHeading = document.createElement("h3");
      lowerHeading.append(...heading.childNodes);
      heading.replaceWith(lowerHeading);
    }
    for (const element of [part, ...part.querySelectorAll("*")]) {
      for (const name of ["id", "data-key", "aria-labelledby"]) element.removeAttribute(name);
    }
  }
  return parts;
}

function buildHeader(link) {
  const row = link.closest("tr");
  const title = document.createElement("h2");
  title.textContent = `Trial ${link.textContent.trim()}`;
  const source = document.createElement("p");
  source.className = "muted small";
  source.textContent = ["model", "scenario"].map((name) => row.querySelector(`.col-${name}`)?.innerText).filter(Boolean).join(" · ");
  const open = document.createElement("a");
  open.className = "btn";
  open.href = link.href;
  open.textContent = "Open";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn plain";
  button.textContent = "Close";
  button.addEventListener("click", closePeek);
  const tools = document.createElement("div");
  tools.className = "btns";
  tools.append(open, button);
  const header = document.createElement("header");
  header.append(title, tools, source);
  return header;
}

async function peek(link) {
  forgetPeek();
  const row = link.closest("tr");
  peekedId = row.id;
  row.setAttribute("aria-selected", "true");
  const number = ++lastPeek;
  const parts = await readSummary(link.href);
  if (number !== lastPeek) return;
  panel().replaceChildren(buildHeader(link), ...(parts.length ? parts : ["The trial could not be read. Open its page."]));
  panel().hidden = false;
}

function forgetPeek() {
  document.getElementById(peekedId)?.removeAttribute("aria-selected");
  peekedId = "";
  lastPeek += 1;
}

function closePeek() {
  if (!peekedId) return false;
  const row = document.getElementById(peekedId);
  forgetPeek();
  panel().hidden = true;
  row?.querySelector("a[data-trial]").focus({ preventScroll: true });
  return true;
}

onKey("j", () => move(1));
onKey("k", () => move(-1));
onKey("f", () => move(1, (link) => link.dataset.failed !== undefined));
onKey("p", () => {
  const row = document.activeElement?.closest("[data-rows] tbody tr");
  if (peekedId && (!row || row.id === peekedId)) return closePeek();
  const link = row?.querySelector("a[data-trial]") ?? listLinks()[0];
  if (link) peek(link);
  return Boolean(link);
});
onKey("Escape", closePeek);
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-peek-open]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const row = link.closest("tr");
  if (row.id === peekedId) closePeek();
  else peek(row.querySelector("a[data-trial]"));
});
form?.addEventListener("input", (event) => {
  if (!event.target.name) return; // a field that only finds a choice of a menu
  clearTimeout(searchTimer);
  searchTimer = setTimeout(search, 200);
});
