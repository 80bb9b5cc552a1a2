"""Reading of a model of the atlas: the kind of the compiled mechanism, and the case of its check."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.analytic.kinematics.mobility import mobility
from loopcheck.analytic.motion.laws import AUTOMATIC
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError, MechanismError, NotFoundError
from loopcheck.robots.formats.mjcf import CONNECT, SITE, WELD, compile_model
from loopcheck.robots.formats.mjcf_paths import equalities_enabled
from loopcheck.robots.formats.model_file import ModelFile, files_of
from loopcheck.robots.robot import DEFAULT, GIVEN, Case, MotionSpec, Robot, make_case, modes
from loopcheck.validation.public_models.manifest import AtlasModel

POSE = "pose"
"""Mode of a model with an initial pose from the manifest."""
LOOPS, COUPLINGS, NONE = "loops", "couplings", "none"
CLASSES = (LOOPS, COUPLINGS, NONE)
"""Kind of closure of a model: connect or weld, only joint or tendon, or no closure."""
DIGITS = 5
"""Significant digits for equality of two models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModel:
    """Properties of a model."""

    kind: str
    """One of `CLASSES`."""
    bodies: int
    actuators: int
    fingerprint: str
    """Digest of its masses, joints and closures, independent of names."""
    loops: int | None = None
    """Number of independent dofs; None if the equations of motion do not cover the model."""
    case: Case | None = None
    """Case with the gravity of its file; None if it cannot be computed."""
    reason: str = ""
    """Reason for a missing case."""


def read_model(model: AtlasModel, path: Path) -> ReadModel:
    """Properties of a model; runs in a worker process.

    Args:
        model: Entry of the manifest.
        path: Path of its MJCF.

    Raises:
        MechanismError: If the MJCF does not compile, or names a file outside its repository.
    """
    root = path.parents[model.path.count("/")]
    _want_inside(path, root)
    compiled = compile_model(ModelFile(path=path))
    facts = ReadModel(
        kind=_kind(compiled),
        bodies=int(compiled.nbody) - 1,  # MuJoCo counts the world as body 0
        actuators=len(model.actuated) or len(compiled.actuator_trntype),
        fingerprint=_fingerprint(compiled),
    )
    try:
        case = _case(model, path)
    except HarnessError as error:
        return replace(facts, reason=str(error))
    return replace(facts, loops=mobility(case.mechanism, case.guess).loops, case=case)


def _case(model: AtlasModel, path: Path) -> Case:
    robot = Robot(
        name=model.id,
        folder=path.parent,
        title=path.name,
        mjcf=path.name,
        motion=MotionSpec(law=AUTOMATIC),
        source=f"the file {path.name}",
        actuated=model.actuated,
    )
    mechanism = robot.mechanism()
    known = modes(mechanism)
    mode = model.start or next(iter(known))
    if mode not in known:
        raise NotFoundError(f"keyframe of {path.name}", mode, known)
    gravity = tuple(map(float, mechanism.gravity))
    robot = robot.model_copy(update={"gravities": {GIVEN: gravity}})
    case = make_case(robot, variant=DEFAULT, mode=mode, configuration=GIVEN)
    return _in_pose(case, model.pose) if model.pose else case


def _in_pose(case: Case, pose: Mapping[str, tuple[float, ...]]) -> Case:
    """The case with another start; joints that are not in the pose keep their positions."""
    mechanism, q = case.mechanism, case.guess.copy()
    columns = {joint.name: place for joint, place in zip(mechanism.joints, mechanism.q_slices, strict=True)}
    for name, positions in pose.items():
        if name not in columns:
            raise NotFoundError(f"joint of {case.robot.title}", name, columns)
        size = columns[name].stop - columns[name].start
        if len(positions) != size:
            raise MechanismError(
                f"{case.robot.title}: joint '{name}' must have {size} positions, got {len(positions)} numbers"
            )
        q[columns[name]] = positions
    return replace(case, mode=POSE, mechanism=replace(mechanism, keyframes={**mechanism.keyframes, POSE: q}))


def _want_inside(path: Path, root: Path) -> None:
    """Refuse a model that names a file outside its repository, before it is opened."""
    for name in files_of(path):
        if not (path.parent / name).resolve().is_relative_to(root.resolve()):
            raise MechanismError(f"{path}: files must be in its own repository, got '{name}'")


def _kind(compiled: Any) -> str:
    """Kind of closures of a compiled model; a weld to a hand-moved body is no loop."""
    active = [i for i in range(compiled.neq) if compiled.eq_active0[i] and equalities_enabled(compiled)]
    rigid = [i for i in active if compiled.eq_type[i] in (CONNECT, WELD)]
    if any(not any(compiled.body_mocapid[b] >= 0 for b in _bodies(compiled, i)) for i in rigid):
        return LOOPS
    return COUPLINGS if len(active) > len(rigid) else NONE


def _bodies(compiled: Any, equality: int) -> list[int]:
    ids = [int(compiled.eq_obj1id[equality]), int(compiled.eq_obj2id[equality])]
    return [int(compiled.site_bodyid[k]) for k in ids] if compiled.eq_objtype[equality] == SITE else ids


def _fingerprint(compiled: Any) -> str:
    """Digest of the numbers that make a mechanism, in an order that does not depend on how its bodies are listed."""
    closures = [i for i in range(compiled.neq) if compiled.eq_active0[i]]
    numbers = (
        sorted(_text(mass) for mass in compiled.body_mass if mass > 0),
        sorted(
            (int(kind), *(_text(abs(x)) for x in axis))
            for kind, axis in zip(compiled.jnt_type, compiled.jnt_axis, strict=True)
        ),
        sorted((int(compiled.eq_type[i]), *(_text(abs(x)) for x in _places(compiled, i))) for i in closures),
    )
    return hashlib.sha256(repr(numbers).encode()).hexdigest()


def _places(compiled: Any, equality: int) -> Array:
    """Numbers of an equality: its points, or the polynomial between two coordinates."""
    if compiled.eq_objtype[equality] != SITE:
        return np.asarray(compiled.eq_data[equality][:10])
    return np.concatenate(
        [compiled.site_pos[compiled.eq_obj1id[equality]], compiled.site_pos[compiled.eq_obj2id[equality]]]
    )


def _text(number: float) -> str:
    return f"{round(float(number), DIGITS + 3):.{DIGITS}g}"
