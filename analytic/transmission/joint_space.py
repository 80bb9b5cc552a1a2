"""A mechanism seen at some of its joints: its closed poses and motions as functions of theirs.

D holds the joint velocities per unit rate of each shared joint with the loops closed, D = N (X N)⁻¹ with N = null(Φ)
and X the rates of the shared joints. Remaining motions, as of rods that spin, must need no effort, and D is less
its part along them, D − Z (ZᵀMZ)⁻¹ ZᵀMD, as in `loopcheck.analytic.kinematics.redundancy.actuator_motions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.dynamics.noc import tree_model
from loopcheck.analytic.dynamics.powers import tree_inertia
from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    null_space,
    row_factors,
    solve_dependent,
)
from loopcheck.analytic.kinematics.continuation import CLOSED, close, close_batch
from loopcheck.analytic.kinematics.redundancy import WELL_CONDITIONED, free_motions
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import poses, retract
from loopcheck.analytic.transmission.carrying import carried_masses
from loopcheck.robots.arrays import (
    AccelerationSeries,
    AnyArray,
    Array,
    JointPositions,
    PositionSeries,
    VelocitySeries,
    svd,
)
from loopcheck.robots.errors import LoopClosureError, MechanismError, NotFoundError
from loopcheck.robots.mechanism import (
    WORLD,
    Closure,
    Coordinate,
    CoordinateClosure,
    Mechanism,
    WeldClosure,
)
from loopcheck.robots.size import unit_rates

STEP = 0.05
"""Longest step of a shared joint on the way to a pose [rad, or in sizes of the robot]."""
IDLE = 1e-9
"""Largest force along a motion without cost, over the largest force [-]."""
SLIGHT = 1e-5
"""The same for motions with a force that is ignored but reported, as of a rod with a rounded mass centre [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointSpace:
    """A mechanism and its shared joints."""

    mechanism: Mechanism
    """With a closure for each joint that does not move."""
    joints: tuple[int, ...]
    """Indices of the shared joints."""
    signs: Array
    """Sense of each: shared coordinate per joint position, 1 or −1 [-], shape (n,)."""
    start: Array
    """A closed pose [m or rad], shape (nq,)."""
    spare: int = 0
    """Further degrees of freedom without cost, as of spinning rods."""
    left_out: str = ""
    """Ignored force along these motions, as text."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the shared joints."""
        return tuple(self.mechanism.joints[j].name for j in self.joints)

    @property
    def dofs(self) -> list[int]:
        """Places of the shared joints in qd."""
        return [self.mechanism.dof_slices[j].start for j in self.joints]

    @property
    def selection(self) -> Array:
        """Rates of the shared coordinates per joint velocity, X [-], shape (n, nv)."""
        X = np.zeros((len(self.joints), self.mechanism.nv))
        X[np.arange(len(self.joints)), self.dofs] = self.signs
        return X

    def coordinates(self, q: PositionSeries) -> Array:
        """Values of the shared coordinates.

        Returns:
            x [m or rad], shape (nt, n).
        """
        return self.signs * q[:, [self.mechanism.q_slices[j].start for j in self.joints]]


def want_no_lengths(mechanism: Mechanism) -> None:
    """Refuse lengths of spatial tendons as coordinates: a serial model has its motors on joints.

    Raises:
        MechanismError: If there are any.
    """
    lengths = [joint.name for joint in mechanism.joints if joint.body == WORLD]
    if lengths:
        raise MechanismError(
            f"{mechanism.model.path}: motors and springs must be on joints for a serial model, got the spatial tendon "
            f"'{lengths[0]}'. Use --actuated with joints, and remove springs and equalities of tendons"
        )


def fixed_joints(mechanism: Mechanism, names: Sequence[str]) -> tuple[str, ...]:
    """Joints that do not move: free joints, as of a base, and existing joints by name.

    Args:
        names: Names of hinges and slides.

    Raises:
        MechanismError: If a named joint is a ball.
    """
    balls = [joint.name for joint in mechanism.joints if joint.kind == "ball" and joint.name in names]
    if balls:
        raise MechanismError(f"{mechanism.model.path}: held joints must be hinges or slides, got the ball {balls[0]}")
    return tuple(joint.name for joint in mechanism.joints if joint.kind == "free" or joint.name in names)


def want_known(names: Sequence[str], *mechanisms: Mechanism) -> None:
    """Refuse joints that none of the mechanisms has.

    Raises:
        NotFoundError: Lists the valid names.
    """
    known = dict.fromkeys(joint.name for mechanism in mechanisms for joint in mechanism.joints)
    for name in names:
        if name not in known:
            raise NotFoundError("joint", name, known)


def closed_start(
    mechanism: Mechanism, guess: JointPositions, fixed: Sequence[str], given: Sequence[str] = ()
) -> tuple[Mechanism, Array]:
    """The mechanism with joints that do not move, and a closed pose.

    Args:
        fixed: Names of the immobile joints.
        given: Names of hinges and slides with prescribed positions.

    Raises:
        LoopClosureError: If the loops cannot be closed.
    """
    still = [*mechanism.closures, *(_holding(mechanism, guess, j) for j in _indices(mechanism, fixed))]
    mechanism = replace(mechanism, closures=tuple(still))
    passive = np.ones(mechanism.nv, dtype=bool)
    passive[[mechanism.dof_slices[j].start for j in _indices(mechanism, given)]] = False
    q, residual = close(mechanism, guess[None], passive)
    if residual > CLOSED:
        raise LoopClosureError(
            f"{mechanism.model.path}: the loops cannot be closed at the start: loop gap must be at most {CLOSED:g}, "
            "got "
            f"{residual:.3g} (m or rad)",
            residual=residual,
            tolerance=CLOSED,
            time=0.0,
        )
    return mechanism, q[0]


def independent_joints(mechanism: Mechanism, q: JointPositions, names: Sequence[str]) -> tuple[str, ...]:
    """Of some joints, the joints that move independently and reliably: carriers of most mass first.

    Args:
        names: Names of hinges and slides.

    Returns:
        Names, in the order in which they were given.
    """
    N, joints = free_motions(mechanism, q), _indices(mechanism, names)
    carried = carried_masses(mechanism)
    order = sorted(range(len(joints)), key=lambda k: -carried[mechanism.joints[joints[k]].body])
    chosen: list[int] = []
    for k in order:
        dofs = [mechanism.dof_slices[joints[other]].start for other in (*chosen, k)]
        rows = N[dofs] / np.maximum(np.linalg.norm(N[dofs], axis=1, keepdims=True), np.finfo(float).tiny)
        moves = np.linalg.norm(N[dofs[-1]]) > RANK_TOLERANCE
        if moves and np.linalg.svd(rows, compute_uv=False)[-1] > WELL_CONDITIONED and len(dofs) <= N.shape[1]:
            chosen.append(k)
    return tuple(names[k] for k in sorted(chosen))


def joint_space(
    mechanism: Mechanism, start: JointPositions, names: Sequence[str], signs: Sequence[float]
) -> JointSpace:
    """A mechanism seen at some of its joints.

    Args:
        mechanism: Robot, with a closure for each joint that does not move.
        names: Names of the shared joints.
        signs: Sense of each [-].

    Raises:
        MechanismError: If the loops tie the shared joints together, or leave more free than they give.
    """
    joints = _indices(mechanism, names)
    space = JointSpace(mechanism=mechanism, joints=joints, signs=np.array(signs), start=start)
    N, units = free_motions(mechanism, start), unit_rates(mechanism)
    XN = space.selection * units @ N / units[space.dofs][:, None]
    where = str(mechanism.model.path)
    values, tied = svd(XN.T)[1:]
    rank = int((values > RANK_TOLERANCE).sum())
    if rank < len(joints):
        largest = np.abs(tied[rank:]).max(axis=0)
        culprits = [name for name, part in zip(names, largest, strict=True) if part > RANK_TOLERANCE]
        raise MechanismError(
            f"{where}: shared joints must be independent in the initial pose, got {', '.join(culprits)}, dependent or "
            "locked. Hold some of these joints with --hold"
        )
    Z = N @ null_space(XN)
    return replace(space, spare=Z.shape[1], left_out=_force_left_out(space, Z, where))


def joint_motions(space: JointSpace, state: State) -> Array:
    """The motions that move a single shared coordinate at unit rate, all others not, and keep the loops closed, D.

    Args:
        state: Closed poses; velocities do not matter.

    Returns:
        Joint velocities per unit rate [-, or ratios of the units], shape (nt, nv, n).
    """
    D = _solved(space, state, np.broadcast_to(np.eye(len(space.joints)), (len(state.q), *[len(space.joints)] * 2)))
    if not space.spare:
        return D
    units = unit_rates(space.mechanism)
    Z_T = svd(_constraints(space, state.Phi))[2][:, space.mechanism.nv - space.spare :]
    Z_T = Z_T * units
    M = tree_inertia(state)
    return np.asarray(D - Z_T.swapaxes(1, 2) @ np.linalg.solve(Z_T @ M @ Z_T.swapaxes(1, 2), Z_T @ M @ D))


def moved(space: JointSpace, q: PositionSeries, xd: Array, xdd: Array) -> tuple[Array, Array]:
    """Joint velocities and accelerations of motions of the shared coordinates.

    Args:
        space: Mechanism and shared joints.
        xd: Rates of the shared coordinates [m/s or rad/s], shape (nt, n).
        xdd: Their accelerations [m/s² or rad/s²], shape (nt, n).

    Returns:
        qd [m/s or rad/s] and qdd [m/s² or rad/s²], both of shape (nt, nv).
    """
    state = State(mechanism=space.mechanism, q=q, qd=np.zeros((len(q), space.mechanism.nv)))
    qd = (joint_motions(space, state) @ xd[..., None])[..., 0]
    state = state.with_velocities(qd)
    bias = -state.Phi_dot @ qd[..., None]
    return qd, _solved(space, state, xdd[..., None], bias)[..., 0]


def joint_efforts(space: JointSpace, q: PositionSeries, qd: VelocitySeries, qdd: AccelerationSeries) -> Array:
    """Generalized force at the shared coordinates that a motion needs, Dᵀ(M q̈ + C q̇ + G).

    Args:
        space: Mechanism and shared joints.
        qd: Velocities that keep the loops closed.
        qdd: Accelerations that keep them closed.

    Returns:
        Efforts [N or N m], shape (nt, n).
    """
    state = State(mechanism=space.mechanism, q=q, qd=qd)
    return np.einsum("tvn,tv->tn", joint_motions(space, state), tree_model(state).force(qdd, qd))


def conditioning(space: JointSpace, q: PositionSeries) -> Array:
    """Conditioning of the mechanism by its shared joints: smallest over largest singular value of closures and rates.

    Returns:
        Ratios [-], shape (nt,).
    """
    values = np.linalg.svd(_constraints(space, closure_jacobian_at(space.mechanism, q)), compute_uv=False)
    return np.asarray(values[:, space.mechanism.nv - space.spare - 1] / values[:, 0])


def reached_poses(space: JointSpace, x: Array) -> tuple[Array, AnyArray]:
    """Closed poses at values of the shared coordinates, each on a straight way from the start.

    Args:
        x: Shared coordinates [m or rad], shape (nt, n).

    Returns:
        Poses [m or rad], shape (nt, nq), and the mask of the reached poses (nt,); the others are the ends of their
        ways.
    """
    mechanism, units = space.mechanism, unit_rates(space.mechanism)[space.dofs]
    way = x - space.coordinates(space.start[None])
    steps = max(1, int(np.ceil(np.abs(way / units).max(initial=0.0) / STEP)))
    passive = np.ones(mechanism.nv, dtype=bool)
    passive[space.dofs] = False
    q, on_way = np.repeat(space.start[None], len(x), axis=0), np.ones(len(x), dtype=bool)
    for _ in range(steps):
        here = np.flatnonzero(on_way)
        if not here.size:
            break
        state = State(mechanism=mechanism, q=q[here], qd=np.zeros((len(here), mechanism.nv)))
        move = _solved(space, state, (way[here] / steps)[..., None])[..., 0]
        predicted = retract(mechanism, q[here], move)
        closed, residual = close_batch(mechanism, predicted, passive)
        trusted = 1e-4 + 0.5 * np.abs(move).max(axis=1)  # a larger correction may be a jump to another working mode
        done = (residual <= CLOSED) & (np.abs(closed - predicted).max(axis=1) <= trusted)
        q[here[done]] = closed[done]
        on_way[here[~done]] = False
    return q, on_way


def _solved(space: JointSpace, state: State, rates: Array, bias: Array | None = None) -> Array:
    """Joint rates of least norm by those of the shared coordinates (nt, n, any), with Φ q̇ = bias or zero."""
    units, mechanism = unit_rates(space.mechanism), space.mechanism
    rows = np.broadcast_to(space.selection, (len(state.q), *space.selection.shape))
    still = np.zeros((len(state.q), state.Phi.shape[1], rates.shape[2])) if bias is None else bias
    constraints = np.concatenate([state.Phi, rows], axis=1) * units
    right = np.concatenate([still, np.broadcast_to(rates, (len(state.q), *rates.shape[1:]))], axis=1)
    return units[:, None] * solve_dependent(constraints, -right) if mechanism.nv else right


def _constraints(space: JointSpace, Phi: Array) -> Array:
    """Closures and shared rates, in unit rates, rows of length one."""
    units = unit_rates(space.mechanism)
    Phi = Phi * units
    Phi = row_factors(Phi) * Phi
    X = (space.selection != 0).astype(np.float64)
    return np.concatenate([Phi, np.broadcast_to(X, (len(Phi), *X.shape))], axis=1)


def _force_left_out(space: JointSpace, Z: Array, where: str) -> str:
    """Refuse a mechanism that the shared joints do not determine, except for motions without noticeable effort.

    Returns:
        Neglected parts of these motions, in words.
    """
    if not Z.size:
        return ""
    mechanism, units = space.mechanism, unit_rates(space.mechanism)
    state = State(mechanism=mechanism, q=space.start[None], qd=np.zeros((1, mechanism.nv)))
    force = tree_model(state).G[0] * units
    stiff = np.zeros(mechanism.nv)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        stiff[dofs] = joint.stiffness
    along = np.abs(Z.T @ force) / max(np.abs(force).max(), 1e-30)
    sprung = (np.abs(Z) * (stiff > 0)[:, None]).max(axis=0) > RANK_TOLERANCE
    if along.max() <= IDLE and not sprung.any():
        return ""
    costly = (along > SLIGHT) | sprung
    parts = np.abs(Z[:, costly if costly.any() else along > IDLE]).max(axis=1)
    names = [
        joint.name
        for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
        if parts[dofs].max() > 1e-3
    ]
    if not costly.any():
        return f"{', '.join(names)} may spin: the weight that turns them ({along.max():.1e} of the largest) is ignored"
    raise MechanismError(
        f"{where}: the shared joints {', '.join(space.names)} must determine the initial pose, but "
        f"{Z.shape[1]} further degrees of freedom remain, of joints {', '.join(names)}. Share them with --map, or hold "
        "them with --hold"
    )


def _holding(mechanism: Mechanism, q: Array, j: int) -> Closure:
    """A closure that keeps a joint at its position in a pose (nq,)."""
    joint, columns = mechanism.joints[j], mechanism.q_slices[j]
    if joint.kind == "free":
        body_poses = poses(mechanism, q[None])
        return WeldClosure(
            name=f"held {joint.name}",
            body1=joint.body,
            point1=np.zeros(3),
            body2=WORLD,
            point2=body_poses.p[0, joint.body],
            rotation=body_poses.R[0, joint.body].T,
        )
    coordinate = Coordinate(name=joint.name, joints=(j,), weights=np.ones(1))
    offset = q[columns.start] - joint.rest_position[0]
    return CoordinateClosure(
        name=f"held {joint.name}", follower=coordinate, leader=None, coefficients=np.array([offset, 0, 0, 0, 0])
    )


def _indices(mechanism: Mechanism, names: Sequence[str]) -> tuple[int, ...]:
    places = {joint.name: j for j, joint in enumerate(mechanism.joints)}
    return tuple(places[name] for name in names if name in places)
