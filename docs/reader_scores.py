"""Score other readers on public files: `python -m docs.reader_scores REMOTE [BIN] [PATTERN ...]`.

REMOTE is the beginning of the addresses of the repositories. BIN are the folders of programs of environments, with `:`
between them, that have `newton` with `mujoco-warp`, `usd-core` and `newton-usd-schemas`, `urdf-usd-converter`, and
`mujoco-usd-converter`; `-` leaves them out.
Writes `docs/conversions/readers.csv`. The readers of MuJoCo, Pinocchio, Drake and Newton make a tree; its inverse
dynamics at closed poses at rest, with the accelerations of random efforts of the closed loop, is compared with these
efforts, once with the loops that they read, once with the loops of loopcheck. Where a reader of MJCF is wrong, the file
is changed until it is right, which names the cause. The robots of the catalogue are scored too.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import execnet
import numpy as np
import pandas as pd
from pebble import ProcessExpired, ProcessPool

from docs import newton_reader
from docs.conversion_tables import FOLDER, LIMIT, chosen, named, short
from loopcheck.analytic.dynamics.powers import powers_along, scale_of, tree_inertia
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.random_states import RandomStates
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.catalogue import names as robots
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import passive_case_of
from loopcheck.validation.convert.conversion import proof
from loopcheck.validation.convert.converting import FLOATS, closed_states, convert
from loopcheck.validation.public_models.fetching import FetchError, fetched
from loopcheck.validation.public_models.git import GitError

FILE = FOLDER / "readers.csv"
SHAPES = ("visual", "collision")
Terms = tuple[Array, int]
"""Efforts of the joints of a tree, and the number of loops that the reader keeps."""


class NotScored(Exception):
    """A file that a reader cannot be scored on, with the reason."""


def mujoco_urdf(path: Path, mechanism: Mechanism, q: Array, qdd: Array) -> Terms:
    """MuJoCo's reader of URDF, as it is, without shapes."""
    import mujoco

    names = [joint.name for joint in mechanism.joints]
    root = ET.fromstring(path.read_bytes())
    for link in root.iter("link"):
        for shape in [child for child in link if child.tag in SHAPES]:
            link.remove(shape)
    m = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS
    d = mujoco.MjData(m)
    ids = [_place([m.joint(j).name for j in range(m.njnt)], name) for name in names]
    effort = np.zeros(q.shape)
    for k in range(len(q)):
        d.qpos[:], d.qvel[:], d.qacc[:] = 0.0, 0.0, 0.0
        d.qpos[m.jnt_qposadr[ids]], d.qacc[m.jnt_dofadr[ids]] = q[k], qdd[k]
        mujoco.mj_inverse(m, d)
        effort[k] = d.qfrc_inverse[m.jnt_dofadr[ids]]
    return effort, int(m.neq)


def pinocchio(path: Path, mechanism: Mechanism, q: Array, qdd: Array) -> Terms:
    """Pinocchio's readers of URDF and MJCF."""
    import pinocchio as pin

    names = [joint.name for joint in mechanism.joints]
    model = pin.buildModelFromUrdf(str(path)) if path.suffix == ".urdf" else pin.buildModelFromMJCF(str(path))
    data = model.createData()
    joints = [model.joints[_place(list(model.names), name)] for name in names]
    effort = np.zeros(q.shape)
    for k in range(len(q)):
        full, rates = pin.neutral(model), np.zeros(model.nv)
        for joint, position, rate in zip(joints, q[k], qdd[k], strict=True):
            if joint.nq == joint.nv == 1:
                full[joint.idx_q] = position
            elif joint.nv == 1:
                full[joint.idx_q : joint.idx_q + 2] = np.cos(position), np.sin(position)
            else:
                raise NotScored(f"a joint has {joint.nv} dofs")
            rates[joint.idx_v] = rate
        tau = pin.rnea(model, data, full, np.zeros(model.nv), rates)
        effort[k] = tau[[joint.idx_v for joint in joints]]
    return effort, 0


def drake(path: Path, mechanism: Mechanism, q: Array, qdd: Array) -> Terms:
    """Drake's readers of URDF and MJCF."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    names = [joint.name for joint in mechanism.joints]
    plant: Any = MultibodyPlant(0.0)
    Parser(plant).AddModels(path)
    plant.Finalize()
    for body in plant.GetFloatingBaseBodies():
        if path.suffix != ".urdf":
            raise NotScored("a floating base")
        rooted: Any = MultibodyPlant(0.0)
        Parser(rooted).AddModels(path)
        rooted.WeldFrames(rooted.world_frame(), rooted.GetBodyByName(plant.get_body(body).name()).body_frame())
        rooted.Finalize()
        plant = rooted
        break
    context, effort = plant.CreateDefaultContext(), np.zeros(q.shape)
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    chosen = [joints[_place([joint.name() for joint in joints], name)] for name in names]
    if any(joint.num_velocities() != 1 for joint in chosen):
        raise NotScored("a joint has another number of dofs")
    for k in range(len(q)):
        positions, rates = np.zeros(plant.num_positions()), np.zeros(plant.num_velocities())
        for joint, position, rate in zip(chosen, q[k], qdd[k], strict=True):
            positions[joint.position_start()], rates[joint.velocity_start()] = position, rate
        plant.SetPositions(context, positions)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        tau = plant.CalcInverseDynamics(context, rates, forces)
        effort[k] = tau[[joint.velocity_start() for joint in chosen]]
    return effort, plant.num_constraints()


def newton(path: Path, mechanism: Mechanism, q: Array, qdd: Array, *, exact: bool = False) -> Terms:
    """Newton's importers, in their own Python; `exact` switches its corrections of inertias off."""
    names, slides = zip(*((joint.name, joint.kind == "slide") for joint in mechanism.joints), strict=True)
    if path.suffix == ".xml":
        q = q - mechanism.rest_position  # Newton counts joints of MJCF from the pose of the file
    elif path.suffix == ".usda":
        names = _prims(path, names)
    channel = _newton()
    channel.send((str(path), exact, names, slides, q.tolist(), qdd.tolist()))
    answer = channel.receive(LIMIT)
    if isinstance(answer, str):
        raise NotScored(answer)
    return np.array(answer[0]), int(answer[1])


def _prims(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Paths of the joints of a USD that loopcheck wrote, without the first `/`."""
    from pxr import Usd

    stage = Usd.Stage.Open(str(path))
    prims = [prim for prim in stage.Traverse() if prim.GetTypeName().endswith("Joint")]
    places = {prim.GetAttribute("loopcheck:name").Get(): str(prim.GetPath())[1:] for prim in prims}
    return tuple(places.get(name, name) for name in names)


@cache
def _newton() -> Any:
    """Channel to the Python of Newton."""
    python = _elsewhere("newton")[0] / "python"
    return execnet.makegateway(f"popen//python={python}").remote_exec(newton_reader)


PROGRAMS: list[Path] = []
"""Folders of programs of other environments, in which the packages are looked for."""
Reader: TypeAlias = Callable[[Path, Mechanism, Array, Array], Terms]
READERS: Mapping[str, tuple[str, Reader]] = {
    "MuJoCo's reader of URDF": ("mujoco", mujoco_urdf),
    "Pinocchio's reader of URDF": ("pin", pinocchio),
    "Drake's reader of URDF": ("drake", drake),
    "Newton's importer of URDF": ("newton", newton),
    "Pinocchio's reader of MJCF": ("pin", pinocchio),
    "Drake's reader of MJCF": ("drake", drake),
    "Newton's importer of MJCF": ("newton", newton),
    "Newton's importer of USD": ("newton", newton),
}
"""Package and function of each reader; its last word is the format."""
CONVERTERS = {
    "urdf-usd-converter": ("URDF", "urdf_usd_converter"),
    "mujoco-usd-converter": ("MJCF", "mujoco_usd_converter"),
}


def _split_joints(root: ET.Element) -> None:
    """Give each joint of MJCF a body of its own, with a mass that changes no effort above round-off."""
    for body in list(root.iter("body")):
        joints = body.findall("joint")
        content = [child for child in body if child not in joints]
        for child in list(body):
            body.remove(child)
        inner = body
        for k, joint in enumerate(joints):
            if k:
                ET.SubElement(inner, "inertial", pos="0 0 0", mass="1e-12", diaginertia="1e-13 1e-13 1e-13")
                inner = ET.SubElement(inner, "body", name=f"{body.get('name')} {k}")
            inner.append(joint)
        inner.extend(content)


def _without(tag: str, root: ET.Element) -> None:
    for parent in list(root.iter()):
        for child in parent.findall(tag):
            parent.remove(child)


def _without_gravity(root: ET.Element) -> None:
    for option in root.iter("option"):
        option.attrib.pop("gravity", None)


Change: TypeAlias = tuple[Callable[[ET.Element], None], Callable[[Mechanism], Mechanism]]
CAUSES: Mapping[str, Change] = {
    "bodies with several joints": (_split_joints, lambda mechanism: mechanism),
    "gravity of the file is not read": (_without_gravity, lambda m: replace(m, gravity=np.array([0.0, 0.0, -9.81]))),
    "tendons are not read": (
        partial(_without, "tendon"),
        lambda mechanism: replace(mechanism, tendons=(), point_springs=()),
    ),
}
"""Causes of wrong efforts: a change of the MJCF, and the same change of our mechanism."""
RAISED: Mapping[str, Change] = {"small inertias are raised": (lambda root: None, lambda mechanism: mechanism)}
RIGHT = {"newton": 1e-4}
"""Largest error that needs no cause [-], 1e-8 for others; Newton has single precision."""
FLOATING = 100.0
"""Largest error of Newton that needs no cause, over that of its numbers rounded to single precision [-]."""


def _place(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise NotScored(f"joint '{name}' is missing")
    return list(names).index(name)


def main() -> None:
    """Score the files named on the command line, by default all that can be fetched."""
    remote, programs, *patterns = (*sys.argv[1:], "-")[: max(2, len(sys.argv) - 1)]
    files = [(robot, {"model": robot, "format": "MJCF"}, CATALOGUE / robot / f"{robot}.xml") for robot in robots()]
    for entry in chosen():
        with suppress(FetchError, GitError):
            path = fetched(entry, remote)
            files.append((entry.model.id, named(entry, path), path))
    files = [file for file in files if not patterns or any(Path(file[0]).match(pattern) for pattern in patterns)]
    rows: list[dict[str, Any]] = []
    with ProcessPool(max_workers=2) as pool:
        tasks = [
            pool.schedule(scores, args=[path, str(of["format"]), programs], timeout=LIMIT) for _, of, path in files
        ]
        for (name, about, _), task in zip(files, tasks, strict=True):
            try:
                found = task.result()
            except (TimeoutError, ProcessExpired) as error:
                found = [{"reader": "all", "note": f"not run: {type(error).__name__} within {LIMIT:g} s"}]
            rows += [{**about, **row} for row in found]
            print(name, len(found), flush=True)  # noqa: T201
    pd.DataFrame(rows).to_csv(FILE, index=False, float_format="%.3g", lineterminator="\n")


def scores(path: Path, form: str, programs: str) -> list[dict[str, Any]]:
    """Rows of a file, one for each reader of its format."""
    PROGRAMS[:] = [] if programs == "-" else map(Path, programs.split(":"))
    return list(_scores(path, form))


def _scores(path: Path, form: str) -> Iterator[dict[str, Any]]:
    readers = {name: reader for name, reader in READERS.items() if name.endswith(f" {form}")}
    converters = {name: program for name, (of, program) in CONVERTERS.items() if of == form and PROGRAMS}
    if (found := _scored(path)) is None:
        return
    case, states = found
    for name, (package, read) in readers.items():
        if package != "newton" or PROGRAMS:
            row = _of_tree(path, read, case.mechanism, states)
            if row.get("error_with_our_loops", 0.0) > max(
                RIGHT.get(package, 1e-8), FLOATING * row.get("of_floats", 0.0) * (package == "newton")
            ):
                row["note"] = _cause(path, package, read, case.mechanism, states, row["error_with_our_loops"])
            yield {"reader": f"{name} {_version(package)}", **row}
    if PROGRAMS and CATALOGUE in path.parents:
        yield _of_our_usd(path)
    for name, program in converters.items():
        if PROGRAMS:
            yield {
                "reader": f"{name} {_version(name)}",
                **_of_converter(
                    path, _elsewhere(name)[0] / program, case.mechanism, _driven(case.mechanism, states)[0]
                ),
            }


def _scored(path: Path) -> tuple[Case, RandomStates] | None:
    """Model and closed states; None without a motor, or if the model is not read."""
    try:
        case = passive_case_of(path)
        return (case, closed_states(case.mechanism, case.guess, seed=0)[0]) if case.mechanism.actuators else None
    except HarnessError:
        return None


def _of_our_usd(path: Path) -> dict[str, Any]:
    """Row of Newton's importer of USD on the file that loopcheck writes of a robot."""
    with tempfile.TemporaryDirectory() as folder:
        written = convert(str(path), Path(folder) / "written.usda", lossless=False, seed=0).files[0]
        case = passive_case_of(written)
        states, _ = closed_states(case.mechanism, case.guess, seed=0)
        row = _of_tree(written, newton, case.mechanism, states)
    return {"reader": f"Newton's importer of USD {_version('newton')}, of the file by convert", **row}


@cache
def _version(package: str) -> str:
    """Version of a package, here or in another environment."""
    with suppress(PackageNotFoundError):
        return version(package)
    return _elsewhere(package)[1]


@cache
def _elsewhere(package: str) -> tuple[Path, str]:
    """Folder of programs and version of a package of another environment."""
    code = f"from importlib.metadata import version; print(version('{package}'))"
    for folder in PROGRAMS:
        done = subprocess.run([folder / "python", "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return folder, done.stdout.strip()
    raise SystemExit(f"{package} must be installed in one of {', '.join(map(str, PROGRAMS))}")


def _cause(path: Path, package: str, read: Reader, mechanism: Mechanism, states: RandomStates, before: float) -> str:
    """The changes that make the efforts right, with the error after them."""
    found, root = [], ET.fromstring(path.read_bytes()) if path.suffix == ".xml" else None
    causes = {**(RAISED if package == "newton" else {}), **(CAUSES if root is not None else {})}
    read = partial(newton, exact=True) if package == "newton" else read
    with tempfile.TemporaryDirectory() as folder:
        for sibling in path.parent.iterdir():
            (Path(folder) / sibling.name).symlink_to(sibling)
        for cause, (of_file, of_mechanism) in causes.items():
            out = path
            if root is not None:
                of_file(root)
                out = Path(folder) / f"changed {path.name}"
                out.write_bytes(ET.tostring(root))
            mechanism = of_mechanism(mechanism)
            row = _of_tree(out, read, mechanism, states)
            error = row.get("error_with_our_loops", float("inf"))
            if error < 0.5 * before:
                found.append(cause)
                before = error
            if error <= max(RIGHT.get(package, 1e-8), FLOATING * row.get("of_floats", 0.0) * (package == "newton")):
                return f"cause: {'; '.join(found)} (error without: {error:.1e})"
    return f"cause not found{': more than ' if found else ''}{'; '.join(found)} ({before:.1e})"


def _driven(mechanism: Mechanism, states: RandomStates) -> tuple[RandomStates, Array, Array]:
    """Poses at rest with the accelerations of random efforts, these efforts, and their scale [N or N m]."""
    state = State(mechanism=mechanism, q=states.q, qd=np.zeros_like(states.qd))
    N, still = states.N, np.zeros_like(states.qdd)
    scale = np.maximum(scale_of(state, still).scale, 1.0)
    efforts = scale * np.random.default_rng(0).normal(size=(len(states.q), mechanism.na))
    M = N.swapaxes(1, 2) @ tree_inertia(state) @ N
    forces = (N.swapaxes(1, 2) @ (mechanism.selection.T @ efforts[..., None]))[..., 0]
    forces -= powers_along(state, still, N).signed.sum(1)
    accelerations = np.linalg.solve(M, forces[..., None])
    return replace(states, qd=np.zeros_like(states.qd), qdd=(N @ accelerations)[..., 0]), efforts, scale


def _of_tree(path: Path, read: Reader, mechanism: Mechanism, states: RandomStates) -> dict[str, Any]:
    loops = len(mechanism.closures)
    if any(joint.kind in ("ball", "free") for joint in mechanism.joints):
        return {"loops": loops, "note": "not scored: ball or free joints"}
    driven, efforts, scale = _driven(mechanism, states)
    try:
        h, kept = read(path, mechanism, driven.q, driven.qdd)
    except Exception as error:  # whatever a reader raises is its result
        return {"loops": loops, "note": short(f"not supported: {' '.join(str(error).split())}", path)}
    S, N_T = mechanism.selection, driven.N.swapaxes(1, 2)
    along = np.linalg.pinv(N_T @ S.T) @ N_T
    efforts = (along @ (S.T @ efforts[..., None]))[..., 0]  # least ones of redundant motors

    def error_of(values: Array) -> float:
        return float(np.max(np.abs((along @ values[..., None])[..., 0] - efforts) / scale, initial=0.0))

    alone = np.linalg.lstsq(S.T, h.T, rcond=None)[0].T
    every = np.broadcast_to(np.eye(mechanism.nv), (len(h), mechanism.nv, mechanism.nv))
    rest = State.at_rest(mechanism, driven.q)
    weights, moving = (powers_along(rest, a, every).signed.sum(1) for a in (np.zeros_like(driven.qdd), driven.qdd))
    M = tree_inertia(rest)
    rounding = (_rounding(M) @ driven.qdd[..., None])[..., 0] + _rounding(weights)
    return {
        "loops": loops,
        "loops_kept": kept,
        "error_as_read": float(np.max(np.abs(alone - efforts) / scale, initial=0.0)),
        "error_with_our_loops": error_of(h),
        "of_floats": error_of(moving + rounding),
    }


def _rounding(values: Array) -> Array:
    """Change of numbers by rounding to single precision."""
    return values.astype(np.float32).astype(np.float64) - values


def _of_converter(path: Path, program: Path, mechanism: Mechanism, states: RandomStates) -> dict[str, Any]:
    loops = len(mechanism.closures)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, path, folder], capture_output=True, text=True, check=False)
        written = sorted(Path(folder).glob("*.usda"))
        if done.returncode or not written:
            return {
                "loops": loops,
                "note": short(f"not supported: {' '.join(done.stderr.split())}", path, Path(folder)),
            }
        try:
            converted = read_mechanism(ModelFile(path=written[0]))
        except HarnessError as error:
            return {"loops": loops, "note": f"not read: {error}".replace(f"{written[0]}: ", "")[:160]}
        result = proof(mechanism, mechanism, converted, states, (), FLOATS)
    wrong = [row.quantity for row in result.rows if row.verdict == "disagree"]
    efforts = [row.error for row in result.rows if row.quantity == "efforts"]
    return {
        "loops": loops,
        "loops_kept": len(converted.closures),
        "error_as_read": efforts[0] if efforts else float("nan"),
        "note": f"differs: {', '.join(wrong)}" if wrong else "",
    }


if __name__ == "__main__":
    main()
