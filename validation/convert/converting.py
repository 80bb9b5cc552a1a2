"""Conversion of a model to another format: write, read back, prove."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.powers import scale_of
from loopcheck.analytic.kinematics.closing import allowed, with_closing
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.random_states import RandomStates, random_states
from loopcheck.robots.arrays import JointPositions
from loopcheck.robots.catalogue import LOOP_DIALECTS
from loopcheck.robots.errors import (
    HarnessError,
    LoopClosureError,
    MechanismError,
    NotFoundError,
    OutputError,
    SingularityError,
)
from loopcheck.robots.formats import carried
from loopcheck.robots.formats.carried import Carried, carried_by, lost_by_mjcf
from loopcheck.robots.formats.linkage_from_mechanism import closed_exactly, linkage_of
from loopcheck.robots.formats.losses import Loss
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.mjcf_patch import moved
from loopcheck.robots.formats.mjcf_writer import mjcf_text
from loopcheck.robots.formats.model_file import ModelFile, file_hash, files_of
from loopcheck.robots.formats.registry import format_of
from loopcheck.robots.formats.sdf_writer import sdf_text
from loopcheck.robots.formats.urdf import refusal_by_mujoco
from loopcheck.robots.formats.urdf_writer import urdf_texts
from loopcheck.robots.formats.usd_writer import usd_text, write_without_doubles
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import size
from loopcheck.validation.common import sources, tolerances
from loopcheck.validation.common.targets import passive_case_of
from loopcheck.validation.convert.conversion import (
    AGREE,
    DISAGREE,
    INFORMATIONAL,
    MISSING,
    QUANTITIES,
    Proof,
    Row,
    proof,
)
from loopcheck.validation.gate.closed_poses import OPEN, STARTS, closed_poses

FLOATS = 2e-6
"""Largest error of a quantity from the floats of a format, relative to its scale [-]."""
SAMPLES = 100
"""Number of random closed states."""
ENGINE = "mujoco/kkt"
"""Route that computes the efforts of the converted file too."""
EFFORTS = f"efforts by {ENGINE}"
SCHEMA = "loopcheck.convert/2"
STEPS = 5
"""Number of steps of a conversion: read, find closed poses, write and read back, compare, compare by an engine."""


class Format(NamedTuple):
    """A format that a mechanism can be written in."""

    name: str
    carried: Callable[[Mechanism], Carried]
    texts: Callable[[Mechanism, Path, JointPositions, str], Mapping[Path, bytes]]
    """Files by path, of the carried part, the path of the model, a closed pose, and a dialect of loops."""
    readers: str
    """Programs that read the file back."""
    closes_loops: bool = False
    """Whether all loops are closed in the pose of the file."""
    write_rounded: Callable[[Path, Path], None] | None = None
    """Writes a copy of the file with standard attributes alone, if loopcheck adds digits to them."""


def _mjcf_files(mechanism: Mechanism, path: Path, _: JointPositions, __: str) -> dict[Path, bytes]:
    return {path: mjcf_text(mechanism).encode()}


def _urdf_files(mechanism: Mechanism, path: Path, _: JointPositions, dialect: str) -> dict[Path, bytes]:
    urdf, loops = urdf_texts(mechanism, dialect)
    return {path: urdf.encode(), **({path.with_suffix(".yaml"): loops.encode()} if loops else {})}


def _sdf_files(mechanism: Mechanism, path: Path, closed: JointPositions, _: str) -> dict[Path, bytes]:
    return {path: sdf_text(replace(linkage_of(mechanism, closed), path=path)).encode()}


def _usd_files(mechanism: Mechanism, path: Path, closed: JointPositions, _: str) -> dict[Path, bytes]:
    return {path: usd_text(replace(linkage_of(mechanism, closed), path=path)).encode()}


def _copied(mechanism: Mechanism, path: Path, _: JointPositions, __: str) -> dict[Path, bytes]:
    return {path: moved(mechanism.model, path.absolute().parent)}


MJCF = Format("MJCF", lost_by_mjcf, _mjcf_files, "MuJoCo reads tree and loops")
COPY = Format("MJCF", lambda mechanism: Carried(mechanism, ()), _copied, "MuJoCo reads tree and loops")
"""An MJCF as the user wrote it: only paths of included files and of assets change, if the folder does."""
URDF = Format(
    "URDF with loop file",
    partial(carried_by, carried.URDF),
    _urdf_files,
    "MuJoCo's reader of URDF reads the tree; loopcheck reads the inertias, and the loops, because no engine reads them",
)
SDF = Format(
    "SDF",
    partial(carried_by, carried.SDF),
    _sdf_files,
    "loopcheck reads tree and loops, because no engine here reads loops of SDF",
    closes_loops=True,
)
USD = Format(
    "USD",
    partial(carried_by, carried.USD),
    _usd_files,
    "loopcheck reads tree and loops through usd-core, from the double beside each standard attribute",
    write_rounded=write_without_doubles,
)
FORMATS: Mapping[str, Format] = {".xml": MJCF, ".mjcf": MJCF, ".urdf": URDF, ".sdf": SDF, ".usda": USD, ".usd": USD}
"""Formats by the suffix of the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A finished conversion."""

    target: str
    files: tuple[Path, ...]
    proof_file: Path
    result: Proof
    start: str
    """Pose around which the compared states lie, in words."""
    loops: int
    """Number of closures and couplings of the input."""


def convert(target: str, out: Path, *, lossless: bool, seed: int, loops: str = LOOP_DIALECTS[0]) -> Conversion:
    """Convert a model, and compare the output with it on its closed loops; see `conversion_steps`."""
    return finished(conversion_steps(target, out, lossless=lossless, seed=seed, loops=loops))


def finished(steps: Iterable[Conversion | None]) -> Conversion:
    """The conversion after all steps."""
    return next(done for done in steps if done is not None)


def conversion_steps(
    target: str, out: Path, *, lossless: bool, seed: int, loops: str = LOOP_DIALECTS[0]
) -> Iterator[Conversion | None]:
    """Yield None after each of the `STEPS`, and the conversion after the last.

    Args:
        target: See `robot_of`.
        out: Path of the output; its suffix states the format.
        lossless: Whether to refuse a conversion that loses an element.
        seed: Seed of the random states.
        loops: Dialect of the loops of a URDF, one of `LOOP_DIALECTS`.

    Raises:
        MechanismError: If the input is bad, or an element is lost despite `lossless`.
        OutputError: If the output would replace a file of the input, or cannot be written.
    """
    if out.suffix.lower() not in FORMATS:
        raise NotFoundError("suffix of the output", out.suffix, FORMATS)
    _want_new(out, [Path(target)])
    case = passive_case_of(target)
    form = _format(out, case.mechanism)
    yield None
    kept, losses = form.carried(case.mechanism)
    if lossless and losses:
        raise MechanismError(f"{out}: --lossless: {form.name} does not carry {'; '.join(map(in_words, losses))}")
    states, start = closed_states(kept, case.guess, seed=seed)
    yield None
    if form.closes_loops:
        kept, opening = closed_exactly(kept, states.start)
        if opening:
            is_rounding = opening <= allowed(0.0, case.mechanism) * size(case.mechanism)
            kept = with_closing(kept, [states.start])
            states = random_states(kept, states.start, count=SAMPLES, seed=seed)
            gaps = f"gaps of loops, up to {opening:.1e} m or rad: closed in the pose of the file"
            losses = (*losses, Loss(kind="setting" if is_rounding else "mechanism", tag="gaps", words=gaps))
    files = {path.absolute(): text for path, text in form.texts(kept, out, states.start, loops).items()}
    for path in files:
        _want_new(path, files_of(case.mechanism.model.path))
    proof_file = out.absolute().with_suffix(".proof.json")
    try:
        proof_file.parent.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_bytes(text)
        read = replace(read_mechanism(ModelFile(path=out.absolute())), closing=kept.closing)
        converted = replace(case, mechanism=read)
        yield None
        result = proof(case.mechanism, kept, converted.mechanism, states, losses)
        result = replace(result, rows=_fitting(result.rows, kept))
        yield None
        rounded = _rounded(form, out, kept, states) if form.write_rounded else ()
        result = replace(result, rows=(*result.rows, *_by_engine(result, case, (kept, converted), states), *rounded))
        record = {
            "schema": SCHEMA,
            "exit_status": result.status,
            "input": {"target": target, "files": _hashes(files_of(case.mechanism.model.path))},
            "output": {"format": form.name, "files": _hashes(files)},
            "states": {"count": SAMPLES, "seed": seed, "distance from singular poses": states.distance},
            "states lie around": start,
            "read by": form.readers + _mujoco_alone(form, out),
            "computed by": f"analytic/noc for input and output; {ENGINE} for the output",
            "comparison": [_as_json(row) for row in (*result.rows, result.effect)],
            "losses": [asdict(loss) for loss in losses],
            "not compared": list(case.mechanism.left_out),
            "versions": {name: version(name) for name in ("loopcheck", "mujoco", "numpy")},
        }
        proof_file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror}") from error
    yield Conversion(
        target=target,
        files=tuple(files),
        proof_file=proof_file,
        result=result,
        start=start,
        loops=len(case.mechanism.closures),
    )


def _format(out: Path, mechanism: Mechanism) -> Format:
    """The format of the output; an MJCF as it is written if the mechanism is read from it without changes."""
    form, model = FORMATS[out.suffix.lower()], mechanism.model
    is_unchanged = not (model.overrides or model.actuated or mechanism.wrenches)
    return COPY if form is MJCF and is_unchanged and format_of(model.path) is None else form


def in_words(loss: Loss) -> str:
    """A loss with its kind and, in a file that names it, its place."""
    return f"{loss.kind}: {f'{loss.place}: ' if loss.path else ''}{loss}"


def _mujoco_alone(form: Format, out: Path) -> str:
    """Whether MuJoCo's own reader takes a URDF, as an addition to a sentence."""
    refusal = refusal_by_mujoco(out) if form is URDF else ""
    return f"; MuJoCo's own reader refuses the tree: {refusal}" if refusal else ""


def closed_states(mechanism: Mechanism, guess: JointPositions, *, seed: int) -> tuple[RandomStates, str]:
    """Random closed states around the pose of the file, or around another pose if the loops do not close from there.

    Returns:
        The states, and the pose that they lie around, in words.

    Raises:
        LoopClosureError: If the loops close from no start.
        SingularityError: If too few regular poses are found.
    """
    try:
        return random_states(mechanism, guess, count=SAMPLES, seed=seed), "the pose of the file"
    except (LoopClosureError, SingularityError) as failure:
        found, last = closed_poses(mechanism), failure
    for q in found.q:
        try:
            return random_states(
                mechanism, q, count=SAMPLES, seed=seed
            ), f"another pose, because from the pose of the file: {last}"
        except (LoopClosureError, SingularityError):
            continue
    if len(found.q) or not isinstance(last, LoopClosureError):
        raise last
    worst, residual = max(found.residual.items(), key=lambda pair: pair[1])
    raise LoopClosureError(
        f"{mechanism.model.path}: loops must close from some start, got a residual of {residual:.1e} of the size at "
        f"'{worst}' in the best of {STARTS} starts. Run: loopcheck gate {mechanism.model.path.name}",
        residual=residual,
        tolerance=OPEN,
        time=0.0,
    )


def _rounded(form: Format, out: Path, kept: Mechanism, states: RandomStates) -> Iterator[Row]:
    """The comparison with the output as other programs read it, from standard attributes alone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / out.name
        if form.write_rounded is not None:
            form.write_rounded(out, copy)
        read = replace(read_mechanism(ModelFile(path=copy)), closing=kept.closing)
        result = proof(kept, kept, read, states, (), FLOATS)
    for row in result.rows:
        named = row._replace(quantity=f"from floats: {row.quantity}")
        amplified = row.verdict == DISAGREE and FLOATS < row.error <= FLOATS / states.distance
        if amplified and row.quantity in QUANTITIES:
            note = f"rounding to floats, amplified at poses with a conditioning of {states.distance:.1g}"
            named = named._replace(verdict=INFORMATIONAL, note=note)
        yield named


def _fitting(rows: tuple[Row, ...], kept: Mechanism) -> tuple[Row, ...]:
    """The rows; a difference that the loops of the input leave open is not judged."""
    note = f"the loops of the input close to {kept.closing.accuracy:.1e} of its size only: its numbers are rounded"
    return tuple(
        row._replace(verdict=INFORMATIONAL, note=note)
        if row.verdict == DISAGREE and row.quantity in (*QUANTITIES, EFFORTS) and row.error <= allowed(0.0, kept)
        else row
        for row in rows
    )


def _want_new(out: Path, inputs: Iterable[Path]) -> None:
    if out.resolve() in {path.resolve() for path in inputs}:
        raise OutputError(f"{out}: must not be a file of the input. Name another output")


def _by_engine(result: Proof, original: Case, output: tuple[Mechanism, Case], states: RandomStates) -> tuple[Row, ...]:
    """Efforts of the converted file by an engine, against the reference on the original.

    Args:
        output: The part of the original that the format carries, and the file that was read back.
    """
    name, (carried, converted) = EFFORTS, output
    limit = tolerances.registered()[ENGINE].relative_error or 0.0
    if not carried.actuators or any(row.verdict != AGREE for row in result.rows if row.quantity.startswith("names")):
        return ()
    places = [[joint.name for joint in carried.joints].index(joint.name) for joint in converted.mechanism.joints]
    kinds = ("q", carried.q_slices), ("dofs", carried.dof_slices)
    order = {kind: np.concatenate([np.arange(s[j].start, s[j].stop) for j in places]) for kind, s in kinds}
    motion = _samples(states.q[:, order["q"]], states.qd[:, order["dofs"]], states.qdd[:, order["dofs"]])
    mine = _samples(states.q, states.qd, states.qdd)
    reference = sources.load("analytic/noc").compute_efforts(replace(converted, mechanism=carried), mine).effort
    try:
        theirs = _by_name(converted, motion, carried)
    except HarnessError as failure:
        return (Row(name, float("nan"), limit, MISSING, str(failure)),)
    scale = scale_of(State(mechanism=carried, q=states.q, qd=states.qd), states.qdd).scale
    error = float(np.max(np.abs(theirs - reference) / np.maximum(scale, np.finfo(float).tiny)))
    (row,) = _fitting((Row(name, error, limit, AGREE if error <= limit else DISAGREE),), carried)
    if row.verdict == INFORMATIONAL:
        return (row,)
    if error > limit:
        with suppress(HarnessError):
            change = np.abs(theirs - _by_name(original, mine, carried)) / np.maximum(scale, np.finfo(float).tiny)
            if change.max() <= limit:
                return (Row(name, error, limit, INFORMATIONAL, f"{ENGINE} computes the same for the input"),)
    if limit < error <= limit / states.distance:
        note = f"round-off of {ENGINE}, amplified at poses with a conditioning of {states.distance:.1g}"
        return (Row(name, error, limit, INFORMATIONAL, note),)
    return (Row(name, error, limit, AGREE if error <= limit else DISAGREE),)


def _by_name(case: Case, motion: Motion, carried: Mechanism) -> Any:
    """Efforts by the engine [N or N m], of the carried actuators in their order: a file may have others as well."""
    effort = sources.load(ENGINE).compute_efforts(case, motion).effort
    here = [actuator.name for actuator in case.mechanism.actuators]
    return effort[:, [here.index(actuator.name) for actuator in carried.actuators]]


def _samples(q: Any, qd: Any, qdd: Any) -> Motion:
    """States as the samples of a motion, for routes that compute each sample by itself."""
    empty = np.zeros((0, 0))

    def still(_: Any) -> Drive:
        return Drive(empty, empty, empty)

    t = np.arange(float(len(q)))
    return Motion(t=t, q=q, qd=qd, qdd=qdd, law=still, assemble=lambda _: _samples(q, qd, qdd))


def _hashes(paths: Iterable[Path]) -> dict[str, str]:
    return {path.name: file_hash(path) for path in paths}


def _as_json(row: Row) -> dict[str, Any]:
    error = row.error if np.isfinite(row.error) else None
    return {**row._asdict(), "error": error}
