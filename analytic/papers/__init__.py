"""One file a paper: its closed-form model as the authors wrote it, with each erratum switchable to its printed form.

A module of a paper has `ERRATA` and `efforts(case, motion, printed)`; it shares no dynamics code with other sources.
"""

import importlib
import pkgutil
from collections.abc import Set
from dataclasses import dataclass
from typing import Protocol

from robots.arrays import Array
from robots.efforts import EffortHistory
from robots.errors import MechanismError, NotFoundError, NotRepresentableError
from robots.mechanism import Joint, Mechanism
from robots.motion import Motion
from robots.robot import Case

AS_CORRECTED: Set[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erratum:
    """A place where a paper cannot be right as printed."""

    key: str
    """Name by which its printed form is switched on."""
    equation: str
    printed: str
    corrected: str
    computes: bool = True
    """Whether it stands in an equation that can be computed as printed; the others are slips of notation."""


class PaperModel(Protocol):
    """What a module of this package offers."""

    ERRATA: tuple[Erratum, ...]

    def efforts(self, case: Case, motion: Motion, printed: Set[str] = AS_CORRECTED) -> Array:
        """Efforts of all actuators [N or N m], shape (nt, na), with the named errata as printed."""
        ...


class Paper:
    """Efforts by the closed-form model of the paper the robot comes from, errata corrected."""

    name = "analytic/paper"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        if case.robot.paper is None:
            raise MechanismError(f"{self.name}: {case.robot.name} does not come from a paper")
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
            t=motion.t,
            effort=paper_model(case.robot.paper).efforts(case, motion),
            settings={"paper": case.robot.paper, "errata": "corrected"},
        )


def paper_model(name: str) -> PaperModel:
    """The module of a paper.

    Raises:
        NotFoundError: If there is none of that name.
    """
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise NotFoundError("paper", name, sorted(module.name for module in pkgutil.iter_modules(__path__))) from error


def want_known(printed: Set[str], errata: tuple[Erratum, ...]) -> None:
    """Check the names of errata that are to be switched on.

    Raises:
        NotFoundError: If one is unknown, or is a slip of notation that cannot be computed.
    """
    known = [erratum.key for erratum in errata if erratum.computes]
    for key in sorted(printed - set(known)):
        raise NotFoundError("erratum", key, known)


def want_plain(mechanism: Mechanism, *, wrench: bool = False) -> None:
    """Check that a robot has nothing that no paper's model has.

    Args:
        mechanism: Robot.
        wrench: Whether the paper's model has an external wrench.

    Raises:
        NotRepresentableError: If it has armature, damping, springs, tendons, gravity compensation or a wrench.
    """
    more = [f"armature, damping or spring of joint '{j.name}'" for j in mechanism.joints if _is_loaded(j)]
    more += [f"tendon '{tendon.name}'" for tendon in mechanism.tendons]
    more += [f"tendon '{spring.name}'" for spring in mechanism.point_springs]
    more += [f"gravity compensation of '{body.name}'" for body in mechanism.bodies if body.gravity_compensation]
    more += ["an external wrench"] if mechanism.wrenches and not wrench else []
    if more:
        raise NotRepresentableError(f"analytic/paper: {more[0]}: the paper's model has none")


def _is_loaded(joint: Joint) -> bool:
    return bool(joint.armature or joint.damping or joint.stiffness)
