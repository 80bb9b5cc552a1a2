"use strict";
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = matchMedia("(prefers-color-scheme: dark)");
const make = (tag, attributes = {}, text = "") => Object.assign(document.createElement(tag), attributes, { textContent: text });

// Wide tables and figures: a shadow and a hint while there is more to see at a side.
function hint(scroll) {
  const left = scroll.scrollLeft > 1, right = scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1;
  scroll.parentElement.classList.toggle("left", left);
  scroll.parentElement.classList.toggle("right", right);
  scroll.parentElement.classList.toggle("scrolls", left || right);
}
const resized = new ResizeObserver((entries) => entries.forEach((entry) => hint(entry.target.closest(".scroll"))));
for (const scroll of document.querySelectorAll(".scroll")) {
  scroll.addEventListener("scroll", () => hint(scroll), { passive: true });
  resized.observe(scroll);
  resized.observe(scroll.firstElementChild);
}

// Charts: a button beside a figure puts plotly.js over it, which is unpacked when first asked for.
let library = null;
function plotly() {
  library ??= (async () => {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent.trim()), (c) => c.charCodeAt(0));
    const script = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    document.head.append(make("script", {}, await new Response(script).text()));
    return window.Plotly;
  })();
  return library;
}
function theme(layout) {
  const ink = style("--ink"), line = style("--line");
  const themed = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink },
    hoverlabel: { bgcolor: style("--paper"), bordercolor: line },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: style("--soft"), activecolor: ink } };
  for (const name of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
    themed[name] = { ...layout[name], hoverformat: name[0] === "y" ? ".5g" : ".4g", gridcolor: line, zerolinecolor: line, linecolor: ink };
  }
  return { ...layout, ...themed };
}
function sourceBoxes(chart, data) {
  const boxes = make("fieldset", { className: "sources" });
  boxes.append(make("legend", {}, "Sources shown"));
  for (const source of new Set(data.map((trace) => trace.legendgroup))) {
    const box = make("input", { type: "checkbox", checked: true });
    const label = make("label"), swatch = make("span", { className: "swatch" });
    swatch.style.background = data.find((trace) => trace.name === source).line.color;
    const mine = data.flatMap((trace, k) => (trace.legendgroup === source ? [k] : []));
    box.addEventListener("change", () => window.Plotly.restyle(chart, { visible: box.checked }, mine));
    label.append(box, swatch, source);
    boxes.append(label);
  }
  return boxes;
}
async function drawChart(figure, wanted) {
  const Plotly = await plotly(), chart = make("div"), place = make("div", { className: "live" });
  chart.setAttribute("role", "group");
  chart.setAttribute("aria-label", figure.querySelector("img").alt);
  place.append(sourceBoxes(chart, wanted.data), chart);
  figure.querySelector(".wide").after(place);
  const layout = { ...wanted.layout, height: 60 + 300 * wanted.rows, margin: { t: 30, r: 15, b: 45, l: 70 }, showlegend: false, hovermode: "x unified" };
  const options = { responsive: true, displaylogo: false };
  await Plotly.newPlot(chart, wanted.data, theme(layout), options);
  dark.addEventListener("change", () => Plotly.react(chart, chart.data, theme(layout), options));
}
for (const figure of document.querySelectorAll("figure:has(> script.chart)")) {
  const button = make("button", { type: "button" }, "Zoom, hide sources, read numbers");
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", async () => {
    button.disabled = true;
    button.setAttribute("aria-pressed", String(figure.classList.toggle("interactive"))); // a chart takes the width it sees
    if (!figure.querySelector(".live")) await drawChart(figure, JSON.parse(figure.querySelector("script.chart").textContent));
    button.disabled = false;
  });
  figure.prepend(button);
}

// The moving robot: a button and a slider; nothing moves before it is asked to.
function startMovie(figure) {
  const movie = JSON.parse(figure.querySelector("script").textContent);
  const bodies = figure.querySelectorAll(".moving"), traced = figure.querySelector(".traced");
  const button = make("button", { type: "button" }, "Play"), time = make("output");
  const slider = make("input", { type: "range", min: 0, max: movie.t.length - 1, step: 1, value: 0 });
  slider.setAttribute("aria-label", "time");
  const show = (k) => {
    bodies.forEach((body, b) => body.setAttribute("points", movie.moving[b][k]));
    if (traced) ["cx", "cy"].forEach((name, i) => traced.setAttribute(name, movie.traced[k][i]));
    time.value = `t = ${movie.t[k].toFixed(2)} s`;
    slider.setAttribute("aria-valuetext", time.value);
    slider.value = k;
  };
  let start = null;
  const step = (now) => {
    if (start === null) return;
    const passed = (now - start) / 1000 % (movie.t.at(-1) - movie.t[0]), next = movie.t.findIndex((t) => t - movie.t[0] > passed);
    show(Math.max(next - 1, 0));
    requestAnimationFrame(step);
  };
  const pause = () => { start = null; button.textContent = "Play"; };
  button.addEventListener("click", () => {
    if (start !== null) return pause();
    start = performance.now() - 1000 * (movie.t[slider.value] - movie.t[0]);
    button.textContent = "Pause";
    requestAnimationFrame(step);
  });
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  const controls = make("div", { className: "controls" });
  controls.append(button, slider, time);
  figure.querySelector("svg").after(controls);
  show(0);
}
document.querySelectorAll("figure.movie").forEach(startMovie);
