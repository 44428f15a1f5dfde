// Surfaces are worked out here, for every pixel of the map: who serves it, how long its requests wait, what its cell knows.
const surfaces = (() => {
  const TILE = 64;
  const BLOCK = 8;
  let run;
  const decoded = new Map();

  const start = (data) => {
    run = data;
    decoded.clear();
  };
  const level = (edges, value) => {
    if (Number.isNaN(value)) return -1;
    let found = 0;
    while (found < edges.length && value >= edges[found]) found++;
    return found;
  };

  // ---- places: longitude and latitude to metres, by the polynomial that Python fitted ----
  const metres = (lng, lat) => {
    const { centre, x, y } = run.ground;
    const u = lng - centre[0];
    const v = lat - centre[1];
    const terms = [1, u, v, u * u, u * v, v * v];
    let east = 0;
    let north = 0;
    for (let i = 0; i < 6; i++) {
      east += x[i] * terms[i];
      north += y[i] * terms[i];
    }
    return [east, north];
  };

  // ---- who serves whom: the site with the least radio delay + what the policy counts ----
  const offsets = (epoch, type) => {
    const profile = run.profileAt(epoch);
    const wait = run.column("advertised_wait_s", epoch);
    const { counts_prefill, counts_wait } = run.association;
    return run.sites.x.map((_, site) => {
      const prefill = run.association.prefill_s[profile[site]][type] ?? Infinity;
      const time = (counts_prefill ? prefill : 0) + (counts_wait ? wait[site] : 0);
      return { site, x: run.sites.x[site], y: run.sites.y[site], offset: time, rest: prefill + wait[site], prefill, wait: wait[site] };
    }).filter(({ offset, prefill }) => Number.isFinite(offset) && Number.isFinite(prefill)).sort((a, b) => a.offset - b.offset);
  };
  const radio = (distance) => run.association.radio_coefficient * (distance / 1000) ** run.association.radio_exponent;
  // The same from a table, straight between its entries, for the many pixels of a surface.
  const quickRadio = (() => {
    let table = null;
    return (distance) => {
      if (table?.run !== run) table = { run, delay: Float64Array.from({ length: 20002 }, (_, i) => radio(2 * i)) };
      const place = distance / 2;
      if (place >= 20000) return radio(distance);
      const i = Math.floor(place);
      return table.delay[i] + (place - i) * (table.delay[i + 1] - table.delay[i]);
    };
  })();
  // Candidates come in the order of their offsets, so that the first with an offset above the least cost ends the search.
  const best = (candidates, x, y) => {
    let found = null;
    let least = Infinity;
    for (let i = 0; i < candidates.length; i++) {
      const one = candidates[i];
      if (one.offset >= least) break;
      const [east, north] = [one.x - x, one.y - y];
      const cost = one.offset + quickRadio(Math.sqrt(east * east + north * north));
      if (cost < least || (cost === least && one.site < found.site)) {
        least = cost;
        found = one;
      }
    }
    return found;
  };
  // Sites that can be best somewhere within a circle: those whose least cost there is below everybody's largest.
  const within = (candidates, x, y, reach) => {
    let limit = Infinity;
    const bounds = new Float64Array(candidates.length);
    for (let i = 0; i < candidates.length; i++) {
      const one = candidates[i];
      const distance = Math.hypot(one.x - x, one.y - y);
      limit = Math.min(limit, one.offset + quickRadio(distance + reach));
      bounds[i] = one.offset + quickRadio(Math.max(distance - reach, 0));
    }
    return candidates.filter((_, i) => bounds[i] <= limit);
  };
  // Every type of request with its share in what is asked, or the one that is chosen.
  const asked = (epoch, type) => {
    if (type >= 0) return [{ share: 1, type }];
    return run.mix[epoch].map((share, kind) => ({ share, type: kind })).filter(({ share }) => share > 0);
  };
  const served = (epoch, type, [x, y]) => {
    const one = best(offsets(epoch, type), x, y);
    if (!one) return null;
    const distance = Math.hypot(one.x - x, one.y - y);
    return { ...one, distance, radio: radio(distance), ttft: radio(distance) + one.rest };
  };
  // Who serves each type, and the mean over all types; a type that nobody serves takes for ever.
  const servedAll = (epoch, place) => {
    const parts = asked(epoch, -1).map(({ share, type }) => ({ share, type, found: served(epoch, type, place) }));
    return { parts, ttft: parts.reduce((sum, { share, found }) => sum + share * (found ? found.ttft : Infinity), 0) };
  };

  // ---- cells: values on a lattice, read between the centres ----
  const cellValues = (name, epoch) => {
    const key = `${name} ${epoch}`;
    if (!decoded.has(key)) {
      if (decoded.size > 60) decoded.clear();
      decoded.set(key, name === "difference" ? difference(epoch) : codec.numbers(run.cells.values[name].epochs[epoch], run.cells.values[name].scale));
    }
    return decoded.get(key);
  };
  const difference = (epoch) => {
    const predicted = cellValues("ppp_coverage", epoch);
    return cellValues("local_coverage", epoch).map((value, i) => value - predicted[i]);
  };
  // Values on the whole lattice. A place without requests among others takes their mean, twice, so that shares have no
  // holes of single cells and reach the edge of the land; demand is left as it is.
  const raster = (name, epoch) => {
    const key = `raster ${name} ${epoch}`;
    if (!decoded.has(key)) {
      const { width, height, position } = run.cells;
      let values = new Float64Array(width * height).fill(NaN);
      cellValues(name, epoch).forEach((value, cell) => (values[position[cell]] = value));
      if (name !== "demand_per_km2_s") for (let pass = 0; pass < 2; pass++) values = values.map((value, at) => (Number.isNaN(value) ? around(values, at) : value));
      decoded.set(key, values);
    }
    return decoded.get(key);
  };
  const around = (values, position) => {
    const { width, height } = run.cells;
    const [column, row] = [position % width, Math.floor(position / width)];
    let sum = 0;
    let known = 0;
    for (let j = Math.max(row - 1, 0); j <= Math.min(row + 1, height - 1); j++)
      for (let i = Math.max(column - 1, 0); i <= Math.min(column + 1, width - 1); i++)
        if (!Number.isNaN(values[j * width + i])) {
          sum += values[j * width + i];
          known++;
        }
    return known >= 3 ? sum / known : NaN;
  };
  const between = (values, x, y) => {
    const { cell_m, corner, width, height } = run.cells;
    const u = (x - corner[0]) / cell_m - 0.5;
    const v = (y - corner[1]) / cell_m - 0.5;
    const i = Math.floor(u);
    const j = Math.floor(v);
    let sum = 0;
    let weight = 0;
    for (let k = 0; k < 4; k++) {
      const column = i + (k & 1);
      const row = j + (k >> 1);
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const value = values[row * width + column];
      if (Number.isNaN(value)) continue;
      const share = (k & 1 ? u - i : 1 - u + i) * (k >> 1 ? v - j : 1 - v + j);
      sum += share * value;
      weight += share;
    }
    return weight >= 0.4 ? sum / weight : NaN;
  };
  const cellAt = ([x, y]) => {
    const { cell_m, corner, width, height, at } = run.cells;
    const column = Math.floor((x - corner[0]) / cell_m);
    const row = Math.floor((y - corner[1]) / cell_m);
    return column < 0 || row < 0 || column >= width || row >= height ? -1 : at[row * width + column];
  };

  // ---- what is painted: a class for every place, and the lines between classes ----
  const painters = {
    regions(layer, state) {
      const candidates = offsets(state.epoch, state.type);
      const colours = [];
      candidates.forEach(({ site }) => (colours[site] = run.profiles.colours[run.profileAt(state.epoch)[site]]));
      return {
        candidates,
        near: within,
        of: (x, y, near) => best(near, x, y)?.site ?? -1,
        colour: (site) => colours[site],
        line: () => 1,
      };
    },
    ttft(layer, state) {
      const { edges } = layer.scale;
      const time = (sites, x, y) => {
        const one = best(sites, x, y);
        return one ? one.rest + quickRadio(Math.hypot(one.x - x, one.y - y)) : Infinity;
      };
      const candidates = asked(state.epoch, state.type).map(({ share, type }) => ({ share, sites: offsets(state.epoch, type) }));
      const anybody = candidates.some(({ sites }) => sites.length);
      return {
        candidates,
        near: (parts, x, y, reach) => parts.map(({ share, sites }) => ({ share, sites: within(sites, x, y, reach) })),
        of: (x, y, near) => {
          let mean = 0;
          for (const { share, sites } of near) mean += share * time(sites, x, y);
          return anybody ? level(edges, mean) : -1;
        },
        colour: (found) => layer.scale.colours[found],
        line: (a, b) => (edges.slice(Math.min(a, b), Math.max(a, b)).includes(layer.scale.target) ? 1 : 0.4),
      };
    },
    cells(layer, state) {
      const values = raster(layer.column, state.epoch);
      return {
        candidates: null,
        near: () => null,
        of: (x, y) => level(layer.scale.edges, between(values, x, y)),
        colour: (found) => layer.scale.colours[found],
        line: () => 0,
      };
    },
    late(layer, state) {
      const values = raster("local_coverage", state.epoch);
      return {
        candidates: null,
        near: () => null,
        of: (x, y) => (between(values, x, y) < layer.limit ? 0 : -1),
        colour: () => layer.colour,
        line: () => 1,
      };
    },
  };

  const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  const packed = ([red, green, blue], alpha) => (Math.round(255 * alpha) << 24) | (blue << 16) | (green << 8) | red;
  // One colour over another, both with their own share of light that they stop.
  const over = (ink, strength, colour, opacity) => {
    const alpha = strength + opacity * (1 - strength);
    return packed(ink.map((value, i) => Math.round((value * strength + colour[i] * opacity * (1 - strength)) / alpha)), alpha);
  };

  // Classes of all pixels. Blocks whose corners and middle agree are of one class; only the others are looked at pixel
  // by pixel. `place` is straight to well below a pixel within a tile, so it is asked at the corners of tiles alone.
  const classes = (painter, width, height, place) => {
    const found = new Int16Array(width * height);
    const big = 4 * TILE;
    for (let top = 0; top < height; top += big) {
      for (let left = 0; left < width; left += big) {
        const near = nearTile(painter, painter.candidates, left, top, big, place).near;
        for (let y = top; y < Math.min(top + big, height); y += TILE)
          for (let x = left; x < Math.min(left + big, width); x += TILE) tile(painter, near, x, y, width, height, place, found);
      }
    }
    return found;
  };
  const nearTile = (painter, candidates, left, top, side, place) => {
    const corners = [place(left, top), place(left + side, top), place(left, top + side), place(left + side, top + side)];
    const [x, y] = [0, 1].map((axis) => (corners[0][axis] + corners[3][axis]) / 2);
    return { corners, near: painter.near(candidates, x, y, 1.05 * Math.hypot(corners[0][0] - x, corners[0][1] - y)) };
  };
  const tile = (painter, candidates, left, top, width, height, place, found) => {
    const { corners, near } = nearTile(painter, candidates, left, top, TILE, place);
    const [[ax, ay], [bx, by], [cx, cy], [dx, dy]] = corners;
    const placeAt = (x, y) => {
      const u = (x - left) / TILE;
      const v = (y - top) / TILE;
      return [(1 - v) * ((1 - u) * ax + u * bx) + v * ((1 - u) * cx + u * dx), (1 - v) * ((1 - u) * ay + u * by) + v * ((1 - u) * cy + u * dy)];
    };
    const key = (x, y, few = near) => {
      const [east, north] = placeAt(x, y);
      return painter.of(east, north, few);
    };
    const reach = (1.05 * Math.hypot(ax - dx, ay - dy) * BLOCK) / TILE / 2;
    const side = TILE / BLOCK + 1;
    const at = new Int16Array(side * side);
    for (let j = 0; j < side; j++) for (let i = 0; i < side; i++) at[j * side + i] = key(left + i * BLOCK, top + j * BLOCK);
    for (let j = 0, y = top; j < side - 1 && y < height; j++, y += BLOCK) {
      for (let i = 0, x = left; i < side - 1 && x < width; i++, x += BLOCK) {
        const right = Math.min(x + BLOCK, width);
        const bottom = Math.min(y + BLOCK, height);
        const one = at[j * side + i];
        const same = at[j * side + i + 1] === one && at[(j + 1) * side + i] === one && at[(j + 1) * side + i + 1] === one;
        if (same && key(x + BLOCK / 2, y + BLOCK / 2) === one) {
          for (let row = y; row < bottom; row++) found.fill(one, row * width + x, row * width + right);
          continue;
        }
        const few = painter.near(near, ...placeAt(x + BLOCK / 2, y + BLOCK / 2), reach);
        for (let row = y; row < bottom; row++)
          for (let column = x; column < right; column++) found[row * width + column] = key(column + 0.5, row + 0.5, few);
      }
    }
  };

  const Surface = L.Renderer.extend({
    _initContainer() {
      this._container = document.createElement("canvas");
      this._container.setAttribute("aria-hidden", "true");
    },
    _destroyContainer() {
      this._container.remove();
      delete this._container;
    },
    _updatePaths() {},
    _update() {
      if (this._map._animatingZoom && this._bounds) return;
      L.Renderer.prototype._update.call(this);
      const size = this._bounds.getSize();
      L.DomUtil.setPosition(this._container, this._bounds.min);
      this._container.style.width = `${size.x}px`;
      this._container.style.height = `${size.y}px`;
      this.paint();
    },
    // Show a layer in a state; null shows nothing.
    show(layer, state) {
      this.shown = layer && { layer, state };
      if (this._map) this.paint();
    },
    paint() {
      const size = this._bounds.getSize();
      const sharp = Math.min(window.devicePixelRatio || 1, 2);
      const [width, height] = [Math.round(size.x * sharp), Math.round(size.y * sharp)];
      Object.assign(this._container, { width, height });
      if (!this.shown) return;
      const { layer, state } = this.shown;
      const { min } = this._bounds;
      const place = (x, y) => {
        const { lng, lat } = this._map.layerPointToLatLng([min.x + x / sharp, min.y + y / sharp]);
        return metres(lng, lat);
      };
      const painter = painters[layer.kind](layer, state);
      const image = picture(painter, layer, classes(painter, width, height, place), width, height, Math.round(sharp));
      const canvas = this._container.getContext("2d");
      canvas.save();
      canvas.clip(this.land(min, sharp), "evenodd");
      canvas.drawImage(image, 0, 0);
      canvas.restore();
    },
    land(min, sharp) {
      const path = new Path2D();
      run.land.forEach((ring) => {
        ring.forEach((place, i) => {
          const at = this._map.latLngToLayerPoint(place);
          path[i ? "lineTo" : "moveTo"]((at.x - min.x) * sharp, (at.y - min.y) * sharp);
        });
        path.closePath();
      });
      return path;
    },
  });
  const picture = (painter, layer, found, width, height, sharp) => {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = new Map();
    const ink = rgb(layer.colour ?? layer.ink);
    const colour = (key) => {
      if (!colours.has(key)) colours.set(key, packed(rgb(painter.colour(key)), layer.opacity));
      return colours.get(key);
    };
    const lines = new Map();
    const drawnOver = (key, line) => {
      const name = 2 * key + (line < 1);
      if (!lines.has(name)) lines.set(name, key < 0 ? packed(ink, 0.75 * line) : over(ink, 0.75 * line, rgb(painter.colour(key)), layer.hatched ? 0 : layer.opacity));
      return lines.get(name);
    };
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const key = found[i];
        const right = x + 1 < width ? found[i + 1] : key;
        const below = y + 1 < height ? found[i + width] : key;
        const other = right !== key ? right : below;
        const line = other !== key && (key >= 0 || other >= 0) ? painter.line(key, other) : 0;
        if (line) pixels[i] = drawnOver(key, line);
        else if (key >= 0 && (!layer.hatched || (x + y) % (8 * sharp) < sharp)) pixels[i] = colour(key);
      }
    }
    context.putImageData(image, 0, 0);
    return canvas;
  };
  return { start, Surface, served, servedAll, cellAt, cellValues, metres, level };
})();
