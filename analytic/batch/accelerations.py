"""Closed-loop forward dynamics of many states at once, with derivatives: accelerations from efforts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from loopcheck.analytic.batch.derivatives import Evaluation, of_accelerations, want_blocks
from loopcheck.analytic.batch.gradient import Gradient, gradient
from loopcheck.analytic.batch.inverse import runs_compiled
from loopcheck.analytic.batch.support import want_known
from loopcheck.analytic.batch.trace import shape_of
from loopcheck.analytic.kinematics.redundancy import independent_dofs_at
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, EffortSeries, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.errors import LoopClosureError, ShapeError
from loopcheck.robots.mechanism import Mechanism

BLOCKS = ("q", "qd", "effort", "parameters")
"""Derivatives of the accelerations."""
CLOSED = 1e-9
"""Largest gap of the loops [m or rad], and of their rates relative to the velocities [-]."""


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


def trace_forward(
    mechanism: Mechanism, q: JointPositions, *, parameters: bool = False, loops: bool = False
) -> Gradient:
    """Trace the forward dynamics of a mechanism, once for many calls of `forward_dynamics`.

    Args:
        q: A pose with closed loops [m or rad], shape (nq,).
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
        q: Positions of all joints, loops closed [m or rad], shape (nt, nq).
        qd: Velocities of all dofs that keep them closed [m/s or rad/s], shape (nt, nv).
        traced: Result of `trace_forward`, if it exists already.
        evaluator: `numpy` or `llvm`; `auto` compiles as soon as all calls with a `traced` have taken as long.
        derivatives: Any of `q`, `qd`, `effort` and `parameters`, see `ForwardBatch.derivatives`.
        loops: Whether to compute forces of the loops; a `traced` must include them.

    Raises:
        ShapeError: If an array has the wrong shape or a number that is not finite.
        NotFoundError: If a derivative is unknown.
        LoopClosureError: If the loops or their rates are open; `time` is the number of the sample.
        SingularityError: If a sample is near a singularity; `time` is its number.
        MechanismError: If the mechanism has an element that is not traced.
    """
    want_blocks(derivatives, BLOCKS)
    arrays = {"q": (q, mechanism.nq), "qd": (qd, mechanism.nv), "effort": (effort, mechanism.na)}
    for name, (x, width) in arrays.items():
        if x.shape != (len(q), width) or not len(q) or not np.isfinite(x).all():
            raise ShapeError(f"{name}: must have finite numbers and shape ({max(len(q), 1)}, {width}), got {x.shape}")
    _want_closed(mechanism, q, qd)
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


def _want_closed(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> None:
    """Raise if loops or their rates are open."""
    state = State(mechanism=mechanism, q=q, qd=qd)
    rates = (state.Phi @ qd[..., None])[..., 0] / (1 + np.abs(qd).max(axis=1, initial=0.0))[:, None]
    for name, gaps in (("loops", state.gap), ("rates of the loops", rates)):
        size = np.abs(gaps).max(axis=1, initial=0.0)
        worst = int(size.argmax())
        if size[worst] > CLOSED:
            raise LoopClosureError(
                f"{mechanism.model.path}: {name} must be closed to {CLOSED:g}, got {size[worst]:.3g} at sample {worst}",
                residual=float(size[worst]),
                tolerance=CLOSED,
                time=float(worst),
            )
