"""What a plan must keep to: bytes and actions of an epoch, gains, and how many sites may hold what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geoedge.scenario import ControlConfig

__all__ = ["Limits", "deep_profiles", "limits_of", "make_limits", "shares_outside"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Limits:
    """What a plan must keep to.

    A placement that breaks the bounds on profiles is led back within them before anything else is done (`nearer`), and
    never led further out (`allow`).

    Parameters
    ----------
    budget_bytes
        Bytes moved in the epoch that starts, at most [B].
    least_sites, most_sites
        Sites that hold each profile, at least and at most, shape (S,).
    min_gain
        Predicted gain in coverage below which nothing is done.
    looks
        Candidates for which a round solves the field, at most.
    rounds
        Actions in an epoch, at most.
    hysteresis
        Gain in coverage beyond the least one that taking a site back to a profile that it left lately must bring.
    least_hold_epochs
        Epochs for which a site keeps what it was given, at least.
    migration_price
        Coverage that moving states must bring [1/GB], γ of Eq. (58).
    deep
        Which profiles are deep, shape (S,); none if omitted.
    most_deep
        Sites that hold deep profiles, all of them together, at most; any number if omitted.
    later_budget_bytes
        Bytes moved in any epoch after it, at most [B]; as many as in it if omitted.
    """

    budget_bytes: float
    least_sites: Ints
    most_sites: Ints
    min_gain: float
    looks: int = 4
    rounds: int = 8
    hysteresis: float = 0.0
    least_hold_epochs: int = 1
    migration_price: float = 0.0
    deep: Flags | None = None
    most_deep: int | None = None
    later_budget_bytes: float | None = None

    def budgets(self, epochs: int) -> Floats:
        """Return the bytes that may be moved in each of the coming epochs [B], shape (H,).

        Parameters
        ----------
        epochs
            Number of epochs H.
        """
        later = self.budget_bytes if self.later_budget_bytes is None else self.later_budget_bytes
        return np.array([self.budget_bytes, *[later] * (epochs - 1)], dtype=np.float64)

    def allow(self, count: Ints, before: Ints) -> bool:
        """Return whether a plan breaks no limit further than it was broken before.

        Parameters
        ----------
        count
            Sites of each profile after a plan, shape (S,).
        before
            The same before it.
        """
        enough = count >= np.minimum(self.least_sites, before)
        few = count <= np.maximum(self.most_sites, before)
        deep, was = self._deep_over(count), self._deep_over(before)
        return bool(enough.all() and few.all() and deep <= max(was, 0))

    def outside(self, count: Ints) -> int:
        """Return by how many sites a mix misses its bounds, each counted by itself; 0 if it keeps them all.

        Parameters
        ----------
        count
            Sites of each profile, shape (S,).
        """
        missing = np.maximum(self.least_sites - count, 0).sum()
        beyond = np.maximum(count - self.most_sites, 0).sum()
        return int(missing + beyond) + max(self._deep_over(count), 0)

    def broken(self, count: Ints) -> tuple[str, ...]:
        """Return which bounds a mix breaks, by the keys that set them.

        Parameters
        ----------
        count
            Sites of each profile, shape (S,).
        """
        told = {
            "fallback_floor": (count < self.least_sites).any(),
            "deep_cap": (count > self.most_sites).any(),
            "deep_share_cap": self._deep_over(count) > 0,
        }
        return tuple(key for key, is_broken in told.items() if is_broken)

    def allowed(self, count: Ints) -> Flags:
        """Return whether one more site may go from profile s to t, shape (S, S); where it stays is of no account.

        Parameters
        ----------
        count
            Sites of each profile, shape (S,).
        """
        spare, room = count > self.least_sites, count < self.most_sites
        free = spare[:, None] & room
        if self.deep is not None and self._deep_over(count) >= 0:
            free &= self.deep[:, None] | ~self.deep
        return np.asarray(free)

    def unlimited(self, n_sites: int) -> Flags:
        """Return which profiles any number of sites may hold, shape (S,).

        Parameters
        ----------
        n_sites
            Number of sites n.
        """
        free = self.most_sites >= n_sites
        if self.deep is not None and self.most_deep is not None and self.most_deep < n_sites:
            free = free & ~self.deep
        return np.asarray(free)

    def nearer(self, count: Ints) -> Flags:
        """Return which changes of one site from profile s to t bring a mix nearer to its bounds, shape (S, S).

        Of those that leave the same profile only the ones that come nearest count: a site that one change brings to
        where it may stay needs no second one.

        Parameters
        ----------
        count
            Sites of each profile, shape (S,).
        """
        size, now = len(count), self.outside(count)
        miss = np.full((size, size), now, dtype=np.int64)
        one = np.eye(size, dtype=np.int64)
        for s in np.flatnonzero(count) if now else ():
            for t in range(size):
                after = count - one[s] + one[t]
                miss[s, t] = self.outside(after) if self.allow(after, count) else now
        return np.asarray((miss < now) & (miss == miss.min(axis=1, keepdims=True)))

    def _deep_over(self, count: Ints) -> int:
        """Return how many sites more than the limit hold deep profiles; less than 0 where there is room."""
        if self.deep is None or self.most_deep is None:
            return -1
        return int(count[self.deep].sum()) - self.most_deep


def make_limits(
    n_sites: int,
    hit_tokens: Ints,
    *,
    budget_bytes: float,
    fallback_floor: float,
    deep_cap: float,
    min_gain: float,
    deep_share_cap: float = 1.0,
    most_actions: int = 8,
    hysteresis: float = 0.0,
    least_hold_epochs: int = 1,
    migration_price: float = 0.0,
) -> Limits:
    """Return limits in whole sites from shares, the constraints of Eq. (49).

    The fallback is the first profile; `deep_profiles` says which are deep.

    Parameters
    ----------
    n_sites
        Number of sites n.
    hit_tokens
        Hits d [token], shape (S, Q).
    budget_bytes
        Bytes moved in an epoch, at most [B].
    fallback_floor
        Share of sites that hold the fallback, at least.
    deep_cap
        Share of sites that hold any one deep profile, at most.
    min_gain
        Predicted gain in coverage below which nothing is done.
    deep_share_cap
        Share of sites that hold deep profiles, all of them together, at most: π_max of Eq. (49).
    most_actions
        Actions in an epoch, at most [actions].
    hysteresis
        Gain in coverage beyond that which taking a site back to a profile that it left lately must bring.
    least_hold_epochs
        Epochs for which a site keeps what it was given, at least.
    migration_price
        Coverage that moving states must bring [1/GB].
    """
    deep = deep_profiles(hit_tokens)
    least = np.zeros(len(hit_tokens), dtype=np.int64)
    most = np.full(len(hit_tokens), n_sites, dtype=np.int64)
    least[0] = np.ceil(fallback_floor * n_sites - 1e-9)
    most[deep] = np.floor(deep_cap * n_sites + 1e-9)
    return Limits(
        budget_bytes,
        least,
        most,
        min_gain,
        rounds=most_actions,
        hysteresis=hysteresis,
        least_hold_epochs=least_hold_epochs,
        migration_price=migration_price,
        deep=deep,
        most_deep=int(np.floor(deep_share_cap * n_sites + 1e-9)),
    )


def limits_of(control: ControlConfig, hit_tokens: Ints, n_sites: int) -> Limits:
    """Return limits in whole sites from a scenario's section.

    Parameters
    ----------
    control
        The section.
    hit_tokens
        Hits d [token], shape (S, Q).
    n_sites
        Number of sites n.
    """
    return make_limits(
        n_sites,
        hit_tokens,
        budget_bytes=control.migration_budget_bytes,
        fallback_floor=control.fallback_floor,
        deep_cap=control.deep_cap,
        deep_share_cap=control.deep_share_cap,
        most_actions=control.most_actions,
        min_gain=control.min_gain,
        hysteresis=control.hysteresis,
        least_hold_epochs=control.least_hold_epochs,
        migration_price=control.migration_price,
    )


def deep_profiles(hit_tokens: Ints) -> Flags:
    """Return which profiles are deep, shape (S,): those whose longest hit exceeds that of another one that stores.

    Parameters
    ----------
    hit_tokens
        Hits d [token], shape (S, Q).
    """
    longest = hit_tokens.max(axis=1)
    stores = longest[1:][longest[1:] > 0]
    return np.asarray(longest > (stores.min() if stores.size else np.inf))


def shares_outside(
    share: Floats, hit_tokens: Ints, names: Sequence[str], control: ControlConfig
) -> Iterator[str]:
    """Yield which bounds on profiles a mix breaks, one line each, with the key that bounds it.

    Parameters
    ----------
    share
        Share of sites that hold each profile, shape (S,).
    hit_tokens
        Hits d [token], shape (S, Q).
    names
        Names of the profiles.
    control
        The section that sets the bounds.
    """
    deep, rounding = deep_profiles(hit_tokens), 1e-9
    fallback_floor, deep_cap, deep_share_cap = (
        control.fallback_floor,
        control.deep_cap,
        control.deep_share_cap,
    )
    if share[0] < fallback_floor - rounding:
        yield f"control.fallback_floor = {fallback_floor:g}: only {share[0]:.1%} of the sites hold {names[0]}"
    for s in np.flatnonzero(deep & (share > deep_cap + rounding)):
        yield f"control.deep_cap = {deep_cap:g}: {share[s]:.1%} of the sites hold {names[int(s)]}"
    if (together := float(share[deep].sum())) > deep_share_cap + rounding:
        listed = ", ".join(names[int(s)] for s in np.flatnonzero(deep))
        yield f"control.deep_share_cap = {deep_share_cap:g}: {together:.1%} of the sites hold deep profiles ({listed})"
