// What stands on the map in one epoch: sites, moves of the controller, the hottest sites, people, events.
// Text of the data reaches the document through textContent alone, so that it can never become markup.
const marks = (() => {
  const small = matchMedia("(max-width: 760px)").matches ? 0.75 : 1;
  let map, page, run, open;

  const make = (tag, options = {}, ...children) => {
    const { data, attributes, ...properties } = options;
    const node = Object.assign(document.createElement(tag), properties);
    Object.assign(node.dataset, data);
    Object.entries(attributes ?? {}).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  const SVG = "http://www.w3.org/2000/svg";
  const draw = (tag, attributes = {}, ...children) => {
    const node = document.createElementNS(SVG, tag);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  // Names may be written in any direction; <bdi> keeps them from reordering what stands beside them.
  const text = (value) => make("bdi", { textContent: value });

  // ---- shapes ----
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
  // A bent line with a head, in pixels, so that it keeps its form at every zoom; it stops short of both ends.
  const Arrow = L.Polyline.extend({
    _updatePath() {
      const [from, to] = this._latlngs.map((place) => this._map.latLngToLayerPoint(place));
      const length = from.distanceTo(to) || 1;
      const along = to.subtract(from).divideBy(length);
      const across = L.point(-along.y, along.x);
      const gap = Math.min(12, length / 4);
      const middle = from.add(to).divideBy(2).add(across.multiplyBy(Math.min(0.18 * length, 60)));
      const [start, end] = [from, to].map((point) => {
        const way = middle.subtract(point);
        return point.add(way.multiplyBy(gap / (Math.hypot(way.x, way.y) || 1)));
      });
      const back = middle.subtract(end);
      const unit = back.divideBy(Math.hypot(back.x, back.y) || 1);
      const head = [0.45, -0.45].map((turn) => {
        const [c, s] = [Math.cos(turn), Math.sin(turn)];
        return end.add(L.point(c * unit.x - s * unit.y, s * unit.x + c * unit.y).multiplyBy(10));
      });
      const at = ({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`;
      this._renderer._setPath(this, `M${at(start)}Q${at(middle)} ${at(end)}M${at(head[0])}L${at(end)}L${at(head[1])}`);
    },
  });

  // A way along streets with a head at its end, in pixels.
  const Way = L.Polyline.extend({
    _updatePath() {
      const points = this._rings[0] ?? [];
      const end = points[points.length - 1];
      const back = end && [...points].reverse().find((point) => point.distanceTo(end) > 4);
      const turn = back && Math.atan2(back.y - end.y, back.x - end.x);
      const at = (angle) => `${(end.x + 7 * Math.cos(angle)).toFixed(1)},${(end.y + 7 * Math.sin(angle)).toFixed(1)}`;
      const head = back ? `M${at(turn - 0.5)}L${end.x},${end.y}L${at(turn + 0.5)}` : "";
      this._renderer._setPath(this, L.SVG.pointsToPath(this._parts, false) + head);
    },
  });

  // ---- tips ----
  const tip = (title, rows, ...more) => {
    const list = make("dl");
    rows.filter(([, value]) => value !== "").forEach(([name, value]) =>
      list.append(make("dt", { textContent: name }), make("dd", {}, text(value))));
    return make("div", {}, make("h3", {}, text(title)), list, ...more);
  };
  // A tip near the edge of the map moves inside, so that nothing of it is cut off.
  const placed = L.Tooltip.prototype._setPosition;
  L.Tooltip.include({
    _setPosition(point) {
      placed.call(this, point);
      const box = this._container;
      const at = L.DomUtil.getPosition(box);
      const corner = this._map.layerPointToContainerPoint(at);
      const size = this._map.getSize();
      const margin = parseFloat(getComputedStyle(box).marginLeft) || 0;
      const inside = (value, most) => Math.max(Math.min(value, most), 4);
      L.DomUtil.setPosition(box, at.add([
        inside(corner.x + margin, size.x - box.offsetWidth - 4) - corner.x - margin,
        inside(corner.y, size.y - box.offsetHeight - 4) - corner.y,
      ]));
    },
  });
  const withTip = (drawn, content, sticky = false) => drawn.bindTooltip(content, { sticky, className: "tip", opacity: 1 });
  const group = (pane) => ({ pane, renderer: page.renderers[pane] });

  // ---- sites ----
  const siteRows = (site, epoch) => {
    const at = (name) => run.column(name, epoch)[site];
    const [start, end] = run.spans[epoch];
    const requests = at("requests");
    const over = at("prefill_s_per_s") > 1 ? ", more than one GPU has" : "";
    const profile = run.profileAt(epoch)[site];
    return [
      ["Street", run.sites.street[site]],
      ["Kind", run.sites.kind[site]],
      ["Profile", run.profiles.names[profile]],
      ["Holds", run.profiles.holds[profile]],
      ["Utilisation", codec.percent(at("utilization"))],
      ["Load offered", codec.percent(at("offered_load"))],
      ["Mean wait", codec.seconds(at("mean_wait_s"))],
      ["In time", requests ? codec.percent(1 - at("missed") / requests) : "–"],
      ["Requests", codec.rate(requests / (end - start), "/s")],
      ["Prefill asked", codec.rate(at("prefill_s_per_s"), "s/s") + over],
    ];
  };
  // What colours a site: a number of it, or the profile it holds.
  const siteValue = (key, epoch) => {
    if (key === "profile") return run.profileAt(epoch);
    const column = (name) => Array.from(run.column(name, epoch));
    if (key === "wait") return column("mean_wait_s");
    if (key === "in_time") {
      const requests = column("requests");
      return column("missed").map((missed, i) => (requests[i] ? 1 - missed / requests[i] : NaN));
    }
    const used = column("utilization");
    return column("offered_load").map((load, i) => (load >= 1 ? load : Number.isNaN(used[i]) ? 0 : used[i]));
  };
  const UNKNOWN = "#c3cbd4";
  const siteColours = (way, epoch) =>
    siteValue(way.key, epoch).map((value) =>
      way.key === "profile" ? way.colours[value] : (way.colours[surfaces.level(way.edges, value)] ?? UNKNOWN));
  const GLYPH = { replicate: "+", admit: "+", demote: "−", migrate: "⇄" };
  const kinds = {
    sites(layer) {
      let shown;
      const markers = run.sites.place.map((place, site) => {
        const marker = new ShapeMarker(place, { ...group("sites"), ...layer.style, radius: layer.style.radius * small, fillColor: UNKNOWN, shape: "circle" });
        marker.on("click", (event) => {
          L.DomEvent.stopPropagation(event);
          open(site);
        });
        return withTip(marker, () => tip(run.sites.name[site], siteRows(site, shown.epoch), make("p", { className: "hint", textContent: "Click for its charts" })));
      });
      const all = L.layerGroup(markers);
      return {
        show(state) {
          shown = state;
          const colours = siteColours(layer.colourings[state.colouring], state.epoch);
          const profile = run.profileAt(state.epoch);
          markers.forEach((marker, site) => {
            marker.options.shape = run.profiles.shapes[profile[site]];
            marker.setStyle({ fillColor: colours[site] });
            if (marker._map) marker.redraw();
          });
          all.addTo(map);
        },
        hide: () => all.remove(),
      };
    },

    // ---- moves: an exchange bends two arrows, each in the colour of the cache it carries; a change is a ring ----
    actions() {
      const drawn = L.layerGroup();
      return {
        show(state) {
          drawn.clearLayers();
          run.actions.filter(({ epoch }) => epoch === state.epoch).forEach((action) => {
            const { names, colours } = run.profiles;
            const changes = [[action.site, action.from, action.to]];
            if (action.partner >= 0) changes.push([action.partner, action.to, action.from]);
            const content = (site) => () => actionTip(action, changes.find(([one]) => one === site) ?? changes[0]);
            if (action.partner >= 0) {
              changes.forEach(([site, , to], i) => {
                const ends = [run.sites.place[changes[1 - i][0]], run.sites.place[site]];
                const halo = { ...group("actions"), color: "#fff", weight: 7, opacity: 0.85, fill: false, interactive: false };
                drawn.addLayer(new Arrow(ends, halo));
                drawn.addLayer(withTip(new Arrow(ends, { ...group("actions"), color: dark(colours[to]), weight: 3, opacity: 1, fill: false, className: "move" }), content(site), true));
              });
            }
            changes.forEach(([site, , to]) => {
              const ring = { ...group("actions"), weight: 3.5, fill: false, radius: 14 * small, shape: "circle" };
              drawn.addLayer(new ShapeMarker(run.sites.place[site], { ...ring, color: "#fff", weight: 6, opacity: 0.85, interactive: false }));
              drawn.addLayer(withTip(new ShapeMarker(run.sites.place[site], { ...ring, color: dark(colours[to]), className: "move" }), content(site)));
              if (action.partner >= 0) return;
              const glyph = make("div", { className: "glyph", textContent: GLYPH[action.kind] ?? "•" });
              glyph.style.background = dark(colours[to]);
              const icon = L.divIcon({ className: "", html: glyph, iconSize: [16, 16], iconAnchor: [18, 18] });
              drawn.addLayer(withTip(L.marker(run.sites.place[site], { pane: "ranks", icon, keyboard: false, alt: names[to] }), content(site)));
            });
          });
          drawn.addTo(map);
        },
        hide: () => drawn.remove(),
      };
    },

    // Badges stand beside their sites, on the side where no other is yet.
    ranks(layer) {
      const drawn = L.layerGroup();
      let shown = null;
      const write = () => {
        drawn.clearLayers();
        const taken = [];
        worst(shown, layer.count).forEach(({ site, share, own, rank }) => {
          const size = Math.round((17 + 22 * Math.sqrt(share)) * small);
          const badge = make("div", { className: "rank", textContent: rank });
          badge.style.width = badge.style.height = `${size}px`;
          const icon = L.divIcon({ className: "", html: badge, iconSize: [size, size], iconAnchor: beside(site, size, taken) });
          const marker = L.marker(run.sites.place[site], { pane: "ranks", icon, keyboard: false });
          marker.on("click", () => open(site));
          drawn.addLayer(withTip(marker, () => tip(run.sites.name[site], [["Share of all misses", codec.percent(share)], ["Missed of its own", codec.percent(own)]])));
        });
      };
      map.on("zoomend", () => shown !== null && write());
      return {
        show(state) {
          shown = state.epoch;
          write();
          drawn.addTo(map);
        },
        hide() {
          shown = null;
          drawn.remove();
        },
      };
    },

    // ---- people: where each of a few asked last in the epoch, and the ways of some in it, along the streets ----
    people(layer) {
      const drawn = L.layerGroup();
      const dots = (epoch, colours) => {
        if (!run.people) return;
        const { x, y, activity, scale_x, scale_y } = run.people;
        const lng = codec.numbers(x[epoch], scale_x);
        const doing = codec.digits(activity[epoch]);
        codec.numbers(y[epoch], scale_y).forEach((lat, i) => {
          if (Number.isNaN(lat)) return;
          drawn.addLayer(L.circleMarker([lat, lng[i]], { ...group("people"), radius: 3 * small, color: "#fff", weight: 0.8, fillColor: colours[doing[i]], fillOpacity: 1, interactive: false }));
        });
      };
      const ways = (epoch, colours) => tripsIn(epoch).forEach((trip) => {
        const still = { ...group("people"), fill: false, interactive: false };
        drawn.addLayer(new Way(trip.part, { ...still, weight: 6, opacity: 0.85, className: "casing" }));
        drawn.addLayer(new Way(trip.part, { ...still, color: colours[trip.to], weight: 2.4, opacity: 1, className: "trip" }));
        const touched = L.polyline(trip.part, { ...group("people"), fill: false, weight: 14, opacity: 0, className: "touch" });
        drawn.addLayer(withTip(touched, () => tripTip(layer, trip), true));
      });
      return {
        show(state) {
          drawn.clearLayers();
          [ways, dots].forEach((add) => add(state.epoch, page.coloursOf(layer.scale)));
          drawn.addTo(map);
        },
        hide: () => drawn.remove(),
      };
    },

    // ---- names: again whenever the map has moved, since another zoom has room for others; landmarks come before
    // streets, and streets before small places ----
    places(layer) {
      const drawn = L.layerGroup();
      let shown = false;
      const write = (small) => {
        drawn.clearLayers();
        const taken = [...names.marksAt(map, run.sites.place), ...names.controls(map)];
        const found = names.fitting(map, layer, 0, layer.landmarks, taken);
        if (small && map.getZoom() >= names.NEAR) found.push(...names.fitting(map, layer, layer.landmarks, layer.name.length, [...taken, ...streets.taken()]));
        found.forEach((i) => {
          const label = make("span", { className: i < layer.landmarks ? "place-name landmark" : "place-name" }, text(layer.name[i]));
          drawn.addLayer(L.marker(layer.at[i], { pane: "names", icon: L.divIcon({ className: "", html: label, iconSize: [0, 0] }), interactive: false, keyboard: false }));
          const dot = L.circleMarker(layer.at[i], { ...group("places"), radius: 2.2, weight: 0, className: "place", fillOpacity: 1 });
          drawn.addLayer(withTip(dot, () => tip(layer.name[i], [["Kind", layer.sort[i]]])));
        });
      };
      map.on("moveend", () => shown && write(false));
      map.on("streetnames", () => shown && write(true));
      return {
        show() {
          if (!shown) write(false);
          shown = true;
          drawn.addTo(map);
        },
        hide() {
          shown = false;
          drawn.remove();
        },
      };
    },

    events() {
      const drawn = L.layerGroup();
      return {
        show(state) {
          drawn.clearLayers();
          eventsIn(state.epoch).forEach((event) => {
            const content = () => tip(event.title, event.rows);
            const style = { ...group("actions"), color: "#b3123f", weight: 2.5, className: "event" };
            if (event.place) {
              const around = event.radius_m > 0 ? L.circle(event.place, { ...style, radius: event.radius_m, dashArray: "6 5", fillOpacity: 0.08 }) : new ShapeMarker(event.place, { ...style, shape: "diamond", radius: 12, fill: false });
              drawn.addLayer(withTip(around, content, true));
            }
            event.sites.forEach((site) =>
              drawn.addLayer(withTip(new ShapeMarker(run.sites.place[site], { ...style, shape: "struck", radius: 15 * small, fillOpacity: 0.01 }), content)));
          });
          drawn.addTo(map);
        },
        hide: () => drawn.remove(),
      };
    },
  };
  const SIDES = [[1, -1], [-1, -1], [1, 1], [-1, 1]];
  const beside = (site, size, taken) => {
    const { x, y } = map.latLngToLayerPoint(run.sites.place[site]);
    const away = size / 2 + 4;
    const spots = SIDES.map(([right, down]) => [x + right * away, y + down * away, size / 2]);
    const free = spots.findIndex(([u, v, r]) => taken.every(([a, b, c]) => Math.hypot(u - a, v - b) > r + c));
    const [u, v] = spots[Math.max(free, 0)];
    taken.push(spots[Math.max(free, 0)]);
    return [x - u + size / 2, y - v + size / 2];
  };
  const eventsIn = (epoch) => {
    const [start, end] = run.spans[epoch];
    return run.events.filter((event) => event.start_s < end && event.end_s > start);
  };
  // The trips under way in an epoch, each with its part in it: from and to where it was as the epoch began and ended.
  const tripsIn = (epoch) => {
    const [start, end] = run.spans[epoch];
    const { user, depart_s, arrive_s, way, spent, scale, ...known } = run.trips ?? { user: [] };
    return user.map((_, i) => i).filter((i) => depart_s[i] < end && arrive_s[i] > start).map((i) => {
      const times = Array.from(codec.numbers(spent[i], scale), (share) => depart_s[i] + share * (arrive_s[i] - depart_s[i]));
      const [from, to] = [Math.max(start, times[0]), Math.min(end, times[times.length - 1])];
      const part = [placeAt(way[i], times, from), ...way[i].filter((_, k) => times[k] > from && times[k] < to), placeAt(way[i], times, to)];
      return { part, user: user[i], depart_s: depart_s[i], arrive_s: arrive_s[i], mode: known.mode[i], from: known.from[i], to: known.to[i], length_m: known.length_m[i] };
    }).sort((a, b) => a.depart_s - b.depart_s || a.user - b.user);
  };
  const placeAt = (way, times, time) => {
    const right = Math.max(times.findIndex((passed) => passed >= time), 1);
    const share = (time - times[right - 1]) / (times[right] - times[right - 1] || 1);
    return way[right - 1].map((value, axis) => value + share * (way[right][axis] - value));
  };
  const tripTitle = ({ activities, modes }, { from, to, mode }) => `${activities[from].replace(/^./, (c) => c.toUpperCase())} → ${activities[to]}, ${modes[mode]}`;
  const clocks = ({ depart_s, arrive_s }) => `${codec.clock(depart_s)}–${codec.clock(arrive_s)}`;
  const tripTip = (layer, trip) => tip(tripTitle(layer, trip), [
    ["From–to", clocks(trip)],
    ["Length", trip.length_m < 999.5 ? `${trip.length_m} m` : `${codec.short(trip.length_m / 1000)} km`],
    ["Resident", `no. ${trip.user}`],
  ]);
  const worst = (epoch, count) => {
    const missed = run.column("missed", epoch);
    const requests = run.column("requests", epoch);
    const total = missed.reduce((sum, number) => sum + number, 0);
    return Array.from(missed, (number, site) => ({ site, number, share: number / total, own: number / requests[site] }))
      .filter(({ number }) => number > 0)
      .sort((a, b) => b.number - a.number || a.site - b.site)
      .slice(0, count)
      .map((one, i) => ({ ...one, rank: i + 1 }));
  };
  const actionTip = (action, [site, from, to]) => {
    const { names } = run.profiles;
    const other = action.partner < 0 ? "" : run.sites.name[site === action.site ? action.partner : action.site];
    const reason = make("ul", { className: "reason" }, ...action.reason.split("; ").filter(Boolean).map((part) => make("li", {}, text(part))));
    return tip(run.sites.name[site], [
      ["Action", action.kind],
      ["From", names[from]],
      ["To", names[to]],
      ["With", other],
      ["Moved", codec.bytes(action.bytes)],
      ["In effect at", action.effective_s === null ? "–" : codec.clock(action.effective_s)],
      ["Predicted gain, this epoch", codec.points(action.predicted ?? NaN)],
      ["Gain in hindsight (field), this epoch", codec.points(action.realised ?? NaN)],
      [`Predicted gain, mean of ${action.horizon_epochs} epochs`, action.horizon_epochs ? codec.points(action.horizon_gain) : ""],
    ], reason);
  };
  // Lines on a light ground want more ink than areas.
  const dark = (colour) => `#${[1, 3, 5].map((i) => Math.round(parseInt(colour.slice(i, i + 2), 16) * 0.8).toString(16).padStart(2, "0")).join("")}`;

  const start = (on, settings, data, opener) => {
    [map, page, run, open] = [on, settings, data, opener];
  };
  OUTLINES.struck = [[-1, -1], [0, -0.25], [1, -1], [0.25, 0], [1, 1], [0, 0.25], [-1, 1], [-0.25, 0]];
  return { start, kinds, GLYPH, make, draw, text, tip, outline, ShapeMarker, worst, eventsIn, tripsIn, tripTitle, clocks, siteRows, small };
})();
