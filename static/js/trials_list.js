// The list of trials by keys: j and k move, f finds the next failed one, Enter opens, p peeks. Typing searches; only the
// last answer is shown.
import { onKey } from "./keys.js";

const form = document.querySelector("[data-query]");
const links = () => [...document.querySelectorAll("a[data-trial]")];
const panel = () => document.getElementById("peek");
let asked = 0;
let waiting = 0;
let peeked = ""; // id of the row whose summary is shown
let peeks = 0;

function move(step, isWanted = () => true) {
  const all = links();
  let place = all.indexOf(document.activeElement);
  if (place < 0 && peeked) place = all.findIndex((link) => link.closest("tr").id === peeked);
  if (place < 0 && step < 0) place = all.length;
  for (place += step; place >= 0 && place < all.length; place += step) {
    if (!isWanted(all[place])) continue;
    all[place].focus({ preventScroll: true });
    all[place].scrollIntoView({ block: "nearest" });
    if (peeked) peek(all[place]);
    return true;
  }
  return false;
}

async function search() {
  const number = ++asked;
  const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
  const response = await fetch(address);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (number !== asked || !response.ok) return;
  forgetPeek();
  document.getElementById("found").replaceWith(page.getElementById("found"));
  document.querySelector(".table-tools").replaceWith(page.querySelector(".table-tools")); // they hold the query too
  history.replaceState(null, "", address);
}

// The parts of the trial's page that are marked data-peek, beside the list. Their links lead to that page.
async function readSummary(address) {
  const response = await fetch(address).catch(() => null);
  if (!response) return [];
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const parts = response.ok ? [...page.querySelectorAll("[data-peek]")] : [];
  for (const part of parts) {
    for (const link of part.querySelectorAll("a[href]")) link.href = new URL(link.getAttribute("href"), new URL(address, location.href));
    for (const heading of part.querySelectorAll("h1")) {
      const lower = document.createElement("h3");
      lower.append(...heading.childNodes);
      heading.replaceWith(lower);
    }
    for (const named of [part, ...part.querySelectorAll("*")]) {
      for (const name of ["id", "data-key", "aria-labelledby"]) named.removeAttribute(name);
    }
  }
  return parts;
}

function buildHeader(link) {
  const row = link.closest("tr");
  const title = document.createElement("h2");
  title.textContent = `Trial ${link.textContent.trim()}`;
  const place = document.createElement("p");
  place.className = "muted small";
  place.textContent = ["model", "scenario"].map((name) => row.querySelector(`.col-${name}`)?.innerText).filter(Boolean).join(" · ");
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
  header.append(title, tools, place);
  return header;
}

async function peek(link) {
  forgetPeek();
  const row = link.closest("tr");
  peeked = row.id;
  row.setAttribute("aria-selected", "true");
  const number = ++peeks;
  const parts = await readSummary(link.href);
  if (number !== peeks) return;
  panel().replaceChildren(buildHeader(link), ...(parts.length ? parts : ["The trial could not be read. Open its page."]));
  panel().hidden = false;
}

function forgetPeek() {
  document.getElementById(peeked)?.removeAttribute("aria-selected");
  peeked = "";
  peeks += 1;
}

function closePeek() {
  if (!peeked) return false;
  const row = document.getElementById(peeked);
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
  if (peeked && (!row || row.id === peeked)) return closePeek();
  const link = row?.querySelector("a[data-trial]") ?? links()[0];
  if (link) peek(link);
  return Boolean(link);
});
onKey("Escape", closePeek);
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-peek-open]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const row = link.closest("tr");
  if (row.id === peeked) closePeek();
  else peek(row.querySelector("a[data-trial]"));
});
form?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 200);
});
