// Keys that work on every page. Pages add theirs: import { onKey } from "./keys.js"; onKey("f", action).
const places = { s: "/", r: "/matrix/", u: "/runs/", l: "/scenarios/", p: "/providers/" };
const actions = new Map();
let waiting = 0; // until when the letter after g counts

export function onKey(key, action) {
  actions.set(key, action);
}

function typing(target) {
  return target instanceof Element && target.closest("input, select, textarea, [contenteditable]");
}

function search() {
  const field = document.querySelector('main input[type="search"]');
  field?.focus();
  field?.select();
}

onKey("/", search);
onKey("n", () => location.assign("/runs/new/"));
document.querySelector(".tabs > [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
document.querySelectorAll(".tabs > a").forEach((tab, place) => onKey(String(place + 1), () => tab.click()));
onKey("?", () => document.getElementById("keys")?.togglePopover());

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.timeStamp < waiting && places[event.key]) {
    waiting = 0;
    event.preventDefault();
    location.assign(places[event.key]);
    return;
  }
  waiting = event.key === "g" ? event.timeStamp + 1500 : 0;
  const action = actions.get(event.key);
  if (action && action(event) !== false) event.preventDefault();
});

// A field with data-filters-list shows only the choices of its list that contain its text.
document.addEventListener("input", (event) => {
  const field = event.target instanceof Element && event.target.closest("[data-filters-list]");
  if (!field) return;
  const text = field.value.toLowerCase();
  for (const choice of field.parentElement.querySelectorAll(".check")) choice.hidden = !choice.textContent.toLowerCase().includes(text);
});

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
}

// A link with data-copy-from puts the text of its page on the clipboard; without a clipboard it opens the page.
document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-copy-from]");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const answer = await fetch(link.href);
  if (answer.ok) await copy(link, await answer.text());
  else location.assign(link.href);
});

// A button with data-copy puts its text, or the page's address for an empty one, on the clipboard.
document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-copy]");
  if (!button || !navigator.clipboard) return;
  event.preventDefault();
  const text = button.dataset.copy || location.href;
  await copy(button, text.startsWith("/") ? location.origin + text : text);
});
