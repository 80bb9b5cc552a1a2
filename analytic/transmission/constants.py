"""The constants in the file of a serial model that come nearest to the closed mechanism.

Armature comes first, and further kinds of constants are added one by one, while each lowers the mean error on motions
that choose by a tenth, and raises that of no motor in any of them, some of which are on a tilted base.
Armature and damping are diagonals of the missing inertia and damping over a fixed grid of poses, so that equal legs get
equal constants. Links are fitted to the mechanisms without rotors, dampers and springs: none of these hides in a link.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import product

import numpy as np
from numpy.polynomial.chebyshev import chebpts1
from scipy.optimize import least_squares, lsq_linear, nnls
from scipy.sparse.csgraph import connected_components

from loopcheck.analytic.transmission.joint_space import JointSpace, joint_efforts
from loopcheck.analytic.transmission.motions import TILTED, MotionEfforts, is_worse, mean_error
from loopcheck.analytic.transmission.regressor import LINK_CONSTANTS, SECOND_MOMENTS, links, regressor
from loopcheck.analytic.transmission.terms import JointTerms, joint_terms, to_motors
from loopcheck.analytic.transmission.twin import Twin, sound_poses
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import Joint, Mechanism, PointSpring, Tendon

GRID, ALONE, MOST = 9, 41, 1000
"""Poses of the grid along each joint, along a joint that is not coupled to others, and in total."""
USUAL = 0.35
"""Distance of usual poses from the middle, root mean square, in half widths of the box [-]."""
UNCOUPLED = 1e-9
"""Coupling below this part of the coupled terms is none, and so is a change over the poses [-]."""
LESS, LEAST_GAIN = 0.9, 1e-3
"""An added kind leaves less than this part of the error, and lowers it by more than this part of the peak [-]."""
HOLD = 3e-4
"""Cost of a change of a link, over the cost of the whole motor effort as an error [-]."""
THICK = 1e-3
"""Least second moment of mass, over the mean second moment of the link [-]."""


class Kind(StrEnum):
    """Constants of a file, in the order in which they are tried."""

    ARMATURE = "armature"
    DAMPING = "damping"
    LINKS = "links"
    SPRINGS = "springs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """A serial model with other constants."""

    mechanism: Mechanism
    """With its joints and bodies as they are to be."""
    kinds: tuple[Kind, ...]
    """Kinds that differ from the file."""

    def space(self, serial: JointSpace) -> JointSpace:
        """The serial model with these constants, seen at its shared joints.

        Args:
            serial: As its file has it.
        """
        return replace(serial, mechanism=self.mechanism)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Both mechanisms at poses of joints that are coupled, all others in the middle of the box."""

    joints: tuple[int, ...]
    """Places of the joints among the shared ones."""
    motors: tuple[int, ...]
    """Places of the motors that move them, among those of the twin."""
    half: Array
    """Half widths of the box of these joints [m or rad], shape (m,)."""
    x: Array
    """Their coordinates [m or rad], shape (np, m)."""
    weights: Array
    """Of usual poses [-], shape (np,); their sum has no effect."""
    closed: JointTerms
    serial_q: Array
    """Poses of the serial model [m or rad], shape (np, nq)."""

    def diagonal(self, missing: Array, whole: Array) -> Array:
        """The diagonal of missing inertia or damping that comes nearest, see `nearest_diagonal`.

        Args:
            missing: Of all shared joints [any unit], shape (np, n, n).
            whole: That of the closed mechanism [any unit], shape (np, n, n).

        Returns:
            One value for each of the joints [any unit], shape (m,).
        """
        own = np.ix_(range(len(self.x)), self.joints, self.joints)
        return nearest_diagonal(self._to_motors, missing[own], whole[own], self.half, self.weights)

    def springs(self, holding: Array) -> Array:
        """Linear springs whose efforts at the motors come nearest to those of the closed mechanism's springs.

        Args:
            holding: Efforts that hold the springs, at all shared joints [N or N m], shape (np, n).

        Returns:
            Stiffness and effort at zero of each joint [N/m or N m/rad, N or N m], shape (m, 2).
        """
        m, inverse = len(self.joints), self._to_motors
        wanted = (inverse @ holding[:, self.joints, None])[..., 0]
        weight = np.sqrt(self.weights)[:, None] / motor_scales(wanted[..., None], self.weights)
        columns = np.concatenate([inverse * self.x[:, None], inverse], axis=2) * weight[..., None]
        least = np.repeat([0.0, -np.inf], m)
        found = lsq_linear(columns.reshape(-1, 2 * m), (wanted * weight).ravel(), (least, np.inf), method="bvls").x
        return np.asarray(found.reshape(2, m).T)

    @property
    def _to_motors(self) -> Array:
        T = self.closed.transmission[:, self.motors][:, :, self.joints]
        return to_motors(T)


def usual_poses(joints: int) -> tuple[Array, Array]:
    """A tensor grid of Chebyshev points over a box, and weights of usual poses.

    Args:
        joints: Their number, m.

    Returns:
        Coordinates from −1 to 1 [-], shape (np, m), and weights that sum to 1 [-], shape (np,).
    """
    points = chebpts1(ALONE if joints == 1 else max(2, min(GRID, int(MOST ** (1 / joints)))))
    u = np.array(list(product(points, repeat=joints)))
    weights = np.exp(-0.5 * (u**2).sum(axis=1) / USUAL**2)
    return u, weights / weights.sum()


def nearest_diagonal(inverse: Array, missing: Array, whole: Array, half: Array, weights: Array) -> Array:
    """The diagonal, not negative, that leaves least of T⁻ᵀ (missing − diagonal) Σ, Σ the half widths of the box.

    Each motor counts over the weighted size of its part of T⁻ᵀ whole Σ. A missing diagonal that is the same
    at all poses is returned as it is.

    Args:
        inverse: T⁻ᵀ [-, or ratios of the units], shape (np, na, m).
        missing: Inertia or damping that a serial model lacks [any unit], shape (np, m, m).
        whole: That of the closed mechanism [any unit], shape (np, m, m).
        half: Half widths [m or rad], shape (m,).
        weights: Of the poses [-], shape (np,); their sum has no effect.

    Returns:
        [any unit], shape (m,).
    """
    entries, size = missing.diagonal(axis1=1, axis2=2), np.abs(whole).max()
    rest = missing - entries[:, :, None] * np.eye(len(half))
    if max(np.abs(rest).max(), np.ptp(entries, axis=0).max()) <= UNCOUPLED * size:
        usual = entries[weights.argmax()]
        return np.where(usual > UNCOUPLED * size, usual, 0.0)
    used = motor_scales(inverse @ whole * half, weights)[:, None]
    columns, lacking = inverse / used, inverse @ missing / used
    square = np.einsum("p,paj,paj->j", weights, columns, columns)
    return np.maximum(np.einsum("p,paj,paj->j", weights, columns, lacking) / square, 0.0)


def motor_scales(efforts: Array, weights: Array) -> Array:
    """Root of the weighted sum of squares of efforts of each motor, 1 where there are none.

    Args:
        efforts: Of the motors [any unit], shape (np, na, any).
        weights: Of the poses [-], shape (np,).
    """
    sizes = np.sqrt(np.einsum("p,paj->a", weights, efforts**2))
    return np.where(sizes > 0, sizes, 1.0)


def fitted_constants(
    twin: Twin,
    box: Array,
    fit: Sequence[MotionEfforts],
    choice: Sequence[MotionEfforts],
    able: Collection[Kind],
) -> Constants:
    """Constants that come nearest to the closed mechanism, as far as they help.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
        fit: Motions that links are fitted to.
        choice: Motions that decide which kinds of constants help.
        able: Kinds that the file can hold.
    """
    search = _Search(twin=twin, grids=grids_of(twin, box), fit=fit)
    upright = [motion for motion in choice if motion.name != TILTED]
    usable = frozenset(kind for kind in Kind if kind in able and search.can_use(kind))
    kinds = frozenset[Kind]()
    tried = {kinds: (twin.serial.mechanism, mean_error(upright))}

    def fitted(more: frozenset[Kind]) -> tuple[Mechanism, float]:
        if more not in tried:
            other = search.with_kinds(more)
            tried[more] = other, mean_error(upright, other)
        return tried[more]

    def helps(less: frozenset[Kind], more: frozenset[Kind]) -> bool:
        before, (other, after) = fitted(less)[1], fitted(more)
        is_less = more - less == {Kind.ARMATURE} or after < LESS * before
        return is_less and before - after > LEAST_GAIN and not is_worse(choice, other)

    added = [frozenset({kind}) for kind in Kind if kind in usable]
    while more := next((kinds | one for one in added if not one <= kinds and helps(kinds, kinds | one)), None):
        kinds = more
    if kinds != usable and helps(kinds, usable):  # each may need the others
        kinds = usable
        for one in reversed(added):
            if not is_worse(choice, fitted(kinds - one)[0]) and not helps(kinds - one, kinds):
                kinds -= one
    return Constants(mechanism=fitted(kinds)[0], kinds=tuple(kind for kind in Kind if kind in kinds))


def with_armatures(twin: Twin, armatures: Array) -> Mechanism:
    """The serial model with other armatures.

    Args:
        armatures: Of the shared joints [kg or kg m²], shape (n,).
    """
    mechanism = twin.serial.mechanism
    joints = list(mechanism.joints)
    for j, armature in zip(twin.serial.joints, armatures, strict=True):
        joints[j] = replace(joints[j], armature=float(armature))
    return replace(mechanism, joints=tuple(joints))


def armatures_of(twin: Twin, mechanism: Mechanism) -> Array:
    """Armatures of the shared joints [kg or kg m²], shape (n,).

    Args:
        mechanism: The serial model with any constants.
    """
    return np.array([mechanism.joints[j].armature for j in twin.serial.joints])


def armatures_at(twin: Twin, x: Array) -> Array:
    """Armatures with the inertia of the closed mechanism at one pose, not below those of the file.

    Args:
        x: Shared coordinates [m or rad], shape (n,).

    Returns:
        [kg or kg m²], shape (n,).
    """
    closed, serial = (
        joint_terms(space, sound_poses(space, x[None])[0]).mass[0] for space in (twin.closed, twin.serial)
    )
    return armatures_of(twin, twin.serial.mechanism) + np.maximum(np.diag(closed - serial), 0.0)


def best_in_hindsight(twin: Twin, motions: Sequence[MotionEfforts]) -> Mechanism:
    """The serial model with armatures fitted to some motions themselves, not below those of the file.

    Of all armatures, they leave the least mean square of the errors over the peaks.
    """
    columns, lacking = [], []
    for motion in motions:
        peaks = np.where(motion.peaks > 0, motion.peaks, np.inf)
        inverse = to_motors(motion.transmission)
        columns.append((inverse * motion.course[2][:, None] / peaks[:, None]).reshape(-1, inverse.shape[2]))
        lacking.append((motion.at_motors(motion.closed - motion.serial) / peaks).ravel())
    added = nnls(np.concatenate(columns), np.concatenate(lacking))[0]
    return with_armatures(twin, armatures_of(twin, twin.serial.mechanism) + added)


def grids_of(twin: Twin, box: Array) -> list[Grid]:
    """Poses for each set of coupled joints: a tensor grid of Chebyshev points of the box, as far as they are sound.

    Args:
        box: Lowest and highest value of each shared coordinate [m or rad], shape (n, 2).
    """
    middle, half = box.mean(axis=1), np.ptp(box, axis=1) / 2
    grids = []
    for joints, motors in _coupled(twin, middle, half):
        u, weights = usual_poses(len(joints))
        x = np.repeat(middle[None], len(u), axis=0)
        x[:, joints] += u * half[list(joints)]
        common, closed_q, serial_q = _common_poses(twin, x)
        grids.append(
            Grid(
                joints=joints,
                motors=motors,
                half=half[list(joints)],
                x=x[common][:, joints],
                weights=weights[common],
                closed=_of_motors(twin, joint_terms(twin.closed, closed_q)),
                serial_q=serial_q,
            )
        )
    return grids


def _common_poses(twin: Twin, x: Array) -> tuple[AnyArray, Array, Array]:
    """The mask of the coordinates at which both mechanisms are sound, and the poses of each there."""
    (closed_q, sound), (serial_q, reached) = (sound_poses(space, x) for space in (twin.closed, twin.serial))
    common = sound & reached
    return common, closed_q[common], serial_q[common]


def _of_motors(twin: Twin, terms: JointTerms) -> JointTerms:
    return replace(terms, transmission=terms.transmission[:, list(twin.motors)])


def _coupled(twin: Twin, middle: Array, half: Array) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sets of joints that share motors or missing inertia near the middle of the box, each with its motors."""
    n = len(middle)
    x = middle + np.concatenate([np.zeros((1, n)), *(sign * 0.5 * np.diag(half) for sign in (-1, 1))])
    _, *poses = _common_poses(twin, x)
    closed, serial = (joint_terms(space, q) for space, q in zip((twin.closed, twin.serial), poses, strict=True))
    T = np.abs(_of_motors(twin, closed).transmission * half).max(axis=0)
    moves = UNCOUPLED * T.max(axis=1, keepdims=True, initial=0.0) < T
    sizes = np.sqrt(np.einsum("pii->pi", closed.mass))
    is_coupled = np.abs(closed.mass - serial.mass) > UNCOUPLED * sizes[:, :, None] * sizes[:, None, :]
    number, labels = connected_components(is_coupled.any(axis=0) | (moves.T.astype(int) @ moves.astype(int) > 0))
    for label in range(number):
        joints = np.flatnonzero(labels == label)
        yield tuple(map(int, joints)), tuple(map(int, np.flatnonzero(moves[:, joints].any(axis=1))))


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Serial models with fitted constants of any kinds."""

    twin: Twin
    grids: Sequence[Grid]
    fit: Sequence[MotionEfforts]

    def can_use(self, kind: Kind) -> bool:
        """Whether constants of a kind can stand for something that the closed mechanism has."""
        closed = self.twin.closed.mechanism
        if kind is Kind.SPRINGS:
            parts: tuple[Sequence[Joint | Tendon | PointSpring], ...] = (
                closed.joints,
                closed.tendons,
                closed.point_springs,
            )
            return any(part.stiffness for each in parts for part in each)
        return kind is not Kind.LINKS or bool(self.fit and links(self.twin.serial))

    def with_kinds(self, kinds: Collection[Kind]) -> Mechanism:
        """The serial model with constants of some kinds."""
        serial = self.twin.serial
        mechanism = self._with_links if Kind.LINKS in kinds else serial.mechanism
        space = replace(serial, mechanism=mechanism)
        joints = list(mechanism.joints)
        for grid in self.grids:
            own = joint_terms(space, grid.serial_q)
            changes: dict[str, Array] = {}
            if Kind.ARMATURE in kinds:
                changes["armature"] = grid.diagonal(grid.closed.mass - own.mass, grid.closed.mass)
            if Kind.DAMPING in kinds:
                changes["damping"] = grid.diagonal(grid.closed.damping - own.damping, grid.closed.damping)
            for name, values in changes.items():
                for k, value in zip(grid.joints, values, strict=True):
                    j = serial.joints[k]
                    joints[j] = replace(joints[j], **{name: getattr(joints[j], name) + float(value)})
            for k, (stiffness, effort) in zip(
                grid.joints, grid.springs(grid.closed.spring) if Kind.SPRINGS in kinds else (), strict=False
            ):
                j = serial.joints[k]
                rest = np.array([-serial.signs[k] * effort / stiffness]) if stiffness else joints[j].rest_position
                joints[j] = replace(joints[j], stiffness=float(stiffness), spring_reference=rest)
        return replace(mechanism, joints=tuple(joints))

    @cached_property
    def _with_links(self) -> Mechanism:
        """The serial model with links fitted to both mechanisms without rotors, dampers and springs."""
        serial = replace(self.twin.serial, mechanism=_bare(self.twin.serial.mechanism))
        closed = replace(self.twin.closed, mechanism=_bare(self.twin.closed.mechanism))
        rows = []
        for motion in self.fit:
            lacking = joint_efforts(closed, *motion.closed_state) - joint_efforts(serial, *motion.serial_state)
            peaks = np.where(motion.peaks > 0, motion.peaks, np.inf)[:, None]
            inverse = to_motors(motion.transmission)
            columns = np.concatenate([regressor(serial, *motion.serial_state), lacking[..., None]], axis=2)
            rows.append((inverse @ columns / peaks).reshape(-1, columns.shape[2]))
        every = np.concatenate(rows) / np.sqrt(sum(map(len, rows)))
        R = np.linalg.qr(every).R
        return _fitted_links(self.twin.serial, R[:, :-1], R[:, -1])


def _bare(mechanism: Mechanism) -> Mechanism:
    """A mechanism without rotors, dampers and springs."""
    return replace(
        mechanism,
        joints=tuple(replace(joint, armature=0.0, damping=0.0, stiffness=0.0) for joint in mechanism.joints),
        tendons=tuple(replace(tendon, armature=0.0, damping=0.0, stiffness=0.0) for tendon in mechanism.tendons),
        point_springs=(),
    )


def _fitted_links(space: JointSpace, A: Array, b: Array) -> Mechanism:
    """The mechanism with the physical mass centres and inertias that leave least of b, masses unchanged."""
    mechanism, places = space.mechanism, links(space)
    parts = [_Link.of(mechanism, index) for index in places]
    scale = np.concatenate([part.scale for part in parts])
    start = np.concatenate([part.start for part in parts]) / scale

    def split(z: Array) -> list[Array]:
        return np.split(z * scale, len(parts))

    def left(z: Array) -> Array:
        change = np.concatenate([part.change(own) for part, own in zip(parts, split(z), strict=True)])
        return np.concatenate([A @ change - b, HOLD * (z - start)])

    def slope(z: Array) -> Array:
        blocks = [
            A[:, k * LINK_CONSTANTS : (k + 1) * LINK_CONSTANTS] @ part.slope(own)
            for k, (part, own) in enumerate(zip(parts, split(z), strict=True))
        ]
        return np.concatenate([np.concatenate(blocks, axis=1) * scale, HOLD * np.eye(len(z))])

    z = least_squares(left, start, jac=slope, max_nfev=200).x
    bodies = list(mechanism.bodies)
    for index, part, own in zip(places, parts, split(z), strict=True):
        moments = part.second + _symmetric(part.change(own)[3:]) - part.mass * np.outer(own[:3], own[:3])
        inertia = np.trace(moments) * np.eye(3) - moments
        bodies[index] = replace(bodies[index], center=bodies[index].center + own[:3], inertia=inertia)
    return replace(mechanism, bodies=tuple(bodies))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """A link of constant mass: displacement d of its mass centre, and the lower triangle L of its second moments.

    The second moments Σ' about the mass centre are positive, as L Lᵀ with a small addition.
    """

    mass: float
    second: Array
    """Second moments of the file [kg m²], shape (3, 3)."""
    thick: float
    start: Array
    """d and L of the file, shape (9,)."""
    scale: Array
    """Of d and L [m, kg½ m], shape (9,)."""

    @classmethod
    def of(cls, mechanism: Mechanism, index: int) -> "_Link":
        body = mechanism.bodies[index]
        second = np.trace(body.inertia) / 2 * np.eye(3) - body.inertia
        thick = THICK * max(np.trace(second) / 3, 0.0)
        values, axes = np.linalg.eigh(second)
        L = np.linalg.cholesky((axes * np.maximum(values - thick, thick)) @ axes.T)
        gyration = np.sqrt(max(np.trace(second), 0.0))
        return cls(
            mass=body.mass,
            second=second,
            thick=thick,
            start=np.concatenate([np.zeros(3), [L[place] for place in SECOND_MOMENTS]]),
            scale=np.array([gyration / np.sqrt(body.mass)] * 3 + [gyration] * 6),
        )

    def change(self, z: Array) -> Array:
        """Change of the first and second moments of mass [kg m, kg m²], shape (9,)."""
        L, d = _triangle(z), z[:3]
        moments = L @ L.T + self.thick * np.eye(3) + self.mass * np.outer(d, d) - self.second
        return np.concatenate([self.mass * d, [moments[place] for place in SECOND_MOMENTS]])

    def slope(self, z: Array) -> Array:
        """Derivative of `change`, shape (9, 9)."""
        slope, L, d = np.zeros((LINK_CONSTANTS, LINK_CONSTANTS)), _triangle(z), z[:3]
        slope[:3, :3] = self.mass * np.eye(3)
        for k in range(3):
            outer = np.outer(np.eye(3)[k], d)
            slope[3:, k] = [self.mass * (outer + outer.T)[place] for place in SECOND_MOMENTS]
        for k, (i, j) in enumerate(SECOND_MOMENTS):
            outer = np.outer(np.eye(3)[i], L[:, j])
            slope[3:, 3 + k] = [(outer + outer.T)[place] for place in SECOND_MOMENTS]
        return slope


def _triangle(z: Array) -> Array:
    L = np.zeros((3, 3))
    for value, place in zip(z[3:], SECOND_MOMENTS, strict=True):
        L[place] = value
    return L


def _symmetric(entries: Array) -> Array:
    matrix = np.zeros((3, 3))
    for value, (i, j) in zip(entries, SECOND_MOMENTS, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix
