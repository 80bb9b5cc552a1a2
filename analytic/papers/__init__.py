"""One file a paper: its closed-form model in the authors' notation, with each erratum switchable to its printed form.

A module of a paper has `ERRATA` and `efforts(case, motion, printed)`; it shares no dynamics code with other sources.
The errata are data in a file of the same name, `<paper>.toml`.
"""

import importlib
import pkgutil
import tomllib
from collections.abc import Set
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import MechanismError, NotFoundError, NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.schema import reason_of

AS_CORRECTED: Set[str] = frozenset()


class Erratum(BaseModel):
    """A place with an error in the printed paper."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_min_length=1)

    key: str = Field(pattern=r"^[a-z0-9_]+$")
    """Name of the erratum, used to switch to its printed form."""
    equation: str
    """Place in the paper."""
    printed: str
    corrected: str
    computes: bool = True
    """Whether the printed form can be computed; otherwise it is a slip of notation."""


class Errata(BaseModel):
    """The file of a paper's errata."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    errata: tuple[Erratum, ...]

    @field_validator("errata")
    @classmethod
    def _have_keys_of_their_own(cls, errata: tuple[Erratum, ...]) -> tuple[Erratum, ...]:
        keys = [erratum.key for erratum in errata]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        if repeated:
            raise ValueError(f"keys of errata must be unique, got {', '.join(repeated)} more than once")
        return errata


class PaperModel(Protocol):
    """Contents of a module of this package."""

    ERRATA: tuple[Erratum, ...]

    def efforts(self, case: Case, motion: Motion, printed: Set[str] = AS_CORRECTED) -> Array:
        """Efforts of all actuators [N or N m], shape (nt, na), with the named errata as printed."""
        ...


class Paper:
    """Efforts by the closed-form model of the paper the robot comes from, errata corrected."""

    name = "analytic/paper"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        if case.robot.paper is None:
            raise MechanismError(f"{self.name}: robot must have a paper model, got '{case.robot.name}' without a paper")
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
        NotFoundError: If there is no module of that name.
    """
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise NotFoundError("paper", name, sorted(module.name for module in pkgutil.iter_modules(__path__))) from error


def read_errata(module: str) -> tuple[Erratum, ...]:
    """The errata of a paper, from the file beside its module.

    Raises:
        MechanismError: If an entry lacks something or is not as it should be.
    """
    file = Path(module).with_suffix(".toml")
    try:
        return Errata.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))).errata
    except ValidationError as error:
        raise MechanismError(f"{file}: {reason_of(error, Errata)}") from error


def want_known(printed: Set[str], errata: tuple[Erratum, ...]) -> None:
    """Check the names of errata to be switched on.

    Raises:
        NotFoundError: If a name is unknown, or is a slip of notation that cannot be computed.
    """
    known_keys = [erratum.key for erratum in errata if erratum.computes]
    for key in sorted(printed - set(known_keys)):
        raise NotFoundError("erratum", key, known_keys)


def want_plain(mechanism: Mechanism, *, wrench: bool = False) -> None:
    """Check that a robot has only elements that papers' models have.

    Args:
        wrench: Whether the paper's model has an external wrench.

    Raises:
        NotRepresentableError: If it has armature, damping, springs, tendons, gravity compensation or a wrench.
    """
    more = [
        f"armature, damping or spring of joint '{j.name}'"
        for j in mechanism.joints
        if j.armature or j.damping or j.stiffness
    ]
    more += [f"tendon '{tendon.name}'" for tendon in mechanism.tendons]
    more += [f"tendon '{spring.name}'" for spring in mechanism.point_springs]
    more += [f"gravity compensation of '{body.name}'" for body in mechanism.bodies if body.gravity_compensation]
    more += ["external wrench"] if mechanism.wrenches and not wrench else []
    if more:
        raise NotRepresentableError(f"analytic/paper: the model of the paper does not include: {more[0]}")
