"""Agents: users, sites and the controller, each a view of one row of columns that the model owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mesa
import numpy as np

from geoedge.city.trips import ACTIVITIES, MODES

if TYPE_CHECKING:
    from geoedge.simulation.model import EdgeCity

__all__ = ["ControllerAgent", "SiteAgent", "UserAgent"]


class UserAgent(mesa.Agent):  # type: ignore[misc]  # Mesa is untyped
    """One user of the service, who lives somewhere, goes places, and asks.

    Parameters
    ----------
    model
        The city.
    row
        Which user.
    """

    model: EdgeCity

    def __init__(self, model: EdgeCity, row: int) -> None:
        super().__init__(model)
        self.row = int(row)

    @property
    def home(self) -> tuple[float, float]:
        """Where the user lives [m]."""
        x, y = self.model.population.home_xy[self.row]
        return float(x), float(y)

    @property
    def mode(self) -> str:
        """How the user travels, ``"walk"`` or ``"drive"``."""
        return MODES[self.model.population.mode[self.row]]

    @property
    def activity(self) -> str:
        """What the user is doing now."""
        return ACTIVITIES[self.model.whereabouts[1][self.row]]

    @property
    def position(self) -> tuple[float, float]:
        """Where the user is now, exact along the street [m]."""
        x, y = self.model.whereabouts[0][self.row]
        return float(x), float(y)


class SiteAgent(mesa.Agent):  # type: ignore[misc]  # Mesa is untyped
    """One edge site: the cache it holds and the queue in front of its servers.

    Parameters
    ----------
    model
        The city.
    row
        Which site.
    """

    model: EdgeCity

    def __init__(self, model: EdgeCity, row: int) -> None:
        super().__init__(model)
        self.row = int(row)

    @property
    def name(self) -> str:
        """Name of the site, text that anybody may have written."""
        return self.model.study.layout.name[self.row]

    @property
    def position(self) -> tuple[float, float]:
        """Where the site is [m]."""
        x, y = self.model.study.layout.xy[self.row]
        return float(x), float(y)

    @property
    def profile(self) -> int:
        """Cache profile that the site holds; states on their way do not count."""
        return int(self.model.placement.profile[self.row])

    @property
    def profile_name(self) -> str:
        """Name of the cache profile."""
        return self.model.study.workload.profile_names[self.profile]

    @property
    def concurrency(self) -> int:
        """Requests that the site may serve at once; fewer than its profile leaves room for while states arrive."""
        return int(self.model.placement.servers[self.row])

    @property
    def states_bytes(self) -> int:
        """Memory taken by the states that the site holds and by those that arrive [B]."""
        return int(self.model.placement.states_bytes[self.row])

    @property
    def queue_length(self) -> int:
        """Requests that wait at the site at the end of the last step."""
        return int(self.model.last.waiting[self.row])

    @property
    def running(self) -> int:
        """Requests that hold a server at the end of the last step."""
        return int(self.model.last.running[self.row])

    @property
    def utilization(self) -> float:
        """Share of server time used in the last step."""
        return float(self.model.last.utilization[self.row])

    @property
    def advertised_wait(self) -> float:
        """Wait as routers know it now [s]."""
        return float(self.model.engine.advertised_wait_s[self.row])

    @property
    def in_transit(self) -> bool:
        """Whether states are on their way to the site."""
        return self.row in self.model.placement.in_transit


class ControllerAgent(mesa.Agent):  # type: ignore[misc]  # Mesa is untyped
    """The controller: once an epoch it measures demand, lets the field set prices, and moves caches."""

    model: EdgeCity

    @property
    def moved_bytes(self) -> float:
        """Bytes moved so far, by plans and by what sites repair themselves [B]."""
        return float(np.sum([entry.action.bytes_moved for entry in self.model.operator.log]))

    def step(self) -> None:
        """Act at the start of an epoch: prices, and actions if the scenario lets it."""
        model, steering = self.model, self.model.steering
        ahead, known = steering.ahead(model.epoch), steering.known(model.epoch)
        model.operator.act(model.clock_s, model.epoch, steering.measured, ahead, known)
