"""Closed-loop forward and hybrid dynamics of many states at once, with derivatives."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from loopcheck.analytic.batch.derivatives import Evaluation, of_accelerations, of_states, want_blocks
from loopcheck.analytic.batch.equations import has_direction
from loopcheck.analytic.batch.gradient import BLOCKS as OF_EFFORTS
from loopcheck.analytic.batch.gradient import Gradient, gradient
from loopcheck.analytic.batch.inverse import runs_compiled
from loopcheck.analytic.batch.plain import misfits
from loopcheck.analytic.batch.support import want_drives_of_joints, want_known
from loopcheck.analytic.batch.trace import shape_of
from loopcheck.analytic.kinematics.redundancy import independent_dofs_at
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import point_of
from loopcheck.robots.arrays import Array, EffortSeries, JointPositions, PositionSeries, VelocitySeries, frozen
from loopcheck.robots.errors import MechanismError, ShapeError
from loopcheck.robots.mechanism import Mechanism

BLOCKS = ("q", "qd", "effort", "parameters")
"""Derivatives of the accelerations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardBatch:
    """Accelerations of a batch of states."""

    qdd: Array
    """Accelerations of all dofs [m/s² or rad/s²], shape (nt, nv)."""
    independent: tuple[int, ...]
    """Dofs taken as independent coordinates, n in number."""
    derivatives: Mapping[str, Array]
    """Requested derivatives of the accelerations of the independent dofs, with the loops closed: `q` and `qd` along the
    positions and velocities of the independent dofs, shape (nt, n, n); `effort` along the efforts, shape (nt, n, na);
    `parameters` along the inertial parameters of `Batch.derivatives`, shape (nt, n, bodies, 10)."""
    loop_force: Array | None = None
    """Forces of the loops on all dofs Φᵀ λ [N or N m], shape (nt, nv), if requested: they are unique, also where
    multipliers λ of redundant closures are not."""
    loop_derivatives: Mapping[str, Array] = field(default_factory=dict)
    """Requested derivatives of these forces, as `derivatives`, shape (nt, nv, n or na) or (nt, nv, bodies, 10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridBatch:
    """Efforts of a batch of states, and accelerations of the dofs that nothing drives."""

    effort: Array
    """Efforts of the actuators, of least norm [N or N m], shape (nt, na)."""
    qdd: Array
    """Accelerations of all dofs [m/s² or rad/s²], shape (nt, nv)."""
    independent: tuple[int, ...]
    """Dofs taken as independent coordinates, n in number."""
    undriven: tuple[int, ...]
    """Those of them that no drive moves, m in number."""
    derivatives: Mapping[str, Array]
    """Requested derivatives of the efforts, with the loops closed: `q` and `qd` along the positions and velocities of
    the independent dofs, shape (nt, na, n); `qdd` along the accelerations of those with a drive, shape (nt, na, n − m);
    `parameters` along the inertial parameters of `Batch.derivatives`, shape (nt, na, bodies, 10). Each holds the other
    positions and velocities of the independent dofs, and the other accelerations of the drives. The accelerations of
    the undriven dofs follow."""
    undriven_derivatives: Mapping[str, Array]
    """The same derivatives of the accelerations of the undriven dofs, with m rows."""


def trace_forward(
    mechanism: Mechanism, q: JointPositions, *, parameters: bool = False, loops: bool = False
) -> Gradient:
    """Trace the forward dynamics of a mechanism, once for many calls of `forward_dynamics` or `hybrid_dynamics`.

    Args:
        q: A pose with closed loops.
        parameters: Whether to include derivatives along the inertial parameters.
        loops: Whether to include forces of the loops.

    Raises:
        MechanismError: If the mechanism has an element that the traced equations lack.
        SingularityError: If the pose is singular.
    """
    want_known(mechanism)
    independent = np.flatnonzero(independent_dofs_at(mechanism, q)).tolist()
    wanted = ("accelerations", *(["parameters"] if parameters else []), *(["loops"] if loops else []))
    return gradient(shape_of(mechanism, q, independent), wanted)


def forward_dynamics(  # noqa: PLR0913
    mechanism: Mechanism,
    q: PositionSeries,
    qd: VelocitySeries,
    effort: EffortSeries,
    *,
    traced: Gradient | None = None,
    evaluator: str = "auto",
    derivatives: Collection[str] = (),
    loops: bool = False,
) -> ForwardBatch:
    """Accelerations of a closed-loop robot from the efforts of its actuators, with derivatives.

    Dofs without an actuator are allowed. Near a singularity of the passive joints, see `inverse_dynamics`, it raises.

    Args:
        q: Positions of all joints, loops closed.
        qd: Velocities of all dofs that keep them closed.
        traced: Result of `trace_forward`, if it exists already.
        evaluator: `numpy` or `llvm`; `auto` compiles as soon as all calls with a `traced` have taken as long.
        derivatives: Any of `q`, `qd`, `effort` and `parameters`, see `ForwardBatch.derivatives`.
        loops: Whether to compute forces of the loops; a `traced` must include them.

    Raises:
        ShapeError: If an array has the wrong shape or a number that is not finite.
        NotFoundError: If a derivative is unknown.
        LoopClosureError: If the loops or their rates are open; `time` is the number of the sample.
        SingularityError: If a sample is near a singularity; `time` is its number.
        MechanismError: If the mechanism has an element that is not traced, or the points of a spring meet, unless its
            rest length is zero.
    """
    want_blocks(derivatives, BLOCKS)
    q, qd, effort = _states(mechanism, q, qd, ("effort", effort, mechanism.na))
    traced = traced or trace_forward(mechanism, q[0], parameters="parameters" in derivatives, loops=loops)
    if loops:
        want_blocks(["loops"], [*traced.blocks])
    want_blocks(derivatives, [name for name in BLOCKS if name != "parameters" or name in traced.blocks])
    evaluation = Evaluation(traced, q, is_compiled=runs_compiled(traced, len(q), evaluator))
    qdd, found, of_loops = of_accelerations(evaluation, qd[:, traced.shape.independent], effort)
    return ForwardBatch(
        qdd=qdd,
        independent=tuple(traced.shape.independent),
        derivatives={name: found[name] for name in BLOCKS if name in derivatives},
        loop_force=of_loops["value"] if loops else None,
        loop_derivatives={name: of_loops[name] for name in BLOCKS if loops and name in derivatives},
    )


def hybrid_dynamics(  # noqa: PLR0913
    mechanism: Mechanism,
    q: PositionSeries,
    qd: VelocitySeries,
    qdd: Array,
    *,
    traced: Gradient | None = None,
    evaluator: str = "auto",
    derivatives: Collection[str] = (),
) -> HybridBatch:
    """Efforts of a robot with prescribed accelerations of its drives, also with dofs that nothing drives.

    The accelerations of these dofs follow from the dynamics (hybrid dynamics, Featherstone 2008, section 9.2). Their
    positions and velocities are part of the state, which the motion of the drives does not determine.

    Args:
        q: Positions of all joints, loops closed.
        qd: Velocities of all dofs that keep them closed.
        qdd: Accelerations of `Mechanism.drives` [m/s² or rad/s²], shape (nt, drives).
        traced: Result of `trace_forward`, if it exists already.
        evaluator: `numpy` or `llvm`; `auto` compiles as soon as all calls with a `traced` have taken as long.
        derivatives: Any of `q`, `qd`, `qdd` and `parameters`, see `HybridBatch.derivatives`.

    Raises:
        ShapeError: If an array has the wrong shape or a number that is not finite.
        NotFoundError: If a derivative is unknown.
        LoopClosureError: If the loops or their rates are open, or accelerations of redundant drives contradict the
            others; `time` is the number of the sample.
        SingularityError: If a sample is near a singularity, or a drive nearly follows from others there; `time` is its
            number.
        MechanismError: If the mechanism has an element that is not traced, or the drive of a tendon, or the points of a
            spring meet, unless its rest length is zero.
    """
    want_blocks(derivatives, OF_EFFORTS)
    want_drives_of_joints(mechanism)
    q, qd, qdd = _states(mechanism, q, qd, ("qdd", qdd, len(mechanism.drives)))
    traced = traced or trace_forward(mechanism, q[0], parameters="parameters" in derivatives)
    want_blocks(derivatives, [name for name in OF_EFFORTS if name != "parameters" or name in traced.blocks])
    independent, drives = traced.shape.independent, traced.shape.driven
    driven = [k for k, dof in enumerate(independent) if dof in drives]
    changes = np.zeros((len(q), len(independent)))
    changes[:, driven] = qdd[:, [drives.index(independent[k]) for k in driven]]
    evaluation = Evaluation(traced, q, is_compiled=runs_compiled(traced, len(q), evaluator))
    effort, of_dofs, of_efforts, of_undriven = of_states(evaluation, qd[:, independent], changes, driven)
    for error in misfits(mechanism, "accelerations", qdd, of_dofs[:, drives], np.arange(len(q))):
        raise error
    wanted = [name for name in OF_EFFORTS if name in derivatives]
    return HybridBatch(
        effort=effort,
        qdd=of_dofs,
        independent=tuple(independent),
        undriven=tuple(np.delete(independent, driven).tolist()),
        derivatives={name: of_efforts[name] for name in wanted},
        undriven_derivatives={name: of_undriven[name] for name in wanted},
    )


def _states(
    mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries, third: tuple[str, Array, int]
) -> tuple[PositionSeries, VelocitySeries, Array]:
    """States and a third array as arrays of numbers; raises if one does not fit, or loops or their rates are open.

    Args:
        third: Its name, values [any unit], shape (nt, columns), and number of columns.
    """
    name, values, columns = third
    q = frozen(q, (None, mechanism.nq), name="q")
    if not len(q):
        raise ShapeError("q: must have at least 1 sample, got 0")
    qd, values = frozen(qd, (len(q), mechanism.nv), name="qd"), frozen(values, (len(q), columns), name=name)
    state = State(mechanism=mechanism, q=q, qd=qd)
    _want_directions(state)
    state.want_closed()
    return q, qd, values


def _want_directions(state: State) -> None:
    """Raise if the points of a spring or damper meet, so that its force has no direction."""
    for spring in filter(has_direction, state.mechanism.point_springs):
        first, second = (point_of(state.poses, *end) for end in spring.ends)
        met = np.flatnonzero((first == second).all(axis=1))
        if met.size:
            raise MechanismError(
                f"{state.mechanism.model.path}: the points of tendon '{spring.name}' must be apart, got the same point "
                f"at sample {met[0]}: its force has no direction there"
            )
