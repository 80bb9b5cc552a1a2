"""Random mechanisms with closed loops, as MJCF. The pose comes first, and the closures are placed to close there."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, TypeAlias

import numpy as np
from scipy.linalg import qr

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian,
    closure_jacobian_at,
    closure_jacobian_rate,
    null_space,
)
from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.redundancy import (
    free_motions,
    independent_rows,
    undriven_dofs,
    unit_rates_of_drives,
)
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import poses, rotation_of, twists
from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import POSITIONS, CoordinateClosure, Mechanism, WeldClosure
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

Attributes: TypeAlias = dict[str, str]
WELL_CONDITIONED = 1e-3
"""Smallest nonzero singular value, relative to the largest [-]: near singular poses there is no claim."""
ATTEMPTS = 100
ADDED = ("ball rotors", "ball springs", "coaxial", "driven rotors", "gear", "lock", "struts", "tendons", "undriven")
ELEMENTS = ("rotors", "dampers", "springs", "held", "weld", "ball", "coupler", "again", "redundant", *ADDED)
"""Elements of a mechanism, besides hinges, slides, references and gears."""
STATES = 3
"""Number of states of a chain."""
OFTEN = 0.7
"""Part of the joints or bodies with an element that is asked for [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Kind of mechanism to draw."""

    planar: bool
    """All joints move in the XY plane, so that closures have redundant rows."""
    loops: int
    floating: bool = False
    """The legs start from a body with a free joint instead of the ground; they are closed at the ground."""
    elements: frozenset[str] | None = None
    """Elements of the mechanism, of `ELEMENTS`, all of them and no others; by default by chance, without `ADDED`."""

    def has(self, element: str, *, by_chance: bool) -> bool:
        """Whether a mechanism has an element that a mechanism of any kind has by chance."""
        return by_chance if self.elements is None else element in self.elements


@dataclass(slots=True)
class _Body:
    name: str
    attributes: Attributes
    joints: list[Attributes]
    inertial: Attributes
    children: list["_Body"] = field(default_factory=list)
    sites: list[Attributes] = field(default_factory=list)


def closed_chain(shape: Shape, rng: np.random.Generator, path: Path) -> bool:
    """Write a random closed mechanism with actuators for every degree of freedom, closed in its keyframe `home`.

    Returns:
        Whether a mobile, actuated mechanism well away from singularities was found.
    """
    return any(_Draft(shape, rng, path).finish() for _ in range(ATTEMPTS))


def states(case: Case, rng: np.random.Generator) -> Motion:
    """The closed pose with random velocities and accelerations that keep the loops closed."""
    mechanism = case.mechanism
    q = np.tile(case.guess, (STATES, 1))
    at = poses(mechanism, q)
    moving = twists(mechanism, at, np.zeros((STATES, mechanism.nv)))
    Phi = closure_jacobian(mechanism, at, moving.K, q)
    N = null_space(Phi[0])
    qd = rng.normal(size=(STATES, N.shape[1])) @ N.T
    turning = closure_jacobian_rate(mechanism, at, twists(mechanism, at, qd), q, qd) @ qd[..., None]
    qdd = rng.normal(size=(STATES, N.shape[1])) @ N.T - (np.linalg.pinv(Phi, rcond=1e-5) @ turning)[..., 0]
    return Motion(t=np.arange(float(STATES)), q=q, qd=qd, qdd=qdd, law=no_law, assemble=no_law)


def no_law(t: object) -> NoReturn:
    """Law of states at a single pose."""
    raise NotImplementedError("states at one pose only")


class _Draft:
    """A mechanism that is being drawn."""

    def __init__(self, shape: Shape, rng: np.random.Generator, path: Path) -> None:
        self.shape, self.rng, self.path = shape, rng, path
        self.ground = _Body("world", {}, [], {})
        self.bodies: list[_Body] = []
        self.equalities: list[str] = []
        self.motors: list[str] = []
        self.tendons: list[str] = []
        self.keyframe = ""
        self.options = f'gravity="{_text(rng.normal(0, 6, 3))}"'

    def finish(self) -> bool:
        root = self._body(self.ground, ["free"]) if self.shape.floating else self.ground
        kinds = [
            "weld"
            if self.shape.has("weld", by_chance=not self.shape.floating and self.rng.random() >= 0.6)
            else "connect"
            for _ in range(self.shape.loops)
        ]
        tips = [self._leg(root if self.shape.floating else self._anywhere(), kind) for kind in kinds]
        mechanism = self._written()
        q = self._pose(mechanism)
        self.keyframe = f'<key name="home" qpos="{_text(q)}"/>'
        for tip, kind in zip(tips, kinds, strict=True):
            self._close(mechanism, q, tip, kind)
        if self.shape.has("coupler", by_chance=self.rng.random() < 0.3) or (self.shape.elements or set()) & {
            "gear",
            "lock",
        }:
            self._couple(mechanism, q)
        if self.shape.has("again", by_chance=self.rng.random() < 0.3):
            self.equalities.append(self.equalities[0].replace('name="loop', 'name="again'))
        return self._drive(self._written(), q)

    def _anywhere(self) -> _Body:
        return (
            self.ground
            if self.rng.random() < 0.6 or not self.bodies
            else self.bodies[self.rng.integers(len(self.bodies))]
        )

    def _leg(self, root: _Body, kind: str) -> _Body:
        """A chain of bodies with enough joints for the closure at its end, and up to two more."""
        taken = {("connect", True): 2, ("weld", True): 3, ("connect", False): 3, ("weld", False): 6}[
            kind, self.shape.planar
        ]
        joints = ["slide" if self.rng.random() < 0.25 else "hinge" for _ in range(taken + self.rng.integers(0, 3))]
        if self.shape.has("ball", by_chance=kind == "weld" and not self.shape.planar and self.rng.random() < 0.5):
            place = self.rng.integers(1, max(2, len(joints) - 3))
            joints[place : place + 3] = ["ball"]
        tip = root
        while joints:
            on_body = 0 if self.rng.random() < 0.1 else self.rng.integers(1, 3)
            if "ball" in joints[:on_body]:  # MuJoCo wants it to be the last joint that turns a body
                on_body = joints.index("ball") + 1
            tip = self._body(tip, joints[:on_body])
            joints = joints[on_body:]
        return tip

    def _body(self, parent: _Body, kinds: list[str]) -> _Body:
        rng, number = self.rng, len(self.bodies)
        turn = [np.cos(a := rng.uniform(-1, 1)), 0, 0, np.sin(a)] if self.shape.planar else rng.normal(size=4)
        arms = rng.normal(0, 0.1, (6, 3))  # point masses, so that the inertia is one
        mass = rng.uniform(0.1, 3)
        inertia = mass / 6 * ((arms**2).sum() * np.eye(3) - arms.T @ arms)
        body = _Body(
            f"b{number}",
            {"pos": _text(rng.normal(0, 0.3, 3)), "quat": _text(turn)},
            [self._joint(f"j{number}{letter}", kind) for letter, kind in zip("xyz", kinds, strict=False)],
            {
                "mass": _text([mass]),
                "pos": _text(rng.normal(0, 0.1, 3)),
                "fullinertia": _text([*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]),
            },
        )
        if self._may("held", 0.15):
            body.attributes["gravcomp"] = _text([rng.uniform(0, 1)])
        if kinds == ["hinge", "hinge"] and self.shape.has("coaxial", by_chance=False):
            for joint in body.joints:
                joint |= {"pos": body.joints[0]["pos"], "armature": _text([rng.uniform(0.1, 0.5)])}
        parent.children.append(body)
        self.bodies.append(body)
        return body

    def _joint(self, name: str, kind: str) -> Attributes:
        rng = self.rng
        if kind == "free":
            return {"name": name, "type": kind, **self._of_ball()}
        joint = {"name": name, "type": kind, "pos": _text(rng.normal(0, 0.1, 3) * (rng.random() < 0.5))}
        if kind == "ball":
            springs = (
                {"stiffness": _text([rng.uniform(0, 2)])} if self.shape.has("ball springs", by_chance=False) else {}
            )
            return {**joint, **self._of_ball(), **springs}
        plane = np.array([1, 1, 0]) if kind == "slide" else np.array([0, 0, 1])
        joint["axis"] = _text(rng.normal(size=3) * (plane if self.shape.planar else 1))
        for attribute, element, chance in (
            ("armature", "rotors", 0.3),
            ("damping", "dampers", 0.3),
            ("stiffness", "springs", 0.3),
            ("ref", "", 0.2),
            ("springref", "springs", 0.3),
        ):
            if self._may(element, chance):
                joint[attribute] = _text([rng.uniform(0, 0.5)])
        return joint

    def _may(self, element: str, chance: float) -> bool:
        """Whether one of many parts has an element."""
        asked = bool(element) and self.shape.elements is not None
        by_chance = self.rng.random() < (max(chance, OFTEN) if asked else chance)
        return by_chance and (not asked or self.shape.has(element, by_chance=True))

    def _of_ball(self) -> Attributes:
        """Rotor and damper of a joint of several degrees of freedom."""
        return {
            attribute: _text([self.rng.uniform(0, 0.5)])
            for attribute, element in (("armature", "ball rotors"), ("damping", "ball springs"))
            if self.shape.has(element, by_chance=False)
        }

    def _pose(self, mechanism: Mechanism) -> Array:
        """The reference pose in every other mechanism, otherwise any pose."""
        if self.rng.random() < 0.5:
            return mechanism.rest_position
        parts = [np.zeros(0)]
        for joint in mechanism.joints:
            turn = self.rng.normal(size=4)
            anywhere = {1: joint.rest_position + self.rng.normal(0, 0.5, 1), 4: turn / np.linalg.norm(turn)}
            parts.append(
                np.concatenate([self.rng.normal(0, 0.5, 3), anywhere[4]])
                if joint.kind == "free"
                else anywhere[POSITIONS[joint.kind]]
            )
        return np.concatenate(parts)

    def _close(self, mechanism: Mechanism, q: Array, tip: _Body, kind: str) -> None:
        """Join the end of a leg to the ground or to another body, at their places in the pose."""
        rng, name = self.rng, f"loop{len(self.equalities)}"
        others = [self.ground] * len(self.bodies) + [body for body in self.bodies if body is not tip]
        target = self.ground if self.shape.floating else others[rng.integers(len(others))]
        point = rng.normal(0, 0.2, 3)
        if np.array_equal(q, mechanism.rest_position) and rng.random() < 0.5:  # MuJoCo takes the rest from qpos0
            first, second = (tip, target) if kind == "connect" else (target, tip)  # whose frame the anchor is in
            names = f'body1="{first.name}" body2="{second.name}"'
            self.equalities.append(f'<{kind} name="{name}" {names} anchor="{_text(point)}"/>')
            return
        (p_1, R_1), (p_2, R_2) = (self._pose_of(body, mechanism, q) for body in (tip, target))
        turn = rng.normal(size=4)
        position = R_2.T @ (p_1 + R_1 @ point - p_2)
        axes = R_2.T @ R_1 @ rotation_of(turn[None])[0]
        tip.sites.append({"name": f"{name}a", "pos": _text(point), "quat": _text(turn)})
        target.sites.append({"name": f"{name}b", "pos": _text(position), "xyaxes": _text(axes.T[:2].ravel())})
        self.equalities.append(f'<{kind} name="{name}" site1="{name}a" site2="{name}b"/>')

    def _pose_of(self, body: _Body, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        """Origin and axes of a body in the world."""
        if body is self.ground:
            return np.zeros(3), np.eye(3)
        body_poses, b = State.at_rest(mechanism, q[None]).poses, [x.name for x in mechanism.bodies].index(body.name)
        return body_poses.p[0, b], body_poses.R[0, b]

    def _couple(self, mechanism: Mechanism, q: Array) -> None:
        """Let a joint follow another by a polynomial."""
        scalars = [j for j, joint in enumerate(mechanism.joints) if POSITIONS[joint.kind] == 1]
        is_pair = len(scalars) > 1 and not self.shape.has("lock", by_chance=False)
        follower, leader = self.rng.choice(scalars, 2, replace=False) if is_pair else (scalars[0], None)
        x, y = (0.0 if j is None else self._offset(mechanism, q, j) for j in (leader, follower))
        degree = 1 if self.shape.has("gear", by_chance=False) else 4
        slopes = self.rng.uniform(-1, 1, degree) * (leader is not None)
        constant = y - np.polynomial.Polynomial([0, *slopes])(x)
        names = [f'joint{k}="{mechanism.joints[j].name}"' for k, j in ((1, follower), (2, leader)) if j is not None]
        self.equalities.append(f'<joint name="cam" {" ".join(names)} polycoef="{_text([constant, *slopes])}"/>')

    @staticmethod
    def _offset(mechanism: Mechanism, q: Array, joint: int) -> float:
        return float(q[mechanism.q_slices[joint].start] - mechanism.joints[joint].rest_position[0])

    def _drive(self, mechanism: Mechanism, q: Array) -> bool:
        """Put motors on joints that determine the motion best, at times with a redundant motor."""
        Phi = closure_jacobian_at(mechanism, q[None])[0]
        N = null_space(Phi)
        dofs = {mechanism.dof_slices[j].start: j for j, x in enumerate(mechanism.joints) if POSITIONS[x.kind] == 1}
        dof = N.shape[1]
        if not 0 < dof <= len(dofs):
            return False
        order = qr(N[list(dofs)].T, pivoting=True, mode="r")[1]
        driven = [list(dofs)[k] for k in order[:dof]]
        dependent = np.delete(Phi, driven, axis=1)
        size = float(np.linalg.norm(Phi, 2))  # not that of the dependent columns, which may all be zero
        determined = _is_clear(dependent, size) and _rank(dependent, size) == dependent.shape[1]
        if not (determined and _is_clear(Phi, size) and _moves_mass(mechanism, q)):
            return False
        count = dof + self.shape.has("redundant", by_chance=self.rng.random() < 0.2)
        if self.shape.has("undriven", by_chance=False):
            count -= 1
        if not 0 < count <= len(dofs):
            return False
        chosen = [list(dofs)[k] for k in order[:count]]
        for d in self.rng.permutation(chosen):
            gear = self.rng.choice([-1, 1]) * self.rng.uniform(0.3, 3)
            name = mechanism.joints[dofs[int(d)]].name
            self.motors.append(f'<motor joint="{name}" gear="{gear!s}"/>')
            if self.shape.has("driven rotors", by_chance=False):
                joint = next(joint for body in self.bodies for joint in body.joints if joint["name"] == name)
                joint["armature"] = _one(self.rng.uniform(0, 0.5))
        self._stretch(mechanism)
        drawn = self._written()
        return self.shape.elements is None or elements(drawn, q) == self.shape.elements

    def _stretch(self, mechanism: Mechanism) -> None:
        """Springs and dampers between points, and along a sum of joints."""
        rng = self.rng
        for k in range(2 * self.shape.has("struts", by_chance=False)):
            ends = (self.bodies[-1 - k], self.ground if k else self.bodies[0])
            for end, body in zip("ab", ends, strict=True):
                body.sites.append({"name": f"strut{k}{end}", "pos": _text(rng.normal(0, 0.3, 3))})
            sites = "".join(f'<site site="strut{k}{end}"/>' for end in "ab")
            values = _xml(
                dict(zip(("stiffness", "damping", "springlength"), map(_one, rng.uniform(0, 2, 3)), strict=True))
            )
            self.tendons.append(f'<spatial name="strut{k}" {values}>{sites}</spatial>')
        if self.shape.has("tendons", by_chance=False):
            scalars = [joint.name for joint in mechanism.joints if POSITIONS[joint.kind] == 1]
            parts = "".join(f'<joint joint="{name}" coef="{_one(rng.normal())}"/>' for name in scalars[:2])
            values = _xml(
                dict(zip(("stiffness", "damping", "springlength"), map(_one, rng.uniform(0, 2, 3)), strict=True))
            )
            self.tendons.append(f'<fixed name="sum" {values}>{parts}</fixed>')

    def _write(self) -> None:
        text = f"""<mujoco>
<compiler angle="radian"/>
<option {self.options}/>
<worldbody>{"".join(_lines(self.ground))}</worldbody>
<equality>{"".join(self.equalities)}</equality>
<tendon>{"".join(self.tendons)}</tendon>
<actuator>{"".join(self.motors)}</actuator>
<keyframe>{self.keyframe}</keyframe>
</mujoco>"""
        self.path.write_text(text, encoding="utf-8")

    def _written(self) -> Mechanism:
        self._write()
        return read_mechanism(ModelFile(path=self.path))


def _lines(body: _Body) -> Iterator[str]:
    if body.attributes:
        yield f'\n<body name="{body.name}" {_xml(body.attributes)}>'
        yield from (f"<joint {_xml(joint)}/>" for joint in body.joints)
        yield f"<inertial {_xml(body.inertial)}/>"
    yield from (f"<site {_xml(site)}/>" for site in body.sites)
    for child in body.children:
        yield from _lines(child)
    if body.attributes:
        yield "</body>"


def _xml(attributes: Attributes) -> str:
    return " ".join(f'{name}="{value}"' for name, value in attributes.items())


def _one(value: float) -> str:
    return _text([value])


def _text(values: Array | list[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


def elements(mechanism: Mechanism, q: Array) -> set[str]:
    """Elements of a mechanism, of `ELEMENTS`, in a closed pose."""
    joints, closures = mechanism.joints, mechanism.closures
    scalar = [joint for joint in joints if POSITIONS[joint.kind] == 1]
    others = [joint for joint in joints if POSITIONS[joint.kind] > 1]
    couplings = [closure for closure in closures if isinstance(closure, CoordinateClosure)]
    led = [np.any(closure.coefficients[2:]) for closure in couplings if closure.leader is not None]
    bodies = replace(mechanism, joints=tuple(replace(joint, armature=0.0) for joint in joints))
    rates = unit_rates_of_drives(mechanism) @ free_motions(mechanism, q)  # those of a locked joint are zero
    rotors = {j for j, joint in enumerate(joints) if joint.armature and joint in scalar}
    found = {
        "rotors": bool(rotors - {*mechanism.actuated_joints}),
        "driven rotors": bool(rotors) and rotors <= {*mechanism.actuated_joints},
        "dampers": any(joint.damping for joint in scalar),
        "springs": any(joint.stiffness for joint in scalar),
        "held": any(body.gravity_compensation for body in mechanism.bodies),
        "weld": any(isinstance(closure, WeldClosure) for closure in closures),
        "ball": any(joint.kind == "ball" for joint in joints),
        "coupler": any(led),
        "gear": not all(led),
        "lock": len(led) < len(couplings),
        "again": any(closure.name.startswith("again") for closure in closures),
        "redundant": (np.linalg.norm(rates, axis=1) > RANK_TOLERANCE).sum() > len(independent_rows(rates)),
        "ball rotors": any(joint.armature for joint in others),
        "ball springs": any(joint.stiffness for joint in others),
        "coaxial": not _moves_mass(bodies, q),
        "struts": bool(mechanism.point_springs),
        "tendons": bool(mechanism.tendons),
        "undriven": undriven_dofs(mechanism, q) > 0,
    }
    return {element for element in ELEMENTS if found[element]}


def _moves_mass(mechanism: Mechanism, q: Array) -> bool:
    """Whether every velocity of the tree moves bodies or rotors, as MuJoCo requires."""
    sizes = np.linalg.eigvalsh(inertia_matrix(State.at_rest(mechanism, q[None]))[0])
    return bool(sizes[0] > WELL_CONDITIONED**2 * sizes[-1])


def _is_clear(Phi: Array, size: float) -> bool:
    """Whether every singular value is either zero or well away from it, relative to a size."""
    relative = np.linalg.svd(Phi, compute_uv=False) / size
    return bool(((relative < 1e-12) | (relative > WELL_CONDITIONED)).all())


def _rank(Phi: Array, size: float) -> int:
    return int((np.linalg.svd(Phi, compute_uv=False) > WELL_CONDITIONED * size).sum())
