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
for (const number of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
  onKey(String(number), () => {
    const tab = document.querySelectorAll(".tabs > a")[number - 1]; // found anew, since the list of trials replaces them
    tab?.click();
    return Boolean(tab);
  });
}
onKey("?", () => document.getElementById("keys")?.togglePopover());

// Escape closes an open menu first; the next Escape then does what the page uses this key for.
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

const labels = new WeakMap(); // usual labels of the buttons, which may say "Copied" when they are pressed again

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  if (!labels.has(button)) labels.set(button, button.textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = labels.get(button); }, 1500);
}

// A link with data-copy-from copies the text of its page to the clipboard. If that is not possible, it opens the page.
document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-copy-from]");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  try {
    const response = await fetch(link.href);
    if (!response.ok || response.redirected) throw new Error("not the text, but an error or the page to sign in");
    await copy(link, await response.text());
  } catch {
    location.assign(link.href);
  }
});

// A link with data-copy copies the value of this attribute to the clipboard, or the address of the page if the value is
// empty. A path is completed to an address of this site. If the text cannot be copied, the link opens its page.
document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-copy]");
  if (!link) return;
  if (!link.dataset.copy) link.href = location.href; // htmx may have changed the address
  if (!navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const text = link.dataset.copy || link.href;
  try {
    await copy(link, text.startsWith("/") ? location.origin + text : text);
  } catch {
    location.assign(link.href);
  }
});
