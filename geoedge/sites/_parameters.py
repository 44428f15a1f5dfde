"""What a point process is told: its parameters, their defaults and ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geoedge.errors import CityError
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Draw: TypeAlias = Callable[..., NDArray[np.float64]]
    """Window, density [1/m²], random generator and parameters in; places [m] out."""

__all__ = ["Parameter", "Process"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a process.

    Parameters
    ----------
    meaning
        What it is, with its unit.
    default
        Its default; of lengths, which end in ``_m``, in mean spacings 1/√λ, and of densities, which end in
        ``_per_km2``, in λ.
    most
        Largest number allowed.
    zero
        Whether 0 is allowed.
    choices
        Words allowed, if it is a word.
    """

    meaning: str
    default: float | str | bool
    most: float = np.inf
    zero: bool = False
    choices: tuple[str, ...] = ()

    def value(self, name: str, density: float) -> float | str | bool:
        """Return the default at a density [1/m²], in the unit of the parameter.

        Parameters
        ----------
        name
            Name of the parameter, which tells its unit.
        density
            λ [1/m²].
        """
        if isinstance(self.default, str | bool):
            return self.default
        if name.endswith("_m"):
            return self.default / float(np.sqrt(density))
        return self.default * density * M2_PER_KM2 if name.endswith("_per_km2") else self.default

    def problem(self, given: Any) -> str | None:
        """Return what is allowed if a value is not.

        Parameters
        ----------
        given
            The value.
        """
        if isinstance(self.default, str):
            return None if given in self.choices else f"must be one of {', '.join(self.choices)}"
        if isinstance(self.default, bool):
            return None if isinstance(given, bool | np.bool_) else "must be true or false"
        number = not isinstance(given, bool | np.bool_) and isinstance(given, int | float | np.number)
        if number and np.isfinite(given) and (given > 0 or (self.zero and given == 0)) and given <= self.most:
            return None
        most = f" and at most {self.most:g}" if np.isfinite(self.most) else ""
        return f"must be a number {'of at least' if self.zero else 'above'} 0{most}"


@dataclass(frozen=True)
class Process:
    """A point process that can be drawn.

    Parameters
    ----------
    words
        What it is called in a sentence.
    draw
        Draws it.
    parameters
        Its parameters by name.
    needs
        What else it is drawn from: ``"city"``, ``"demand"`` or nothing.
    """

    words: str
    draw: Draw
    parameters: dict[str, Parameter]
    needs: str = ""

    def values(
        self, name: str, density: float, given: dict[str, float | str | bool]
    ) -> dict[str, float | str | bool]:
        """Return every parameter, given or by default.

        Parameters
        ----------
        name
            What the process is called in an error.
        density
            λ [1/m²], which defaults follow.
        given
            Parameters that are given.

        Raises
        ------
        CityError
            If one is unknown or out of range.
        """
        for key, value in given.items():
            if key not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                msg = f"`{key}` = {value!r}: not a parameter of {name}, which has {known}"
                raise CityError(msg)
            problem = self.parameters[key].problem(value)
            if problem:
                msg = f"`{key}` = {value!r}: {problem}; it is the {self.parameters[key].meaning}"
                raise CityError(msg)
        return {
            key: given[key] if key in given else parameter.value(key, density)
            for key, parameter in self.parameters.items()
        }
