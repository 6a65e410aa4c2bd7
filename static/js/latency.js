// Draws the latency page's two charts from the data in the page: one dot per trial with its median, and the share
// of trials finished by a time. Colours come from the style sheet, so both themes work.

import { resolved } from "./colours.js";

const data = JSON.parse(document.getElementById("latency-data").textContent);
const style = getComputedStyle(document.documentElement);

const narrow = matchMedia("(max-width: 40rem)");

// Breaks a label between its parts, so that no line is wider than its place.
function broken(label, most) {
  const lines = [""];
  for (const part of label.split(" · ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} · ${part}` : part;
    if (lines.at(-1) && longer.length > most) lines.push(part);
    else lines[lines.length - 1] = longer;
  }
  return lines.join("<br>");
}

const tallest = (labels) => Math.max(1, ...labels.map((label) => label.split("<br>").length));

function layout(height, extra) {
  const ink = resolved("--ink-2");
  const line = resolved("--line");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickfont: { color: ink } };
  return {
    height,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style.getPropertyValue("--sans"), size: 12, color: ink },
    margin: { l: 8, r: 16, t: 8, b: 48 },
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" },
    hoverlabel: { font: { family: style.getPropertyValue("--mono") } },
    ...extra,
    xaxis: { ...axis, title: { text: "seconds" }, rangemode: "tozero", ...extra.xaxis },
    yaxis: { ...axis, automargin: true, ...extra.yaxis },
  };
}

function dots(names) {
  const accent = resolved("--accent");
  const ink = resolved("--ink");
  const quantile = (key, name, symbol) => ({
    type: "scatter",
    mode: "markers",
    name,
    x: data.rows.map((row) => row[key]?.[1] ?? null),
    y: names,
    error_x: {
      type: "data",
      symmetric: false,
      array: data.rows.map((row) => (row[key]?.[2] == null ? 0 : row[key][2] - row[key][1])),
      arrayminus: data.rows.map((row) => (row[key]?.[0] == null ? 0 : row[key][1] - row[key][0])),
      color: ink,
      thickness: 1.5,
    },
    marker: { symbol, size: 13, color: ink, line: { width: 2, color: ink } },
  });
  const raw = data.rows.map((row, index) => ({
    type: "box",
    name: names[index],
    x: row.times,
    boxpoints: "all",
    pointpos: 0,
    jitter: 0.6,
    fillcolor: "rgba(0,0,0,0)",
    line: { color: "rgba(0,0,0,0)" },
    marker: { color: accent, size: 5, opacity: 0.55 },
    hovertemplate: "%{x:.2f} s<extra></extra>",
    showlegend: false,
    orientation: "h",
  }));
  return [...raw, quantile("p50", "median with 95 % interval", "line-ns"), quantile("p95", "p95 with 95 % interval", "diamond-open"), quantile("p99", "p99 with 95 % interval", "square-open")];
}

function shares(names) {
  const dashes = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  return data.rows.map((row, index) => {
    const times = [...row.times].sort((a, b) => a - b);
    return {
      type: "scatter",
      mode: "lines",
      name: names[index],
      x: times,
      y: times.map((_, place) => ((place + 1) / times.length) * 100),
      line: { shape: "hv", dash: dashes[index % dashes.length], width: 1.75 },
      hovertemplate: "%{y:.0f} % by %{x:.2f} s<extra></extra>",
    };
  });
}

function draw() {
  const options = { responsive: true, displayModeBar: false };
  const names = data.rows.map((row) => broken(row.label, narrow.matches ? 34 : 44));
  const line = 17;
  const row = (narrow.matches ? 56 : 40) + line * tallest(names);
  const rows = { yaxis: { automargin: true, range: [-0.75, names.length - 0.25] } };  // else many rows leave a screen empty
  if (narrow.matches) {
    // No room beside the dots: each label stands above its row.
    rows.yaxis.showticklabels = false;
    rows.annotations = names.map((name) => ({
      text: name, xref: "paper", x: 0, xanchor: "left", y: name, yanchor: "bottom", yshift: 16,
      align: "left", showarrow: false, font: { size: 11 },
    }));
  }
  Plotly.react("latency-dots", dots(names), layout(110 + data.rows.length * row, rows), options);
  const entries = narrow.matches ? data.rows.length * (line * tallest(names) + 4) : Math.ceil(data.rows.length / 3) * line * tallest(names);
  const share = { yaxis: { ticksuffix: " %", range: [0, 101] } };
  Plotly.react("latency-shares", shares(names), layout(340 + entries, share), options);
}

if (data.rows.length) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  narrow.addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}
