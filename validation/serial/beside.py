"""Main errors of a serial model against its closed twin, for `loopcheck check`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loopcheck.analytic.transmission.constants import Kind, fitted_constants
from loopcheck.analytic.transmission.motions import choosing_motions, efforts_along, random_course
from loopcheck.analytic.transmission.twin import make_twin, want_driven
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import DOFS, Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.check.closed_twins import AS_IT_IS, AT_LIMITS, REPAIRED
from loopcheck.validation.common.targets import passive_case_of
from loopcheck.validation.serial.comparison import found_box, sampled_workspace
from loopcheck.validation.serial.rows.limit_rows import BROKEN, limit_rows
from loopcheck.validation.serial.rows.rows import AT_MOTOR, CONSTANT, PLAIN, effort_rows

POSES = 32
"""Of the workspace."""


def closed_twin(serial: Case, paths: Sequence[Path]) -> dict[str, Any]:
    """The closed twin of a serial model among some files, and the errors of the model against it.

    A twin closes loops and has all joints of the model, by name and kind, on bodies of the same names.

    Returns:
        Empty without a twin; otherwise `file`, `model`, `motors` (figures of each), and `reason` for missing figures.
    """
    for path in paths:
        try:
            closed = passive_case_of(path)
        except HarnessError:
            continue  # not a model that can be read
        if _is_closed_twin(closed.mechanism, serial.mechanism):
            names = {"file": path.name, "model": serial.mechanism.model.path.name}
            try:
                return {**names, "motors": _figures(closed, serial)}
            except HarnessError as error:
                return {**names, "motors": [], "reason": str(error)}
    return {}


def _is_closed_twin(closed: Mechanism, serial: Mechanism) -> bool:
    joints = [
        {
            (joint.name, joint.kind, mechanism.bodies[joint.body].name)
            for joint in mechanism.joints
            if DOFS[joint.kind] == 1
        }
        for mechanism in (closed, serial)
    ]
    return bool(closed.rigid_closures) and joints[1] <= joints[0]


def _figures(closed: Case, serial: Case) -> list[Mapping[str, Any]]:
    """Errors of the motors' efforts on a random motion, and the efforts that the model's limits require."""
    twin = make_twin(closed.mechanism, closed.guess, serial.mechanism, serial.guess, {})
    want_driven(twin)
    samples, box = sampled_workspace(twin, POSES, 0), found_box(twin)
    if isinstance(samples, str) or isinstance(box, str):
        raise HarnessError(samples if isinstance(samples, str) else str(box))
    motion = efforts_along(twin, "random 0", random_course(box, 0))
    choice = [efforts_along(side, name, course) for name, side, course in choosing_motions(twin, box)]
    fitted = fitted_constants(twin, box, (), choice, {Kind.ARMATURE})
    ways = {PLAIN: motion.serial, CONSTANT: motion.with_constants(fitted.mechanism)}
    rows = [row for row in effort_rows(twin, motion, ways, None) if row["quantity"] == AT_MOTOR]
    asked = {row["part"]: row["ratio"] for row in limit_rows(twin, samples, {}) if row["kind"] == BROKEN}
    return [
        {
            "motor": row["part"],
            "peak": float(row["peak"]),
            "unit": row["unit"],
            AS_IT_IS: float(row["plain_rms"]),
            REPAIRED: float(row["constant_rms"]),
            **({AT_LIMITS: asked[row["part"]]} if row["part"] in asked else {}),
        }
        for row in rows
    ]
