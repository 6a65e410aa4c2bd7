// The search page in a dialog: Ctrl K opens it, arrows choose a link, Enter follows the link, Escape closes the dialog.
const palette = document.getElementById("palette");
const field = palette.querySelector("input");
const results = document.getElementById("palette-found");
let lastRequest = 0; // number of the last request; older answers are ignored
let lastSearch = Promise.resolve(); // resolves when the results are those of the text in the field

// Returns the HTML of the results; empty if they cannot be read, as after the end of the session.
async function readResults(text) {
  try {
    const address = `${palette.dataset.url}?q=${encodeURIComponent(text)}`;
    const response = await fetch(address, { headers: { "HX-Request": "true" } });
    return response.ok && !response.redirected ? await response.text() : "";
  } catch {
    return "";
  }
}

async function search() {
  const number = ++lastRequest;
  const text = await readResults(field.value);
  // Replacing a link between the press and the release of a button would lose the click.
  while (results.matches(":active")) await new Promise(requestAnimationFrame);
  if (number !== lastRequest) return;
  results.innerHTML = text;
  choose(0);
}

function listLinks() {
  return [...results.querySelectorAll("a")];
}

function choose(index) {
  listLinks().forEach((link, number) => link.setAttribute("aria-selected", String(number === index)));
  listLinks()[index]?.scrollIntoView({ block: "nearest" });
}

function open() {
  if (!palette.open) palette.showModal();
  field.select();
  lastSearch = search();
}

document.querySelector("[data-palette-open]")?.addEventListener("click", (event) => {
  event.preventDefault();
  open();
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open();
  }
});
field.addEventListener("input", () => { lastSearch = search(); });
palette.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  await lastSearch; // until then, the results are those of an earlier text
  const chosen = listLinks().find((link) => link.getAttribute("aria-selected") === "true");
  if (chosen) chosen.click();
  else event.target.submit();
});
palette.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = listLinks();
  if (!step || !links.length) return;
  event.preventDefault();
  const current = links.findIndex((link) => link.getAttribute("aria-selected") === "true");
  choose((current + step + links.length) % links.length);
});
palette.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});
