// Shows the fields of the stopping rule that is chosen; without it all stand under a heading that says when they count.
const rule = document.getElementById("id_until");

function showRule() {
  for (const block of document.querySelectorAll("[data-until]")) {
    block.hidden = !block.dataset.until.split(" ").includes(rule.value);
  }
}

rule?.addEventListener("change", showRule);
if (rule) showRule();

// While a start is under way, no new plan replaces its button: with the new button's key, a second press would start
// another run.
const plan = document.querySelector("form.plan");
let isStarting = false;

plan?.addEventListener("submit", (event) => {
  isStarting = event.submitter?.formMethod === "post";
});
plan?.addEventListener("htmx:beforeSwap", (event) => {
  if (isStarting) event.detail.shouldSwap = false;
});
window.addEventListener("pageshow", () => {
  isStarting = false;
});

// Narrows the list of models while one types; what is chosen stays. Without it the Filter button asks the server.
const field = document.querySelector("[data-find]");

function narrow() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const label of document.querySelectorAll("label[data-findable]")) {
    const text = label.textContent.toLowerCase();
    label.hidden = !label.querySelector("input").checked && !words.every((word) => text.includes(word));
  }
  for (const block of document.querySelectorAll("div[data-findable], fieldset[data-findable]")) {
    block.hidden = !block.querySelector("label[data-findable]:not([hidden])");
  }
  for (const details of document.querySelectorAll(".unavailable, fieldset[data-findable] > details")) {
    if (words.length) details.open = true;
  }
  const shown = document.querySelectorAll("label[data-findable]:not([hidden])").length;
  document.querySelector("[data-found]").textContent = words.length ? `${shown} shown; what is chosen stays.` : "";
}

field?.addEventListener("input", narrow);
field?.addEventListener("keydown", (event) => {
  if (event.key === "Enter") event.preventDefault();
});
