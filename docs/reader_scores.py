"""Score other readers on public files: `python -m docs.reader_scores REMOTE [BIN] [PATTERN ...]`.

REMOTE is the beginning of the addresses of the repositories. BIN is the folder of the programs `mujoco_usd_converter`
and `urdf_usd_converter`, which need an environment of their own; `-` leaves them out. Writes
`docs/conversions/readers.csv`. The readers of MuJoCo, Pinocchio and Drake make a tree; their inverse dynamics at closed
poses at rest, with the accelerations of random efforts of the closed loop, is compared with these efforts, once with
the loops that they read, once with the loops of loopcheck. The robots of the catalogue are scored too.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from docs.conversion_tables import FOLDER, named
from loopcheck.analytic.dynamics.powers import powers_along, scale_of, tree_inertia
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.random_states import RandomStates
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.catalogue import names as robots
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.mjcf import read_mechanism
from loopcheck.robots.model_file import ModelFile
from loopcheck.validation.comparison.conversion import proof
from loopcheck.validation.comparison.targets import passive_case_of
from loopcheck.validation.converting import FLOATS, closed_states
from loopcheck.validation.studies.atlas.fetching import FetchError, fetched
from loopcheck.validation.studies.atlas.git import GitError
from loopcheck.validation.studies.atlas.manifest import entries

FILE = FOLDER / "readers.csv"
SHAPES = ("visual", "collision")
Terms = tuple[Array, int]
"""Efforts of the joints of a tree, and the number of loops that the reader keeps."""


class NotScored(Exception):
    """A file that a reader cannot be scored on, with the reason."""


def mujoco_urdf(path: Path, names: Sequence[str], q: Array, qdd: Array) -> Terms:
    """MuJoCo's reader of URDF, as it is, without shapes."""
    import mujoco

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


def pinocchio(path: Path, names: Sequence[str], q: Array, qdd: Array) -> Terms:
    """Pinocchio's readers of URDF and MJCF."""
    import pinocchio as pin

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


def drake(path: Path, names: Sequence[str], q: Array, qdd: Array) -> Terms:
    """Drake's readers of URDF and MJCF."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(path))
    plant.Finalize()
    for body in plant.GetFloatingBaseBodies():
        if path.suffix != ".urdf":
            raise NotScored("a floating base")
        rooted = MultibodyPlant(0.0)
        Parser(rooted).AddModels(str(path))
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


READERS: Mapping[str, tuple[str, str, Callable[[Path, Sequence[str], Array, Array], Terms]]] = {
    "MuJoCo's reader of URDF": ("URDF", "mujoco", mujoco_urdf),
    "Pinocchio's reader of URDF": ("URDF", "pin", pinocchio),
    "Drake's reader of URDF": ("URDF", "drake", drake),
    "Pinocchio's reader of MJCF": ("MJCF", "pin", pinocchio),
    "Drake's reader of MJCF": ("MJCF", "drake", drake),
}
CONVERTERS = {
    "urdf-usd-converter": ("URDF", "urdf_usd_converter"),
    "mujoco-usd-converter": ("MJCF", "mujoco_usd_converter"),
}


def _place(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise NotScored(f"joint '{name}' is missing")
    return list(names).index(name)


def main() -> None:
    """Score the files named on the command line, by default all that can be fetched."""
    remote, programs, *patterns = (*sys.argv[1:], "-")[: max(2, len(sys.argv) - 1)]
    every = [*entries(folder=FOLDER / "models"), *(entry for entry in entries() if not entry.model.files)]
    rows: list[dict[str, Any]] = []
    files = [(robot, {"model": robot, "format": "MJCF"}, CATALOGUE / robot / f"{robot}.xml") for robot in robots()]
    for entry in every:
        with suppress(FetchError, GitError):
            path = fetched(entry, remote)
            files.append((entry.model.id, named(entry, path), path))
    for name, about, path in files:
        if not patterns or any(Path(name).match(pattern) for pattern in patterns):
            rows += [{**about, **row} for row in _scores(path, str(about["format"]), programs)]
    pd.DataFrame(rows).to_csv(FILE, index=False, float_format="%.3g", lineterminator="\n")


def _scores(path: Path, form: str, programs: str) -> Iterator[dict[str, Any]]:
    readers = {name: package for name, (of, package, _) in READERS.items() if of == form}
    converters = {name: program for name, (of, program) in CONVERTERS.items() if of == form and programs != "-"}
    if not readers:
        return
    try:
        case = passive_case_of(path)
        states, _ = closed_states(case.mechanism, case.guess, seed=0)
    except HarnessError:
        return
    if not case.mechanism.actuators:
        return
    states, efforts, scale = _driven(case.mechanism, states)
    for name, package in readers.items():
        yield {
            "reader": f"{name} {version(package)}",
            **_of_tree(path, name, case.mechanism, states, efforts / scale, scale),
        }
    for name, program in converters.items():
        yield {"reader": name, **_of_converter(path, Path(programs) / program, case.mechanism, states)}


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


def _of_tree(
    path: Path, name: str, mechanism: Mechanism, states: RandomStates, reference: Array, scale: Array
) -> dict[str, Any]:
    loops = len(mechanism.closures)
    if any(joint.kind in ("ball", "free") for joint in mechanism.joints):
        return {"loops": loops, "note": "not scored: ball or free joints"}
    names = [joint.name for joint in mechanism.joints]
    try:
        h, kept = READERS[name][2](path, names, states.q, states.qdd)
    except Exception as error:  # whatever a reader raises is its result
        return {"loops": loops, "note": f"not supported: {' '.join(str(error).split())}".replace(f"{path}", "")[:160]}
    S = mechanism.selection
    alone = np.linalg.lstsq(S.T, h.T, rcond=None)[0].T
    N = states.N
    forces = np.linalg.pinv(N.swapaxes(1, 2) @ S.T) @ (N.swapaxes(1, 2) @ h[..., None])
    return {
        "loops": loops,
        "loops_kept": kept,
        "error_as_read": float(np.max(np.abs(alone / scale - reference))),
        "error_with_our_loops": float(np.max(np.abs(forces[..., 0] / scale - reference))),
    }


def _of_converter(path: Path, program: Path, mechanism: Mechanism, states: RandomStates) -> dict[str, Any]:
    loops = len(mechanism.closures)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, path, folder], capture_output=True, text=True, check=False)
        written = sorted(Path(folder).glob("*.usda"))
        if done.returncode or not written:
            return {"loops": loops, "note": f"not supported: {' '.join(done.stderr.split())}"[:160]}
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
