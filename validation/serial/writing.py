"""Files of repaired serial models: each holds constants fitted for its format, and says the error that they leave."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pprint import pformat

import numpy as np

from loopcheck.analytic.transmission.constants import (
    Constants,
    Kind,
    armatures_of,
    best_in_hindsight,
    fitted_constants,
    with_armatures,
)
from loopcheck.analytic.transmission.limits import Box
from loopcheck.analytic.transmission.motions import STATED, MotionEfforts, is_worse, largest_error
from loopcheck.analytic.transmission.regressor import links
from loopcheck.analytic.transmission.twin import Twin
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError, MechanismError, OutputError
from loopcheck.robots.formats.carried import URDF, carried_by
from loopcheck.robots.formats.mjcf import is_in_degrees, read_mechanism
from loopcheck.robots.formats.mjcf_patch import Patch, patched
from loopcheck.robots.formats.mjcf_writer import numbers
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.formats.urdf_writer import NO_LIMIT, urdf_texts
from loopcheck.robots.mechanism import Closure, Mechanism
from loopcheck.validation.report.blocks import percent
from loopcheck.validation.serial.rows.rows import ARMATURE, BEST, CONSTANT, OF_URDF, PUBLIC

REPAIRED, REPAIRED_URDF, SETTINGS = "serial_repaired.xml", "serial_repaired.urdf", "serial_settings.py"
SAME, LIKE = 1e-9, 1e-6
"""Relative difference between a written value and the same value after reading [-]; MuJoCo rotates inertias to
their principal axes and back."""
JOINT_ATTRIBUTES = ("armature", "damping", "stiffness")


@dataclass(frozen=True, slots=True, kw_only=True)
class Motions:
    """Motions of both mechanisms by their purpose."""

    stated: Sequence[MotionEfforts]
    """Motions that errors are stated for; they choose nothing."""
    choice: Sequence[MotionEfforts]
    fit: Sequence[MotionEfforts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What a format can hold of the constants that come nearest to the closed mechanism."""

    file: str
    mechanism: Mechanism | None
    """As read back from the file; None without a file."""
    kinds: tuple[Kind, ...] = ()
    note: str = ""
    """The file with its error, or the reason for its absence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """Files with other constants of a serial model: settings of simulators, MJCF and URDF.

    Each is fitted with the kinds of constants that its format holds. A file that raises the error of a motor on a
    stated motion is not left there.
    """

    twin: Twin
    box: Array
    """Lowest and highest value of each shared coordinate [m or rad], shape (n, 2)."""
    motions: Motions
    limits: Box | None
    """Of the efforts at the joints, in the sense of the shared coordinates; None keeps those of the file."""
    closures: Sequence[Closure]
    """Of the file of the serial model."""
    folder: Path

    def written(self) -> tuple[Repair, Repair, Repair]:
        """Settings, MJCF and URDF.

        Raises:
            OutputError: If a file cannot be written.
        """
        return (
            self._repair(SETTINGS, {Kind.ARMATURE}, self._settings),
            self._repair(REPAIRED, set(Kind), self.mjcf),
            self._repair(REPAIRED_URDF, {Kind.DAMPING, Kind.LINKS}, self._urdf),
        )

    def _repair(self, file: str, able: Collection[Kind], write: Callable[[Constants], Mechanism]) -> Repair:
        """Constants of one format; without links where the file cannot express them."""
        reason, stated = "", self.motions.stated
        for kinds in (set(able), set(able) - {Kind.LINKS}):
            constants = fitted_constants(self.twin, self.box, self.motions.fit, self.motions.choice, kinds)
            if not constants.kinds or not stated:
                break
            try:
                mechanism = write(constants)
            except OutputError:
                raise
            except HarnessError as error:
                reason = reason or str(error)
                continue
            if reason := is_worse(stated, mechanism):
                break
            effect = f"motor efforts within {percent(largest_error(stated, mechanism))} of the peak"
            note = f"wrote {file}: {', '.join(constants.kinds)}; {effect}"
            return Repair(file=file, mechanism=mechanism, kinds=constants.kinds, note=note)
        (self.folder / file).unlink(missing_ok=True)
        tried = " or ".join(kind for kind in Kind if kind in able)
        return Repair(file=file, mechanism=None, note=f"no {file}: {reason or f'{tried} would not lower the error'}")

    def _settings(self, constants: Constants) -> Mechanism:
        """Armature and effort limit of each serial joint for Isaac Lab and mjlab."""
        twin, stated = self.twin, self.motions.stated
        values = armatures_of(twin, constants.mechanism)
        armatures = {pair.serial: float(f"{value:.10g}") for pair, value in zip(twin.pairs, values, strict=True)}
        mechanism = with_armatures(twin, np.array(list(armatures.values())))
        efforts = self._symmetric_limits()
        isaac: dict[str, object] = {"joint_names_expr": list(armatures), "armature": armatures}
        isaac |= {"effort_limit_sim": efforts} if efforts else {}
        mjlab = [
            {"target_names_expr": (name,), "armature": armature} | ({"effort_limit": efforts[name]} if efforts else {})
            for name, armature in armatures.items()
        ]
        before, after = percent(largest_error(stated)), percent(largest_error(stated, mechanism))
        text = f"""# Settings of the serial joints of {twin.serial.mechanism.model.path.name}, SI units.
# Stiffness and damping are gains of your drives, which are yours to choose.
# Error of the motors' efforts with exactly these armatures: {after} rms of the peak of the worst motor
# and motion, of {len(stated)} motions that chose nothing; without them {before}.

# isaaclab.actuators.ImplicitActuatorCfg(**ISAAC_LAB, stiffness=..., damping=...)
ISAAC_LAB = {pformat(isaac, sort_dicts=False, width=100)}

# [mjlab.actuator.BuiltinPositionActuatorCfg(**joint, stiffness=..., damping=...) for joint in MJLAB]
MJLAB = {pformat(mjlab, sort_dicts=False, width=100)}
"""
        write_text(self.folder / SETTINGS, text)
        return mechanism

    def _symmetric_limits(self) -> dict[str, float]:
        """Largest effort of each serial joint to both sides [N or N m]; empty without limits of all motors."""
        if self.limits is None:
            return {}
        ends = zip(self.twin.pairs, self.limits.low, self.limits.high, strict=True)
        return {pair.serial: float(min(-low, high)) for pair, low, high in ends}

    def _urdf(self, constants: Constants) -> Mechanism:
        """The serial model as a URDF, which has no armature, with damping, links and limits of efforts."""
        own = replace(constants.mechanism, closures=tuple(self.closures))
        root = ET.fromstring(urdf_texts(carried_by(URDF, own).mechanism)[0])
        for joint in root.iter("joint"):
            effort = self._symmetric_limits().get(joint.get("name", ""))
            if effort is not None:
                limit = joint.find("limit")
                limit = ET.SubElement(joint, "limit", {"velocity": repr(NO_LIMIT)}) if limit is None else limit
                limit.set("effort", repr(effort))
        ET.indent(root)
        comment = f"<!-- Armatures of {SETTINGS} stand for the rods too: use either those, or this file. -->"
        text = f'<?xml version="1.0"?>\n{comment}\n{ET.tostring(root, encoding="unicode")}\n'
        write_text(self.folder / REPAIRED_URDF, text)
        read = read_mechanism(ModelFile(path=self.folder / REPAIRED_URDF))
        bodies = {body.name: body for body in read.bodies}
        for b, places in enumerate(own.joints_of):  # the frame of a link lies at its last joint
            if places and own.joints[places[-1]].kind != "free":
                body = bodies[own.bodies[b].name]
                bodies[body.name] = replace(body, center=body.center + own.joints[places[-1]].anchor)
        return _as_read(self.twin, replace(read, bodies=tuple(bodies.values())))

    def mjcf(self, constants: Constants) -> Mechanism:
        """Write the serial model with other constants, and with limits of efforts that are safe for all motors.

        Included parts of the file are read from their places.

        Returns:
            The serial model with the constants of the file.

        Raises:
            MechanismError: If MJCF cannot express it.
            OutputError: If it cannot be written.
        """
        twin, limits = self.twin, self.limits
        model, path = twin.serial.mechanism.model, self.folder / REPAIRED
        turns = np.rad2deg(1.0) if is_in_degrees(model) else 1.0
        joints = {}
        for k, j in enumerate(twin.serial.joints):
            joint = constants.mechanism.joints[j]
            attributes = {}
            if Kind.ARMATURE in constants.kinds:
                attributes["armature"] = repr(joint.armature)
            if Kind.DAMPING in constants.kinds:
                attributes["damping"] = repr(joint.damping)
            if Kind.SPRINGS in constants.kinds:
                rest = joint.spring_reference[0] * (turns if joint.kind == "hinge" else 1.0)
                attributes |= {"stiffness": repr(joint.stiffness), "springref": repr(float(rest))}
            if limits is not None:
                low, high = sorted((twin.serial.signs[k] * limits.low[k], twin.serial.signs[k] * limits.high[k]))
                attributes |= {"actuatorfrclimited": "true", "actuatorfrcrange": f"{float(low)!r} {float(high)!r}"}
            joints[joint.name] = attributes
        patch = Patch(option={}, equalities={}, joints=joints, inertials=_inertials(twin, constants))
        changed = patched(model, patch, 0)
        if set(changed) != {model.path.absolute()}:
            raise MechanismError(f"{model.path}: its joints must be in the file itself, not in an included file")
        if path.resolve() == model.path.resolve():
            raise OutputError(f"{self.folder}: contains the input {path.name}; name another folder with --out")
        _write(path, changed[model.path.absolute()])
        read = read_mechanism(ModelFile(path=path))
        _want_written(twin, constants, read)
        return _as_read(twin, read)


def models_of(
    twin: Twin, repairs: Sequence[Repair], stated: Sequence[MotionEfforts], public: Sequence[float]
) -> dict[str, Mechanism]:
    """Serial models with other constants by the way of repair, as far as they exist.

    Args:
        repairs: Settings, MJCF and URDF.
        stated: Motions that errors are stated for, the random ones first.
        public: Armatures of the joints in public configurations, if any [kg or kg m²].
    """
    written = zip((ARMATURE, CONSTANT, OF_URDF), (repair.mechanism for repair in repairs), strict=True)
    models = {way: mechanism for way, mechanism in written if mechanism is not None}
    if public:
        models[PUBLIC] = with_armatures(twin, np.array(public))
    if stated:
        models[BEST] = best_in_hindsight(twin, stated[:STATED])
    return models


def _as_read(twin: Twin, read: Mechanism) -> Mechanism:
    """The serial model with the constants of its shared joints and their links as read from a file."""
    mechanism = twin.serial.mechanism
    joints, bodies = list(mechanism.joints), list(mechanism.bodies)
    found_joints = {joint.name: joint for joint in read.joints}
    found_bodies = {body.name: body for body in read.bodies}
    for j in twin.serial.joints:
        joint = found_joints[joints[j].name]
        joints[j] = replace(
            joints[j],
            **{name: getattr(joint, name) for name in (*JOINT_ATTRIBUTES, "spring_reference")},
        )
    for b in links(twin.serial):
        body = found_bodies[bodies[b].name]
        bodies[b] = replace(bodies[b], mass=body.mass, center=body.center, inertia=body.inertia)
    return replace(mechanism, joints=tuple(joints), bodies=tuple(bodies))


def _inertials(twin: Twin, constants: Constants) -> dict[str, dict[str, str]]:
    """The inertia of each link that differs, by the name of a joint of it."""
    old, new, inertials = twin.serial.mechanism, constants.mechanism, dict[str, dict[str, str]]()
    for b in links(twin.serial):
        if new.bodies[b] is old.bodies[b]:
            continue
        name = next(old.joints[j].name for j in twin.serial.joints if old.joints[j].body == b)
        body, I = new.bodies[b], new.bodies[b].inertia
        moments = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        inertials[name] = {
            "mass": repr(body.mass),
            "pos": numbers(body.center),
            "fullinertia": numbers(moments),
        }
    return inertials


def write_text(path: Path, text: str) -> None:
    """Write a file of text.

    Raises:
        OutputError: If it cannot be written.
    """
    _write(path, text.encode())


def _want_written(twin: Twin, constants: Constants, mechanism: Mechanism) -> None:
    """Refuse a file that compiles to other constants: actuators may add armature of their own."""
    read = {joint.name: joint for joint in mechanism.joints}
    where = f"{mechanism.model.path}:"
    for j in twin.serial.joints:
        joint = constants.mechanism.joints[j]
        for attribute in (*JOINT_ATTRIBUTES, "spring_reference"):
            meant, value = (np.asarray(getattr(own, attribute)) for own in (joint, read[joint.name]))
            if np.abs(value - meant).max() > SAME * max(float(np.abs(meant).max()), 1.0):
                raise MechanismError(
                    f"{where} {attribute} of joint '{joint.name}' must be {meant.item():.6g}, got {value.item():.6g}: "
                    "another element of the file sets it or adds to it"
                )
    for b in links(twin.serial):
        body, other = constants.mechanism.bodies[b], mechanism.bodies[b]
        for attribute in ("mass", "center", "inertia"):
            meant, value = (np.asarray(getattr(own, attribute)) for own in (body, other))
            if np.abs(value - meant).max() > LIKE * max(float(np.abs(meant).max()), 1e-12):
                raise MechanismError(
                    f"{where} {attribute} of body '{body.name}' must be the written value, got the value of its geoms"
                )


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
