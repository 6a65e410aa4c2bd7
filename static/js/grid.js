// The grid by keys and mouse: arrows walk it, a click on a cell opens its trials beside it, Escape closes them, a card
// says more about the cell under the pointer or focus. The page may replace the grid, so nothing of it is kept here.
import { onKey } from "./keys.js";

const grid = () => document.querySelector("[data-grid]");
const panel = () => document.getElementById("panel");
const lines = () => [...grid().querySelectorAll("tbody tr")];
const stops = (line) => [...line.querySelectorAll("td > a")];
let opened = ""; // id of the cell whose trials are shown
let asked = 0;
const CARD_DELAY_MS = 150;

function walk(down, right) {
  if (!grid()) return false;
  const line = document.activeElement?.closest("[data-grid] tbody tr");
  const all = lines();
  if (!line) {
    if (grid().dataset.grid === "part") return false;
    stops(all[0] ?? grid())[0]?.focus();
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
  const link = opened && document.getElementById(opened);
  if (!opened) return false;
  link?.removeAttribute("aria-expanded");
  link?.focus({ preventScroll: true });
  opened = "";
  asked += 1;
  panel().hidden = true;
  return true;
}

function describe(link) {
  const row = link.closest("tr");
  const name = [...row.querySelectorAll("th > *")].map((part) => part.textContent.trim()).join(", ");
  const place = [...row.querySelectorAll(".c")].indexOf(link.parentElement);
  return [name, place < 0 ? "Overall" : grid().querySelectorAll("thead .sc")[place].textContent.trim()];
}

async function open(link) {
  document.getElementById(opened)?.removeAttribute("aria-expanded");
  opened = link.id;
  link.setAttribute("aria-expanded", "true");
  const [name, column] = describe(link);
  const number = ++asked;
  const response = await fetch(link.href);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (number !== asked) return;
  const heading = document.createElement("h2");
  heading.textContent = `${name}: ${column}`;
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
  panel().replaceChildren(header, all, found ?? "The trials could not be read. Open the link.");
  panel().hidden = false;
}

// The card: what the cell's title and data-card say, beside the cell.
const card = document.createElement("div");
card.className = "cell-card";
card.id = "cell-card";
card.setAttribute("role", "tooltip");
card.hidden = true;
let described = null;

function line(tag, text) {
  const found = document.createElement(tag);
  found.textContent = text;
  return found;
}

function hideCard() {
  if (described?.isConnected) {
    described.title = described.dataset.title;
    described.removeAttribute("aria-describedby");
  }
  described = null;
  card.hidden = true;
}

function placeCard(link) {
  const cell = link.getBoundingClientRect();
  const below = cell.bottom + 6 + card.offsetHeight < innerHeight;
  card.style.top = `${below ? cell.bottom + 6 : Math.max(4, cell.top - 6 - card.offsetHeight)}px`;
  card.style.left = `${Math.max(4, Math.min(cell.left, innerWidth - card.offsetWidth - 8))}px`;
}

function showCard(link) {
  if (link === described) return;
  hideCard();
  described = link;
  link.dataset.title = link.title;
  link.removeAttribute("title");
  const [name, column] = describe(link);
  const bar = document.createElement("span");
  bar.className = `ci ${[...link.parentElement.classList].filter((word) => ["clears", "below"].includes(word)).join(" ")}`;
  bar.style.cssText = `${link.getAttribute("style") ?? ""};--target:${grid().style.getPropertyValue("--target")}`;
  const lines = (link.dataset.card ?? "").split("\n").filter(Boolean).map((text) => line("small", text));
  const bars = link.getAttribute("style")?.includes("--lo") ? [bar] : [];
  card.replaceChildren(line("b", name), line("small", column), ...bars, line("span", link.dataset.title), ...lines);
  document.body.append(card);
  card.hidden = false;
  link.setAttribute("aria-describedby", card.id);
  placeCard(link);
}

const findCell = (event) => event.target instanceof Element && event.target.closest("[data-grid] tbody td > a[data-card]");

// Under the pointer a card opens once it rests: rows that scroll past build none.
let resting = 0;
document.addEventListener("pointerover", (event) => {
  clearTimeout(resting);
  if (event.pointerType === "touch") return;
  const link = findCell(event);
  if (link) resting = setTimeout(showCard, CARD_DELAY_MS, link);
  else if (described && document.activeElement !== described) hideCard();
});
document.addEventListener("focusin", (event) => {
  const link = findCell(event);
  if (link?.matches(":focus-visible")) showCard(link);
});
document.addEventListener("focusout", (event) => { if (event.target === described) hideCard(); });
document.addEventListener("scroll", () => {
  clearTimeout(resting);
  if (described && described === document.activeElement) placeCard(described);
  else if (described) hideCard();
}, { capture: true, passive: true });
document.body.addEventListener("htmx:afterSwap", () => {
  const again = described && document.getElementById(described.id);
  hideCard();
  if (again) showCard(again);
  if (opened) document.getElementById(opened)?.setAttribute("aria-expanded", "true");
});

onKey("ArrowDown", () => walk(1, 0));
onKey("ArrowUp", () => walk(-1, 0));
onKey("ArrowRight", () => walk(0, 1));
onKey("ArrowLeft", () => walk(0, -1));
onKey("Escape", () => {
  if (!card.hidden && !opened) {
    hideCard();
    return true;
  }
  return close();
});
onKey("f", () => {
  const failed = panel()?.querySelector("a[data-failed]");
  if (failed) location.assign(failed.href);
  return Boolean(failed);
});
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-grid] .c > a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  hideCard();
  if (link.id === opened) close();
  else open(link);
});
