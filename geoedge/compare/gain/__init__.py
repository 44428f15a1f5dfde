"""Deployment gain: how many Poisson sites a layout is worth."""

from geoedge.compare.gain.deployment import DeploymentGain, deployment_gain, layout_gain

__all__ = ["DeploymentGain", "deployment_gain", "layout_gain"]
