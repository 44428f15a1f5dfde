// Names of places: as many as there is room for, the weightier ones first; small places come when the map is near, and
// where no street is named.
const names = (() => {
  const NEAR = 16;
  const CHARACTER = 6.4;
  const LINE = 15;

  const boxAt = ({ x, y }, name) => [x + 5, y - LINE / 2, x + 11 + CHARACTER * name.length, y + LINE / 2];
  const apart = (a, b) => a[2] < b[0] || b[2] < a[0] || a[3] < b[1] || b[3] < a[1];

  const marksAt = (map, places) => places.map((place) => map.latLngToContainerPoint(place)).map(({ x, y }) => [x - 8, y - 8, x + 8, y + 8]);
  const controls = (map) => {
    const corner = map.getContainer().getBoundingClientRect();
    return [...map.getContainer().querySelectorAll(".leaflet-control")].map((element) => element.getBoundingClientRect()).map(({ left, top, right, bottom }) =>
      [left - corner.left, top - corner.top, right - corner.left, bottom - corner.top]);
  };
  // Which names from one to before another fit: none over what is taken, over another, or out of the map.
  const fitting = (map, places, from, to, taken) => {
    const size = map.getSize();
    const found = [];
    for (let i = from; i < to; i++) {
      const box = boxAt(map.latLngToContainerPoint(places.at[i]), places.name[i]);
      if (box[0] < 0 || box[1] < 0 || box[2] > size.x || box[3] > size.y || taken.some((other) => !apart(box, other))) continue;
      taken.push(box);
      found.push(i);
    }
    return found;
  };
  return { NEAR, marksAt, controls, fitting, apart };
})();
