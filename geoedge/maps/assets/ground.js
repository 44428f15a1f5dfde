// Tiles from outside, where the page was asked for them. One tile is tried first: without network the page asks for no
// more, goes on without them, and tries again when the network comes back.
const ground = (() => {
  let map, told, layer = null, wanted = false, reached = false, trying = false;

  const start = (on, tell) => {
    [map, told] = [on, tell];
    window.addEventListener("online", () => wanted && show(layer.description));
  };
  const show = (description) => {
    wanted = true;
    layer ??= Object.assign(L.tileLayer(description.address, { pane: "tiles", maxZoom: 19, referrerPolicy: "strict-origin-when-cross-origin" }), { description });
    if (reached) return lay();
    if (trying || !navigator.onLine) return told(reached);
    trying = true;
    const first = new Image();
    const answered = (found) => () => {
      [trying, reached] = [false, found];
      if (found && wanted) lay();
      told(reached);
    };
    first.onload = answered(true);
    first.onerror = answered(false);
    first.referrerPolicy = "strict-origin-when-cross-origin";
    first.src = addressAt(description.address);
  };
  const addressAt = (address) => {
    const zoom = Math.round(map.getZoom());
    const { x, y } = map.project(map.getCenter(), zoom).divideBy(256).floor();
    return L.Util.template(address, { z: zoom, x, y, s: "a", r: "" });
  };
  const lay = () => {
    layer.addTo(map);
    map.getContainer().dataset.tiles = "on";
  };
  const hide = () => {
    wanted = false;
    layer?.remove();
    delete map.getContainer().dataset.tiles;
  };
  return { start, show, hide };
})();
