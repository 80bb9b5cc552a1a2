"""The rows of the tables: errors of the stand-in plain and repaired, and both over the workspace."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from loopcheck.analytic.transmission.constants import Kind
from loopcheck.analytic.transmission.motions import MotionEfforts
from loopcheck.analytic.transmission.regressor import links
from loopcheck.analytic.transmission.terms import JointTerms, to_motors
from loopcheck.analytic.transmission.twin import Twin, Workspace
from loopcheck.robots.arrays import Array, root_mean_square
from loopcheck.robots.mechanism import Mechanism
from loopcheck.validation.common.accuracy import Requirement
from loopcheck.validation.common.verdicts import MEASURED
from loopcheck.validation.serial.comparison import Pace

Row = Mapping[str, Any]
Series: TypeAlias = tuple[str, str, str, Array, Array, Array]
"""Quantity, part and unit, with values of the closed, the serial and the repaired model."""
PLAIN, PUBLIC, ARMATURE, CONSTANT, OF_URDF, BEST, FUNCTION = (
    "plain",
    "public",
    "armature",
    "constant",
    "urdf",
    "best",
    "function",
)
WAYS = {
    PLAIN: "unmodified",
    PUBLIC: "public factor",
    ARMATURE: "serial_settings.py",
    CONSTANT: "serial_repaired.xml",
    OF_URDF: "serial_repaired.urdf",
    BEST: "best in hindsight",
    FUNCTION: "exact",
}
"""Serial models: as its file has it, with the armature of public configurations, with fitted constants as far as a
format holds them, with the armatures that are best for the random motions alone, and with functions of the pose."""
EFFORT_ERROR = "effort error"
REACH = "reached"
"""Rows of a transmission with the ends of its joints."""
AT_JOINT, AT_MOTOR = "effort at joint", "effort at motor"
TERMS = {"inertia": "mass", "damping": "damping", "spring": "spring", "weight": "weight", "effort at rest": "still"}
IDLE = 1e-12
"""Couplings below this part of the coupled terms, and springs of other loads, are round-off [-]."""
MUCH = 1e-6
"""Smallest listed transmission ratio [-]."""


def units_of(twin: Twin) -> tuple[list[str], list[str], list[str]]:
    """Units of the shared positions, of efforts at the joints, and of efforts of the motors."""
    joints = [twin.closed.mechanism.joints[j] for j in twin.closed.joints]
    motors = [twin.closed.mechanism.actuator_units[k] for k in twin.motors]
    return [joint.unit for joint in joints], [joint.effort_unit for joint in joints], motors


def effort_rows(twin: Twin, motion: MotionEfforts, ways: Mapping[str, Array], accuracy: float | None) -> Iterator[Row]:
    """Errors of efforts along a motion, at every joint and every motor, over its peak.

    Args:
        ways: Efforts at the joints by the way of repair, the unmodified among them [N or N m], shape (nt, n).
        accuracy: Largest error of the unmodified serial model that agrees, over the peak [-]; None: measured only.
    """
    _, joint_units, motor_units = units_of(twin)
    sides = (
        (AT_JOINT, twin.names, joint_units, motion.closed, ways),
        (
            AT_MOTOR,
            twin.motor_names,
            motor_units,
            motion.at_motors(motion.closed),
            {way: motion.at_motors(efforts) for way, efforts in ways.items()},
        ),
    )
    for quantity, names, units, closed, efforts in sides:
        for k, (name, unit) in enumerate(zip(names, units, strict=True)):
            peak = float(np.abs(closed[:, k]).max())
            row = {"quantity": quantity, "motion": motion.name, "part": name, "unit": unit, "peak": peak}
            row |= _errors({way: values[:, k] - closed[:, k] for way, values in efforts.items()}, peak)
            verdict, note = MEASURED, ""
            if accuracy is not None and quantity == AT_MOTOR:
                error = float(np.abs(efforts[PLAIN][:, k] - closed[:, k]).max())
                required = Requirement(
                    actuators=names, units=units, peak=np.abs(closed).max(axis=0), scale=motion.scale
                )
                verdict, note = required.judged(k, error, 0.0, accuracy)
            yield {**row, "verdict": verdict, "note": note if verdict == "not comparable" else ""}


def term_rows(twin: Twin, samples: Workspace, repaired: JointTerms) -> Iterator[Row]:
    """Errors of the joint terms of the serial model over the workspace, over the larger of both peaks.

    Args:
        repaired: Terms of the serial model with other constants.
    """
    units, efforts, _ = units_of(twin)
    loads = max(float(np.abs(side).max()) for side in (samples.closed.weight, samples.closed.spring))
    for quantity, term in TERMS.items():
        own, other, after = (getattr(side, term) for side in (samples.closed, samples.serial, repaired))
        peaks = np.maximum(np.abs(own), np.abs(other)).max(axis=0)
        if own.ndim == 2:
            for k, name in enumerate(twin.names):
                row = {"quantity": quantity, "part": name, "unit": efforts[k], "peak": float(peaks[k])}
                errors = {PLAIN: (other - own)[:, k], CONSTANT: (after - own)[:, k]}
                if peaks[k] > IDLE * loads:  # springs may carry weights: only both together say what a repair leaves
                    yield _row(row, errors if term == "still" else {PLAIN: errors[PLAIN]})
            continue
        per = "s²" if term == "mass" else "s"
        for i, j in zip(*np.triu_indices(len(twin.names)), strict=True):
            part = twin.names[i] if i == j else f"{twin.names[i]} × {twin.names[j]}"
            row = {"quantity": quantity, "part": part, "unit": f"{efforts[i]} {per}/{units[j]}"}
            row["peak"] = float(np.sqrt(peaks[i, i] * peaks[j, j]))
            if peaks[i, j] <= IDLE * np.sqrt(peaks[i, i] * peaks[j, j]):
                continue  # neither has any
            yield _row(row, {PLAIN: (other - own)[:, i, j], CONSTANT: (after - own)[:, i, j]})
    yield from _kinematic_rows(twin, samples)


def constant_facts(twin: Twin, mechanism: Mechanism, kinds: Collection[Kind]) -> Iterator[tuple[str, str]]:
    """Constants of the repaired file that differ, and in brackets those of the original file.

    Args:
        mechanism: Of the repaired file.
        kinds: Kinds that differ.
    """
    old = twin.serial.mechanism
    for j in twin.serial.joints:
        name, joint = old.joints[j].name, mechanism.joints[j]
        if Kind.ARMATURE in kinds:
            yield f"armature of {name}", f"{joint.armature:.6g} ({old.joints[j].armature:.6g})"
        if Kind.DAMPING in kinds:
            yield f"damping of {name}", f"{joint.damping:.6g} ({old.joints[j].damping:.6g})"
        if Kind.SPRINGS in kinds:
            yield f"stiffness of {name}", f"{joint.stiffness:.6g} ({old.joints[j].stiffness:.6g})"
            yield f"rest position of the spring of {name}", f"{joint.spring_reference[0]:.6g} {joint.unit}"
    for b in links(twin.serial) if Kind.LINKS in kinds else ():
        after, before = ("  ".join(f"{x:.4g}" for x in side.bodies[b].center) for side in (mechanism, old))
        yield f"mass centre of {old.bodies[b].name}", f"{after} m ({before})"
        after, before = ("  ".join(f"{x:.4g}" for x in np.diag(side.bodies[b].inertia)) for side in (mechanism, old))
        yield f"inertia of {old.bodies[b].name} about its axes", f"{after} kg m² ({before})"


def pair_rows(twin: Twin, samples: Workspace, figures: Sequence[Row] = ()) -> Iterator[Row]:
    """The pairs of joints with their ranges, and the reached part of the ranges.

    Args:
        figures: Rows of the transmission, with the ends that a search finds; empty for other mechanisms.
    """
    found = {row["part"]: row for row in figures if row["quantity"] == REACH}
    for k, pair in enumerate(twin.pairs):
        x = samples.x[samples.closed_reaches, k]
        reached = found.get(pair.closed, {"low": x.min(), "high": x.max()})
        row: dict[str, Any] = {"closed": pair.closed, "serial": pair.serial, "by": pair.by, "sign": pair.sign}
        for name, space in (("closed", twin.closed), ("serial", twin.serial)):
            joint = space.mechanism.joints[space.joints[k]]
            row[f"{name}_body"] = space.mechanism.bodies[joint.body].name
            ends = sorted(space.signs[k] * end for end in joint.limits or (np.nan, np.nan))
            row |= {f"{name}_low": ends[0], f"{name}_high": ends[1], "unit": joint.unit}
        yield {**row, "reached_low": float(reached["low"]), "reached_high": float(reached["high"])}


def workspace_rows(
    twin: Twin, samples: Workspace, repaired: JointTerms, pace: Pace, more: Iterable[Series]
) -> Iterator[Row]:
    """Both mechanisms at each sample: positions, transmission, diagonal terms, errors of efforts, and further columns.

    Args:
        repaired: Terms of the serial model with other constants.
        pace: Rates and accelerations of the motions.
        more: Further quantities at each sample.
    """
    units = units_of(twin)[0]
    motors = list(twin.motors)
    T, x = samples.closed.transmission[:, motors], samples.x[samples.common]
    nothing = np.full(len(x), np.nan)
    series = [("position", name, units[k], x[:, k], x[:, k], nothing) for k, name in enumerate(twin.names)]
    series += _term_series(twin, samples, repaired)
    series += _error_series(twin, samples, repaired, pace)
    for a, motor in enumerate(twin.motor_names):
        for k, name in enumerate(twin.names):
            if np.abs(T[:, a, k]).max() > MUCH:
                series.append(("transmission", f"{motor} / {name}", "-", T[:, a, k], nothing, nothing))
    series += more
    for quantity, part, unit, *sides in series:
        for sample, values in enumerate(zip(*sides, strict=True)):
            row = {"sample": sample, "quantity": quantity, "part": part, "unit": unit}
            yield row | dict(zip(("closed", "serial", "repaired"), map(float, values), strict=True))


def _kinematic_rows(twin: Twin, samples: Workspace) -> Iterator[Row]:
    """Distances between corresponding bodies, and the reached part of the workspace."""
    for k, name in enumerate(twin.names):
        for quantity, unit, error in zip(
            ("body position", "body angle"), ("m", "rad"), samples.pose_error[:, k].T, strict=True
        ):
            yield _row({"quantity": quantity, "part": name, "unit": unit, "peak": 1.0}, {PLAIN: error})
    shares = {
        f"reached by {space.mechanism.model.path.name}": float(reached.mean())
        for space, reached in ((twin.closed, samples.closed_reaches), (twin.serial, samples.serial_reaches))
    }
    for quantity, share in shares.items():
        note = f"share of {len(samples.x)} samples within the limits of either file"
        yield {**_row({"quantity": "workspace", "part": quantity, "unit": "-", "peak": share}, {}), "note": note}


def _term_series(twin: Twin, samples: Workspace, repaired: JointTerms) -> Iterator[Series]:
    """Diagonal terms of both, and of the repaired stand-in, at each sample."""
    units, efforts, _ = units_of(twin)
    for k, name in enumerate(twin.names):
        for quantity, term in TERMS.items():
            sides = [getattr(side, term)[:, k] for side in (samples.closed, samples.serial, repaired)]
            if sides[0].ndim == 2:
                per = "s²" if term == "mass" else "s"
                own, other, after = (side[:, k] for side in sides)
                yield quantity, name, f"{efforts[k]} {per}/{units[k]}", own, other, after
            elif term == "still" or np.abs(sides[:2]).max() > 0:
                own, other, after = sides
                yield quantity, name, efforts[k], own, other, after


def _error_series(twin: Twin, samples: Workspace, repaired: JointTerms, pace: Pace) -> Iterator[Series]:
    """Errors of the motors' efforts at each sample, root mean square over rates and accelerations of a given pace.

    Relative to the largest such mean of the efforts over the samples. Products of velocities are left out.
    """
    T = samples.closed.transmission[:, list(twin.motors)]
    inverse = to_motors(T)
    pulled = (pace.pull * (samples.x[samples.common] - pace.middle))[..., None]

    def squares(terms: JointTerms, other: JointTerms | None = None) -> Array:
        mass, damping, still = (
            getattr(terms, name) - (getattr(other, name) if other else 0.0) for name in ("mass", "damping", "still")
        )
        steady = inverse @ (still[..., None] + mass @ pulled)
        parts = (inverse @ mass * pace.accelerations, inverse @ damping * pace.rates, steady)
        return np.asarray(sum((part**2).sum(axis=2) for part in parts))

    largest = np.sqrt(squares(samples.closed).max(axis=0))
    plain, after = (np.sqrt(squares(side, samples.closed)) for side in (samples.serial, repaired))
    for a, motor in enumerate(twin.motor_names):
        peak = largest[a] if largest[a] > 0 else np.nan
        yield EFFORT_ERROR, motor, "-", np.full(len(T), np.nan), plain[:, a] / peak, after[:, a] / peak


def _row(row: Row, errors: Mapping[str, Array]) -> Row:
    known = _errors(errors, float(row["peak"]))
    return {**row, "motion": "", **known, "verdict": MEASURED, "note": ""}


def _errors(errors: Mapping[str, Array], peak: float) -> dict[str, float]:
    """Largest and root mean square of errors over a peak, by the way of repair."""
    figures = {f"{way}_{figure}": np.nan for way in WAYS for figure in ("max", "rms")}
    for way, error in errors.items():
        if peak > 0:
            figures[f"{way}_max"] = float(np.abs(error).max()) / peak
            figures[f"{way}_rms"] = root_mean_square(error) / peak
    return figures
