"""The gap between Poisson theory and a simulated city, taken apart."""

from geoedge.compare.gap.explain import explain_gap, explain_layout
from geoedge.compare.gap.result import Gap, Spread, Step

__all__ = ["Gap", "Spread", "Step", "explain_gap", "explain_layout"]
