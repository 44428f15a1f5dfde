"""How long a request holds its server: the laws that theory, field and simulation share, and the queues they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory.phase_type import PhaseType, unit_quantile
from geoedge.theory.protocols import QueueOfMix, WaitModel
from geoedge.theory.queueing import ErlangC
from geoedge.theory.queues import TwoMomentQueue

__all__ = [
    "SERVICE_LAWS",
    "LawQueue",
    "NamedLaw",
    "ServiceLaw",
    "make_law",
    "queue_for",
    "service_scv",
]

FloatArray = NDArray[np.float64]
_Parts = tuple[FloatArray, FloatArray]


@runtime_checkable
class ServiceLaw(Protocol):
    """How long a request holds its server: a certain part, and a random one of a given mean.

    The random part is made from a unit-exponential mark of the request by a quantile, so that a request that is long
    under one law, or policy, is long under all.
    """

    @property
    def unit_scv(self) -> float:
        """Squared coefficient of variation of the random part."""
        ...

    def parts(self, prefill_time: ArrayLike, decode_time: ArrayLike, mixture_time: ArrayLike) -> _Parts:
        """Return the certain part and the mean of the random part [s].

        Parameters
        ----------
        prefill_time
            Residual prefill time of the request where it is served [s].
        decode_time
            Mean decode time of its type [s].
        mixture_time
            Mean occupancy of everything that its site serves [s], for laws that do not see types.
        """
        ...

    def unit_service(self, mark: FloatArray) -> FloatArray:
        """Return the random part, of unit mean, of unit-exponential marks.

        Parameters
        ----------
        mark
            Unit-exponential draws, any shape.
        """
        ...


def _of_type(prefill: FloatArray, decode: FloatArray, _: FloatArray) -> _Parts:
    return np.zeros(np.broadcast_shapes(prefill.shape, decode.shape)), prefill + decode


_PARTS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], _Parts]] = {
    "prefill_plus_decode": lambda prefill, decode, _: (prefill, decode),
    "exponential_mixture": lambda _, __, mixture: (np.zeros_like(mixture), mixture),
    "exponential_type": _of_type,
    "phase_type": _of_type,
    "deterministic": lambda prefill, decode, _: (prefill + decode, np.zeros_like(decode)),
    "tabulated": lambda prefill, _, __: (np.zeros_like(prefill), np.ones_like(prefill)),
}

SERVICE_LAWS = tuple(_PARTS)
"""Names of the service laws, for a prefill T_pf, a mean decode D and a unit-exponential mark m.

``prefill_plus_decode`` T_pf + m D; ``exponential_mixture`` m times the site's mean occupancy; ``exponential_type``
m (T_pf + D); ``phase_type`` X(m) (T_pf + D) with X of unit mean and a given squared coefficient of variation;
``deterministic`` T_pf + D; ``tabulated`` m itself.
"""


@dataclass(frozen=True)
class NamedLaw:
    """A `ServiceLaw` of the table `SERVICE_LAWS`; made by `make_law`.

    Parameters
    ----------
    name
        A name in `SERVICE_LAWS`.
    scv
        Squared coefficient of variation of the service of one type, for ``phase_type``.
    """

    name: str
    scv: float | None = None

    def __post_init__(self) -> None:
        """Say in one line what does not fit."""
        if self.name not in SERVICE_LAWS:
            msg = f"`law` must be one of {SERVICE_LAWS}, not {self.name!r}"
            raise GeoEdgeError(msg)
        if (self.name == "phase_type") != (self.scv is not None):
            wanted = "needs a" if self.scv is None else "takes no"
            msg = f'law {self.name!r} {wanted} squared coefficient of variation `scv`; only "phase_type" has one'
            raise GeoEdgeError(msg)
        if self.scv is not None:
            PhaseType.of_scv(self.scv)

    @property
    def unit_scv(self) -> float:
        """Squared coefficient of variation of the random part; NaN where services are given as they are."""
        if self.name == "tabulated":
            return float("nan")
        return 1.0 if self.scv is None else self.scv

    def parts(self, prefill_time: ArrayLike, decode_time: ArrayLike, mixture_time: ArrayLike) -> _Parts:
        """Return the certain part and the mean of the random part [s].

        Parameters
        ----------
        prefill_time, decode_time, mixture_time
            As in `ServiceLaw.parts`.
        """
        prefill, decode, mixture = (
            np.asarray(x, dtype=np.float64) for x in (prefill_time, decode_time, mixture_time)
        )
        return _PARTS[self.name](prefill, decode, mixture)

    def unit_service(self, mark: FloatArray) -> FloatArray:
        """Return the random part, of unit mean, of unit-exponential marks.

        Parameters
        ----------
        mark
            Unit-exponential draws, any shape.
        """
        return mark if self.scv is None else unit_quantile(self.scv, mark)


def make_law(law: str | ServiceLaw, scv: float | None = None) -> ServiceLaw:
    """Return a service law by its name, or one that is given as an object.

    Parameters
    ----------
    law
        A name in `SERVICE_LAWS`, or a `ServiceLaw`.
    scv
        Squared coefficient of variation of the service of one type, for ``phase_type`` alone.

    Raises
    ------
    GeoEdgeError
        If the name is unknown, or the scv is missing, superfluous or out of range.
    """
    return NamedLaw(law, scv) if isinstance(law, str) else law


def service_scv(
    law: ServiceLaw, served_mix: ArrayLike, prefill_time: ArrayLike, occupancy_time: ArrayLike
) -> FloatArray:
    """Return the squared coefficient of variation of what tiers or sites serve: types differ, and vary each.

    Parameters
    ----------
    law
        Service law.
    served_mix
        Mixture ω of the types, Eq. (16), shape (n, Q).
    prefill_time
        Residual prefill time [s], shape (n, Q).
    occupancy_time
        Mean time that a request holds its server [s], shape (n, Q).

    Returns
    -------
    FloatArray
        Shape (n,).

    Raises
    ------
    GeoEdgeError
        If the law does not know its variance.

    Examples
    --------
    >>> float(service_scv(make_law("exponential_type"), [[0.5, 0.5]], [[0.0, 0.0]], [[1.0, 3.0]])[0])
    1.5
    """
    mix, prefill, occupancy = (
        np.asarray(x, dtype=np.float64) for x in (served_mix, prefill_time, occupancy_time)
    )
    if np.isnan(law.unit_scv):
        msg = "service_scv: this law does not know its variance; give a wait model instead, as TabulatedQueue"
        raise GeoEdgeError(msg)
    mean = (mix * occupancy).sum(axis=-1)
    fixed, scale = law.parts(prefill, occupancy - prefill, mean[..., None])
    second = (mix * ((fixed + scale) ** 2 + law.unit_scv * scale**2)).sum(axis=-1)
    # a clock has none, whatever rounding says
    return np.asarray(np.maximum(second / mean**2 - 1.0, 0.0))


@dataclass(frozen=True)
class LawQueue:
    """The two-moment queues of a service law: each tier's or site's variability follows from what it serves.

    Parameters
    ----------
    law
        Service law.
    """

    law: ServiceLaw

    def for_mix(
        self, served_mix: ArrayLike, prefill_time: ArrayLike, occupancy_time: ArrayLike
    ) -> TwoMomentQueue:
        """Return the wait model of these mixtures.

        Parameters
        ----------
        served_mix, prefill_time, occupancy_time
            As in `service_scv`.
        """
        return TwoMomentQueue(service_scv(self.law, served_mix, prefill_time, occupancy_time))


def queue_for(law: str | ServiceLaw, scv: float | None = None) -> WaitModel | QueueOfMix:
    """Return the queue that goes with a service law, to be given to theory and field as ``queue=``.

    Parameters
    ----------
    law
        A name in `SERVICE_LAWS`, or a `ServiceLaw`.
    scv
        Squared coefficient of variation of the service of one type, for ``phase_type`` alone.

    Returns
    -------
    WaitModel | QueueOfMix
        M/M/c for ``exponential_mixture``, where it is exact; else `LawQueue`.

    Raises
    ------
    GeoEdgeError
        As `make_law`, or if the law does not know its variance.
    """
    made = make_law(law, scv)
    if made == NamedLaw("exponential_mixture"):
        return ErlangC()
    service_scv(made, [[1.0]], [[0.5]], [[1.0]])
    return LawQueue(made)
