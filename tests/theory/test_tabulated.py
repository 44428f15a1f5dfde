"""Tables of waits: what was measured comes back, and contradictions are refused."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.theory import ErlangC, TabulatedQueue, TwoMomentQueue, WaitModel

RHO = np.array([0.3, 0.6, 0.8, 0.9, 0.95])
LEVELS = np.array([0.5, 0.8, 0.95, 0.99])


def rows_of(queue: WaitModel, c: int) -> dict[str, np.ndarray]:
    """Return the columns of a queue's table."""
    load = RHO * c
    return {
        "concurrency": np.full(RHO.size, c),
        "utilization": RHO,
        "mean_wait": np.asarray(queue.normalised_wait_and_slope(load, c)[0]),
        "waiting_probability": 1.0 - queue.wait_cdf(0.0, load, 1.0, c),
        "levels": LEVELS,
        "quantiles": np.asarray(queue.wait_quantile(LEVELS, load[:, None], 1.0, c)),
    }


@pytest.mark.parametrize("c", [1, 6, 18])
def test_erlangs_table_is_erlang(c: int) -> None:
    table = TabulatedQueue.from_rows(**rows_of(ErlangC(), c))
    load, time = np.linspace(0.02, 0.999, 50) * c, np.linspace(0.0, 9.0, 40)[:, None]
    np.testing.assert_allclose(table.mean_wait(load, 1.0, c), ErlangC().mean_wait(load, 1.0, c), rtol=1e-10)
    np.testing.assert_allclose(
        table.wait_cdf(time, load, 1.0, c), ErlangC().wait_cdf(time, load, 1.0, c), atol=1e-9
    )


def test_rows_come_back_and_order_does_not_matter() -> None:
    queue, c = TwoMomentQueue(3.0), 6
    rows = rows_of(queue, c)
    shuffled = {k: v if k == "levels" else v[[3, 0, 4, 2, 1]] for k, v in rows.items()}
    table, again = TabulatedQueue.from_rows(**rows), TabulatedQueue.from_rows(**shuffled)
    np.testing.assert_allclose(table.mean_wait(RHO * c, 1.0, c), rows["mean_wait"], rtol=1e-12)
    for k, rho in enumerate(RHO):
        back = table.wait_cdf(rows["quantiles"][k], rho * c, 1.0, c)
        np.testing.assert_allclose(back, np.maximum(LEVELS, 1.0 - rows["waiting_probability"][k]), atol=0.01)
    load = np.linspace(0.1, 0.99, 30) * c
    assert (table.mean_wait(load, 1.0, c) == again.mean_wait(load, 1.0, c)).all()
    # between and beyond, near what was tabulated
    np.testing.assert_allclose(table.mean_wait(load, 1.0, c), queue.mean_wait(load, 1.0, c), rtol=0.15)


def test_any_growing_table_gives_a_growing_wait_without_bounds() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        rho = np.sort(rng.uniform(0.05, 0.97, 6))
        wait = np.cumsum(10.0 ** rng.uniform(-4, 1, 6))
        table = TabulatedQueue.from_rows(np.full(6, 4), rho, wait, np.sort(rng.uniform(0.01, 1.0, 6)))
        load = np.concatenate([np.linspace(0.001, 0.998, 400), 1.0 - np.logspace(-3, -12, 20)]) * 4
        found = table.mean_wait(load, 1.0, 4)
        assert (np.diff(found) > 0.0).all()
        assert found[-1] > 1e6 * wait[-1] * (1.0 - rho[-1])
        back = table.offered_load_for_wait(found, 4)  # where a table is flat, loads are hard to tell apart
        np.testing.assert_allclose(table.mean_wait(back, 1.0, 4), found, rtol=1e-9)


def test_without_quantiles_those_who_wait_do_so_exponentially() -> None:
    rows = rows_of(TwoMomentQueue(2.0), 6)
    del rows["levels"], rows["quantiles"]
    table = TabulatedQueue.from_rows(**rows)
    delayed, mean = rows["waiting_probability"][2], rows["mean_wait"][2]
    time = np.array([0.0, 0.5, 4.0])
    np.testing.assert_allclose(
        1.0 - table.wait_cdf(time, RHO[2] * 6, 1.0, 6), delayed * np.exp(-time * delayed / mean), rtol=1e-9
    )


def test_samples_make_the_table_of_what_was_drawn() -> None:
    rng, queue, c = np.random.default_rng(8), TwoMomentQueue(0.4), 6
    draws = {
        (c, rho): 2.5 * queue.wait_quantile(rng.random(200_000), rho * c, 1.0, c) for rho in (0.6, 0.8, 0.9)
    }
    table = TabulatedQueue.from_samples(draws, mean_service=2.5)
    for rho in (0.6, 0.8, 0.9):
        assert float(table.mean_wait(rho * c, 1.0, c)) == pytest.approx(
            float(queue.mean_wait(rho * c, 1.0, c)), rel=0.02
        )
        time = np.linspace(0.0, 3.0, 20)
        gap = table.wait_cdf(time, rho * c, 1.0, c) - queue.wait_cdf(time, rho * c, 1.0, c)
        assert np.abs(gap).max() < 0.006


GOOD = rows_of(ErlangC(), 6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mean_wait": GOOD["mean_wait"][::-1]}, "must be positive and grow"),
        ({"mean_wait": GOOD["mean_wait"] * [0, 1, 1, 1, 1]}, "must be positive and grow"),
        ({"utilization": np.array([0.3, 0.6, 0.6, 0.9, 0.95])}, "each given once"),
        ({"utilization": RHO + 0.1}, r"in \(0, 1\)"),
        ({"waiting_probability": GOOD["waiting_probability"][::-1]}, "not fall"),
        ({"waiting_probability": GOOD["waiting_probability"] * np.nan}, "not finite"),
        ({"concurrency": np.array([6, 6, 6, 6, 7])}, "7 servers there is one row"),
        ({"concurrency": np.full(5, 6.5)}, "positive integers"),
        ({"quantiles": GOOD["quantiles"][:3]}, "shape"),
        ({"quantiles": GOOD["quantiles"][:, ::-1]}, "grow with their levels"),
        ({"quantiles": 40.0 * GOOD["quantiles"]}, "in mean service times"),
        ({"levels": np.array([0.5, 0.8, 0.95, 1.0])}, r"inside \(0, 1\)"),
    ],
)
def test_contradictions_are_one_line(changes: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        TabulatedQueue.from_rows(**(GOOD | changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tables", [{}, {6: 0.3}, None, 3])
def test_a_table_of_nothing_is_refused(tables) -> None:
    with pytest.raises(GeoEdgeError, match=r"`tables` is .* make them by `from_rows` or `from_samples`"):
        TabulatedQueue(tables)
    with pytest.raises(GeoEdgeError, match=r"`tables` is \{\}"):
        TabulatedQueue.from_samples({})


def test_what_was_not_measured_is_not_guessed() -> None:
    table = TabulatedQueue.from_rows(**GOOD)
    with pytest.raises(GeoEdgeError, match=r"no row for 7 servers, only for \[6\]"):
        table.mean_wait(1.0, 1.0, 7)
    with pytest.raises(GeoEdgeError, match="3 finite waits above zero"):
        TabulatedQueue.from_samples({(6, 0.5): [0.0, 1.0, 2.0, 3.0]})
