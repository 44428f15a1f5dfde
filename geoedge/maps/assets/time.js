// The bar under the map: the day at a glance, a slider through its epochs, and a button that plays them.
const time = (() => {
  const { make, draw } = marks;
  const STEP_MS = 900;
  let state, run, names, refresh, timer;
  const parts = {};

  const go = (epoch) => {
    state.epoch = Math.min(Math.max(epoch, 0), names.length - 1);
    show();
    refresh();
  };
  const playing = () => timer !== undefined;
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
    show();
  };
  const play = () => {
    if (playing()) return stop();
    if (state.epoch === names.length - 1) go(0);
    timer = setInterval(() => (state.epoch === names.length - 1 ? stop() : go(state.epoch + 1)), STEP_MS);
    show();
  };
  const button = (sign, title, onclick, data) =>
    make("button", { type: "button", textContent: sign, title, data, onclick, attributes: { "aria-label": title } });

  const show = () => {
    const { epoch } = state;
    parts.clock.textContent = names[epoch];
    parts.clock.setAttribute("aria-live", playing() ? "off" : "polite");
    parts.slider.value = epoch;
    parts.slider.setAttribute("aria-valuetext", names[epoch]);
    parts.back.disabled = epoch === 0;
    parts.on.disabled = epoch === names.length - 1;
    parts.play.textContent = playing() ? "❚❚" : "▶";
    ["title", "ariaLabel"].forEach((key) => (parts.play[key] = playing() ? "Pause" : "Play"));
    if (!run) return;
    parts.facts.replaceChildren(...facts(epoch));
    parts.now?.setAttribute("x", (epoch / names.length) * 100);
  };
  const facts = (epoch) => {
    const { coverage, requests } = run.day;
    const [start, end] = run.spans[epoch];
    const moves = run.actions.filter((action) => action.epoch === epoch).length;
    const words = [];
    if (coverage[epoch] !== null) words.push(`${codec.percent(coverage[epoch])} in time`);
    words.push(codec.rate(requests[epoch] / (end - start), "requests/s"));
    if (run.actions.length) words.push(moves === 1 ? "1 move" : `${moves} moves`);
    const happened = marks.eventsIn(epoch).map((event) => make("strong", { textContent: event.title }));
    return [make("span", { textContent: words.join(" · ") }), ...happened];
  };

  // Share in time of every epoch, its moves as bars below, events as bands; the box marks the epoch shown.
  const glance = () => {
    const count = names.length;
    const height = 30;
    const { coverage } = run.day;
    const known = coverage.filter((value) => value !== null);
    const low = Math.max(0, Math.min(run.reliability, ...known) - 0.02);
    const y = (value) => 2 + (height - 9) * (1 - (value - low) / (1 - low));
    const x = (epoch) => ((epoch + 0.5) / count) * 100;
    const most = Math.max(1, ...run.day.moves);
    const steps = coverage.map((value, epoch) => (value === null ? "" : `${epoch && coverage[epoch - 1] !== null ? "L" : "M"}${x(epoch)},${y(value)}`));
    const bands = run.events.filter((event) => event.end_s > run.spans[0][0]).map((event) => {
      const at = (instant) => {
        const [begin, end] = [run.spans[0][0], run.spans[count - 1][1]];
        return Math.min(Math.max(((instant - begin) / (end - begin)) * 100, 0), 100);
      };
      return draw("rect", { class: "band", x: at(event.start_s), width: Math.max(at(event.end_s) - at(event.start_s), 0.4), y: 0, height });
    });
    const moves = run.day.moves.map((number, epoch) =>
      draw("rect", { class: "moves", x: x(epoch) - 35 / count, width: 70 / count, y: height - (7 * number) / most, height: (7 * number) / most }));
    parts.now = draw("rect", { class: "now", width: 100 / count, y: 0, height });
    return draw("svg", { class: "glance", viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      ...bands, parts.now, ...moves,
      draw("line", { class: "wanted", x1: 0, x2: 100, y1: y(run.reliability), y2: y(run.reliability) }),
      draw("path", { class: "share", d: steps.join("") }));
  };

  const onkey = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest(".page-map, input, select, textarea")) return;
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (way) go(state.epoch + way);
    else if (event.key === " " && !event.target.closest("button, a, summary")) play();
    else return;
    event.preventDefault();
  };
  const start = (box, shared, data, epochs, redraw) => {
    [state, run, names, refresh] = [shared, data, epochs, redraw];
    if (names.length < 2) return box.remove();
    parts.back = button("‹", "Earlier", () => { stop(); go(state.epoch - 1); }, { step: -1 });
    parts.on = button("›", "Later", () => { stop(); go(state.epoch + 1); }, { step: 1 });
    parts.play = button("▶", "Play", play, { play: "" });
    parts.clock = make("output", { className: "clock" });
    parts.facts = make("div", { className: "facts" });
    parts.slider = make("input", {
      type: "range", min: 0, max: names.length - 1, step: 1, data: { choose: "epoch" },
      title: "Arrow keys step, the space bar plays",
      attributes: { "aria-label": run ? "Epoch" : "Step" },
      oninput() { if (playing()) stop(); go(Number(this.value)); },
    });
    const track = make("div", { className: "track" }, ...(run ? [glance()] : []), parts.slider);
    const key = run ? [make("div", { className: "key", attributes: { "aria-hidden": "true" } },
      make("span", { className: "share", textContent: "share in time" }),
      make("span", { className: "wanted", textContent: `wanted ${codec.percent(run.reliability)}` }),
      ...(run.actions.length ? [make("span", { className: "moves", textContent: "moves" })] : []),
      ...(run.events.length ? [make("span", { className: "band", textContent: "events" })] : []))] : [];
    box.replaceChildren(make("div", { className: "buttons" }, parts.back, parts.play, parts.on), make("div", { className: "words" }, parts.clock, parts.facts), track, ...key);
    document.addEventListener("keydown", onkey);
    show();
  };
  return { start, stop, go };
})();
