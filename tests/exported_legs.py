"""Four-bar legs as CAD exporters write them: body frames of any orientation, few digits, redundant closures.

The same leg with all digits is the independent reference: its loops close to 1e-15.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import mujoco  # noqa: TID251
import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

AXIS = np.array([0.0, 1.0, 0.0])
"""Direction of the pins, before the leg is turned in space."""
CARRIERS = {
    "fixed": (),
    "hinge": ("hinge",),
    "slide": ("slide",),
    "ball": ("ball",),
    "free": ("free",),
    "two hinges": ("hinge", "hinge"),
}
"""Joints between the world and a leg."""


@dataclass(frozen=True)
class Leg:
    """A leg: how it is carried, closed and written."""

    carrier: str = "hinge"
    closure: str = "two connects"
    digits: int = 6
    seed: int = 0
    legs: int = 1
    """Number of legs side by side on the carrier."""
    scale: float = 1.0
    """Factor on all lengths [-]."""
    degrees: bool = False
    mass: float = 1.0
    """Factor on the mass of the coupler [-]."""
    shift: float = 0.0
    """Displacement of an anchor in the plane of the leg [m]."""
    offset: float = 0.0
    """Displacement of an anchor along the pin [m]."""
    random: np.random.Generator = field(init=False, repr=False, compare=False)

    def text(self) -> str:
        """The MJCF."""
        object.__setattr__(self, "random", np.random.default_rng(self.seed))
        space = Rotation.random(rng=self.random)
        elements, frame = ["<worldbody>"], (Rotation.identity(), np.zeros(3))
        joints = CARRIERS[self.carrier] or ("",)
        motors: list[str] = []
        for k, joint in enumerate(joints):
            here = (space * Rotation.random(rng=self.random), np.array([0, 0, 1.0]) * self.scale + 0.01 * k)
            name = f"carrier{k}"
            elements.append(self._body(name, here, frame))
            elements.append(self._joint(name, joint, here, space.apply(_unit(self.random))))
            elements.append(self._inertia(here, here[1], 2.0, 0.01))
            motors += [f'<motor joint="{name}"/>'] if joint in ("hinge", "slide") else []
            frame = here
        origin, closures = frame[1], list[str]()
        for k in range(self.legs):
            at = origin + space.apply(np.array([0, 0.2 * k, 0]) * self.scale)
            elements += self._leg(f"{k}", at, space, frame)
            closures += self._closures(f"{k}")
            motors.append(f'<motor joint="crank{k}"/>')
        elements += ["</body>"] * len(joints) + ["</worldbody>"]
        angle = "degree" if self.degrees else "radian"
        return (
            f'<mujoco model="leg"><compiler angle="{angle}"/>{"".join(elements)}'
            f"<equality>{''.join(closures)}</equality><actuator>{''.join(motors)}</actuator></mujoco>"
        )

    def _leg(self, k: str, at: Array, space: Rotation, parent: tuple[Rotation, Array]) -> Iterator[str]:
        O, A, B, C = (
            at + space.apply(np.array(p) * self.scale) for p in ((0, 0, 0), (0.1, 0, 0.02), (0.3, 0, 0.16), (0.3, 0, 0))
        )
        axis, middle = space.apply(AXIS), (A + B) / 2
        aside = 0.1 * self.scale * axis
        frames = {
            name: (space * Rotation.random(rng=self.random), p)
            for name, p in (("crank", O), ("coupler", A), ("rocker", C), ("rest", B))
        }
        end, shift = (
            (middle if self.closure == "weld" else B),
            space.apply(np.array([0.6 * self.shift, self.offset, 0.8 * self.shift])),
        )
        for name, before, far in (("crank", parent, A), ("coupler", frames["crank"], end)):
            yield self._body(f"{name}{k}", frames[name], before)
            yield self._joint(f"{name}{k}", "hinge", frames[name], axis)
            heavier = self.mass if name == "coupler" else 1.0
            yield self._inertia(frames[name], (frames[name][1] + far) / 2, 0.4 * heavier, 0.002)
        yield self._sites(k, 1, frames["coupler"], end + shift, aside, space)
        yield "</body></body>"
        yield self._body(f"rocker{k}", frames["rocker"], parent)
        yield self._joint(f"rocker{k}", "hinge", frames["rocker"], axis)
        yield self._inertia(frames["rocker"], (C + B) / 2, 0.5, 0.002)
        if self.closure == "weld":
            yield self._body(f"rest{k}", frames["rest"], frames["rocker"])
            yield self._joint(f"rest{k}", "hinge", frames["rest"], axis)
            yield self._inertia(frames["rest"], middle, 0.1, 0.001)
            yield self._sites(k, 2, frames["rest"], end, aside, space)
            yield "</body>"
        else:
            yield self._sites(k, 2, frames["rocker"], end, aside, space)
        yield "</body>"

    def _closures(self, k: str) -> list[str]:
        one, other = f'<connect site1="p1_{k}" site2="p2_{k}"/>', f'<connect site1="z1_{k}" site2="z2_{k}"/>'
        kinds = {
            "connect": [one],
            "two connects": [one, other],
            "weld": [f'<weld site1="p1_{k}" site2="p2_{k}"/>'],
        }
        return kinds[self.closure]

    def _sites(self, k: str, end: int, frame: tuple[Rotation, Array], at: Array, aside: Array, space: Rotation) -> str:
        R, o = frame
        quat = self._quat(R.inv() * space)
        return "".join(
            f'<site name="{name}{end}_{k}" pos="{self._numbers(R.inv().apply(p - o))}" quat="{quat}"/>'
            for name, p in (("p", at), ("z", at + aside))
        )

    def _body(self, name: str, frame: tuple[Rotation, Array], parent: tuple[Rotation, Array]) -> str:
        (R, o), (R_p, o_p) = frame, parent
        pos = self._numbers(R_p.inv().apply(o - o_p))
        return f'<body name="{name}" pos="{pos}" quat="{self._quat(R_p.inv() * R)}">'

    def _joint(self, name: str, kind: str, frame: tuple[Rotation, Array], axis: Array) -> str:
        if not kind:
            return ""
        if kind == "free":
            return f'<freejoint name="{name}"/>'
        along = "" if kind == "ball" else f' axis="{self._numbers(frame[0].inv().apply(axis))}"'
        limits = ' range="-200 200"' if self.degrees and kind == "hinge" else ""
        return f'<joint name="{name}" type="{kind}"{along}{limits}/>'

    def _inertia(self, frame: tuple[Rotation, Array], centre: Array, mass: float, inertia: float) -> str:
        pos, moment = self._numbers(frame[0].inv().apply(centre - frame[1])), inertia * self.scale**2
        return f'<inertial pos="{pos}" mass="{mass!r}" diaginertia="{moment} {1.05 * moment} {1.1 * moment}"/>'

    def _quat(self, R: Rotation) -> str:
        return self._numbers(np.roll(R.as_quat(), 1))

    def _numbers(self, values: Array) -> str:
        return " ".join(f"{x:.{self.digits}g}" for x in values)


def cut_trees(case: Case, motion: Motion) -> Iterator[tuple[Any, Any]]:
    """MuJoCo's model and data in each state of a motion, with the inverse dynamics of the tree without closures."""
    model = mujoco.MjModel.from_xml_path(str(case.mechanism.model.path))
    model.opt.gravity[:] = case.mechanism.gravity
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(model, data)
        yield model, data


def opening_rates(model: Any, data: Any, closure: int) -> Array:
    """Rate of the gap between the two sites of a closure per joint velocity [m/rad or m/m], shape (3, nv)."""
    both = np.zeros((2, 3, model.nv))
    for rows, site in zip(both, (model.eq_obj1id[closure], model.eq_obj2id[closure]), strict=True):
        mujoco.mj_jacSite(model, data, rows, None, site)
    return np.asarray(both[0] - both[1])


def _unit(random: np.random.Generator) -> Array:
    direction = random.normal(size=3)
    return np.asarray(direction / np.linalg.norm(direction))
