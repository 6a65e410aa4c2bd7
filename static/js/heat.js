// Arrow keys move the focus between the links in the cells of the heat map; cells without a link are skipped.
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const table = document.querySelector("[data-heat]");

table?.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  const from = event.target.closest("td, th");
  if (!step || !from || event.altKey || event.ctrlKey || event.metaKey) return;
  const rows = [...table.tBodies[0].rows];
  let [row, column] = [rows.indexOf(from.parentElement), from.cellIndex];
  while (rows[(row += step[0])]?.cells[(column += step[1])]) {
    const link = rows[row].cells[column].querySelector("a");
    if (!link) continue;
    event.preventDefault();
    link.focus();
    return;
  }
});
