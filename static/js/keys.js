// Keys that work on every page. Scripts of pages add keys with onKey("f", action); an action that returns false leaves
// the key to the browser.
const sections = { s: "/", r: "/matrix/", u: "/runs/", l: "/scenarios/", p: "/providers/" };
const actions = new Map();
let goDeadline = 0; // time until which a letter after g opens a section

export function onKey(key, action) {
  actions.set(key, action);
}

function isTextField(target) {
  return target instanceof Element && target.closest("input, select, textarea, [contenteditable]");
}

function focusSearch() {
  const field = document.querySelector('main input[type="search"]');
  field?.focus();
  field?.select();
}

onKey("/", focusSearch);
onKey("n", () => location.assign("/runs/new/"));
document.querySelector(".tabs > [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
document.querySelectorAll(".tabs > a").forEach((tab, index) => onKey(String(index + 1), () => tab.click()));
onKey("?", () => document.getElementById("keys")?.togglePopover());

// Escape closes an open menu first; a second one then does what the page says.
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details:is(.menu, .account)[open]");
  const front = document.querySelector("dialog[open], :popover-open");
  if (!menu || (front && !front.contains(menu))) return;
  event.preventDefault();
  menu.open = false;
  menu.querySelector("summary").focus();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (isTextField(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.timeStamp < goDeadline && sections[event.key]) {
    goDeadline = 0;
    event.preventDefault();
    location.assign(sections[event.key]);
    return;
  }
  goDeadline = event.key === "g" ? event.timeStamp + 1500 : 0;
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
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1500);
}

// A link with data-copy-from copies the text of its page to the clipboard. If that is not possible, it opens the page.
document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-copy-from]");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const response = await fetch(link.href);
  if (response.ok) await copy(link, await response.text());
  else location.assign(link.href);
});

// A button or link with data-copy copies the value of this attribute to the clipboard, or the address of the page if the value
// is empty. A path is completed to an address of this site.
document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-copy]");
  if (!button || !navigator.clipboard) return;
  event.preventDefault();
  const text = button.dataset.copy || location.href;
  await copy(button, text.startsWith("/") ? location.origin + text : text);
});
