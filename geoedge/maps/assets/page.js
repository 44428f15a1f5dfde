// The page's frame: draws the layers that Python described, switches them, and writes the panel and the legends.
// Text of the data reaches the document through textContent alone, so that it can never become markup.
const geoedge = (() => {
  const { make, draw, text, tip, outline, ShapeMarker, small } = marks;
  const layers = [];
  const state = { epoch: 0, type: 0, colouring: 0, on: new Set() }; // type -1: all of them together
  const painted = { surface: null, outline: null };
  let map, page, run = null, probe, reached;

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

  // ---- dark and light ----
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.scheme ?? (scheme.matches ? "dark" : "light")) === "dark";
  const coloursOf = (scale) => (dark() && scale.dark ? scale.dark : scale.colours);

  // ---- layers that are the same at all times ----
  const rows = (layer, words) => layer.fields.map((field, i) => [field, words[i + 1]]);
  const shapeOf = (layer, [form, geometry, style, words, more]) => {
    const own = dark() && layer.dark_styles.length ? layer.dark_styles : layer.styles;
    const options = { ...layer.style, ...own[style], ...more, pane: layer.pane, interactive: Boolean(words) };
    options.renderer = page.renderers[layer.pane];
    if (options.radius) options.radius *= small;
    if (form === "polygon") return L.polygon(geometry.map((rings) => rings.map(path)), options);
    if (form === "line") return L.polyline(geometry.map(path), options);
    return new ShapeMarker(path(geometry)[0], options);
  };
  const build = (layer) => {
    const group = L.layerGroup();
    layer.features.filter(there).forEach((feature) => {
      const drawn = shapeOf(layer, feature);
      const [form, , , words, { badge }] = feature;
      if (words) drawn.bindTooltip(() => tip(words[0], rows(layer, words)), { sticky: form === "polygon", className: "tip", opacity: 1 });
      group.addLayer(drawn);
      if (badge) group.addLayer(number(badge, drawn.getLatLng()));
    });
    return group;
  };
  // What is built step by step is there from its step on, and carries its number.
  const there = ([, , , , { from = 0 }]) => from <= state.epoch;
  const number = (badge, place) => {
    const icon = L.divIcon({ className: "", html: make("div", { className: "number", textContent: badge }), iconSize: [20, 20] });
    return L.marker(place, { pane: "ranks", icon, keyboard: false, interactive: false });
  };
  const rebuild = (chosen) => layers.filter((layer) => layer.kind === "features" && chosen(layer)).forEach((layer) => {
    layer.group?.remove();
    delete layer.group;
  });

  // ---- showing a state ----
  const wanted = (layer) => state.on.has(layer.theme);
  const surface = () => layers.find((layer) => layer.role === "surface" && wanted(layer));
  const withColours = (layer) => layer && { ...layer, scale: layer.scale && { ...layer.scale, colours: coloursOf(layer.scale) }, ink: dark() ? "#f2f5f8" : "#10151b" };
  const showMarks = () => {
    layers.filter((layer) => layer.marks).forEach((layer) => layer.marks[wanted(layer) ? "show" : "hide"](state));
    charts.refresh();
  };
  const showSurfaces = () => {
    Object.entries(painted).forEach(([pane, painter]) =>
      {
      const layer = layers.find((one) => one.pane === pane && one.kind !== "features" && wanted(one));
      painter?.show(withColours(layer) ?? null, { ...state, type: typeOf(layer) });
    });
    hideProbe();
  };
  // Regions are those of one type; where all were chosen, those of the type that is asked for most.
  const typeOf = (layer) => (state.type >= 0 || layer?.mixed ? state.type : mostAsked());
  const mostAsked = () => {
    if (!run?.mix) return 0;
    const asked = page.types.map((_, type) => run.mix.reduce((sum, shares, epoch) => sum + shares[type] * run.day.requests[epoch], 0));
    return asked.indexOf(Math.max(...asked));
  };
  const showStill = () => {
    layers.filter((layer) => layer.kind === "tiles").forEach((layer) => (wanted(layer) ? ground.show(layer) : ground.hide()));
    layers.filter((layer) => layer.kind === "features").forEach((layer) => {
      if (wanted(layer)) (layer.group ??= build(layer)).addTo(map);
      else layer.group?.remove();
    });
  };
  const showStreetNames = () => streets.show(map, layers.find((layer) => layer.named && wanted(layer)) ?? null);
  const refresh = () => {
    showStill();
    showSurfaces();
    showMarks();
    showStreetNames();
    writeControls();
    writeRanking();
  };
  const epochChanged = () => {
    rebuild((layer) => layer.steps);
    showStill();
    showSurfaces();
    showMarks();
    writeRanking();
  };

  // ---- the panel ----
  const choice = (layer) => {
    const exclusive = layer.role === "surface";
    const input = make("input", {
      type: exclusive ? "radio" : "checkbox",
      name: exclusive ? "surface" : layer.theme,
      checked: wanted(layer),
      data: { theme: layer.theme },
      onchange() {
        if (exclusive) layers.filter((other) => other.role === "surface").forEach((other) => state.on.delete(other.theme));
        state.on[this.checked ? "add" : "delete"](layer.theme);
        refresh();
      },
    });
    return make("label", {}, input, make("span", { textContent: titleOf(layer) }));
  };
  const titleOf = (layer) => (layer.colourings ? layer.colourings[state.colouring].question : layer.label);
  const noSurface = () => {
    const input = make("input", {
      type: "radio",
      name: "surface",
      checked: !surface(),
      data: { theme: "none" },
      onchange() {
        layers.filter((layer) => layer.role === "surface").forEach((layer) => state.on.delete(layer.theme));
        refresh();
      },
    });
    return make("label", {}, input, make("span", { textContent: "Nothing" }));
  };
  const selection = (key, names, label, chosen = state[key], first = 0) => {
    const list = make("select", {
      data: { choose: key },
      attributes: { "aria-label": label },
      onchange() {
        state[key] = Number(this.value);
        refresh();
      },
    });
    names.forEach((name, i) => list.append(make("option", { value: i + first, textContent: name, selected: i + first === chosen })));
    return list;
  };
  const heading = (words) => make("h2", { textContent: words });
  const under = (layer) => {
    if (!wanted(layer)) return [];
    const found = layer.explanation ? [make("p", { className: "explanation", textContent: layer.explanation })] : [];
    const nested = (list) => found.push(make("div", { className: "nested" }, list));
    if (layer.by_type && page.types.length > 1)
      nested(selection("type", layer.mixed ? ["all types", ...page.types] : page.types, "Request type", typeOf(layer), layer.mixed ? -1 : 0));
    if (layer.colourings) nested(selection("colouring", layer.colourings.map(({ label }) => `coloured by ${label}`), "Colour of the sites"));
    if (layer.kind === "tiles" && reached === false) found.push(make("p", { className: "explanation", textContent: "It cannot be reached." }));
    if (layer.legends.length || layer.colourings) found.push(make("div", { className: "nested" }, ...legendsOf(layer).map(legendOf)));
    return found;
  };
  const sitePicker = () => {
    const list = make("select", {
      data: { choose: "site" },
      attributes: { "aria-label": "Charts of a site" },
      onchange() {
        if (this.value !== "") charts.open(Number(this.value));
        this.value = "";
      },
    }, make("option", { value: "", textContent: "Charts of a site …" }));
    run.sites.name.forEach((name, i) => list.append(make("option", { value: i, textContent: name })));
    return list;
  };
  const writeControls = () => {
    const focused = document.activeElement?.dataset ?? {};
    const parts = [];
    const surfacesThere = layers.filter((layer) => layer.role === "surface");
    if (surfacesThere.length) parts.push(heading("On the land"), noSurface());
    surfacesThere.forEach((layer) => parts.push(choice(layer), ...under(layer)));
    const overlays = layers.filter((layer) => layer.role === "overlay" && !layer.base);
    if (overlays.length) parts.push(heading("Over it"));
    overlays.forEach((layer) => parts.push(choice(layer), ...under(layer)));
    if (run) parts.push(sitePicker());
    const base = layers.filter((layer) => layer.base);
    if (base.length) parts.push(heading("Ground"), make("div", { className: "choices" }, ...base.map(choice)));
    base.forEach((layer) => parts.push(...under(layer)));
    document.getElementById("controls").replaceChildren(...parts);
    const again = focused.theme ? `[data-theme="${focused.theme}"]` : focused.choose ? `#controls [data-choose="${focused.choose}"]` : null;
    if (again) document.querySelector(again)?.focus();
  };

  // ---- legends ----
  const AREA = "M1,2H17V16H1Z";
  const swatch = (mark) => draw("svg", { width: 18, height: 18, "aria-hidden": "true" }, draw("path", { fill: "none", ...mark }));
  const areaMark = (colour, opacity = 1) => ({ d: AREA, fill: colour, "fill-opacity": opacity, stroke: colour, "stroke-width": 1 });
  const swatchOf = (legend, i) => {
    const [colour, shape] = [coloursOf(legend)[i], outline(legend.shapes[i], 9, 9, 5.5)];
    if (legend.form === "lines") return swatch({ d: "M0,9H18", stroke: colour, "stroke-width": 2.5 });
    if (legend.hatched) return swatch({ d: `${AREA}M1,9L8,2M1,16L15,2M8,16L17,7`, stroke: colour, "stroke-width": 1.3 });
    if (legend.form !== "shapes") return swatch(areaMark(colour, legend.opacity));
    if (legend.filled) return swatch({ d: shape, fill: colour, stroke: "#10151b", "stroke-width": 1.2 });
    return swatch({ d: shape, stroke: "currentColor", "stroke-width": 1.6 });
  };
  const bar = (legend) => {
    const colours = coloursOf(legend).map((colour) => {
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
  const legendRows = (legend) =>
    make("div", { className: "legend-rows" }, ...legend.names.map((name, i) =>
      make("div", {}, swatchOf(legend, i), text(name))));
  // Sites that are coloured by their cache need one legend of caches, not two.
  const legendsOf = (layer) => {
    const found = [...(layer.colourings ? [layer.colourings[state.colouring].legend] : []), ...layer.legends];
    return found.filter(({ title }, i) => found.findIndex((other) => other.title === title) === i);
  };
  const legendOf = (legend) =>
    make("div", { className: "legend", data: { legend: legend.title } },
      make("span", { className: "legend-title", textContent: legend.title }),
      make("span", { className: "legend-unit", textContent: legend.unit ? `  ${legend.unit}` : "" }),
      ...(legend.form === "bar" ? bar(legend) : [legendRows(legend)]));
  const writeRanking = () => {
    const layer = layers.find((one) => one.kind === "ranks" && wanted(one));
    const worst = layer ? marks.worst(state.epoch, layer.count) : [];
    const rowsOf = worst.map(({ site, share, rank }) => row("Show on the map, with its charts", lookAt(site), String(rank), run.sites.name[site], codec.percent(share), run.sites.street[site]));
    document.getElementById("ranking").replaceChildren(
      ...listed(layer?.ranking, "ol", rowsOf),
      ...layers.filter((one) => one.steps && wanted(one)).flatMap((one) => listed(one.steps, "ol", one.features.filter(there).map(stepRow))),
      ...listed("Moves in this epoch", "ul", movesNow()),
      ...listed("Events of the day", "ul", run ? run.events.map(eventRow) : []),
      ...listed("Trips in this epoch", "ul", tripsNow()));
  };
  const listed = (words, kind, items) => (items.length ? [heading(words), make(kind, { className: "ranking" }, ...items)] : []);
  const row = (title, onclick, sign, name, value, street = "") =>
    make("li", {}, make("button", { type: "button", title, onclick },
      make("span", { textContent: sign }), make("span", { className: "name" }, text(name), ...(street ? [make("span", { className: "street" }, text(street))] : [])), make("span", {}, text(value))));
  const stepRow = ([, geometry, , words, { badge, value }]) =>
    row("Show on the map", () => map.setView(path(geometry)[0], Math.max(map.getZoom(), 16)), badge, words[0], value);
  const lookAt = (site) => () => {
    map.setView(run.sites.place[site], Math.max(map.getZoom(), 16));
    charts.open(site);
  };
  const movesNow = () => {
    if (!layers.some((one) => one.kind === "actions" && wanted(one))) return [];
    const { names } = run.profiles;
    return run.actions.filter(({ epoch }) => epoch === state.epoch).map((action) => {
      const other = action.partner >= 0 ? ` ⇄ ${run.sites.name[action.partner]}` : "";
      return row(`${action.kind}: ${names[action.from]} to ${names[action.to]}`, lookAt(action.site), marks.GLYPH[action.kind] ?? "•",
        `${run.sites.name[action.site]}${other}`, codec.points(action.predicted ?? NaN));
    });
  };
  const tripsNow = () => {
    const layer = layers.find((one) => one.kind === "people" && wanted(one));
    return layer ? marks.tripsIn(state.epoch).map((trip) =>
      row("Show on the map", () => map.fitBounds(trip.part, { maxZoom: 17, padding: [40, 40] }), "•", marks.tripTitle(layer, trip), marks.clocks(trip))) : [];
  };
  const eventRow = (event) => {
    const first = run.spans.findIndex(([, end]) => end > event.start_s);
    return row("Show on the map", () => time.go(Math.max(first, 0)), "!", event.title, `${codec.clock(event.start_s)}–${codec.clock(event.end_s)}`);
  };

  // ---- what the pointer finds on a surface ----
  const hideProbe = () => probe?.remove();
  const probed = ({ lat, lng }) => {
    const layer = surface();
    if (!layer || !onLand(lat, lng)) return null;
    const place = surfaces.metres(lng, lat);
    if (layer.kind === "cells") {
      const cell = surfaces.cellAt(place);
      if (cell < 0) return null;
      const at = (name) => surfaces.cellValues(name, state.epoch)[cell];
      const asked = at("demand_per_km2_s");
      if (!(asked > 0)) return null;
      return tip(`Cell of ${run.cells.cell_m} m`, [
        ["Requests in time", codec.percent(at("local_coverage"))],
        ["Poisson prediction", codec.percent(at("ppp_coverage"))],
        ["Difference", codec.points(at("difference"))],
        ["Demand", codec.rate(asked, "requests/(s km²)")],
        ...(run.cells.values.people_per_km2 ? [["People who asked", codec.rate(at("people_per_km2"), "/km²")]] : []),
      ]);
    }
    if (layer.mixed && state.type < 0) return probedMix(surfaces.servedAll(state.epoch, place));
    const type = typeOf(layer);
    const found = surfaces.served(state.epoch, type, place);
    if (!found) return null;
    return tip(run.sites.name[found.site], [
      ["Profile", run.profiles.names[run.profileAt(state.epoch)[found.site]]],
      ["Distance", `${codec.short(found.distance)} m`],
      ["Radio delay", codec.seconds(found.radio)],
      ["Wait advertised", codec.seconds(found.wait)],
      [`Prefill, ${page.types[type]}`, codec.seconds(found.prefill)],
      ["First token after", codec.seconds(found.ttft)],
    ]);
  };
  const MOST_TYPES = 8;
  const probedMix = ({ parts, ttft }) => {
    const largest = [...parts].sort((a, b) => b.share - a.share || a.type - b.type).slice(0, MOST_TYPES);
    return tip("First token after", [
      ["All types", codec.seconds(ttft)],
      ...largest.map(({ type, share, found }) => [`${page.types[type]}, ${codec.percent(share)}`, found ? `${codec.seconds(found.ttft)}, ${run.sites.name[found.site]}` : "nobody serves it"]),
    ]);
  };
  const onLand = (lat, lng) => {
    let inside = false;
    run.land.forEach((ring) => ring.forEach(([y, x], i) => {
      const [v, u] = ring[(i + 1) % ring.length];
      if (y > lat !== v > lat && lng < ((u - x) * (lat - y)) / (v - y) + x) inside = !inside;
    }));
    return inside;
  };
  const startProbe = () => {
    probe = L.tooltip({ className: "tip probe", opacity: 1, direction: "auto", offset: [12, 0] });
    const look = (event) => {
      const content = event.originalEvent.target.closest?.(".leaflet-interactive, .leaflet-marker-icon, .leaflet-control, .card") ? null : probed(event.latlng);
      if (!content) return hideProbe();
      probe.setLatLng(event.latlng).setContent(content);
      if (!map.hasLayer(probe)) probe.addTo(map);
    };
    map.on("mousemove click", look);
    map.on("mouseout movestart", hideProbe);
  };

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
    const known = { epoch: page.epochs.length, type: page.types.length, colouring: layers.find((layer) => layer.colourings)?.colourings.length ?? 0 };
    Object.entries(known).forEach(([key, count]) => {
      const value = Number(address.get(key) ?? NaN);
      if (Number.isInteger(value) && value >= 0 && value < count) state[key] = value;
    });
    const themes = new Set(layers.map((layer) => layer.theme));
    if (address.has("show")) state.on = new Set(address.get("show").split(",").filter((theme) => themes.has(theme)));
    if (["dark", "light"].includes(address.get("scheme"))) document.documentElement.dataset.scheme = address.get("scheme");
    return address.get("site");
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
  const recolour = () => {
    rebuild(() => true);
    refresh();
  };
  const schemeButton = () => {
    const button = document.getElementById("scheme");
    const label = () => (button.textContent = dark() ? "Light" : "Dark");
    button.onclick = () => {
      document.documentElement.dataset.scheme = dark() ? "light" : "dark";
      label();
      recolour();
    };
    scheme.addEventListener("change", () => {
      label();
      recolour();
    });
    label();
  };
  // A run's columns stay text until they are looked at.
  const opened = (data) => {
    const known = new Map();
    const remember = (key, make) => {
      if (!known.has(key)) known.set(key, make());
      return known.get(key);
    };
    data.column = (name, epoch) => remember(`${name} ${epoch}`, () => codec.numbers(data.columns[name].epochs[epoch], data.columns[name].scale));
    data.profileAt = (epoch) => remember(`profile ${epoch}`, () => codec.digits(data.profile[epoch]));
    data.sites.place = data.sites.place.map((place) => path(place)[0]);
    data.land = data.land.flatMap((rings) => rings.map(path));
    layers.filter((layer) => layer.kind === "places").forEach((layer) => (layer.at = layer.at.map((place) => path(place)[0])));
    if (data.trips) data.trips.way = data.trips.way.map(path);
    data.events.forEach((event) => (event.place &&= path(event.place)[0]));
    if (data.cells) {
      const at = new Int32Array(data.cells.width * data.cells.height).fill(-1);
      let cell = 0;
      data.cells.position = data.cells.steps.map((step) => (cell += step));
      data.cells.position.forEach((position, i) => (at[position] = i));
      data.cells.at = at;
    }
    return data;
  };
  const startRun = () => {
    surfaces.start(run);
    Object.keys(painted).forEach((pane) => {
      painted[pane] = new surfaces.Surface({ pane, padding: 0.1 });
      painted[pane].addTo(map);
    });
    charts.start(document.getElementById("card"), run, state);
    layers.filter((layer) => marks.kinds[layer.kind]).forEach((layer) => (layer.marks = marks.kinds[layer.kind](layer)));
    startProbe();
  };
  // The bar under the map may need another line when its words grow; the map follows.
  const followSize = () => new ResizeObserver(() => map.invalidateSize({ animate: false, pan: false })).observe(map.getContainer());
  // Inside a frame of another page the map may have no size yet when this runs, and nothing can be drawn.
  const whenSized = (element, then) => {
    const sized = () => element.clientWidth > 0 && element.clientHeight > 0;
    if (sized()) return then();
    const watch = new ResizeObserver(() => {
      if (!sized()) return;
      watch.disconnect();
      requestAnimationFrame(then);
    });
    watch.observe(element);
  };
  const start = (on, settings) => whenSized(on.getContainer(), () => begin(on, settings));
  const begin = (on, settings) => {
    [map, page] = [on, { ...settings, coloursOf }];
    layers.filter((layer) => layer.show).forEach((layer) => state.on.add(layer.theme));
    state.epoch = page.epoch;
    if (run?.mix) state.type = -1;
    const site = fromAddress();
    layers.filter((layer) => layer.named).forEach((layer) => layer.named.forEach((street) => (street[2] = street[2].map(path))));
    if (run) marks.start(map, page, opened(run), charts.open);
    time.start(document.getElementById("time"), state, run, page.epochs, epochChanged);
    map.invalidateSize({ animate: false });
    panes(page.panes);
    map.fitBounds(page.bounds, { paddingTopLeft: [8, 8], paddingBottomRight: [8, 44], animate: false }); // room for the credit
    map.setMaxBounds(L.latLngBounds(page.bounds).pad(1));
    L.control.scale({ imperial: false, maxWidth: window.innerWidth < 600 ? 120 : 160 }).addTo(map);
    credit();
    followSize();
    if (run) startRun();
    ground.start(map, (found) => {
      reached = found;
      writeControls();
    });
    schemeButton();
    refresh();
    if (run && Number(site ?? NaN) in run.sites.place) charts.open(Number(site));
  };
  return { add: (layer) => layers.push(layer), run: (data) => (run = data), start };
})();
