// The search page in a dialog: Ctrl K opens it, arrows choose, Enter follows, Escape closes. Only the last answer counts.
const palette = document.getElementById("palette");
const field = palette.querySelector("input");
const found = document.getElementById("palette-found");
let asked = 0;

async function search() {
  const number = ++asked;
  const response = await fetch(`${palette.dataset.url}?q=${encodeURIComponent(field.value)}`, { headers: { "HX-Request": "true" } });
  const text = response.ok ? await response.text() : "";
  // Replacing a link between the press and the release of a button would lose the click.
  while (found.matches(":active")) await new Promise(requestAnimationFrame);
  if (number !== asked) return;
  found.innerHTML = text;
  choose(0);
}

function links() {
  return [...found.querySelectorAll("a")];
}

function choose(index) {
  links().forEach((link, place) => link.setAttribute("aria-selected", String(place === index)));
  links()[index]?.scrollIntoView({ block: "nearest" });
}

function open() {
  if (!palette.open) palette.showModal();
  field.select();
  search();
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
field.addEventListener("input", search);
palette.querySelector("form").addEventListener("submit", (event) => {
  const chosen = links().find((link) => link.getAttribute("aria-selected") === "true");
  if (!chosen) return;
  event.preventDefault();
  chosen.click();
});
palette.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !links().length) return;
  event.preventDefault();
  const now = links().findIndex((link) => link.getAttribute("aria-selected") === "true");
  choose((now + step + links().length) % links().length);
});
palette.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});
