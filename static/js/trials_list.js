// The list of trials by keys: j and k move, f finds the next failed one, Enter opens. Typing searches; only the last
// answer is shown.
import { onKey } from "./keys.js";

const form = document.querySelector("[data-query]");
const links = () => [...document.querySelectorAll("[data-rows] tbody th > a")];
let asked = 0;
let waiting = 0;

function move(step, isWanted = () => true) {
  const all = links();
  let place = all.indexOf(document.activeElement);
  if (place < 0 && step < 0) place = all.length;
  for (place += step; place >= 0 && place < all.length; place += step) {
    if (!isWanted(all[place])) continue;
    all[place].focus({ preventScroll: true });
    all[place].scrollIntoView({ block: "nearest" });
    return true;
  }
  return false;
}

async function search() {
  const number = ++asked;
  const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
  const response = await fetch(address);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (number !== asked || !response.ok) return;
  document.getElementById("found").replaceWith(page.getElementById("found"));
  history.replaceState(null, "", address);
}

onKey("j", () => move(1));
onKey("k", () => move(-1));
onKey("f", () => move(1, (link) => link.dataset.failed !== undefined));
form?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 200);
});
