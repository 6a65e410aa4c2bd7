// Keys of the trial page: links with data-key follow their key, r changes the panes of a step, and arrows move through
// the timeline.
import { onKey } from "./keys.js";

for (const key of ["j", "k", "f", "b", "d"]) {
  onKey(key, () => {
    const link = document.querySelector(`a[data-key="${key}"]`);
    if (!link) return false;
    link.click();
  });
}

const PANES = ["both", "raw", "normalised"];
onKey("r", () => {
  const detail = document.getElementById("step");
  if (!detail) return false;
  detail.dataset.panes = PANES[(PANES.indexOf(detail.dataset.panes) + 1) % PANES.length];
});

function openStep(offset) {
  const steps = [...document.querySelectorAll(".timeline a.step")];
  const current = steps.findIndex((step) => step.hasAttribute("aria-current"));
  const next = steps[current + offset];
  if (!next) return false;
  next.click();
}
onKey("ArrowDown", () => openStep(1));
onKey("ArrowUp", () => openStep(-1));
