// Draws the latency page's two charts from the data in the page: one dot per trial with its median, and the share
// of trials finished by a time. Colours come from the style sheet, so both themes work.

const data = JSON.parse(document.getElementById("latency-data").textContent);
const style = getComputedStyle(document.documentElement);
const resolved = (name) => {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.setProperty("color", `var(${name})`);
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};

function layout(height, extra) {
  const ink = resolved("--ink-2");
  const line = resolved("--line");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickfont: { color: ink } };
  return {
    height,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style.getPropertyValue("--sans"), size: 12, color: ink },
    margin: { l: 8, r: 16, t: 8, b: 44 },
    hoverlabel: { font: { family: style.getPropertyValue("--mono") } },
    ...extra,
    xaxis: { ...axis, title: { text: "seconds" }, rangemode: "tozero", ...extra.xaxis },
    yaxis: { ...axis, automargin: true, ...extra.yaxis },
  };
}

function dots() {
  const accent = resolved("--accent");
  const ink = resolved("--ink");
  const names = data.rows.map((row) => row.label);
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
  const raw = data.rows.map((row) => ({
    type: "box",
    name: row.label,
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
  return [...raw, quantile("p50", "median with 95 % interval", "line-ns"), quantile("p95", "p95, from 60 trials", "diamond-open")];
}

function shares() {
  const dashes = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  return data.rows.map((row, index) => {
    const times = [...row.times].sort((a, b) => a - b);
    return {
      type: "scatter",
      mode: "lines",
      name: row.label,
      x: times,
      y: times.map((_, place) => ((place + 1) / times.length) * 100),
      line: { shape: "hv", dash: dashes[index % dashes.length], width: 1.75 },
      hovertemplate: "%{y:.0f} % by %{x:.2f} s<extra></extra>",
    };
  });
}

function draw() {
  const options = { responsive: true, displayModeBar: false };
  const tall = Math.max(220, 70 + data.rows.length * 56);
  const legend = { orientation: "h", y: -0.25 };
  Plotly.react("latency-dots", dots(), layout(tall + 30, { legend }), options);
  Plotly.react("latency-shares", shares(), layout(380, { legend, yaxis: { ticksuffix: " %", range: [0, 101] } }), options);
}

if (data.rows.length) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}
