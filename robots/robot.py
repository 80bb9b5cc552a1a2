"""The catalogue: a folder for each robot, with its MJCF and its robot.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from loopcheck.robots import catalogue
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import ROBOT_FILE
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ANCHORS, ModelFile, Overrides, file_hash
from loopcheck.robots.mechanism import WORLD, Actuator, Closing, Mechanism, PinOffset, Wrench
from loopcheck.robots.schema import reason_of

HOME = "home"
HORIZONTAL, VERTICAL = "horizontal", "vertical"
"""Configurations of a planar robot: it lies flat, or stands upright."""
GIVEN, TURNED = "given", "turned"
"""Configurations of a spatial robot: the gravity of its file, and the same turned by −90° about X."""
DEFAULT = "default"


class MotionSpec(BaseModel):
    """The motion law of a robot, and its parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    law: str
    """Name of a law of `loopcheck.analytic.motion.laws`, `automatic` or `recorded`."""
    parameters: Mapping[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the law."""


Vector: TypeAlias = tuple[float, float, float]
Scale: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class WrenchSpec(BaseModel):
    """A constant external load on a body, as `robot.toml` gives it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    body: str
    """Name of the body."""
    point: Vector
    """Point of application of the force, in the body frame [m]."""
    moment: Vector = (0.0, 0.0, 0.0)
    """World axes [N m]."""
    force: Vector = (0.0, 0.0, 0.0)
    """World axes [N]."""


class TaskSpec(BaseModel):
    """Coordinates of a platform, as `robot.toml` gives them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    site: str
    """Site of the platform whose position counts."""
    positions: tuple[Literal["x", "y", "z"], ...]
    """World axes of its position."""
    turns: tuple[Literal["x", "y", "z"], ...] = ()
    """World axes that its body turns about; of a body that turns about this axis alone."""


class Robot(BaseModel):
    """A robot of the catalogue: the content of its `robot.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """Name of its folder."""
    folder: Path
    title: str
    mjcf: str
    """File name of the MJCF in the folder."""
    motion: MotionSpec = MotionSpec(law="automatic")
    """By default made by `loopcheck.analytic.motion.automatic`."""
    source: str
    """Source of every number: paper, table, drawing."""
    paper: str | None = None
    """Module of `loopcheck.analytic.papers` with the closed-form model of the paper."""
    trace: str | None = None
    """Site with the drawn path."""
    task: TaskSpec | None = None
    """Task coordinates; by default those of the motion law, if it is given for the platform."""
    actuated: tuple[str, ...] = ()
    """Joints that get a motor each, instead of the actuators of the MJCF; empty: the MJCF's actuators."""
    leave_out: tuple[str, ...] = ()
    """Losses of the model file that are accepted, TAG or TAG:NAME."""
    assumptions: tuple[str, ...] = ()
    """Choices made for data missing from the source, a sentence each."""
    wrenches: tuple[WrenchSpec, ...] = ()
    """Constant external loads, the same in all configurations."""
    effort_scales: Mapping[str, Scale] = Field(default_factory=dict)
    """Reference effort of each actuator in the norm of redundant efforts [N or N m]; by default 1."""
    variants: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]] = Field(default_factory=dict)
    """Overrides of the MJCF by variant, kind of element, name and attribute."""
    without: Mapping[str, str] = Field(default_factory=dict)
    """Sources that are not computed for this robot, each with the reason."""
    configurations: tuple[str, str] | None = None
    """Names of the given and the turned gravity of a spatial robot with a horizontal and a vertical position."""
    gravities: Mapping[str, Vector] = Field(default_factory=dict, exclude=True)
    """Gravity of each configuration [m/s²], the model's own first (`loopcheck.analytic.motion.configurations`)."""
    closing: Mapping[str, Closing] = Field(default_factory=dict, exclude=True)
    """Accuracy of the loops of each variant (`loopcheck.analytic.kinematics.closing`); by default they are exact."""
    offsets: Mapping[str, tuple[PinOffset, ...]] = Field(default_factory=dict, exclude=True)
    """Offsets along pins of each variant (`loopcheck.analytic.kinematics.offsets`), without which loops close."""
    expected: Mapping[str, Literal["not comparable"]] = Field(default_factory=dict)
    """Verdict that is expected of a mode."""

    @field_validator("motion", mode="before")
    @classmethod
    def _name_alone_is_a_law(cls, value: object) -> object:
        return {"law": value} if isinstance(value, str) else value

    @field_validator("configurations")
    @classmethod
    def _two_names(cls, value: tuple[str, str] | None) -> tuple[str, str] | None:
        if value is not None and (not all(value) or value[0] == value[1]):
            raise ValueError(f"must be 2 different names, got '{value[0]}' and '{value[1]}'")
        return value

    @property
    def motion_file(self) -> Path | None:
        """The file of a recorded motion, in the robot's folder unless its path is absolute; None for other motions."""
        file = self.motion.parameters.get("file")
        return self.folder / file if isinstance(file, str) else None

    @property
    def variant_names(self) -> tuple[str, ...]:
        """All variants, `default` first."""
        return (DEFAULT, *(name for name in self.variants if name != DEFAULT))

    def overrides(self, variant: str) -> Overrides:
        """Changes of the MJCF in a variant, with the anchors of closures at their mean along a pin."""
        anchors = {
            offset.closure: {f"name{end}": point for end, point in enumerate(offset.points, start=1)}
            for offset in self.offsets.get(variant, ())
        }
        return {**self.variants.get(variant, {}), **({ANCHORS: anchors} if anchors else {})}

    def mechanism(self, variant: str = DEFAULT) -> Mechanism:
        """The mechanism of a variant, in the gravity of its file.

        Raises:
            NotFoundError: If there is no such variant, or a body with a wrench or an actuator with a scale is missing.
            MechanismError: If the MJCF is bad.
        """
        if variant not in self.variant_names:
            raise NotFoundError(f"variant of {self.name}", variant, self.variant_names)
        path, overrides = self.folder / self.mjcf, self.overrides(variant)
        model = ModelFile(path=path, overrides=overrides, actuated=self.actuated, leave_out=self.leave_out)
        mechanism = read_mechanism(model)
        return replace(
            mechanism,
            wrenches=tuple(_wrench(mechanism, spec) for spec in self.wrenches),
            actuators=_scaled(mechanism, self.effort_scales),
            closing=self.closing.get(variant, Closing()),
            offsets=self.offsets.get(variant, ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A robot in a variant, mode and configuration."""

    robot: Robot
    variant: str
    mode: str
    configuration: str
    mechanism: Mechanism
    """In the gravity of the configuration."""
    motion_hash: str = field(init=False)
    """SHA-256 of the file of a recorded motion; empty for other motions."""

    def __post_init__(self) -> None:
        file = self.robot.motion_file
        object.__setattr__(self, "motion_hash", file_hash(file) if file else "")

    @property
    def guess(self) -> Array:
        """Starting guess of the assembly."""
        return modes(self.mechanism)[self.mode]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Robot, variant, mode and configuration."""
        return (self.robot.name, self.variant, self.mode, self.configuration)


def load(name: str) -> Robot:
    """Load a catalogue robot.

    Raises:
        NotFoundError: If the catalogue has no robot of that name.
        MechanismError: If its `robot.toml` is bad.
    """
    if name not in catalogue.names():
        raise NotFoundError("robot", name, catalogue.names())
    return load_folder(catalogue.CATALOGUE / name)


def load_folder(folder: Path) -> Robot:
    """Load the robot of a folder with a `robot.toml`.

    Raises:
        MechanismError: If `robot.toml` is bad.
    """
    path = folder.absolute() / ROBOT_FILE
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        return Robot(name=path.parent.name, folder=path.parent, **table)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise MechanismError(f"{path}: must be a readable TOML file: {error}") from error
    except ValidationError as error:
        raise MechanismError(f"{path}: {reason_of(error, Robot)}") from error


def modes(mechanism: Mechanism) -> Mapping[str, Array]:
    """Named starting guesses for the assembly: the keyframes, or `home` = qpos0 in a model without keyframes."""
    return mechanism.keyframes or {HOME: mechanism.rest_position}


def configurations(robot: Robot, mechanism: Mechanism) -> Mapping[str, Array]:
    """Named accelerations of gravity [m/s²], each of shape (3,), that of the file first.

    Robots of the catalogue lie flat, `horizontal`, in the gravity of their file, or have names of their own for it. For
    other robots see `loopcheck.analytic.motion.configurations`.

    Args:
        mechanism: A variant of the robot, in the gravity of its file.
    """
    if robot.gravities:
        return {name: np.array(g) for name, g in robot.gravities.items()}
    given, other = robot.configurations or (HORIZONTAL, VERTICAL)
    g = mechanism.gravity
    return {given: g, other: turned(g)} if np.any(g) else {given: g}


def turned(g: Array) -> Array:
    """A gravity turned by −90° about X.

    Args:
        g: Acceleration of gravity, world axes [m/s²], shape (3,).
    """
    return np.array([g[0], g[2], -g[1]])


def make_case(robot: Robot, *, variant: str, mode: str, configuration: str) -> Case:
    """A case of the robot.

    Raises:
        NotFoundError: If the variant, mode or configuration is unknown, or a mode with an expectation; the message
            lists the
            valid names.
        MechanismError: If the MJCF is invalid.
    """
    mechanism = robot.mechanism(variant)
    known_modes, known_configurations = modes(mechanism), configurations(robot, mechanism)
    for name, of_what in ((mode, "mode of"), *((expected, "mode in [expected] of") for expected in robot.expected)):
        if name not in known_modes:
            raise NotFoundError(f"{of_what} {robot.name}", name, known_modes)
    if configuration not in known_configurations:
        raise NotFoundError(f"configuration of {robot.name}", configuration, known_configurations)
    return Case(
        robot=robot,
        variant=variant,
        mode=mode,
        configuration=configuration,
        mechanism=mechanism.with_gravity(known_configurations[configuration]),
    )


def want_actuators(mechanism: Mechanism) -> None:
    """Check that a mechanism has actuators.

    Raises:
        MechanismError: If it has no actuator; the message lists the joints that can be actuated.
    """
    if mechanism.actuators:
        return
    joints = [joint for joint in mechanism.joints if joint.body != WORLD]
    scalar = [joint.name for joint in joints if joint.kind in ("hinge", "slide")]
    remedy = (
        f"Name joints, for example --actuated {','.join(scalar[:2])}. Hinges and slides: {', '.join(scalar)}"
        if scalar
        else "Add actuators to the file; it has no hinges or slides"
    )
    raise MechanismError(f"{mechanism.model.path}: no actuators: must have at least 1 actuator. {remedy}")


def regular_modes(robot: Robot, variant: str = DEFAULT) -> tuple[str, ...]:
    """Modes without an expected singularity; all modes if each expects a singularity."""
    every_mode = tuple(modes(robot.mechanism(variant)))
    return tuple(mode for mode in every_mode if mode not in robot.expected) or every_mode


def representative_case(robot: Robot, *, variant: str = DEFAULT, mode: str = "", configuration: str = "") -> Case:
    """The representative case of a robot in a study: its first regular mode, upright if it has gravity.

    Args:
        mode: Name of the mode, instead of the first regular mode.
        configuration: Name of the configuration; by default `vertical`, or the last if the robot has no `vertical`.

    Raises:
        NotFoundError: If the variant, mode or configuration is unknown; the message lists the valid names.
        MechanismError: If the MJCF is invalid.
    """
    known = list(configurations(robot, robot.mechanism(variant)))
    return make_case(
        robot,
        variant=variant,
        mode=mode or regular_modes(robot, variant)[0],
        configuration=configuration or (VERTICAL if VERTICAL in known else known[-1]),
    )


def _wrench(mechanism: Mechanism, spec: WrenchSpec) -> Wrench:
    bodies = [body.name for body in mechanism.bodies]
    if spec.body not in bodies:
        raise NotFoundError(f"body of {mechanism.model.path.name}", spec.body, bodies)
    vectors = {name: np.array(getattr(spec, name)) for name in ("point", "moment", "force")}
    return Wrench(body=bodies.index(spec.body), **vectors)


def _scaled(mechanism: Mechanism, scales: Mapping[str, float]) -> tuple[Actuator, ...]:
    names = [actuator.name for actuator in mechanism.actuators]
    for name in scales:
        if name not in names:
            raise NotFoundError(f"actuator of {mechanism.model.path.name}", name, names)
    return tuple(replace(a, effort_scale=scales.get(a.name, a.effort_scale)) for a in mechanism.actuators)
