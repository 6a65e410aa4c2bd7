// Shows only the fields of the chosen stopping rule. Without this script, all fields are shown under headings that say
// to which rule they belong.
const rule = document.getElementById("id_until");

function showRule() {
  for (const block of document.querySelectorAll("[data-until]")) {
    block.hidden = !block.dataset.until.split(" ").includes(rule.value);
  }
}

rule?.addEventListener("change", showRule);
if (rule) showRule();

// While a button is pressed or the form is sent, htmx does not replace the buttons by those of a new plan: the press would
// be lost, and the new button has another launch key, with which a second press would start another run.
const plan = document.querySelector("form.plan");
let isStarting = false;
let isPressed = false;
let hasSkippedPlan = false;

plan?.addEventListener("submit", (event) => {
  isStarting = event.submitter?.formMethod === "post";
});
plan?.addEventListener("htmx:beforeSwap", (event) => {
  if (isStarting || isPressed) event.detail.shouldSwap = false;
  hasSkippedPlan ||= isPressed;
});
plan?.addEventListener("pointerdown", (event) => {
  isPressed = event.target.closest("button") !== null;
});
for (const type of ["pointerup", "pointercancel"]) {
  window.addEventListener(type, () => setTimeout(endPress)); // after the click, which follows the release
}
window.addEventListener("pageshow", () => {
  isStarting = false;
});

// Requests the plan if fields were changed before the scripts were loaded, or restored by the browser.
document.addEventListener("DOMContentLoaded", () => {
  if (plan && [...plan.elements].some(isChanged)) plan.dispatchEvent(new Event("change"));
});

function isChanged(field) {
  if (field.options) {
    const chosen = [...field.options].find((option) => option.defaultSelected) ?? field.options[0];
    return field.selectedOptions[0] !== chosen;
  }
  if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
  return field.matches("input, textarea") && field.value !== field.defaultValue;
}

// Requests the plan again if it was not shown because a button was pressed without sending the form.
function endPress() {
  isPressed = false;
  if (hasSkippedPlan && !isStarting) plan.dispatchEvent(new Event("change"));
  hasSkippedPlan = false;
}

// Shows only the models that match the typed words, and those that are chosen. Without this script, the button Filter
// sends the form.
const field = document.querySelector("[data-find]");

function filterModels() {
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
  document.querySelector("[data-found]").textContent = words.length ? `${shown} shown. Chosen models stay in the list.` : "";
}

field?.addEventListener("input", filterModels);
field?.addEventListener("keydown", (event) => {
  if (event.key === "Enter") event.preventDefault();
});
