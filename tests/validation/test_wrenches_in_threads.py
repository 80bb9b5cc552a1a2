"""Situations of public threads about joint forces, each as a model and a log, with the answer of `loopcheck judge`.

The page docs/reference/forces_in_threads.md has a row for each.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from loopcheck import judge
from loopcheck.robots.arrays import Array
from tests.mujoco_wrenches import CHAIN, prescribed, simulated
from tests.validation.test_judge_wrenches import FOUR_BAR

PAGE = Path(__file__).parents[2] / "docs/reference/forces_in_threads.md"
CRANK, COUPLER, ROCKER = 0.5, 0.021341945343874125, 1.1797837644701707
PISTON = """<mujoco model="piston"><compiler angle="radian"/><worldbody>
  <body name="tube"><joint name="tube" axis="0 1 0"/><inertial pos=".3 0 0" mass="3" diaginertia=".01 .2 .2"/>
    <body name="rod" pos=".5 0 0"><joint name="piston" type="slide" axis="1 0 0"/>
      <inertial pos=".2 0 0" mass="4" diaginertia=".01 .1 .1"/></body></body></worldbody>
  <actuator><motor name="tube" joint="tube"/><motor name="piston" joint="piston"/></actuator></mujoco>"""
"""A hydraulic cylinder: a rod that slides in a tube that swings."""
END = """<body name="end" pos="1.1 0 0"><joint name="end"/>
  <inertial pos="0 0 0" mass=".1" diaginertia="1e-3 1e-3 1e-3"/><site name="coupler_end"/></body></body>"""
WELDED = (
    FOUR_BAR.replace('<site name="coupler_end" pos="1.1 0 0"/></body>', END)
    .replace('<connect name="C"', '<weld name="C"')
    .replace(f"{COUPLER} {ROCKER}", f"{COUPLER} {ROCKER - CRANK - COUPLER} {ROCKER}")
)
"""The four-bar whose last pin is a body that is welded to the rocker."""
BOX = """<mujoco model="box"><compiler angle="radian"/><worldbody>
  <body name="box" pos="0 0 1"><joint name="swing" axis="0 1 0"/>
    <inertial pos=".3 0 .1" mass="2" diaginertia=".02 .03 .04"/></body></worldbody>
  <actuator><motor name="swing" joint="swing"/></actuator></mujoco>"""


class Thread(NamedTuple):
    """A question with the readings that its author has."""

    model: str
    columns: Callable[[], dict[str, Array]]
    reactions: str
    verdicts: str
    """Verdicts on the logged connections, in their order."""
    words: str = ""
    """Pattern in the note of the first that disagrees."""


def of_chain(times: float = 0.0, **convention: str) -> dict[str, Array]:
    """Readings of the chain, with the efforts so many times more in the moments."""
    read = prescribed()
    wrenches = {name: read.by(name, **convention) for name in read.joints}
    for k, axis in enumerate(([0, 1, 0.3], [1, 0, 0.5])):
        unit = np.array([*axis, 0, 0, 0]) / np.linalg.norm(axis)
        wrenches[read.joints[k]] = wrenches[read.joints[k]] + times * read.effort[:, [k]] * unit
    return read.columns(wrenches, read.joints)


def of_loop(factor: float = 1.0, *, tree: bool = False, seen: float = 1.0) -> dict[str, Array]:
    """Readings of the four-bar: the force of its connect in world axes, or wrenches on its bodies from their parents.

    Args:
        factor: Of the force of the connect.
        tree: Whether those on the bodies are read.
        seen: Part of the constraint force that they contain.
    """
    read = simulated(FOUR_BAR, 3.0)
    if not tree:
        nothing = np.full_like(read.closure, np.nan)
        return read.columns({"C": np.concatenate([nothing, factor * read.closure], axis=1)})
    wrenches = {name: read.by(name, axes="world") for name in read.joints}
    k = read.joints.index("coupler")
    end = read.points["origin"][:, k] + 1.1 * read.turns["child"][:, k, :, 0]
    for name in ("crank", "coupler"):  # the constraint pulls at the coupler, which both carry
        arm = end - read.points["joint"][:, read.joints.index(name)]
        pull = np.concatenate([np.cross(arm, read.closure), read.closure], axis=1)
        wrenches[name] = wrenches[name] + (1 - seen) * pull
    return read.columns(wrenches)


def of_weld() -> dict[str, Array]:
    """Sensors of the welded four-bar: forces in the plane and moments along the pins."""
    read = simulated(WELDED, 3.0)
    return read.columns({name: read.by(name) * [np.nan, np.nan, 1, 1, 1, np.nan] for name in read.joints}, ("crank",))


def of_piston() -> dict[str, Array]:
    """The bias force `qfrc_bias` along a piston, in place of the force on its rod."""
    read, slow = prescribed(PISTON), prescribed(PISTON, accelerated=False)
    force = np.full((len(read.t), 6), np.nan)
    force[:, 3] = slow.effort[:, 1]
    return read.columns({"piston": force}, read.joints)


def of_bullet() -> dict[str, Array]:
    """Joint reaction forces of PyBullet on a box that swings about a hinge."""
    import pybullet  # noqa: TID251

    client = pybullet.connect(pybullet.DIRECT)
    try:
        shape = {"physicsClientId": client}
        robot = pybullet.createMultiBody(
            baseMass=0, linkMasses=[2], linkCollisionShapeIndices=[-1], linkVisualShapeIndices=[-1],
            linkPositions=[[0, 0, 1]], linkOrientations=[[0, 0, 0, 1]], linkInertialFramePositions=[[0.3, 0, 0.1]],
            linkInertialFrameOrientations=[[0, 0, 0, 1]], linkParentIndices=[0],
            linkJointTypes=[pybullet.JOINT_REVOLUTE], linkJointAxis=[[0, 1, 0]], **shape,
        )  # fmt: skip
        pybullet.changeDynamics(
            robot,
            0,
            linearDamping=0,
            angularDamping=0,
            jointDamping=0,
            localInertiaDiagonal=[0.02, 0.03, 0.04],
            **shape,
        )
        pybullet.setGravity(0, 0, -9.81, **shape)
        pybullet.setTimeStep(1e-4, **shape)
        pybullet.resetJointState(robot, 0, 0.2, 3.0, **shape)
        pybullet.setJointMotorControl2(robot, 0, pybullet.VELOCITY_CONTROL, force=0, **shape)
        pybullet.enableJointForceTorqueSensor(robot, 0, **shape)
        rows = []
        for k in range(5000):
            pybullet.stepSimulation(**shape)
            if k % 50 == 0:
                q, qd, reaction, _ = pybullet.getJointState(robot, 0, **shape)
                rows.append([1e-4 * (k + 1), q, qd, *reaction[:3]])
    finally:
        pybullet.disconnect(client)
    names = ("t", "swing.q", "swing.qd", "swing.force.x", "swing.force.y", "swing.force.z")
    return dict(zip(names, np.array(rows).T, strict=True))


CHILD, WORLD = "on=child point=joint axes=child", "on=child point=joint axes=world"
THREADS = {
    "google-deepmind/mujoco#1217": Thread(FOUR_BAR, of_loop, WORLD, "agree"),
    "google-deepmind/mujoco#1809": Thread(PISTON, of_piston, CHILD, "disagree", "^force: error 0.62[^;]*$"),
    "google-deepmind/mujoco#2533": Thread(WELDED, of_weld, CHILD, "agree agree agree agree"),
    "NVIDIA-Omniverse/PhysX#286": Thread(
        CHAIN, lambda: of_chain(-1.0), CHILD, "disagree disagree", "fits with the effort of the drive, which they lack"
    ),
    "newton-physics/newton#598": Thread(
        CHAIN, lambda: of_chain(point="com", axes="world"), CHILD, "disagree disagree", "fits with point=com axes=world"
    ),
    "isaac-sim/IsaacLab#2128": Thread(
        CHAIN, of_chain, "on=child point=joint axes=parent", "disagree disagree", "fits with axes=child: error"
    ),
    "bulletphysics/bullet3#3041": Thread(
        CHAIN, lambda: of_chain(1.0), CHILD, "disagree disagree", "effort of the drive once instead of twice: error"
    ),
    "bulletphysics/bullet3#4340": Thread(BOX, of_bullet, "on=child point=com axes=child", "agree"),
    "stack-of-tasks/pinocchio#2150": Thread(
        FOUR_BAR, lambda: of_loop(0.01), WORLD, "disagree", "^force: error 0.99[^;]*$"
    ),
    "RobotLocomotion/drake#19920": Thread(
        FOUR_BAR, lambda: of_loop(tree=True, seen=0.0), WORLD, "disagree disagree agree", "^moment: error 5.8[^;]*$"
    ),
}


FEW = ("newton-physics/newton#598",)
KEPT = pytest.mark.evidence("a whole judgement", seconds=0.8)
REST = pytest.mark.extended("test_every_thread_has_a_row")


@pytest.mark.parametrize("name", [pytest.param(name, marks=KEPT if name in FEW else REST) for name in THREADS])
def test_the_question_of_a_thread_is_answered(name: str, tmp_path: Path) -> None:
    thread = THREADS[name]
    (tmp_path / "robot.xml").write_text(thread.model)
    table = pd.DataFrame(thread.columns()).dropna(axis=1)
    (tmp_path / "run.csv").write_text(f"# reactions: {thread.reactions}\n{table.to_csv(index=False)}")
    found = judge(tmp_path / "robot.xml", tmp_path / "run.csv", accuracy=0.01)
    judged = {key: verdict for key, verdict in found.verdicts.items() if key.endswith(".wrench")}
    assert [*judged.values()] == re.findall(r"disagree|agree", thread.verdicts), str(found)
    first = next((key for key, verdict in judged.items() if verdict == "disagree"), "")
    if first:
        assert re.search(thread.words, found.notes[first]), found.notes[first]


def test_every_thread_has_a_row() -> None:
    rows = re.findall(r"^\| \[([\w./-]+#\d+)\]", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [*THREADS]
