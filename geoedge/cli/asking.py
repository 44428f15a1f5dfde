"""What a user asks for, read from words: a scenario, changes of it, values to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from geoedge.errors import GeoEdgeError, ScenarioError

if TYPE_CHECKING:
    from geoedge.scenario import Scenario

__all__ = ["factors", "grid", "scenario_of"]


def scenario_of(
    name: str, settings: Sequence[str] | None = None, changes: Mapping[str, Any] | None = None
) -> Scenario:
    """Return a scenario with changes; `settings` are KEY=VALUE, and of `changes` those that are not None count."""
    from geoedge.scenario import load_scenario

    given = {key: value for key, value in (changes or {}).items() if value is not None}
    for setting in settings or ():
        key, value = _halves(setting, "--set", "KEY=VALUE", "--set routing.policy=nearest")
        given[key] = _literal(value)
    scenario = load_scenario(name)
    return scenario.override(given) if given else scenario


def factors(text: str | None) -> list[float] | None:
    """Return numbers with commas between."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        msg = f"--loads {text!r}: must be numbers > 0 with commas between, for example 0.5,1,1.5"
        raise GeoEdgeError(msg) from None


def grid(varied: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values to try by dotted key, from words KEY=V1,V2,…"""
    found: dict[str, list[Any]] = {}
    for words in varied:
        key, text = _halves(words, "--vary", "KEY=V1,V2,…", "--vary routing.policy=nearest,load_aware")
        values = [_literal(part) for part in _parts(text)]
        twice = key in found or any(value in values[:k] for k, value in enumerate(values))
        if twice or "" in values:
            what = "names a key or a value twice" if twice else "has an empty value"
            msg = f"--vary {words!r}: {what}; write each once, as in --vary routing.policy=nearest,load_aware"
            raise ScenarioError(msg)
        found[key] = values
    return found


def _halves(words: str, option: str, form: str, example: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in words.partition("="))
    if not equals or not key:
        msg = f"{option} {words!r}: must be {form}, for example {example}"
        raise ScenarioError(msg)
    return key, value


def _parts(text: str) -> Iterator[str]:
    """Yield what stands between commas, but for commas inside of brackets, braces or quotes."""
    start, depth, quote = 0, 0, ""
    for k, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:k].strip()
            start = k + 1
    yield text[start:].strip()


def _literal(text: str) -> Any:
    """Return a value as TOML reads it, or the text itself."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
