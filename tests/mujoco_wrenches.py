"""Motions with joint forces from MuJoCo alone: prescribed to a tree, or simulated with a closed loop."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import mujoco  # noqa: TID251
import numpy as np
from numpy.typing import ArrayLike

from loopcheck.robots.arrays import Array

CHAIN = """<mujoco model="chain"><compiler angle="radian"/><option gravity="0 3 -9.81"/><worldbody>
  <body name="arm" pos="0 .1 .2" euler=".3 .2 0"><joint name="shoulder" axis="0 1 .3"/>
    <inertial pos=".2 .05 -.1" mass="2" fullinertia=".03 .04 .05 .004 -.003 .002"/>
    <body name="hand" pos=".4 0 .1" euler="0 .7 .2"><joint name="elbow" axis="1 0 .5" pos=".02 .03 -.01"/>
      <inertial pos=".15 -.03 .06" mass="1" fullinertia=".01 .02 .015 .001 .002 -.001"/></body></body></worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/><motor name="elbow" joint="elbow"/></actuator></mujoco>"""
"""A tree whose points, axes and mass centres all differ."""
STIFF = 'solref="0.0005 1" solimp="0.9999 0.9999 0.001 0.5 2"'


@dataclass(frozen=True, kw_only=True)
class Readings:
    """A motion in MuJoCo with one joint per body: samples of all joints, and of their wrenches and frames."""

    joints: tuple[str, ...]
    t: Array
    q: Array
    qd: Array
    effort: Array
    """Efforts of the actuators, (nt, na)."""
    wrench: Array
    """`cfrc_int`, (M, F) on each body from its parent, world axes, mass centre of the tree, (nt, joints, 6)."""
    closure: Array
    """Forces of the equality constraint, (nt, rows)."""
    points: Mapping[str, Array]
    """Points in the world by name, each (nt, joints, 3)."""
    turns: Mapping[str, Array]
    """Axes of the child, of the parent and of the world, each (nt, joints, 3, 3)."""

    def by(self, joint: str, *, on: str = "child", point: str = "joint", axes: str = "child") -> Array:
        """The wrench of a joint in a convention, (nt, 6): the force moves to another point, all of it to other axes."""
        k = self.joints.index(joint)
        moment, force = self.wrench[:, k, :3], self.wrench[:, k, 3:]
        moment = moment + np.cross((self.points["tree_com"] - self.points[point])[:, k], force)
        turned = [np.einsum("nji,nj->ni", self.turns[axes][:, k], values) for values in (moment, force)]
        return np.concatenate(turned, axis=1) * {"child": 1, "parent": -1}[on]

    def columns(self, wrenches: Mapping[str, Array], actuators: tuple[str, ...] = ()) -> dict[str, Array]:
        """Columns of a log with wrenches (nt, 6) by connection, and efforts of actuators."""
        found = {"t": self.t}
        for k, name in enumerate(self.joints):
            found |= {f"{name}.q": self.q[:, k], f"{name}.qd": self.qd[:, k]}
        found |= {f"{name}.effort": x for name, x in zip(actuators, self.effort.T, strict=bool(actuators))}
        for name, values in wrenches.items():
            parts = [f"{name}.{part}.{axis}" for part in ("moment", "force") for axis in "xyz"]
            found |= dict(zip(parts, values.T, strict=True))
        return found


def prescribed(
    xml: str = CHAIN, *, samples: int = 80, dt: float = 0.01, start: float = 0.0, accelerated: bool = True
) -> Readings:
    """A tree in sinusoidal motion, by MuJoCo's inverse dynamics; without accelerations its efforts are `qfrc_bias`."""
    model = mujoco.MjModel.from_xml_string(xml)
    phase, rate = np.arange(model.nv), 3.0 + np.arange(model.nv)

    def states(data: mujoco.MjData) -> Iterator[Array]:
        for time in dt * np.arange(samples):
            data.time, t = time, time + start
            data.qpos[:], data.qvel[:] = 0.6 * np.sin(rate * t + phase), 0.6 * rate * np.cos(rate * t + phase)
            data.qacc[:] = -0.6 * rate**2 * np.sin(rate * t + phase) * accelerated
            mujoco.mj_inverse(model, data)
            yield data.qfrc_inverse.copy()

    return _readings(model, states)


def simulated(xml: str, effort: ArrayLike, *, samples: int = 100, every: int = 50, dt: float = 1e-4) -> Readings:
    """A robot with a stiff loop, stepped under sinusoidal efforts from its first keyframe; few samples are kept."""
    model = mujoco.MjModel.from_xml_string(
        xml.replace("<connect ", f"<connect {STIFF} ").replace("<weld ", f"<weld {STIFF} ")
    )
    model.opt.timestep = dt

    def states(data: mujoco.MjData) -> Iterator[Array]:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        for k in range(samples * every):
            data.ctrl[:] = np.asarray(effort) * np.cos(5 * data.time)
            if k % every == 0:
                mujoco.mj_forward(model, data)
                yield data.actuator_force.copy()
            mujoco.mj_step(model, data)

    return _readings(model, states)


def _readings(model: mujoco.MjModel, states: Callable[[mujoco.MjData], Iterator[Array]]) -> Readings:
    data, rows = mujoco.MjData(model), []
    bodies, root = model.jnt_bodyid, model.body_rootid[model.jnt_bodyid]
    parents = model.body_parentid[bodies]
    for effort in states(data):
        mujoco.mj_rnePostConstraint(model, data)
        kept = (
            data.time, data.qpos, data.qvel, effort, data.cfrc_int[bodies], data.efc_force,
            data.xanchor, data.xipos[bodies], data.xpos[bodies], data.subtree_com[root],
            data.xmat[bodies].reshape(-1, 3, 3), data.xmat[parents].reshape(-1, 3, 3),
        )  # fmt: skip
        rows.append([np.array(value) for value in kept])
    t, q, qd, efforts, wrench, closure, *points, own, other = (np.array(column) for column in zip(*rows, strict=True))
    return Readings(
        joints=tuple(model.joint(j).name for j in range(model.njnt)),
        t=t,
        q=q,
        qd=qd,
        effort=efforts,
        wrench=wrench,
        closure=closure,
        points=dict(zip(("joint", "com", "origin", "tree_com"), points, strict=True)),
        turns={"child": own, "parent": other, "world": np.broadcast_to(np.eye(3), own.shape)},
    )
