"""The patch whose luck is taken out: which sites stand where, and how much its regions lack or have to spare.

Waits follow the long waves of capacity over the plane most of all, and these are few: their luck would decide. So
sites are moved along smooth displacements until each of the longest waves of capacity has the power that Poisson
sites have on average. Waves longer than the torus have no room on it, but wherever one stands within them, they are
nothing but a little more or less demand for what is there: the patch is solved at two levels of demand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags_array
from scipy.sparse.linalg import splu

from geoedge.theory._patch import Patch, Settled, settle
from geoedge.theory._patch_kernels import scatter
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import WaitModel

__all__ = ["make_patch", "settled_levels"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SITES = 1024
_MODES = 6  # longest waves whose power is set
_MOVES = 6  # Newton steps to the power that is asked for
_STIFFEST = 1e-9  # slope of wait by load [s], at least
_FARTHEST = 1e3  # κ² from which nothing is carried on
_NEAREST_CAPACITY = 0.5  # share of what the servers have to spare that a level of demand may take


def make_patch(network: TieredNetwork, model: WaitModel) -> Patch:
    """Return the patch of a network.

    Parameters
    ----------
    network, model
        The network, whose tiers all have sites, and the wait model of its tiers.
    """
    count = np.maximum(np.rint(_SITES * network.tier_density / network.site_density), 1).astype(np.int64)
    side = float(np.sqrt(count.sum() / network.site_density))
    patch = Patch(network, model, side, scatter(count, side), np.repeat(np.arange(count.size), count))
    return replace(patch, xy=_typical(patch))


def settled_levels(patch: Patch, wait: FloatArray) -> list[Settled]:
    """Return the equilibrium of the patch at each level of demand, which are equally likely.

    Parameters
    ----------
    patch
        The patch at the mean level.
    wait
        Waits to start from [s], shape (n,).
    """
    middle = settle(patch, wait)
    spread = _spread(patch, middle)
    return [settle(replace(patch, demand=1.0 + part), middle.wait) for part in (-spread, spread)]


def _waves() -> IntArray:
    """Return the wavenumbers, in units of the first, whose power is set, shape (K, 2)."""
    axis = np.arange(-_MODES, _MODES + 1)
    number = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    square = (number**2).sum(axis=1)
    return np.asarray(number[(square <= _MODES**2) & (square > 0)])


def _typical(patch: Patch) -> FloatArray:
    """Return the places of sites [km] with the power of the longest waves of capacity as it is on average."""
    number = _waves()
    half = (number[:, 0] > 0) | ((number[:, 0] == 0) & (number[:, 1] > 0))
    wave = 2.0 * np.pi / patch.side * number[half].astype(np.float64)
    xy, servers = patch.xy, patch.servers
    power = float(servers @ servers)
    for _ in range(_MOVES):
        turn = np.exp(1j * (xy @ wave.T))
        found = servers @ turn.conj()
        lack = (np.sqrt(power) * found / np.abs(found) - found) / servers.sum()
        # a displacement u makes the density grow by −∇·u
        xy = np.mod(xy - 2.0 * ((turn * lack).imag / (wave**2).sum(axis=1)) @ wave, patch.side)
    return np.asarray(xy)


def _spread(patch: Patch, settled: Settled) -> float:
    """Return the standard deviation of demand, as a share of itself, that stands for waves longer than the torus.

    A wave of capacity with k² = n raises waits by its size over n + κ², all in units of the first wavenumber. The
    integral over the plane of wavenumbers, up to the last whose power is set, exceeds the sum over those on the torus;
    the rest is made by a level of demand, a wave with n = 0.
    """
    own = _screening(patch, settled)
    square = (_waves() ** 2).sum(axis=1)
    end = (square.size + 1) / np.pi
    missing = np.pi * end / (own * (end + own)) - (1.0 / (square + own) ** 2).sum()
    one = patch.servers @ patch.servers / patch.servers.sum() ** 2
    spread = float(np.sqrt(one * max(missing, 0.0)) * own)
    idle = 1.0 - float(settled.work.sum() / patch.servers.sum())
    return min(spread, _NEAREST_CAPACITY * max(idle, 0.0) / (1.0 - idle))


def _screening(patch: Patch, settled: Settled) -> float:
    """Return κ², in units of the first wavenumber, squared: how much load queues take up, for how much is carried on.

    Both are read off the response of waits to lacks of capacity, of the whole patch and in its longest waves.
    """
    taken = diags_array(1.0 / np.maximum(settled.by_load, _STIFFEST))
    response = splu((taken - settled.work_slope).tocsc())
    turn = 2.0 * np.pi / patch.side * patch.xy
    lacks = patch.servers[:, None] * np.column_stack((np.ones(patch.tier.size), np.cos(turn), np.sin(turn)))
    raised = (lacks * response.solve(lacks)).sum(axis=0) / (lacks**2).sum(axis=0)
    whole, wave = float(raised[0]), float(raised[1:].mean())
    return min(wave / max(whole - wave, 1e-6 * whole), _FARTHEST)
