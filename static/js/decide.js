// The decision page: a slider beside each number, and success against p95 with the Pareto front.

import { resolved } from "./colours.js";

for (const field of document.querySelectorAll("[data-slide]")) {
  const [min, max, step] = field.dataset.slide.split(" ");
  const slider = Object.assign(document.createElement("input"), { type: "range", min, max, step, value: field.value });
  slider.setAttribute("aria-label", field.labels[0]?.textContent ?? "");
  slider.addEventListener("input", () => { field.value = slider.value; });
  slider.addEventListener("change", () => field.form.requestSubmit());
  field.addEventListener("input", () => { slider.value = field.value; });
  field.after(slider);
}

const holder = document.getElementById("decide-chart");
const style = getComputedStyle(document.documentElement);
const SYMBOLS = { qualified: ["circle", "--pass"], refused: ["x", "--fail"], "not decided": ["circle-open", "--ink-2"], "to be confirmed": ["diamond-open", "--infra"] };

const ends = (values, place) => Math.abs((values[place] ?? values[1]) - values[1]);

function points(rows, state) {
  const [symbol, colour] = SYMBOLS[state];
  const of = rows.filter((row) => row.state === state);
  const interval = (key) => ({ type: "data", symmetric: false, array: of.map((row) => ends(row[key], 2)), arrayminus: of.map((row) => ends(row[key], 0)), color: resolved("--line-strong"), thickness: 1 });
  return {
    type: "scatter", mode: "markers", name: state,
    x: of.map((row) => row.p95[1]), y: of.map((row) => row.delivered[1]),
    error_x: interval("p95"), error_y: interval("delivered"),
    text: of.map((row) => `${row.label}<br>${row.cost == null ? "cost unknown" : `$${row.cost} per success`}`),
    hovertemplate: "%{text}<br>%{y} % delivered, p95 %{x:.2f} s<extra></extra>",
    marker: { symbol, size: 12, color: resolved(colour) },
  };
}

function front(rows) {
  const on = rows.filter((row) => row.front).sort((a, b) => a.p95[1] - b.p95[1]);
  return { type: "scatter", mode: "lines", name: "Pareto front", x: on.map((row) => row.p95[1]), y: on.map((row) => row.delivered[1]), line: { shape: "hv", dash: "dot", color: resolved("--accent") }, hoverinfo: "skip" };
}

function draw(data) {
  const line = resolved("--line");
  const ink = resolved("--ink-2");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickfont: { color: ink } };
  const bound = { type: "line", line: { dash: "dash", width: 1, color: ink } };
  const shapes = [{ ...bound, xref: "paper", x0: 0, x1: 1, y0: data.target, y1: data.target }];
  const furthest = 1.15 * Math.max(...data.rows.map((row) => row.p95[2] ?? row.p95[1]));
  const beyond = data.limit != null && data.limit > 3 * furthest;   // drawn to scale it would press all points into a corner
  const annotations = beyond ? [{ xref: "paper", yref: "paper", x: 1, y: 0, xanchor: "right", yanchor: "bottom", showarrow: false, text: `limit ${data.limit} s →`, font: { color: ink } }] : [];
  if (data.limit != null && !beyond) shapes.push({ ...bound, yref: "paper", y0: 0, y1: 1, x0: data.limit, x1: data.limit });
  Plotly.react(holder, [front(data.rows), ...Object.keys(SYMBOLS).map((state) => points(data.rows, state))], {
    height: 420, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style.getPropertyValue("--sans"), size: 12, color: ink },
    margin: { l: 8, r: 16, t: 8, b: 48 }, legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" }, shapes, annotations,
    xaxis: { ...axis, title: { text: "p95, seconds" }, ...(beyond ? { range: [0, furthest] } : { rangemode: "tozero" }) },
    yaxis: { ...axis, automargin: true, title: { text: "delivered success, %" } },
  }, { responsive: true, displayModeBar: false });
}

if (holder) {
  const data = JSON.parse(document.getElementById("decide-data").textContent);
  const again = () => draw(data);
  again();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}
