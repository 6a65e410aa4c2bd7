// htmx replaces the live part of a page as a whole. This script keeps the scroll positions of the boxes in this part.
// While something in the part is pressed, the script skips the replacement, which would lose the press.
const positions = new Map(); // left and top by the index of a box
const listBoxes = () => document.querySelectorAll("#live .scroll");

document.body.addEventListener("htmx:beforeSwap", (event) => {
  const { target } = event.detail;
  if (target.matches('[hx-trigger^="every"]:active')) event.detail.shouldSwap = false;
  listBoxes().forEach((box, index) => positions.set(index, [box.scrollLeft, box.scrollTop]));
});
document.body.addEventListener("htmx:afterSwap", () => {
  listBoxes().forEach((box, index) => {
    [box.scrollLeft, box.scrollTop] = positions.get(index) ?? [0, 0];
  });
});
