"""Fitted processes: closed forms against spatstat and samples, parameters found again, and verdicts in words."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import shapely
from pyproj import Transformer
from scipy.spatial import cKDTree

import geoedge as ge
from geoedge.errors import CityError
from geoedge.sites import (
    ProcessFit,
    convex_window,
    fit_process,
    k_function,
    layout_statistics,
    poisson_layout,
    study_window,
)
from geoedge.sites._models import MODELS
from geoedge.sites.envelopes import curve_envelope
from geoedge.sites.fitting import draw_fit
from geoedge.sites.hypotheses import draw_layouts
from geoedge.sites.spacing import clark_evans_test
from geoedge.sites.verdicts import _kind

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "spatstat.json").read_text())
SITES = Path(__file__).parents[3] / "shared" / "data" / "sites"
BAY = shapely.Polygon([(0, 0), (3000, 0), (3000, 2500), (2100, 2500), (1500, 600), (900, 2500), (0, 2500)])
TORUS = (2000.0, 2000.0)


DISC = study_window(shapely.Point(0, 0).buffer(REFERENCE["ginibre"]["radius_m"], quad_segs=64))
GINIBRE = [np.array(xy) for xy in REFERENCE["ginibre"]["xy"]]
"""Eigenvalues of complex Gaussian matrices, thinned to β = 0.9 and scaled to 100 per km²."""


def draw_hard_core(density, radius, rng, side=2000.0):
    """Matérn's second thinning on a square torus [m]."""
    disc = np.pi * radius**2
    n = rng.poisson(-np.log1p(-density * disc) / disc * side**2)
    xy, age = rng.random((n, 2)) * side, rng.random(n)
    pair = cKDTree(xy, boxsize=side).query_pairs(radius, output_type="ndarray")
    younger = np.where(age[pair[:, 0]] < age[pair[:, 1]], pair[:, 0], pair[:, 1])
    return np.delete(xy, np.unique(younger), axis=0)


def draw_lattice(rows, shift, rng):
    """A triangular lattice of side 100 m, shaken, and its torus."""
    x, y = np.meshgrid(np.arange(rows), np.arange(rows))
    xy = np.stack([(x + 0.5 * (y % 2)) * 100.0, y * 50.0 * np.sqrt(3.0)], axis=-1).reshape(-1, 2)
    return xy + rng.normal(0, shift, xy.shape), (rows * 100.0, rows * 50.0 * np.sqrt(3.0))


def made(process, density, **parameters):
    return ProcessFit(process, density, parameters, 0.0)


@pytest.mark.parametrize(
    ("key", "process", "names"),
    [
        ("thomas", "thomas", {"parents_per_m2": ("parents_per_km2", 1e6), "spread_m": ("spread_m", 1.0)}),
        (
            "matern_cluster",
            "matern_cluster",
            {"parents_per_m2": ("parents_per_km2", 1e6), "radius_m": ("radius_m", 1.0)},
        ),
        ("gauss", "gauss", {"alpha_m": ("alpha_m", 1.0)}),
    ],
)
def test_closed_forms_are_spatstats(key, process, names):
    stored = REFERENCE["models"][key]
    parameters = {ours: stored[theirs] * factor for theirs, (ours, factor) in names.items()}
    fit, r = made(process, 10.0, **parameters), np.array(REFERENCE["models"]["r_m"])
    np.testing.assert_allclose(fit.k_function(r), stored["K"], rtol=1e-7)
    np.testing.assert_allclose(fit.pair_correlation(r), stored["g"], rtol=1e-7)


@pytest.mark.parametrize("process", list(MODELS))
def test_k_is_the_integral_of_g(process):
    model = MODELS[process]
    r = np.linspace(0.0, 3.0, 6001)
    for share in (0.5, 0.8):
        parameter = [low * (high / low) ** share for low, high in model.bounds]
        middle = 0.5 * (r[1:] + r[:-1])
        k = np.cumsum(2 * np.pi * middle * model.g(middle, *parameter) * np.diff(r))
        np.testing.assert_allclose(model.k(r, *parameter)[1:], k, atol=2e-3)


def test_a_gaussian_determinantal_process_is_a_ginibre_process_to_second_order():
    r = np.linspace(0, 500, 20)
    alpha = 150.0
    twin = made("ginibre", 10.0, beta=np.pi * 1e-5 * alpha**2 / 2)
    np.testing.assert_allclose(made("gauss", 10.0, alpha_m=alpha).k_function(r), twin.k_function(r))


def test_closed_forms_are_those_of_samples():
    # With the true density instead of the sample's, K is unbiased: means within 4 standard errors, where Poisson's
    # K would be more than 5 away.
    rng = np.random.default_rng(3)
    r = np.array([80.0, 110.0, 150.0, 220.0])
    lattice_density = 2e6 / np.sqrt(3.0) / 1e4
    cases = [
        (made("hard_core", 40.0, radius_m=80.0), TORUS, [draw_hard_core(4e-5, 80.0, rng) for _ in range(40)]),
        (
            made("lattice", lattice_density, shift_m=25.0),
            None,
            [draw_lattice(14, 25.0, rng) for _ in range(40)],
        ),
        (made("ginibre", 100.0, beta=0.9), DISC, GINIBRE),
    ]
    for fit, window, layouts in cases:
        seen = []
        for layout in layouts:
            xy, where = layout if window is None else (layout, window)
            n, expected_n = len(xy), fit.density_per_km2 * study_window(where).area_km2
            seen.append(k_function(xy, where, r).value * n * (n - 1) / expected_n**2)
        expected, error = fit.k_function(r), np.std(seen, axis=0) / np.sqrt(len(seen))
        assert (np.abs(np.mean(seen, axis=0) - expected) <= 4 * error + 1e-3 * expected).all(), fit.process
        assert (np.abs(expected - np.pi * r**2) > 5 * error).any()


def test_cluster_fits_are_spatstats():
    stored = REFERENCE["layouts"]["bay"]
    r = np.linspace(0, 500, 501)
    fits = fit_process(stored["xy"], BAY, r_m=r, simulations=39, bootstrap=0).candidates
    by_name = {fit.process: fit.parameters for fit in fits}
    thomas, matern = REFERENCE["thomas_fit"], REFERENCE["matern_cluster_fit"]
    assert by_name["thomas"]["parents_per_km2"] == pytest.approx(thomas["kappa"] * 1e6, rel=0.01)
    assert by_name["thomas"]["spread_m"] == pytest.approx(thomas["sigma"], rel=0.01)
    assert by_name["matern_cluster"]["parents_per_km2"] == pytest.approx(matern["kappa"] * 1e6, rel=0.01)
    assert by_name["matern_cluster"]["radius_m"] == pytest.approx(matern["R"], rel=0.01)
    assert fits[0].misfit <= min(fit.misfit for fit in fits)


@pytest.mark.slow
def test_a_fit_finds_the_clusters_it_was_given_within_its_errors():
    # 12 Thomas layouts: the interval of each parameter covers the truth in most (95 % nominally, and the bootstrap
    # of a fit is itself a fit: 8 of 12 at least), and the error is of the size of what the fits scatter.
    truth = made("thomas", 60.0, parents_per_km2=8.0, spread_m=60.0)
    window, rng = study_window(shapely.box(0, 0, 2000, 2000)), np.random.default_rng(1)
    covered, found, errors = [], [], []
    for _ in range(12):
        xy = draw_fit(truth, window, rng)
        best = fit_process(xy, window, processes=["thomas"], simulations=39, bootstrap=39, rng=rng).best
        assert best.process == "thomas"
        low, high = best.intervals["spread_m"]
        covered.append(low <= 60.0 <= high)
        found.append(best.parameters["spread_m"])
        errors.append(best.standard_errors["spread_m"])
        assert best.p_value > 1 / 40 or best.bootstraps < 39
    assert np.sum(covered) >= 8
    assert np.mean(found) == pytest.approx(60.0, rel=0.15)
    assert 0.4 < np.median(errors) / np.std(found) < 2.5


@pytest.mark.parametrize("statistic", ["L", "g"])
def test_a_fit_finds_how_regular_a_layout_is(statistic):
    beta = []
    for xy in GINIBRE:
        fits = fit_process(xy, DISC, processes=["ginibre"], statistic=statistic, simulations=39, bootstrap=0)
        beta.append(next(fit.parameters["beta"] for fit in fits.candidates if fit.process == "ginibre"))
    assert np.median(beta) == pytest.approx(0.9, abs=0.15)


def test_errors_come_from_layouts_drawn_from_the_fit():
    rest = iter(GINIBRE[1:])

    def simulate(fit, window, rng):
        assert window is DISC
        assert fit.process == "ginibre"
        return next(rest)

    options = {"simulations": 39, "bootstrap": 19, "rng": 1}
    own = fit_process(GINIBRE[0], DISC, processes=["ginibre"], simulate=simulate, **options).best
    assert (own.process, own.bootstraps) == ("ginibre", 19)
    assert own.p_value > 0.05
    fits = [
        fit_process(xy, DISC, processes=["ginibre"], simulations=39, bootstrap=0).candidates
        for xy in GINIBRE[1:]
    ]
    beta = [next(one.parameters["beta"] for one in some if one.process == "ginibre") for some in fits]
    low, below, above, high = np.percentile(beta, (2.5, 15.87, 84.13, 97.5))
    assert own.intervals["beta"] == pytest.approx((low, high))
    assert own.standard_errors["beta"] == pytest.approx((above - below) / 2)
    assert str(own).startswith("β-Ginibre process with beta 0.")
    assert " ± 0." in str(own)
    none = fit_process(GINIBRE[0], DISC, **{**options, "bootstrap": 0}).best
    assert (none.standard_errors, none.bootstraps, none.undrawn) == ({}, 0, "")


@pytest.mark.parametrize("process", [name for name, model in MODELS.items() if model.parameters])
def test_every_fitted_process_can_be_drawn(process):
    # Names and units of the parameters are those of the samplers: density within 5 standard deviations of few draws.
    low, high = np.array(MODELS[process].bounds).T
    values = np.exp(0.05 * np.log(low) + 0.95 * np.log(high)) * MODELS[process].units(2e-5)
    fit = made(process, 20.0, **dict(zip(MODELS[process].parameters, values.tolist(), strict=True)))
    rng = np.random.default_rng(1)
    counts = [len(draw_fit(fit, study_window(shapely.box(0, 0, 1400, 1300)), rng)) for _ in range(5)]
    assert np.mean(counts) == pytest.approx(36.4, abs=5 * 6 / np.sqrt(5))


def test_a_process_that_cannot_be_drawn_has_no_errors_and_says_why():
    def refuse(fit, window, rng):
        msg = "too many sites"
        raise CityError(msg)

    best = fit_process(GINIBRE[0], DISC, processes=["ginibre"], simulations=39, simulate=refuse).best
    assert (best.standard_errors, best.bootstraps, best.undrawn) == ({}, 0, "too many sites")
    assert np.isnan(best.p_value)
    many, period = draw_lattice(40, 20.0, np.random.default_rng(1))
    best = fit_process(many, period, processes=["ginibre"], simulations=39).best
    assert (best.bootstraps, best.undrawn) == (
        0,
        "a β-Ginibre process of this many sites takes too long to draw; give `simulate`",
    )


def test_a_fit_is_in_the_unit_of_its_window():
    xy = np.array(REFERENCE["layouts"]["bay"]["xy"])
    here = fit_process(xy, BAY, simulations=39, bootstrap=0).best
    large = fit_process(
        xy * 3 + 1e6,
        shapely.affinity.translate(shapely.affinity.scale(BAY, 3, 3, origin=(0, 0)), 1e6, 1e6),
        simulations=39,
        bootstrap=0,
    ).best
    assert here.process == large.process == "matern_cluster"
    assert large.misfit == pytest.approx(here.misfit, rel=0.02)
    assert large.parameters["radius_m"] == pytest.approx(3 * here.parameters["radius_m"], rel=0.02)
    assert large.parameters["parents_per_km2"] == pytest.approx(
        here.parameters["parents_per_km2"] / 9, rel=0.02
    )


@pytest.mark.slow
def test_poisson_layouts_are_rarely_called_anything_else():
    # Two tests of 2.5 % each: at most 5 % false alarms; of 300 layouts 15, plus 3.5 standard deviations of 3.8.
    rng, window = np.random.default_rng(9), study_window(BAY)
    r = np.linspace(0, 600, 31)
    alarms = 0
    for _ in range(300):
        xy = window.uniform(rng.poisson(30) + 2, rng)
        drawn = draw_layouts(xy, window, 39, rng)
        envelope = curve_envelope(xy, drawn, window, "L", r, level=0.025)
        alarms += _kind(clark_evans_test(xy, drawn, window), envelope, 0.05) != "poisson"
    assert alarms <= 28
    assert alarms >= 2  # a test that never rejects is none


def test_a_regular_layout_in_words():
    xy, period = draw_lattice(8, 12.0, np.random.default_rng(1))
    statistics = layout_statistics(xy, period, simulations=99, bootstrap=19)
    assert statistics.kind == "regular"
    assert statistics.clark_evans.ratio > 1.3
    assert statistics.uneven is None
    assert statistics.verdict.startswith("Regular: 64 sites (115 per km²) keep apart, fewer pairs than")
    assert statistics.fits.best.process == "lattice"
    assert statistics.fits.best.parameters["shift_m"] == pytest.approx(12.0, rel=0.3)


def test_a_clustered_layout_in_words():
    xy = np.array(REFERENCE["layouts"]["bay"]["xy"])
    statistics = layout_statistics(xy, BAY, simulations=99, bootstrap=19)
    assert statistics.kind == "clustered"
    assert statistics.verdict.startswith(
        "Clustered: 196 sites (30.8 per km²) stand together, more pairs than"
    )
    assert "cluster process with parents" in statistics.verdict
    assert MODELS[statistics.fits.best.process].kind == "clustered"
    row = statistics.as_row()
    assert row["kind"] == "clustered"
    assert row["sites"] == 196
    assert row["density_per_km2"] == pytest.approx(196 / (BAY.area / 1e6))
    assert row["l_p"] == 0.01
    assert "\n" not in row["verdict"]


def test_regular_clusters_are_mixed():
    # Sites 100 m apart on small lattices, the lattices together in the west.
    rng = np.random.default_rng(5)
    x = np.arange(6) * 100.0
    lattice = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    xy = np.vstack([np.add(lattice, (100, 100)), np.add(lattice, (1500, 200))]) + rng.normal(0, 4, (72, 2))
    statistics = layout_statistics(xy, shapely.box(0, 0, 3000, 3000), simulations=199, bootstrap=0)
    assert statistics.kind == "mixed"
    assert "Regular at some distances and clustered at others" in statistics.verdict


def test_an_uneven_density_is_told_from_clusters():
    # Ten times as many sites in the west: evenly shaken there, at random there, and in pairs there.
    rng, land = np.random.default_rng(5), shapely.box(0, 0, 2000, 1000)
    x = (np.arange(12) + 0.5) * 1000 / 12
    lattice = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2) + rng.normal(0, 8, (144, 2))
    random, few = rng.random((144, 2)) * 1000, rng.random((14, 2)) * 1000 + (1000, 0)
    pairs = np.vstack((random[:72], np.clip(random[:72] + rng.normal(0, 10, (72, 2)), 0, 1000)))
    said = [
        layout_statistics(np.vstack((west, few)), land, simulations=99, bootstrap=0, rng=1).verdict
        for west in (lattice, random, pairs)
    ]
    assert "Neighbours are farther apart than in Poisson layouts of as uneven a density" in said[0]
    assert "Neighbours are no closer than in Poisson layouts of as uneven a density" in said[1]
    assert "Neighbours are closer than in Poisson layouts of as uneven a density too" in said[2]


def test_a_poisson_layout_in_words_says_what_it_could_have_hidden():
    few = layout_statistics(poisson_layout(BAY, None, 3, count=12), BAY, simulations=99)
    many = layout_statistics(poisson_layout(BAY, None, 3, count=200), BAY, simulations=99)
    assert few.kind == many.kind == "poisson"
    assert few.verdict.startswith("Cannot be told from Poisson: 12 sites (1.89 per km²); Clark-Evans")
    assert "With 12 sites any index from" in few.verdict
    assert few.clark_evans.spread > 3 * many.clark_evans.spread  # as √(200/12) = 4, and more by the edge
    assert few.fits.best.process == "poisson"
    assert few.fits.best.parameters == {}
    one, two = (
        layout_statistics(poisson_layout(BAY, None, 3, count=12), BAY, simulations=99, rng=1) for _ in "ab"
    )
    assert one.verdict == two.verdict


def test_two_sites_and_sites_on_top_of_each_other():
    two = layout_statistics([[500.0, 500.0], [700.0, 900.0]], BAY, simulations=99)
    assert two.verdict.startswith("Cannot be told from Poisson: 2 sites")
    assert "nan" not in two.verdict
    xy = poisson_layout(BAY, None, 2, count=40).xy
    doubled = layout_statistics(np.vstack((xy, xy[:20])), BAY, simulations=99, bootstrap=9)
    assert doubled.coincident == 20
    assert "60 sites (9.43 per km²), 20 of them on top of others" in doubled.verdict
    assert doubled.kind == "clustered"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fit_process([[5.0, 5.0]], BAY), "A fit needs at least 2 sites, not 1"),
        (
            lambda: fit_process([[5.0, 5.0]], BAY, processes=["strauss"]),
            "`processes` must be of poisson, ginibre",
        ),
        (lambda: fit_process([[5.0, 5.0]], BAY, statistic="G"), "`statistic` 'L' or 'g', not G"),
        (lambda: layout_statistics([[5.0, 5.0]], BAY), "A layout's statistics needs at least 2 sites"),
        (lambda: layout_statistics([[5.0, 5.0]] * 3, BAY, simulations=19), "need at least 39"),
        (lambda: layout_statistics([[5.0, 5.0]] * 3), "`window` must be given"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call, words):
    with pytest.raises(CityError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_monacos_candidate_hosts_are_clustered(small_scenario):
    # Shops, police and post offices stand where the city is dense: hosts, not an operator's network.
    city = ge.load_city(small_scenario.city)
    layout = ge.make_layout(city, small_scenario.sites, rng=7)
    statistics = layout_statistics(layout, city.boundary, simulations=99, bootstrap=9)
    assert statistics.kind == "clustered"
    assert 0.5 < statistics.clark_evans.ratio < 0.8
    assert statistics.area_km2 == pytest.approx(city.area_km2)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("file", "zone", "sites"), [("melbourne-cbd-optus.csv", 32755, 125), ("luxembourg-lte.csv", 32632, 38)]
)
def test_operators_files(file, zone, sites):
    with (SITES / file).open(encoding="utf-8") as lines:
        rows = [{key.lower(): value for key, value in row.items()} for row in csv.DictReader(lines)]
    lon, lat = ([float(row.get(key[:3]) or row[key]) for row in rows] for key in ("longitude", "latitude"))
    xy = np.stack(Transformer.from_crs(4326, zone, always_xy=True).transform(lon, lat), axis=1)
    statistics = layout_statistics(xy, convex_window(xy), simulations=99, bootstrap=9)
    assert statistics.sites == sites
    assert statistics.kind == "clustered"
