// Shows the links that save a chart as PNG. A click draws the SVG file of the chart at twice its size and saves it.
async function save(link) {
  const image = new Image();
  image.src = link.href;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width * 2, height: image.height * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => { canvas.toBlob(done, "image/png"); });
  const name = new URL(link.href).pathname.split("/").at(-1).replace(".svg", ".png");
  const download = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `toolbench-latency-${name}` });
  download.click();
  setTimeout(() => URL.revokeObjectURL(download.href), 10_000);
}

for (const link of document.querySelectorAll("[data-png]")) {
  link.hidden = false;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    save(link).catch(() => location.assign(link.href)); // opens the SVG file, or a page that says why there is none
  });
}
