"use strict";
// The page's own script: draws the layers that Python described, switches them, and writes the legends.
// Text of the data reaches the document through textContent alone, so that it can never become markup.
const geoedge = (() => {
  const layers = [];
  const state = { epoch: 0, type: 0, on: new Set() };
  const small = matchMedia("(max-width: 760px)").matches ? 0.75 : 1;
  let map, page;

  const make = (tag, options = {}, ...children) => {
    const { data, attributes, ...properties } = options;
    const node = Object.assign(document.createElement(tag), properties);
    Object.assign(node.dataset, data);
    Object.entries(attributes ?? {}).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  // Names may be written in any direction; <bdi> keeps them from reordering what stands beside them.
  const text = (value) => make("bdi", { textContent: value });

  // ---- geometry: [lon, lat, step, step, ...] in units of page.unit degrees -> [[lat, lon], ...] ----
  const path = (steps) => {
    const points = [];
    for (let i = 0, x = 0, y = 0; i < steps.length; i += 2) {
      x += steps[i];
      y += steps[i + 1];
      points.push([y * page.unit, x * page.unit]);
    }
    return points;
  };

  // ---- marker shapes ----
  const corners = (n, turn) =>
    Array.from({ length: n }, (_, i) => [Math.sin((2 * Math.PI * i) / n + turn), -Math.cos((2 * Math.PI * i) / n + turn)]);
  const OUTLINES = {
    square: corners(4, Math.PI / 4),
    triangle: corners(3, 0),
    diamond: corners(4, 0),
    pentagon: corners(5, 0),
    wedge: corners(3, Math.PI),
    hexagon: corners(6, 0),
    cross: [[-0.4, -1], [0.4, -1], [0.4, -0.4], [1, -0.4], [1, 0.4], [0.4, 0.4], [0.4, 1], [-0.4, 1], [-0.4, 0.4], [-1, 0.4], [-1, -0.4], [-0.4, -0.4]],
  };
  const outline = (shape, x, y, radius) => {
    const points = OUTLINES[shape];
    if (!points) return `M${x - radius},${y}a${radius},${radius} 0 1,0 ${2 * radius},0a${radius},${radius} 0 1,0 ${-2 * radius},0Z`;
    const scale = radius * (shape === "triangle" || shape === "wedge" ? 1.35 : 1.2);
    return `M${points.map(([u, v]) => `${(x + u * scale).toFixed(1)},${(y + v * scale).toFixed(1)}`).join("L")}Z`;
  };
  const ShapeMarker = L.CircleMarker.extend({
    _updatePath() {
      if (!this._renderer._setPath) return L.CircleMarker.prototype._updatePath.call(this); // canvas draws circles alone
      const { x, y } = this._point;
      this._renderer._setPath(this, this._empty() ? "M0 0" : outline(this.options.shape, x, y, this._radius));
    },
  });

  // ---- layers ----
  const tooltip = (layer, tip) => {
    const list = make("dl");
    layer.fields.forEach((field, i) => {
      if (tip[i + 1] !== "") list.append(make("dt", { textContent: field }), make("dd", {}, text(tip[i + 1])));
    });
    return make("div", {}, make("h3", {}, text(tip[0])), list);
  };
  const rankIcon = (rank, size) => {
    const badge = make("div", { className: "rank", textContent: rank });
    badge.style.width = badge.style.height = `${size}px`;
    return L.divIcon({ className: "", html: badge, iconSize: [size, size], iconAnchor: [-3, size + 3] });
  };
  const shapeOf = (layer, [form, geometry, style, tip, more]) => {
    const options = { ...layer.style, ...layer.styles[style], ...more, pane: layer.pane, interactive: Boolean(tip) };
    options.renderer = page.renderers[layer.pane];
    if (options.radius) options.radius *= small;
    if (form === "polygon") return L.polygon(geometry.map((rings) => rings.map(path)), options);
    if (form === "line") return L.polyline(geometry.map(path), options);
    const [place] = path(geometry);
    if (form === "rank") return L.marker(place, { ...options, icon: rankIcon(options.rank, Math.round(options.size * small)), keyboard: false });
    return new ShapeMarker(place, options);
  };
  const build = (layer) => {
    const group = L.layerGroup();
    layer.features.forEach((feature) => {
      const drawn = shapeOf(layer, feature);
      const tip = feature[3];
      if (tip) drawn.bindTooltip(() => tooltip(layer, tip), { sticky: feature[0] === "polygon", className: "tip", opacity: 1 });
      group.addLayer(drawn);
    });
    return group;
  };

  const themes = () => [...new Map(layers.map((layer) => [layer.theme, layer])).values()];
  const wanted = (layer) =>
    state.on.has(layer.theme) &&
    (layer.epoch === null || layer.epoch === state.epoch) &&
    (layer.type === null || layer.type === state.type);
  const refresh = () => {
    layers.forEach((layer) => {
      if (!wanted(layer)) layer.group?.remove();
    });
    layers.filter(wanted).forEach((layer) => (layer.group ??= build(layer)).addTo(map));
    writeControls();
    writeLegends();
  };

  // ---- the panel ----
  const choice = (layer) => {
    const exclusive = layer.role === "surface";
    const input = make("input", {
      type: exclusive ? "radio" : "checkbox",
      name: exclusive ? "surface" : layer.theme,
      checked: state.on.has(layer.theme),
      data: { theme: layer.theme },
      onchange() {
        if (exclusive) themes().filter((other) => other.role === "surface").forEach((other) => state.on.delete(other.theme));
        state.on[this.checked ? "add" : "delete"](layer.theme);
        refresh();
      },
    });
    return make("label", {}, input, make("span", { textContent: layer.label }));
  };
  const noSurface = () => {
    const input = make("input", {
      type: "radio",
      name: "surface",
      checked: !themes().some((layer) => layer.role === "surface" && state.on.has(layer.theme)),
      data: { theme: "none" },
      onchange() {
        themes().filter((layer) => layer.role === "surface").forEach((layer) => state.on.delete(layer.theme));
        refresh();
      },
    });
    return make("label", {}, input, make("span", { textContent: "Nothing" }));
  };
  const selection = (key, names, label) => {
    const list = make("select", {
      data: { choose: key },
      attributes: { "aria-label": label },
      onchange() {
        state[key] = Number(this.value);
        refresh();
      },
    });
    names.forEach((name, i) => list.append(make("option", { value: i, textContent: name, selected: i === state[key] })));
    return list;
  };
  const stepper = (key, names, label) => {
    const step = (by, sign, title) =>
      make("button", {
        type: "button",
        textContent: sign,
        title,
        disabled: !(state[key] + by in names),
        data: { step: by },
        onclick() {
          state[key] += by;
          refresh();
          document.querySelector(`[data-step="${by}"]`)?.focus();
        },
      });
    return make("div", { className: "stepper" }, step(-1, "‹", "Earlier"), selection(key, names, label), step(1, "›", "Later"));
  };
  const heading = (words) => make("h2", { textContent: words });
  const writeControls = () => {
    const parts = [];
    if (page.epochs.length > 1) parts.push(heading("Time"), stepper("epoch", page.epochs, "Epoch"));
    const surfaces = themes().filter((layer) => layer.role === "surface");
    if (surfaces.length) parts.push(heading("On the land"), noSurface());
    surfaces.forEach((layer) => {
      parts.push(choice(layer));
      if (!state.on.has(layer.theme)) return;
      parts.push(make("p", { className: "question", textContent: layer.question }));
      if (layer.type !== null && page.types.length > 1)
        parts.push(make("div", { className: "nested" }, selection("type", page.types, "Request type")));
    });
    const overlays = themes().filter((layer) => layer.role === "overlay").map(choice);
    if (overlays.length) parts.push(heading("Over it"), make("div", { className: "choices" }, ...overlays));
    document.getElementById("controls").replaceChildren(...parts);
  };

  // ---- legends ----
  const swatch = (colour, shape, filled, opacity = 1) => {
    const names = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(names, "svg");
    svg.setAttribute("width", 18);
    svg.setAttribute("height", 18);
    const mark = document.createElementNS(names, "path");
    mark.setAttribute("d", shape === "line" ? "M0,9H18" : shape === "area" ? "M1,2H17V16H1Z" : outline(shape, 9, 9, 6));
    mark.setAttribute("fill", shape === "line" || !filled ? "none" : colour);
    mark.setAttribute("fill-opacity", opacity);
    mark.setAttribute("stroke", colour);
    mark.setAttribute("stroke-width", 2.5);
    svg.append(mark);
    return svg;
  };
  const bar = (legend) => {
    const colours = legend.colours.map((colour) => {
      const part = make("span");
      part.style.background = colour;
      part.style.opacity = legend.opacity ?? 1;
      return part;
    });
    const ticks = legend.ticks.map((tick, i) => {
      const mark = make("span", { textContent: tick });
      mark.style.left = `${(100 * (i + 1)) / legend.colours.length}%`;
      return mark;
    });
    return [make("div", { className: "legend-bar" }, ...colours), make("div", { className: "legend-ticks" }, ...ticks)];
  };
  const rows = (legend) =>
    make("div", { className: "legend-rows" }, ...legend.names.map((name, i) =>
      make("div", {}, swatch(legend.colours[i], legend.form === "shapes" ? legend.shapes[i] : legend.form === "lines" ? "line" : "area", legend.form !== "shapes", legend.opacity), text(name))));
  const writeLegends = () => {
    const shown = new Map();
    layers.filter(wanted).forEach((layer) => layer.legends.forEach((legend) => shown.set(legend.title, legend)));
    const parts = [...shown.values()].map((legend) =>
      make("div", { className: "legend", data: { legend: legend.title } },
        make("span", { className: "legend-title", textContent: legend.title }),
        make("span", { className: "legend-unit", textContent: legend.unit ? `  ${legend.unit}` : "" }),
        ...(legend.form === "bar" ? bar(legend) : [rows(legend)])));
    if (parts.length) parts.unshift(heading("Legend"));
    layers.filter((layer) => wanted(layer) && layer.ranking && layer.features.length).forEach((layer) => {
      parts.push(heading(layer.ranking), make("ol", { className: "ranking" }, ...layer.features.map(rankRow)));
    });
    document.getElementById("legends").replaceChildren(...parts);
  };
  const rankRow = ([, geometry, , tip, more]) =>
    make("li", {}, make("button", {
      type: "button",
      title: "Show on the map",
      onclick() {
        map.setView(path(geometry)[0], Math.max(map.getZoom(), 16));
      },
    }, make("span", { textContent: more.rank }), make("span", { className: "name" }, text(tip[0])), make("span", { textContent: tip[1] })));

  // ---- the frame ----
  const link = (href, words) => make("a", { href, textContent: words, target: "_blank", rel: "noopener noreferrer" });
  const credit = () => {
    const control = L.control({ position: "bottomright" });
    control.onAdd = () => make("div", { className: "credit" },
      ...page.attribution.map(([words, href]) => (href ? link(href, words) : words)));
    control.addTo(map);
  };
  const fromAddress = () => {
    const address = new URLSearchParams(location.hash.slice(1));
    ["epoch", "type"].forEach((key) => {
      const names = key === "epoch" ? page.epochs : page.types;
      if (address.has(key) && Number(address.get(key)) in names) state[key] = Number(address.get(key));
    });
    const known = new Set(themes().map((layer) => layer.theme));
    if (address.has("show")) state.on = new Set(address.get("show").split(",").filter((theme) => known.has(theme)));
  };
  const panes = (order) => {
    page.renderers = {};
    order.forEach(([name, height, renderer, touchable]) => {
      const pane = map.createPane(name);
      pane.style.zIndex = height;
      if (!touchable) pane.style.pointerEvents = "none";
      if (renderer === "canvas") page.renderers[name] = L.canvas({ pane: name, padding: 0.3 });
      if (renderer === "svg") page.renderers[name] = L.svg({ pane: name, padding: 0.3 });
    });
  };
  const start = (on, settings) => {
    map = on;
    page = settings;
    panes(page.panes);
    map.fitBounds(page.bounds, { paddingTopLeft: [8, 8], paddingBottomRight: [8, 44], animate: false }); // room for the credit
    map.setMaxBounds(L.latLngBounds(page.bounds).pad(1));
    L.control.scale({ imperial: false, maxWidth: window.innerWidth < 600 ? 120 : 160 }).addTo(map);
    credit();
    layers.filter((layer) => layer.show).forEach((layer) => state.on.add(layer.theme));
    state.epoch = page.epoch;
    fromAddress();
    refresh();
  };
  return { add: (layer) => layers.push(layer), start };
})();
