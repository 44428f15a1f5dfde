// A site's own page: what it holds and how it does in this epoch, and its day in small charts.
const charts = (() => {
  const { make, draw, text } = marks;
  const [WIDTH, HEIGHT, LEFT, BOTTOM, STRIP] = [292, 96, 42, 16, 22];
  let run, state, box, shown = null, from = null;

  const across = (share) => LEFT + share * (WIDTH - LEFT - 4);
  const up = (share) => 6 + (1 - share) * (HEIGHT - BOTTOM - 6);
  const line = (name, points) => {
    let pen = "M";
    const steps = points.map(([x, y]) => {
      if (!Number.isFinite(y)) {
        pen = "M";
        return "";
      }
      const step = `${pen}${across(x).toFixed(1)},${up(Math.min(Math.max(y, 0), 1.03)).toFixed(1)}`;
      pen = "L";
      return step;
    });
    return draw("path", { class: name, d: steps.join("") });
  };
  const label = (x, y, words, anchor = "end") => {
    const node = draw("text", { x, y, "text-anchor": anchor });
    node.textContent = words;
    return node;
  };
  const frame = (title, words, ticksX, ticksY, ...drawn) => {
    const grid = ticksY.flatMap(([share, name]) => [
      draw("line", { class: "grid", x1: LEFT, x2: WIDTH - 4, y1: up(share), y2: up(share) }),
      label(LEFT - 4, up(share) + 3.5, name),
    ]);
    const below = ticksX.map(([share, name]) => label(across(share), HEIGHT - 3, name, share < 0.06 ? "start" : share > 0.94 ? "end" : "middle"));
    return make("figure", {}, make("figcaption", { textContent: title }),
      draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${words}` }, ...grid, ...below, ...drawn));
  };
  const epochs = () => run.spans.length;
  const middle = (epoch) => (epoch + 0.5) / epochs();
  const hours = () => {
    const [begin, end] = [run.spans[0][0], run.spans[epochs() - 1][1]];
    return [0, 0.25, 0.5, 0.75, 1].map((share) => [share, codec.clock(begin + share * (end - begin)).slice(0, 5)]);
  };
  const now = () => draw("rect", { class: "now", x: across(state.epoch / epochs()), width: (WIDTH - LEFT - 4) / epochs(), y: up(1), height: up(0) - up(1) });
  const day = (name, site) => run.spans.map((_, epoch) => run.column(name, epoch)[site]);
  // The least of 1, 2 and 5 times a power of ten that is at least so much.
  const nice = (most) => {
    const power = 10 ** Math.floor(Math.log10(most || 1));
    return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= most * 0.999) ?? 1;
  };
  const most = (values) => Math.max(...values.filter(Number.isFinite), 0);

  const load = (site) => {
    const used = day("utilization", site);
    const offered = day("offered_load", site);
    const top = Math.max(1, nice(most(offered)));
    const over = offered.filter((value) => value >= 1).length;
    const words = `Between ${codec.percent(Math.min(...used))} and ${codec.percent(most(used))}${over ? `; more was asked than it has in ${over} of ${epochs()} epochs` : ""}.`;
    return frame("Load: used (filled) and asked for (line)", words, hours(), [[0, "0 %"], [1 / top, "100 %"], ...(top > 1.5 ? [[1, `${100 * top} %`]] : [])],
      now(), area("load", used.map((value, epoch) => [middle(epoch), value / top])), line("asked", offered.map((value, epoch) => [middle(epoch), value / top])));
  };
  const area = (name, points) => {
    const known = points.filter(([, y]) => Number.isFinite(y));
    if (!known.length) return draw("g");
    const edge = known.map(([x, y]) => `${across(x).toFixed(1)},${up(y).toFixed(1)}`).join("L");
    return draw("path", { class: name, d: `M${across(known[0][0])},${up(0)}L${edge}L${across(known[known.length - 1][0])},${up(0)}Z` });
  };
  const wait = (site) => {
    const measured = day("mean_wait_s", site);
    const advertised = day("advertised_wait_s", site);
    const top = nice(Math.max(most(measured), most(advertised), 0.01));
    return frame("Mean wait: measured, and advertised (dashed)", `Up to ${codec.seconds(most(measured))}.`, hours(), [[0, "0"], [0.5, codec.seconds(top / 2)], [1, codec.seconds(top)]],
      now(), line("advertised", advertised.map((value, epoch) => [middle(epoch), value / top])), line("measured", measured.map((value, epoch) => [middle(epoch), value / top])));
  };
  const distribution = (site) => {
    if (!run.waits) return make("p", { className: "hint", textContent: "This run keeps no records: waits are not drawn." });
    const { top_s, measured, erlang, scale, requests, overloaded, restless } = run.waits;
    if (!requests[site]) return make("p", { className: "hint", textContent: "No request was served here after the warm-up." });
    const [seen, told] = [measured, erlang].map((texts) => codec.numbers(texts[site], scale));
    // waits on a square-root axis: most are short, and the rare long ones matter
    const last = top_s[site];
    const at = (time) => Math.sqrt(time / last);
    const points = (values) => Array.from(values, (share, i) => [i / (values.length - 1), share]);
    const ticks = [0, 0.05, 0.25, 0.5, 1].map((share) => share * last);
    const words = `${codec.percent(1 - seen[0])} wait at all; Erlang's formula says ${codec.percent(1 - told[0])}.`;
    const figure = frame("Share that waits at most so long: measured, and M/M/c (dashed)", words, ticks.map((time) => [at(time), codec.seconds(time)]), [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]],
      line("advertised", points(told)), line("measured", points(seen)));
    const notes = [`${words} ${requests[site].toLocaleString("en")} requests after the warm-up, each epoch at its own load.`];
    if (overloaded[site]) notes.push(`In ${overloaded[site]} of the epochs more was asked than the site has: there M/M/c knows no end of the wait.`);
    const close = restless[site] - overloaded[site];
    if (close) notes.push(`In ${close} of the epochs the queue had no time to come to rest, and its load is hardly known: there M/M/c tends to say too much.`);
    figure.append(...notes.map((note) => make("p", { className: "hint", textContent: note })));
    return figure;
  };
  const cache = (site) => {
    const held = run.spans.map((_, epoch) => run.profileAt(epoch)[site]);
    const width = (WIDTH - LEFT - 4) / epochs();
    const [top, height] = [up(0) - STRIP, STRIP];
    const begins = held.map((profile, epoch) => epoch).filter((epoch) => !epoch || held[epoch] !== held[epoch - 1]);
    const bars = begins.map((epoch, i) =>
      draw("rect", { x: across(epoch / epochs()), width: width * ((begins[i + 1] ?? epochs()) - epoch), y: top, height, fill: run.profiles.colours[held[epoch]] }));
    const changes = held.filter((profile, epoch) => epoch && profile !== held[epoch - 1]).length;
    const frameNow = draw("rect", { class: "now-frame", x: across(state.epoch / epochs()), width, y: top, height });
    const figure = frame("Cache held", `${changes} ${changes === 1 ? "change" : "changes"}; now ${run.profiles.names[held[state.epoch]]}.`, hours(), [], ...bars, frameNow);
    figure.querySelector("svg").setAttribute("viewBox", `0 ${top - 3} ${WIDTH} ${HEIGHT - top + 3}`);
    const names = [...new Set(held)].map((profile) => {
      const mark = make("i");
      mark.style.background = run.profiles.colours[profile];
      return make("li", {}, mark, text(`${run.profiles.names[profile]}: ${run.profiles.holds[profile]}`));
    });
    figure.append(make("ul", { className: "held" }, ...names));
    return figure;
  };
  const moves = (site) => {
    const own = run.actions.filter((action) => action.site === site || action.partner === site);
    const { names } = run.profiles;
    const rows = own.map((action) => {
      const [before, after] = action.site === site ? [action.from, action.to] : [action.to, action.from];
      return make("li", {}, text(`${codec.clock(action.time_s)} ${action.kind}: ${names[before]} → ${names[after]}, ${codec.points(action.predicted ?? NaN)} expected`));
    });
    return rows.length ? [make("h3", { textContent: "Moves" }), make("ul", { className: "moves" }, ...rows)] : [];
  };

  const refresh = () => {
    if (shown === null) return;
    const list = make("dl");
    marks.siteRows(shown, state.epoch).filter(([, value]) => value !== "").forEach(([name, value]) =>
      list.append(make("dt", { textContent: name }), make("dd", {}, text(value))));
    box.querySelector(".card-body").replaceChildren(list, load(shown), wait(shown), distribution(shown), cache(shown), ...moves(shown));
  };
  const open = (site) => {
    if (shown === null) from = document.activeElement;
    shown = site;
    const title = make("h2", { id: "card-title", tabIndex: -1 }, text(run.sites.name[site]));
    const shut = make("button", { type: "button", className: "close", textContent: "✕", title: "Close", onclick: close, attributes: { "aria-label": "Close" } });
    box.replaceChildren(make("div", { className: "card-head" }, title, shut), make("div", { className: "card-body" }));
    box.hidden = false;
    box.dataset.site = site;
    refresh();
    title.focus({ preventScroll: true });
  };
  const close = () => {
    if (shown === null) return;
    shown = null;
    box.hidden = true;
    (from?.isConnected ? from : document.body).focus?.({ preventScroll: true });
  };
  const start = (card, data, shared) => {
    [box, run, state] = [card, data, shared];
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    });
  };
  return { start, open, close, refresh };
})();
