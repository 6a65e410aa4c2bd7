// Keys of the trial page: links marked data-key, the two panes, and the timeline.
import { onKey } from "./keys.js";

for (const key of ["j", "k", "f", "b", "d"]) {
  onKey(key, () => {
    const link = document.querySelector(`a[data-key="${key}"]`);
    if (!link) return false;
    link.click();
  });
}

const order = ["both", "raw", "normalised"];
onKey("r", () => {
  const detail = document.getElementById("step");
  if (!detail) return false;
  detail.dataset.panes = order[(order.indexOf(detail.dataset.panes) + 1) % order.length];
});

function walk(by) {
  const steps = [...document.querySelectorAll(".timeline a.step")];
  const here = steps.findIndex((step) => step.hasAttribute("aria-current"));
  const next = steps[here + by];
  if (!next) return false;
  next.click();
}
onKey("ArrowDown", () => walk(1));
onKey("ArrowUp", () => walk(-1));
