// What a colour of the style sheet is in the theme that is shown: charts take no custom properties.

export const resolved = (name) => {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.setProperty("color", `var(${name})`);
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};
