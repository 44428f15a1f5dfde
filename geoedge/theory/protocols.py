"""What theory, field and simulation ask of a queue, so that any object that answers it can stand in for M/M/c."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PerSite", "QueueOfMix", "WaitModel", "select"]

FloatArray = NDArray[np.float64]


@runtime_checkable
class WaitModel(Protocol):
    """A queue as theory, field and simulation see it; `ErlangC` is the default.

    An implementation may hold parameters of its own, such as the variability of service. Its mean wait must grow
    from zero with the load and pass all bounds as the load nears the concurrency.
    """

    def mean_wait(
        self, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the mean wait [s], infinite where the load reaches the concurrency.

        Parameters
        ----------
        arrival_rate
            Arrivals λ at each tier or site [1/s].
        service_rate
            Services μ of one server [1/s].
        concurrency
            Number of servers c.
        """
        ...

    def wait_cdf(
        self, time: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the probability to wait no longer than so, zero everywhere at an unstable queue.

        Parameters
        ----------
        time
            Waits [s].
        arrival_rate
            Arrivals λ at each tier or site [1/s].
        service_rate
            Services μ of one server [1/s].
        concurrency
            Number of servers c.
        """
        ...

    def wait_quantile(
        self, probability: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the least wait [s] that is kept with this probability.

        Parameters
        ----------
        probability
            Shares of requests, below one.
        arrival_rate
            Arrivals λ at each tier or site [1/s].
        service_rate
            Services μ of one server [1/s].
        concurrency
            Number of servers c.
        """
        ...

    def normalised_wait_and_slope(
        self, offered_load: ArrayLike, concurrency: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean wait in mean service times and its derivative by the load.

        Parameters
        ----------
        offered_load
            Load a = λ/μ [servers].
        concurrency
            Number of servers c.
        """
        ...

    def offered_load_for_wait(self, wait: ArrayLike, concurrency: ArrayLike) -> FloatArray:
        """Return the load [servers] at which the normalised wait has this value.

        Parameters
        ----------
        wait
            Mean wait in mean service times.
        concurrency
            Number of servers c.
        """
        ...


@runtime_checkable
class PerSite(Protocol):
    """A wait model with a parameter of its own for each tier or site, which can be asked for some of them."""

    def select(self, index: ArrayLike) -> WaitModel:
        """Return the model of some tiers or sites.

        Parameters
        ----------
        index
            Indices or a mask of the tiers or sites.
        """
        ...


@runtime_checkable
class QueueOfMix(Protocol):
    """A rule that makes a wait model of what tiers or sites serve; equilibria apply it as they find the mixtures."""

    def for_mix(self, served_mix: ArrayLike, prefill_time: ArrayLike, occupancy_time: ArrayLike) -> WaitModel:
        """Return the wait model.

        Parameters
        ----------
        served_mix
            Mixture ω of the types at each tier or site, shape (n, Q), Eq. (16).
        prefill_time
            Residual prefill time [s], shape (n, Q).
        occupancy_time
            Mean time that a request holds its server [s], shape (n, Q).
        """
        ...


def select(queue: WaitModel, index: ArrayLike) -> WaitModel:
    """Return the wait model of some of the tiers or sites: itself, unless they have parameters of their own.

    Parameters
    ----------
    queue
        Wait model of all of them.
    index
        Which ones.
    """
    return queue.select(index) if isinstance(queue, PerSite) else queue
