// The live part of a page is replaced as a whole: keep how far its boxes are scrolled. htmx keeps the focus by id.
const places = new Map();
const boxes = () => document.querySelectorAll("#live .scroll");

document.body.addEventListener("htmx:beforeSwap", () => {
  boxes().forEach((box, number) => places.set(number, [box.scrollLeft, box.scrollTop]));
});
document.body.addEventListener("htmx:afterSwap", () => {
  boxes().forEach((box, number) => {
    [box.scrollLeft, box.scrollTop] = places.get(number) ?? [0, 0];
  });
});
