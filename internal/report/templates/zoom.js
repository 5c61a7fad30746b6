// Makes the series of the report zoomable. The page has each as a figure and as JSON. This script draws the JSON
// with uPlot on the screen; the figure is used without script and for print.
(() => {
  "use strict";
  if (!window.uPlot) return;
  const dashes = [[], [9, 4], [3, 3], [12, 3, 3, 3], [6, 2], [2, 5]];
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const plots = [];

  const button = (text, label, act) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.setAttribute("aria-label", label);
    b.addEventListener("click", act);
    return b;
  };

  const columns = data => {
    const longest = Math.max(...data.runs.map(r => r.v.length));
    const x = Array.from({length: longest}, (_, i) => (i + 0.5) * data.step);
    return [x, ...data.runs.map(r => x.map((_, i) => i < r.v.length ? r.v[i] : null))];
  };

  const draw = holder => {
    const data = JSON.parse(holder.querySelector("script").textContent);
    const place = document.createElement("div");
    place.className = "live";
    holder.append(place);
    const axis = label => ({
      label, labelSize: 22, size: label === data.unit ? 64 : 34, stroke: () => colour("--muted"),
      grid: {stroke: () => colour("--line"), width: 1}, ticks: {stroke: () => colour("--line"), width: 1}, font: "12px system-ui", labelFont: "12px system-ui",
    });
    const plot = new uPlot({
      width: place.clientWidth, height: 240, legend: {show: false}, scales: {x: {time: false}},
      cursor: {drag: {x: true, y: false}, points: {show: false}}, axes: [axis("seconds"), axis(data.unit)],
      series: [{}, ...data.runs.map(r => ({
        label: data.targets[r.t] + ", block " + r.b, stroke: () => colour("--s" + data.styles[r.t]), width: 1.25, dash: dashes[data.styles[r.t] - 1], points: {show: r.v.length < 3},
      }))],
    }, columns(data), place);
    plots.push(plot);
    place.append(controls(plot, data));
    holder.classList.add("drawn");
    new ResizeObserver(() => {
      if (place.clientWidth && place.clientWidth !== plot.width) plot.setSize({width: place.clientWidth, height: 240});
    }).observe(place);
  };

  const controls = (plot, data) => {
    const row = document.createElement("div");
    row.className = "controls";
    const [first, last] = [plot.data[0][0], plot.data[0][plot.data[0].length - 1]];
    const zoom = factor => {
      const {min, max} = plot.scales.x;
      const [middle, half] = [(min + max) / 2, (max - min) / 2 * factor];
      plot.setScale("x", {min: Math.max(first, middle - half), max: Math.min(last, middle + half)});
    };
    row.append(
      button("+", "Zoom in", () => zoom(0.5)), button("\u2212", "Zoom out", () => zoom(2)),
      button("All", "Show the whole run", () => plot.setScale("x", {min: first, max: last})),
    );
    data.targets.forEach((name, t) => {
      const b = button(name, "Show " + name, () => {
        const shown = b.getAttribute("aria-pressed") !== "true";
        b.setAttribute("aria-pressed", shown);
        plot.batch(() => data.runs.forEach((r, i) => r.t === t && plot.setSeries(i + 1, {show: shown})));
      });
      b.setAttribute("aria-pressed", "true");
      b.className = "line" + data.styles[t];
      row.append(b);
    });
    const hint = document.createElement("small");
    hint.textContent = "Drag to zoom in, double-click to see all.";
    row.append(hint);
    return row;
  };

  // Draw only series near the window: a page may have many, most of them folded.
  const waiting = new Set(document.querySelectorAll(".series"));
  const drawVisible = () => waiting.forEach(holder => {
    const box = holder.getBoundingClientRect();
    if (!box.width || box.top > innerHeight + 400 || box.bottom < -400) return;
    waiting.delete(holder);
    draw(holder);
  });
  addEventListener("scroll", drawVisible, {passive: true});
  addEventListener("resize", drawVisible);
  document.addEventListener("toggle", drawVisible, true);
  drawVisible();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(p => p.redraw()));
})();
