// Names of streets, written along them: as many as fit, main roads first, none over another or over what stands there.
// They reach the document through textContent alone, so that they can never become markup.
const streets = (() => {
  const { draw } = marks;
  // By class of street: from which zoom on its name is written, and the size of the letters [px].
  const CLASSES = [{ from: 13, size: 11.5, weight: 600 }, { from: 15, size: 11, weight: 500 }, { from: 16, size: 10.5, weight: 400 }];
  const END = 8; // what stays free at both ends of a street [px]
  const EVERY = 480; // a long street bears its name again after about this [px]
  const AGAIN = 320; // no name stands twice within this [px], as along both lanes of an avenue
  const [SHARPEST, MOST_TURN] = [0.65, 2]; // the sharpest bend under a name, and all bends together [rad]
  const SMOOTH = 1.5; // what letters do not follow of a street's bends [px]
  const STRAIGHT = 0.2; // a name is written straight where the street leaves that line by less than this share of its letters
  const CELL = 64;
  const IN_THE_WAY = ".landmark, .rank, .glyph, .leaflet-sites-pane path, .leaflet-control";
  let map, drawn = null, shown = null, frame = 0, boxes = [];

  // ---- room: boxes that are taken, found by the cells they touch ----
  const roomAround = (boxes) => {
    const cells = new Map();
    const touched = ([left, top, right, bottom]) => {
      const found = [];
      for (let j = Math.floor(top / CELL); j <= bottom / CELL; j++) for (let i = Math.floor(left / CELL); i <= right / CELL; i++) found.push(65536 * j + i);
      return found;
    };
    const take = (box) => touched(box).forEach((key) => (cells.get(key) ?? cells.set(key, []).get(key)).push(box));
    const free = (box) => touched(box).every((key) => (cells.get(key) ?? []).every((other) => names.apart(box, other)));
    boxes.forEach(take);
    return { take, free };
  };
  const obstacles = () => {
    const corner = map.getContainer().getBoundingClientRect();
    return [...map.getContainer().querySelectorAll(IN_THE_WAY)].map((element) => element.getBoundingClientRect()).filter(({ width }) => width > 0).map((box) => {
      const { x, y } = map.containerPointToLayerPoint([box.left - corner.left, box.top - corner.top]);
      return [x, y, x + box.width, y + box.height];
    });
  };

  // ---- a street on the screen: its points and how far along each of them lies [px] ----
  const measured = (places) => {
    const points = L.LineUtil.simplify(places.map((place) => map.latLngToLayerPoint(place)), SMOOTH);
    const along = [0];
    for (let i = 1; i < points.length; i++) along.push(along[i - 1] + points[i].distanceTo(points[i - 1]));
    return { points, along, length: along[along.length - 1] };
  };
  const at = ({ points, along }, distance) => {
    let i = 1;
    while (i < along.length - 1 && along[i] < distance) i++;
    const share = (distance - along[i - 1]) / (along[i] - along[i - 1] || 1);
    return points[i - 1].add(points[i].subtract(points[i - 1]).multiplyBy(share));
  };
  const part = (street, from, to) => [at(street, from), ...street.points.filter((_, i) => street.along[i] > from && street.along[i] < to), at(street, to)];
  const bends = (points) => {
    const found = [];
    for (let i = 1; i < points.length - 1; i++) {
      const [a, b] = [points[i].subtract(points[i - 1]), points[i + 1].subtract(points[i])];
      found.push(Math.abs(Math.atan2(a.x * b.y - a.y * b.x, a.x * b.x + a.y * b.y)));
    }
    return found;
  };
  const within = ({ points }, { min, max }) => {
    const [x, y] = ["x", "y"].map((axis) => points.map((point) => point[axis]));
    return Math.max(...x) >= min.x && Math.min(...x) <= max.x && Math.max(...y) >= min.y && Math.min(...y) <= max.y;
  };

  // ---- where a name may stand: in the middle of each stretch of a street, or beside it where that is straighter ----
  const spots = (street, width) => {
    const room = street.length - 2 * END - width;
    if (room < 0) return [];
    const count = Math.max(1, Math.floor(street.length / Math.max(EVERY, 2 * width)));
    const stretch = street.length / count;
    const step = Math.max(width / 4, 12);
    return Array.from({ length: count }, (_, k) => {
      const middle = (k + 0.5) * stretch;
      const found = [];
      for (let away = 0; away <= stretch / 2; away += step)
        for (const centre of away ? [middle - away, middle + away] : [middle]) {
          const start = centre - width / 2;
          if (start < END - 0.5 || start + width > street.length - END + 0.5) continue;
          const turns = bends(part(street, start, start + width));
          const all = turns.reduce((sum, turn) => sum + turn, 0);
          if (Math.max(...turns, 0) <= SHARPEST && all <= MOST_TURN) found.push({ centre, cost: all + away / stretch });
        }
      return found.sort((a, b) => a.cost - b.cost);
    });
  };
  // Boxes along a name, a letter's height apart.
  const boxesAlong = (street, centre, width, size) => {
    const count = Math.max(1, Math.ceil(width / size));
    const reach = 0.62 * size + 1;
    return Array.from({ length: count + 1 }, (_, i) => {
      const { x, y } = at(street, centre - width / 2 + (i * width) / count);
      return [x - reach, y - reach, x + reach, y + reach];
    });
  };
  // The line under a name, from left to right, round at its bends, and straight where it nearly is.
  const lineUnder = (street, centre, width, size) => {
    let points = part(street, centre - width / 2 - END, centre + width / 2 + END);
    const [first, last] = [points[0], points[points.length - 1]];
    const chord = last.subtract(first);
    const leaves = ({ x, y }) => Math.abs((x - first.x) * chord.y - (y - first.y) * chord.x) / (Math.hypot(chord.x, chord.y) || 1);
    if (points.every((point) => leaves(point) < STRAIGHT * size)) points = [first, last];
    if (chord.x < 0) points.reverse();
    const word = ({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`;
    const curve = points.slice(1, -1).map((point, i) => `Q${word(point)} ${word(i + 3 < points.length ? point.add(points[i + 2]).divideBy(2) : points[i + 2])}`);
    return `M${word(points[0])}${curve.length ? curve.join("") : `L${word(points[1])}`}`;
  };

  const pen = document.createElement("canvas").getContext("2d");
  const widthOf = (name, { size, weight }) => {
    pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(name).width;
  };

  const Names = L.Renderer.extend({
    _initContainer() {
      this._container = draw("svg", { class: "street-names", "aria-hidden": "true" });
    },
    _destroyContainer() {
      this._container.remove();
      delete this._container;
    },
    _updatePaths() {},
    _update() {
      if (this._map._animatingZoom && this._bounds) return;
      L.Renderer.prototype._update.call(this);
      const { min } = this._bounds;
      const size = this._bounds.getSize();
      L.DomUtil.setPosition(this._container, min);
      Object.entries({ width: size.x, height: size.y, viewBox: `${min.x} ${min.y} ${size.x} ${size.y}` }).forEach(([key, value]) => this._container.setAttribute(key, value));
      soon();
    },
    write(layer) {
      boxes = [];
      const room = roomAround(obstacles());
      const found = !layer ? [] : layer.named.flatMap(([name, rank, lines]) => (map.getZoom() < CLASSES[rank].from ? [] : this.along(name, rank, lines, room)));
      this._container.replaceChildren(...found.flatMap(({ name, rank, line }, i) => {
        const letters = draw("textPath", { href: `#street-${i}`, startOffset: "50%" });
        letters.textContent = name;
        return [draw("path", { id: `street-${i}`, d: line }), draw("text", { "font-size": CLASSES[rank].size, "font-weight": CLASSES[rank].weight, "data-rank": rank }, letters)];
      }));
    },
    // Where one name stands, along all streets of that name.
    along(name, rank, lines, room) {
      const { size } = CLASSES[rank];
      const width = widthOf(name, CLASSES[rank]);
      const found = [];
      lines.map(measured).filter((street) => within(street, this._bounds)).forEach((street) => spots(street, width).forEach((choices) => {
        for (const { centre } of choices) {
          const middle = at(street, centre);
          const own = boxesAlong(street, centre, width, size);
          const inside = own.every(([left, top, right, bottom]) => this._bounds.contains([left, top]) && this._bounds.contains([right, bottom]));
          if (!inside || found.some((other) => other.middle.distanceTo(middle) < AGAIN) || !own.every(room.free)) continue;
          own.forEach(room.take);
          boxes.push(...own);
          found.push({ name, rank, middle, line: lineUnder(street, centre, width, size) });
          return;
        }
      }));
      return found;
    },
  });

  // Sites and landmarks have moved to their places by the end of the frame; small places then take what is left.
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      drawn.write(shown);
      map.fire("streetnames");
    });
  };
  // Show the names of a layer; null shows none.
  const show = (on, layer) => {
    [map, shown] = [on, layer];
    drawn ??= new Names({ pane: "street_names", padding: 0 }).addTo(map);
    soon();
  };
  // Boxes of the names that stand [px from the corner of the map].
  const taken = () => {
    const { x, y } = map.containerPointToLayerPoint([0, 0]);
    return boxes.map(([left, top, right, bottom]) => [left - x, top - y, right - x, bottom - y]);
  };
  return { show, taken };
})();
