// Adds buttons to figures that save them as SVG and copy them as PNG or Markdown. A figure on the page consists of
// several drawings and texts; the saved file is a single drawing of them, with their computed styles.
(() => {
  "use strict";
  const svgns = "http://www.w3.org/2000/svg";
  const styles = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
    "stroke-linejoin", "vector-effect", "opacity", "font-size", "font-family", "text-anchor", "overflow"];

  const element = (name, attributes, text) => {
    const e = document.createElementNS(svgns, name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text) e.textContent = text;
    return e;
  };

  // styled returns a copy of a drawing that needs no style sheet.
  const styled = from => {
    const to = from.cloneNode(true);
    const a = [from, ...from.querySelectorAll("*")], b = [to, ...to.querySelectorAll("*")];
    a.forEach((e, i) => {
      const computed = getComputedStyle(e);
      for (const s of styles) b[i].style.setProperty(s, computed.getPropertyValue(s));
    });
    return to;
  };

  // addTexts adds the words of an element to a drawing, each at its position relative to box.
  const addTexts = (from, to, box) => {
    const walk = document.createTreeWalker(from, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode());) {
      const parent = node.parentElement;
      if (parent.closest("svg, .copy, script, summary")) continue;
      const style = getComputedStyle(parent);
      for (const match of node.data.matchAll(/\S+/g)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        const r = range.getClientRects()[0];
        if (!r || !r.width) continue;
        to.append(element("text", {x: r.left - box.left, y: r.bottom - box.top - r.height * 0.22, fill: style.color,
          "font-size": style.fontSize, "font-weight": style.fontWeight, "font-family": style.fontFamily}, match[0]));
      }
    }
  };

  // drawing returns a figure as one SVG. It contains the static figure instead of the zoomable plot.
  const drawing = figure => {
    figure.classList.add("copying");
    const out = drawn(figure);
    figure.classList.remove("copying");
    return out;
  };

  const drawn = figure => {
    const box = figure.getBoundingClientRect(), pad = 12;
    const paper = getComputedStyle(document.body).backgroundColor;
    const out = element("svg", {xmlns: svgns, width: Math.ceil(box.width) + 2 * pad, height: Math.ceil(box.height) + 2 * pad});
    out.append(element("rect", {width: "100%", height: "100%", fill: paper}));
    const shapes = document.querySelector(".shapes");
    if (shapes) out.append(styled(shapes));
    const all = element("g", {transform: `translate(${pad} ${pad})`});
    for (const e of figure.querySelectorAll(".swatch, .badge")) {
      const r = e.getBoundingClientRect(), style = getComputedStyle(e);
      if (!r.width) continue;
      const fill = e.matches(".swatch") ? style.backgroundColor : style.color;
      all.append(element("rect", {x: r.left - box.left, y: r.top - box.top + (r.height - 9) / 2, width: 9, height: 9, fill}));
    }
    for (const e of figure.querySelectorAll("svg")) {
      const r = e.getBoundingClientRect();
      if (e.parentElement.closest("svg") || !r.width) continue;
      const one = styled(e);
      for (const [k, v] of Object.entries({x: r.left - box.left, y: r.top - box.top, width: r.width, height: r.height})) {
        one.setAttribute(k, v);
      }
      all.append(one);
    }
    addTexts(figure, all, box);
    out.append(all);
    return out;
  };

  const source = figure => new XMLSerializer().serializeToString(drawing(figure));
  const asURL = text => "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);

  const png = figure => new Promise((done, failed) => {
    const image = new Image(), scale = 2;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = image.width * scale;
      canvas.height = image.height * scale;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(blob => blob ? done(blob) : failed(new Error("no picture")), "image/png");
    };
    image.onerror = failed;
    image.src = asURL(source(figure));
  });

  const cells = row => "| " + row.map(c => c.innerText.replace(/\s+/g, " ").replace(/\|/g, "\\|").trim()).join(" | ") + " |";
  const markdown = figure => {
    const title = figure.querySelector("h3, h4");
    const rows = [...figure.querySelector("table").rows].map(r => [...r.cells]);
    const lines = rows.map(cells);
    lines.splice(1, 0, "|" + " --- |".repeat(rows[0].length));
    return (title ? "**" + title.innerText.replace(/\s+/g, " ") + "**\n\n" : "") + lines.join("\n") + "\n";
  };

  const save = (figure, kind, blob) => {
    const a = document.createElement("a");
    a.download = figure.dataset.copy + "." + kind;
    a.href = URL.createObjectURL(blob);
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 60000);
  };

  // All kinds except SVG copy the figure, or save it if the browser does not allow that.
  const kinds = {
    SVG: async figure => save(figure, "svg", new Blob([source(figure)], {type: "image/svg+xml"})),
    PNG: async figure => {
      const blob = await png(figure);
      await navigator.clipboard.write([new ClipboardItem({"image/png": blob})]).catch(() => save(figure, "png", blob));
    },
    Markdown: async figure => {
      const text = markdown(figure);
      await navigator.clipboard.writeText(text)
        .catch(() => save(figure, "md", new Blob([text], {type: "text/markdown"})));
    },
  };

  for (const figure of document.querySelectorAll("[data-copy]")) {
    const bar = document.createElement("div");
    bar.className = "copy";
    for (const [name, copy] of Object.entries(kinds)) {
      if (name === "Markdown" && !figure.querySelector("table")) continue;
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = name;
      b.setAttribute("aria-label", (name === "SVG" ? "Save as " : "Copy as ") + name);
      b.addEventListener("click", async () => {
        bar.hidden = true;
        const worked = await copy(figure).then(() => true, () => false);
        bar.hidden = false;
        b.textContent = !worked ? "failed" : name === "SVG" ? "saved" : "copied";
        setTimeout(() => { b.textContent = name; }, 1500);
      });
      bar.append(b);
    }
    figure.append(bar);
  }
  window.knotmeter = {drawing: source, png, markdown}; // for tests and scripts
})();
