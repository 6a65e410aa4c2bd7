// Keys and mouse in the grid: arrows move the focus, a click on a cell opens its trials beside the grid, Escape closes
// them, and a card shows details of the cell that has the pointer or the focus. htmx may replace the grid, so each
// function finds its elements anew.
import { onKey } from "./keys.js";

const grid = () => document.querySelector("[data-grid]");
const panel = () => document.getElementById("panel");
const listRows = () => [...grid().querySelectorAll("tbody tr")];
const listLinks = (row) => [...row.querySelectorAll("td > a")];
let openedId = ""; // id of the cell whose trials are shown; empty without one
let lastRequest = 0; // number of the last request for trials; older answers are ignored
const CARD_DELAY_MS = 150;

function moveFocus(rowStep, columnStep) {
  if (!grid()) return false;
  const row = document.activeElement?.closest("[data-grid] tbody tr");
  const rows = listRows();
  if (!row) {
    if (grid().dataset.grid === "part") return false;
    listLinks(rows[0] ?? grid())[0]?.focus();
    return true;
  }
  const column = listLinks(row).indexOf(document.activeElement);
  const links = listLinks(rows[rows.indexOf(row) + rowStep] ?? row);
  const target = links[Math.min(Math.max(column + columnStep, 0), links.length - 1)];
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: "nearest", inline: "nearest" });
  return true;
}

function close() {
  if (!openedId) return false;
  const link = document.getElementById(openedId);
  link?.removeAttribute("aria-expanded");
  link?.focus({ preventScroll: true });
  openedId = "";
  lastRequest += 1;
  panel().hidden = true;
  return true;
}

// Returns the labels of the row and the column of a cell.
function readLabels(link) {
  const row = link.closest("tr");
  const name = [...row.querySelectorAll("th > *")].map((part) => part.textContent.trim()).join(", ");
  const index = [...row.querySelectorAll(".c")].indexOf(link.parentElement);
  return [name, index < 0 ? "Overall" : grid().querySelectorAll("thead .sc")[index].textContent.trim()];
}

function buildElement(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

// Returns the lines of a cell below its rate, such as the whole name of its profile.
function buildDetails(link) {
  return (link.dataset.card ?? "").split("\n").filter(Boolean).map((text) => buildElement("small", text));
}

// Returns the table of trials of the page at an address, with its links resolved against that address; null if the
// page cannot be read.
async function readTrials(address) {
  try {
    const response = await fetch(address);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const trials = page.querySelector("[data-panel]");
    for (const link of trials.querySelectorAll("a[href]")) link.href = new URL(link.getAttribute("href"), address);
    return trials;
  } catch {
    return null;
  }
}

async function open(link) {
  document.getElementById(openedId)?.removeAttribute("aria-expanded");
  openedId = link.id;
  link.setAttribute("aria-expanded", "true");
  const [name, column] = readLabels(link);
  const number = ++lastRequest;
  panel().setAttribute("aria-busy", "true");
  const trials = await readTrials(link.href);
  if (number !== lastRequest) return;
  const heading = buildElement("h2", `${name}: ${column}`);
  const allTrials = document.createElement("a");
  allTrials.href = link.href;
  allTrials.textContent = "Open all trials";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn plain";
  button.textContent = "Close";
  button.addEventListener("click", close);
  const header = document.createElement("header");
  header.append(heading, button);
  panel().replaceChildren(header, ...buildDetails(link), allTrials, trials ?? "The trials could not be read. Open the link.");
  panel().hidden = false;
  panel().removeAttribute("aria-busy");
}

// The card shows the texts of the cell's title and data-card beside the cell.
const card = document.createElement("div");
card.className = "cell-card";
card.id = "cell-card";
card.setAttribute("role", "tooltip");
card.hidden = true;
let cardLink = null; // link of the cell whose card is shown

function hideCard() {
  if (cardLink?.isConnected) {
    cardLink.title = cardLink.dataset.title;
    cardLink.removeAttribute("aria-describedby");
  }
  cardLink = null;
  card.hidden = true;
}

function placeCard(link) {
  const cell = link.getBoundingClientRect();
  const below = cell.bottom + 6 + card.offsetHeight < innerHeight;
  card.style.top = `${below ? cell.bottom + 6 : Math.max(4, cell.top - 6 - card.offsetHeight)}px`;
  card.style.left = `${Math.max(4, Math.min(cell.left, innerWidth - card.offsetWidth - 8))}px`;
}

function showCard(link) {
  if (link === cardLink) return;
  hideCard();
  cardLink = link;
  link.dataset.title = link.title;
  link.removeAttribute("title");
  const [name, column] = readLabels(link);
  const bar = document.createElement("span");
  bar.className = `ci ${[...link.parentElement.classList].filter((word) => ["clears", "below"].includes(word)).join(" ")}`;
  bar.style.cssText = `${link.getAttribute("style") ?? ""};--target:${grid().style.getPropertyValue("--target")}`;
  const bars = link.getAttribute("style")?.includes("--lo") ? [bar] : [];
  const head = [buildElement("b", name), buildElement("small", column)];
  card.replaceChildren(...head, ...bars, buildElement("span", link.dataset.title), ...buildDetails(link));
  document.body.append(card);
  card.hidden = false;
  link.setAttribute("aria-describedby", card.id);
  placeCard(link);
}

const findCell = (event) => event.target instanceof Element && event.target.closest("[data-grid] tbody td > a[data-card]");

// A card opens after the pointer has rested on a cell, so that rows that scroll past build none.
let cardTimer = 0;
document.addEventListener("pointerover", (event) => {
  clearTimeout(cardTimer);
  if (event.pointerType === "touch") return;
  const link = findCell(event);
  if (link && link.id !== openedId) cardTimer = setTimeout(showCard, CARD_DELAY_MS, link);
  else if (cardLink && !cardLink.matches(":focus-visible")) hideCard();
});
document.addEventListener("focusin", (event) => {
  const link = findCell(event);
  if (link?.matches(":focus-visible")) showCard(link);
});
document.addEventListener("focusout", (event) => { if (event.target === cardLink) hideCard(); });
document.addEventListener("scroll", () => {
  clearTimeout(cardTimer);
  if (cardLink && cardLink === document.activeElement) placeCard(cardLink);
  else if (cardLink) hideCard();
}, { capture: true, passive: true });
document.body.addEventListener("htmx:afterSwap", () => {
  const newLink = cardLink && document.getElementById(cardLink.id);
  hideCard();
  if (newLink) showCard(newLink);
  if (openedId) document.getElementById(openedId)?.setAttribute("aria-expanded", "true");
});

onKey("ArrowDown", () => moveFocus(1, 0));
onKey("ArrowUp", () => moveFocus(-1, 0));
onKey("ArrowRight", () => moveFocus(0, 1));
onKey("ArrowLeft", () => moveFocus(0, -1));
onKey("Escape", () => {
  if (!card.hidden && !openedId) {
    hideCard();
    return true;
  }
  return close();
});
onKey("f", () => {
  // While the trials of another cell are loaded, the panel has the previous ones.
  const failed = panel()?.matches(":not([hidden], [aria-busy])") && panel().querySelector("a[data-failed]");
  if (failed) location.assign(failed.href);
  return Boolean(failed);
});
document.addEventListener("click", (event) => {
  const link = findCell(event);
  if (link && !link.hasAttribute("href")) showCard(link); // a touch screen has no other way to the card
  if (!link?.matches(".c > a[href]") || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  clearTimeout(cardTimer);
  hideCard();
  if (link.id === openedId) close();
  else open(link);
});
