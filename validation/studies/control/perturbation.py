"""Robots that differ from the controllers' model: each parameter a few percent more, less or the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from loopcheck.analytic.papers.zubizarreta2010 import PHI, Parameters
from loopcheck.robots.arrays import Array

Kind: TypeAlias = Literal["all", "geometry", "inertia"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LENGTHS = ("L", "l", "d")
BY_LEG = (*LENGTHS, "lcL", "lcl", "mL", "ml", "ms", "IL", "Il", "Is")
BY_ROBOT = ("mp", "mc", "Ip", "Ic")
Template: TypeAlias = Mapping[str, Array]
"""−1, 0 or 1 for each parameter [-], of shape (3,) for parameters with a value per leg, otherwise ()."""


def make_templates(count: int, rng: np.random.Generator) -> list[Template]:
    """Draw templates: −1, 0 or 1 with equal chances, for each parameter of each leg and of the platform."""
    shapes = {name: (3,) if name in BY_LEG else () for name in (*BY_LEG, *BY_ROBOT)}
    return [
        {name: np.asarray(rng.integers(-1, 2, size=shape), float) for name, shape in shapes.items()}
        for _ in range(count)
    ]


def perturb(nominal: Parameters, template: Template, level: float, kind: Kind) -> Parameters:
    """The parameters of the controlled robot.

    `geometry` changes the lengths L, l, d alone; `inertia` changes masses, mass centres and moments of inertia. Base
    points stay.

    Args:
        nominal: Parameters used by the controllers.
        template: Direction of the change of each parameter.
        level: Size of the change, as a fraction [-].
        kind: Kind of changed parameters.
    """
    chosen = {name for name in template if kind == "all" or (kind == "geometry") == (name in LENGTHS)}
    return replace(nominal, **{name: getattr(nominal, name) * (1 + level * template[name]) for name in sorted(chosen)})


def overrides(p: Parameters) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The changes to the MJCF that give it these parameters, base points excepted."""
    bodies: dict[str, dict[str, Any]] = {}
    sites: dict[str, dict[str, Any]] = {}
    corner = p.d[:, None] * np.stack([np.cos(PHI), np.sin(PHI), 0 * PHI], axis=1)  # from C_i to P
    for k, i in enumerate(("1", "2", "3")):
        bodies[f"proximal{i}"] = _inertial(p.mL[k], p.IL[k], [p.lcL[k], 0, 0])
        bodies[f"sensor{i}"] = {"pos": [float(p.L[k]), 0, 0], **_inertial(p.ms[k], p.Is[k])}
        bodies[f"distal{i}"] = {"pos": [float(p.L[k]), 0, 0], **_inertial(p.ml[k], p.Il[k], [p.lcl[k], 0, 0])}
        sites[f"distal{i}_end"] = {"pos": [float(p.l[k]), 0, 0]}
        sites[f"platform{i}"] = {"pos": (corner[0] - corner[k]).tolist()}
    bodies["platform"] = {"pos": [float(p.l[0]), 0, 0], **_inertial(p.mp, p.Ip, corner[0])}
    bodies["load"] = {"pos": corner[0].tolist(), **_inertial(p.mc, p.Ic)}
    return {"body": bodies, "site": {**sites, "P": {"pos": corner[0].tolist()}}}


def _inertial(mass: float, inertia: float, center: Any = (0, 0, 0)) -> dict[str, Any]:
    return {"mass": float(mass), "inertia": [float(inertia)] * 3, "ipos": [float(c) for c in center]}
