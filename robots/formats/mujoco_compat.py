"""Compiled models of older versions of MuJoCo, read as if they had every field of the newest."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopcheck.robots.arrays import AnyArray


def _zero(size: str) -> Callable[[Any], AnyArray]:
    return lambda model: np.zeros(getattr(model, size))


def _none(size: str) -> Callable[[Any], AnyArray]:
    return lambda model: np.full(getattr(model, size), -1)


ABSENT: Mapping[str, Callable[[Any], AnyArray]] = {
    # before 3.7: no armature or damping of actuators, no polynomials for springs and dampers
    "actuator_armature": _zero("nu"),
    "actuator_damping": _zero("nu"),
    "actuator_dampingpoly": _zero("nu"),
    "jnt_actuatorid": _none("njnt"),
    "tendon_actuatorid": _none("ntendon"),
    "jnt_stiffnesspoly": _zero("njnt"),
    "dof_dampingpoly": _zero("nv"),
    "tendon_stiffnesspoly": _zero("ntendon"),
    "tendon_dampingpoly": _zero("ntendon"),
    # before 3.12: no actuators with several outputs or controls
    "actuator_outadr": lambda model: np.arange(model.nu),
    "actuator_outnum": lambda model: np.ones(model.nu, dtype=int),
    "actuator_ctrladr": lambda model: np.arange(model.nu),
    "actuator_ctrlnum": lambda model: np.ones(model.nu, dtype=int),
    # before 4.0: no springs that yield
    "jnt_plasticadr": _none("njnt"),
    "tendon_plasticadr": _none("ntendon"),
}
"""Default of each field for MuJoCo versions without it; these versions reject MJCF files that set it."""


class CompatibleModel:
    """Fields of an `MjModel` that the installed version of MuJoCo may lack."""

    def __init__(self, model: Any) -> None:
        """Fields of a compiled model; no function of MuJoCo accepts them in this form."""
        self._model = model

    @property
    def plain(self) -> Any:
        """The compiled model as functions of MuJoCo accept it."""
        return self._model

    def __dir__(self) -> list[str]:
        return dir(self._model)

    def __getattr__(self, name: str) -> Any:
        absent = name in ABSENT and not hasattr(self._model, name)
        return ABSENT[name](self._model) if absent else getattr(self._model, name)


def names_of_actuators(model: Any) -> tuple[str, ...]:
    """Names of the actuators of an `MjModel`; its `nu` counts controls, of which an actuator may have several."""
    return tuple(model.actuator(i).name or f"actuator{i}" for i in range(len(model.actuator_trntype)))
