"""Motion laws, one file a law: the prescribed coordinates of the actuated joints as functions of time.

A module of a law has `prescription(mechanism, start, **parameters)`; a `robot.toml` names it and may give parameters.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck.analytic.motion.task import InverseKinematics, Path, Task
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Law
from loopcheck.robots.robot import Case

LAWS = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))
"""Names of the laws that have a file."""
AUTOMATIC = "automatic"
"""Name of the law made by `loopcheck.analytic.motion.automatic` for robots without a motion."""
RECORDED = "recorded"
"""Name of the law that `loopcheck.analytic.motion.recorded` reads from a file, its parameter `file`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prescription:
    """A motion law with the time it lasts."""

    law: Law
    span: tuple[float, float]
    """First and last time [s]."""
    task: Task | None = None
    """Motion of the platform; None if the law prescribes the joints."""


def prescription(case: Case) -> Prescription:
    """The motion law named by a robot.

    Raises:
        NotFoundError: If there is no such law.
        MechanismError: If a parameter is unknown or invalid, or the law is for another robot.
    """
    spec, mechanism = case.robot.motion, case.mechanism
    if spec.law not in LAWS:
        raise NotFoundError(f"motion law of {case.robot.name}", spec.law, (*LAWS, AUTOMATIC, RECORDED))
    start = mechanism.values_of(mechanism.drives, case.guess[None])[0]
    module = importlib.import_module(f"{__name__}.{spec.law}")
    try:
        law: Prescription = module.prescription(mechanism, start, **spec.parameters)
    except TypeError as error:
        raise MechanismError(f"motion law '{spec.law}' of {case.robot.name}: {error}") from error
    return law


def task(case: Case) -> Task | None:
    """The task coordinates of a robot's law; None for a law of the joints.

    Raises:
        MechanismError: If a parameter of the law is unknown or invalid, or the law is for another robot.
    """
    return prescription(case).task if case.robot.motion.law in LAWS else None


def of_task(units: Mapping[str, str], path: Path, inverse: InverseKinematics, duration: float) -> Prescription:
    """The law that follows from a path of the task coordinates with units given by name."""
    task = Task(coordinates=tuple(units), units=tuple(units.values()), path=path, inverse=inverse)
    return Prescription(law=task.law, span=(0.0, duration), task=task)


def require_joints(mechanism: Mechanism, law: str, expected: tuple[str, ...]) -> None:
    """Check that a robot has the actuated joints of a law.

    Raises:
        MechanismError: If its actuated joints are others.
    """
    actuated = tuple(drive.name for drive in mechanism.drives)
    if actuated != expected:
        raise MechanismError(
            f"{mechanism.model.path}: actuated joints must be {', '.join(expected)} for the motion law '{law}', "
            f"got {', '.join(actuated) or 'no actuated joints'}"
        )


def require_positive(law: str, **parameters: Any) -> None:
    """Check parameters of a law that are lengths, times or frequencies.

    Raises:
        MechanismError: If a parameter is not a positive, finite number.
    """
    for name, value in parameters.items():
        if not isinstance(value, (int, float)) or not 0 < value < np.inf:
            raise MechanismError(f"motion law '{law}': {name} must be above 0, got {value!r}")
