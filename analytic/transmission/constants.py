"""The constants in the file of a simplified serial model that come nearest to the closed mechanism.

Armature, damping and a spring at each shared joint, mass centre and inertia of each link; masses stay. The remaining
motor efforts over their peaks are least in the mean square. The constants are physical: no constant of a joint is below
zero, and the second moments Σ' about the mass centre are positive, as L Lᵀ with a small addition.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import least_squares

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.transmission.joint_space import JointSpace, joint_efforts, moved
from loopcheck.analytic.transmission.regressor import JOINT_CONSTANTS, LINK_CONSTANTS, SECOND_MOMENTS, links, regressor
from loopcheck.analytic.transmission.terms import motor_efforts
from loopcheck.analytic.transmission.twin import Twin, Workspace
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism

DRAWS = 4
"""Rates and accelerations that are drawn at each pose of the workspace."""
HOLD = 3e-4
"""Cost of a change of the file's constants, over the cost of the whole motor effort as an error [-]."""
THICK = 1e-3
"""Least second moment of mass, over the mean second moment of the link [-]."""
FAR = 2.0
"""Rest positions of a joint's spring: distance from the middle of its range, in widths of the range [-]."""
BEGIN = 1e-2
"""Smallest stiffness in the search for a spring, over the largest useful stiffness [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """A stand-in with other constants."""

    mechanism: Mechanism
    """With its joints and bodies as they are to be."""
    change: Array
    """Differences, in the order of the regressor's columns [any unit], shape (p,)."""

    def space(self, serial: JointSpace) -> JointSpace:
        """The stand-in with these constants, seen at its shared joints.

        Args:
            serial: As its file has it.
        """
        return replace(serial, mechanism=self.mechanism)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Rates and accelerations of motions: reciprocating motions are pulled back to the middle."""

    middle: Array
    """Of the shared coordinates [m or rad], shape (n,)."""
    pull: Array
    """Acceleration per distance from the middle [1/s²], shape (n,)."""
    rates: Array
    """Root mean square [m/s or rad/s], shape (n,)."""
    accelerations: Array
    """Root mean square not explained by the pull [m/s² or rad/s²], shape (n,)."""

    def drawn(self, x: Array, generator: np.random.Generator) -> tuple[Array, Array]:
        """Random rates and accelerations at some positions.

        Args:
            x: Shared coordinates [m or rad], shape (nt, n).
            generator: Of random numbers.

        Returns:
            Rates and accelerations [m/s or rad/s, per s], both of shape (nt, n).
        """
        xd, xdd = (generator.normal(0, 1, x.shape) * size for size in (self.rates, self.accelerations))
        return xd, xdd + self.pull * (x - self.middle)


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Motions at the poses of a workspace."""

    lacking: Array
    """Efforts at the joints that the stand-in lacks [N or N m], shape (nt, n)."""
    closed: Array
    """Efforts of the closed mechanism [N or N m], shape (nt, n)."""
    regressor: Array
    """Of the serial model [any unit], shape (nt, n, p)."""
    transmission: Array
    """Of the closed mechanism's motors [-, or ratios of the units], shape (nt, na, n)."""


def best_constants(twin: Twin, samples: Workspace, pace: Pace, links_too: bool = True) -> Constants:
    """Constants that come nearest to the closed mechanism over the workspace.

    Args:
        pace: Rates and accelerations of the motions.
        links_too: Whether mass centres and inertias of links may change besides the constants of joints.
    """
    states = _states(twin, samples, pace)
    peaks = np.abs(motor_efforts(states.transmission, states.closed)).max(axis=0)
    peaks = np.where(peaks > 0, peaks, 1.0)
    A, b = at_motors(states.transmission, states.regressor), motor_efforts(states.transmission, states.lacking)
    size = np.sqrt(b.size)
    rows = np.concatenate([A / peaks[:, None], (b / peaks)[..., None]], axis=2).reshape(b.size, -1) / size
    rows = np.linalg.qr(rows).R
    parts = [*_joint_parts(twin, states), *(_link_parts(twin) if links_too else [])]
    z = _fitted(parts, rows[:, :-1], rows[:, -1])
    values = [part.value(own) for part, own in zip(parts, _split(z, parts), strict=True)]
    change = np.zeros(rows.shape[1] - 1)
    for part, value in zip(parts, values, strict=True):
        change[part.columns] = value
    return Constants(mechanism=_changed(twin.serial, z, parts), change=change)


def at_motors(transmission: Array, columns: Array) -> Array:
    """Columns of efforts at the joints as columns of efforts of the motors.

    Args:
        transmission: T [-, or ratios of the units], shape (nt, na, n).
        columns: Of a regressor [any unit], shape (nt, n, p).

    Returns:
        Columns [any unit], shape (nt, na, p).
    """
    return np.asarray(np.linalg.pinv(transmission).swapaxes(1, 2) @ columns)


def least_error(columns: Array, lacking: Array) -> float:
    """Lower bound of the root mean square over all constants, unphysical bodies included.

    Args:
        columns: Efforts per unit of each constant [any unit], shape (rows, p).
        lacking: Missing efforts of the serial model [the same unit], shape (rows,).

    Returns:
        Of all rows [that unit].
    """
    A = columns / np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
    left = lacking - A @ np.linalg.lstsq(A, lacking, rcond=RANK_TOLERANCE)[0]
    return float(np.sqrt(np.mean(left**2)))


def _states(twin: Twin, samples: Workspace, pace: Pace) -> States:
    """Motions of random rates and accelerations at all poses that both reach."""
    x = np.repeat(samples.x[samples.common], DRAWS, axis=0)
    xd, xdd = pace.drawn(x, np.random.default_rng(0))
    efforts, motions = [], []
    for space, poses in ((twin.closed, samples.closed_q), (twin.serial, samples.serial_q)):
        q = np.repeat(poses, DRAWS, axis=0)
        motions.append((q, *moved(space, q, xd, xdd)))
        efforts.append(joint_efforts(space, *motions[-1]))
    return States(
        lacking=efforts[0] - efforts[1],
        closed=efforts[0],
        regressor=regressor(twin.serial, *motions[1]),
        transmission=np.repeat(samples.closed.transmission[:, list(twin.motors)], DRAWS, axis=0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A joint or a link: variables that a file may have, and the change of the regressor's columns by them."""

    columns: Sequence[int]
    start: Array
    scale: Array
    low: Array
    high: Array
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]


def _joint_parts(twin: Twin, states: States) -> list[_Part]:
    """Armature, damping, stiffness and rest of the spring of each shared joint, in the sense of its coordinate."""
    parts, n, space = [], len(twin.names), twin.serial
    largest = np.abs(states.closed).max(axis=0) + np.abs(states.lacking).max(axis=0)
    for k, j in enumerate(space.joints):
        joint = space.mechanism.joints[j]
        low, high = twin.ranges[k]
        middle, width = (low + high) / 2, high - low
        rest = float(space.signs[k] * joint.spring_reference[0]) if joint.stiffness else middle
        own = np.array([joint.armature, joint.damping, joint.stiffness, rest])
        sizes = np.abs(states.regressor[:, k, [k, n + k]]).max(axis=0)
        scale = np.array([*largest[k] / np.where(sizes > 0, sizes, 1.0), largest[k] / width, width])
        parts.append(
            _Part(
                columns=[kind * n + k for kind in range(JOINT_CONSTANTS)],
                start=np.maximum(own, [0.0, 0.0, BEGIN * scale[2], -np.inf]),
                scale=np.where(scale > 0, scale, 1.0),
                low=np.array([0.0, 0.0, 0.0, min(rest, middle - FAR * width) - 1e-9]),
                high=np.array([np.inf, np.inf, np.inf, max(rest, middle + FAR * width) + 1e-9]),
                value=partial(_joint_change, own=own),
                slope=_joint_slope,
            )
        )
    return parts


def _joint_change(z: Array, own: Array) -> Array:
    """Change of armature, damping, stiffness and constant effort by values and those of the file."""
    return np.array([*(z[:3] - own[:3]), own[2] * own[3] - z[2] * z[3]])


def _joint_slope(z: Array) -> Array:
    slope = np.eye(4)
    slope[3, 2:] = -z[3], -z[2]
    return slope


def _link_parts(twin: Twin) -> list[_Part]:
    """Displacement of the mass centre, and the lower triangle L, of each link."""
    parts, space = [], twin.serial
    first = JOINT_CONSTANTS * len(twin.names)
    for place, b in enumerate(links(space)):
        body = space.mechanism.bodies[b]
        second = _second_moments(body.inertia)
        thick = THICK * max(np.trace(second) / 3, 0.0)
        values, axes = np.linalg.eigh(second)
        inside = (axes * np.maximum(values - thick, thick)) @ axes.T
        L, gyration = np.linalg.cholesky(inside), np.sqrt(max(np.trace(second), 0.0))
        start = np.concatenate([np.zeros(3), [L[i, j] for i, j in SECOND_MOMENTS]])
        begin = first + LINK_CONSTANTS * place
        parts.append(
            _Part(
                columns=range(begin, begin + LINK_CONSTANTS),
                start=start,
                scale=np.array([gyration / np.sqrt(body.mass)] * 3 + [gyration] * 6),
                low=np.full(LINK_CONSTANTS, -np.inf),
                high=np.full(LINK_CONSTANTS, np.inf),
                value=partial(_link_change, mass=body.mass, second=second, thick=thick),
                slope=partial(_link_slope, mass=body.mass),
            )
        )
    return parts


def _second_moments(inertia: Array) -> Array:
    """Second moments of mass of an inertia matrix, and the other way round but for a factor: tr(I) 1/2 − I."""
    return np.asarray(np.trace(inertia) / 2 * np.eye(3) - inertia)


def _triangle(z: Array) -> Array:
    L = np.zeros((3, 3))
    for value, place in zip(z[3:], SECOND_MOMENTS, strict=True):
        L[place] = value
    return L


def _link_change(z: Array, mass: float, second: Array, thick: float) -> Array:
    L, d = _triangle(z), z[:3]
    moments = L @ L.T + thick * np.eye(3) + mass * np.outer(d, d) - second
    return np.concatenate([mass * d, [moments[place] for place in SECOND_MOMENTS]])


def _link_slope(z: Array, mass: float) -> Array:
    slope, L, d = np.zeros((LINK_CONSTANTS, LINK_CONSTANTS)), _triangle(z), z[:3]
    slope[:3, :3] = mass * np.eye(3)
    for k in range(3):
        outer = np.outer(np.eye(3)[k], d)
        slope[3:, k] = [mass * (outer + outer.T)[place] for place in SECOND_MOMENTS]
    for k, (i, j) in enumerate(SECOND_MOMENTS):
        outer = np.outer(np.eye(3)[i], L[:, j])
        slope[3:, 3 + k] = [(outer + outer.T)[place] for place in SECOND_MOMENTS]
    return slope


def _split(z: Array, parts: Sequence[_Part]) -> list[Array]:
    return np.split(z, np.cumsum([len(part.start) for part in parts])[:-1])


def _fitted(parts: Sequence[_Part], A: Array, b: Array) -> Array:
    """Variables of all parts that leave least of b."""
    start, scale, low, high = (np.concatenate([getattr(part, name) for part in parts]) for name in _BOUNDS)

    def left(z: Array) -> Array:
        error = -b
        for part, own in zip(parts, _split(z * scale, parts), strict=True):
            error = error + A[:, part.columns] @ part.value(own)
        return np.concatenate([error, HOLD * (z - start / scale)])

    def slope(z: Array) -> Array:
        blocks = [
            A[:, part.columns] @ part.slope(own) for part, own in zip(parts, _split(z * scale, parts), strict=True)
        ]
        return np.concatenate([np.concatenate(blocks, axis=1) * scale, HOLD * np.eye(len(z))])

    begin = np.clip(start / scale, low / scale + 1e-9, high / scale - 1e-9)
    solution = least_squares(left, begin, jac=slope, bounds=(low / scale, high / scale), max_nfev=200)
    return np.asarray(solution.x * scale)


_BOUNDS = ("start", "scale", "low", "high")


def _changed(space: JointSpace, z: Array, parts: Sequence[_Part]) -> Mechanism:
    """The mechanism with the values that were found."""
    mechanism, values = space.mechanism, _split(z, parts)
    joints, bodies = list(mechanism.joints), list(mechanism.bodies)
    for k, j in enumerate(space.joints):
        armature, damping, stiffness, rest = map(float, values[k])
        reference = np.array([space.signs[k] * rest])
        joints[j] = replace(
            joints[j], armature=armature, damping=damping, stiffness=stiffness, spring_reference=reference
        )
    for b, part, own in zip(links(space), parts[len(space.joints) :], values[len(space.joints) :], strict=False):
        body = bodies[b]
        second = _second_moments(body.inertia)
        change = part.value(own)[3:]
        moments = second + _symmetric(change) - body.mass * np.outer(own[:3], own[:3])
        bodies[b] = replace(body, center=body.center + own[:3], inertia=np.trace(moments) * np.eye(3) - moments)
    return replace(mechanism, joints=tuple(joints), bodies=tuple(bodies))


def _symmetric(entries: Array) -> Array:
    matrix = np.zeros((3, 3))
    for value, (i, j) in zip(entries, SECOND_MOMENTS, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix
