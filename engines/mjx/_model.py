"""MJX's model of a mechanism, put on the device from the model that MuJoCo's own routes use, and its terms."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import mujoco
import numpy as np

from loopcheck.engines.boundary import of_paths, want_representable
from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.engines.mjx._mjx import jax, mjx, on_cpu
from loopcheck.engines.mujoco.model import TORQUE_SCALE, build, driven, holds_angle, own_actuators_off
from loopcheck.robots.arrays import AnyArray, Array, PositionSeries, VelocitySeries
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.formats.mujoco_compat import CompatibleModel
from loopcheck.robots.mechanism import Coordinate, Mechanism

BATCH = 64
"""Samples computed at once [-]: a single size for all motions, because every size is compiled separately."""
QUICK = {"xla_backend_optimization_level": 0}
"""The same for functions that take longer to compile than to compute."""
ROWS = {
    mujoco.mjtEq.mjEQ_CONNECT: 3,
    mujoco.mjtEq.mjEQ_WELD: 6,
    mujoco.mjtEq.mjEQ_JOINT: 1,
    mujoco.mjtEq.mjEQ_TENDON: 1,
}
"""Rows of each kind of equality, in MJX's order of kinds."""
DROPPED = ("armature", "damping")
"""Properties of MuJoCo's actuators without a field in MJX's model."""

Joints: TypeAlias = tuple[tuple[str, int, int], ...]
"""Kind of each joint, and its first index in q and in the velocities."""
Loads = tuple[Any, Any]
"""Bodies with external wrenches, (n,), and force, moment and point of each, (n, 3, 3)."""


class Terms(NamedTuple):
    """MJX's results at some states."""

    M: Array
    """Inertia matrix [kg, kg m or kg m²], shape (nt, nv, nv)."""
    bias: Array
    """Velocity terms and weights [N or N m], shape (nt, nv)."""
    passive: Array
    """Springs, dampers, gravity compensation and external wrenches [N or N m], shape (nt, nv)."""
    J: Array
    """Jacobian of its equalities [m/rad or m/m], shape (nt, nc, nv)."""
    opening: Array
    """By how much they are violated [m or rad], shape (nt, nc)."""
    closure_bias: Array
    """J̇ q̇, the derivative of J q̇ along q̇ [m/s² or rad/s²], shape (nt, nc)."""
    solver_bias: Array
    """J̇ q̇ as the reference accelerations of the equalities have it [m/s² or rad/s²], shape (nt, nc)."""
    transmission: Array
    """Actuator velocities per joint velocity [-], shape (nt, nu, nv)."""
    tendons: Array
    """Rates of the lengths of tendons per joint velocity [-, or m per rad], shape (nt, ntendon, nv)."""
    center: Array
    """Mass centres of the bodies, the world first [m], shape (nt, nbody, 3)."""
    R: Array
    """Their principal axes [-], shape (nt, nbody, 3, 3)."""
    axis: Array
    """Axes of the joints [-], shape (nt, nj, 3)."""
    anchor: Array
    """Points that they turn about [m], shape (nt, nj, 3)."""
    wrench: Array
    """External force and moment about the mass centre [N, N m], shape (nt, nbody, 6)."""


def compiled(mechanism: Mechanism, drives: Sequence[Coordinate] = ()) -> Any:
    """MuJoCo's `MjModel` of a mechanism, without elements that every source leaves out.

    Args:
        drives: Coordinates held to a motion by an equality each, after all others.

    Raises:
        NotRepresentableError: If MJX would silently drop an element.
    """
    want_representable("mjx", of_paths(mechanism))
    model = driven(mechanism, drives) if drives else build(mechanism)
    if lost_in_silence := list(dropped(model)):  # with what it refuses itself, which is the first of it alone
        want_representable("mjx", (*lost_in_silence, *_refused(model)))
    own_actuators_off(model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
    model.geom_contype[:] = model.geom_conaffinity[:] = 0
    model.opt.integrator, model.opt.solver = mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.cone, model.opt.jacobian = mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtJacobian.mjJAC_DENSE
    return model


def dropped(model: Any) -> Iterator[str]:
    """Elements of a model that MJX would silently drop."""
    for what in DROPPED:
        for k in np.flatnonzero(getattr(CompatibleModel(model), f"actuator_{what}")):
            yield f"{what} of actuator '{model.actuator(k).name}'"


def dropped_options(model: Any) -> Iterator[str]:
    """Options of a model that MJX would drop in silence."""
    if model.opt.disableactuator:
        yield "option actuatorgroupdisable (the disabled actuators would act)"
    if model.opt.noslip_iterations:
        yield "option noslip_iterations"


def _refused(model: Any) -> Iterator[str]:
    try:
        mjx.put_model(model, impl="jax")
    except NotImplementedError as error:
        yield str(error)


def put(model: Any) -> tuple[Any, Any]:
    """MJX's model and a state of it.

    Raises:
        NotRepresentableError: If MJX refuses an element of the model; the message names it.
    """
    try:
        on_device = mjx.put_model(model, impl="jax")
        return on_device, mjx.make_data(on_device)
    except NotImplementedError as error:
        raise NotRepresentableError(f"mjx: not supported: {error}") from error


@contextmanager
def guarded(route: str, *, double: bool) -> Iterator[None]:
    """Compute on the CPU in double or single precision, and turn JAX's exceptions into an `EngineError`."""
    try:
        with on_cpu(double=double):
            yield
    except (jax.errors.JaxRuntimeError, NotImplementedError) as error:
        raise EngineError(f"{route}: {error}") from error


def rows_of(model: Any) -> list[list[int]]:
    """Rows of each equality in MJX's constraints, which are sorted by kind; empty for an inactive equality."""
    rows: list[list[int]] = [[] for _ in range(model.neq)]
    first = 0
    for kind, count in ROWS.items():
        for k in np.flatnonzero(model.eq_type == int(kind)):
            rows[k] = list(range(first, first + count)) if model.eq_active0[k] else []
            first += count
    return rows


def opening(model: Any, residual: AnyArray) -> Deviation:
    """Gap of the widest equality.

    Args:
        model: MuJoCo's model.
        residual: Residuals of all rows in the order of its equalities [m or rad], shape (rows,).
    """
    widest = Deviation()
    for k, rows in enumerate(rows_of(model)):
        own, residual = np.split(residual, [len(rows)])
        first = float(np.linalg.norm(own[:3]))
        widest = widest.or_worse(Deviation(angle=first) if holds_angle(model, k) else Deviation(length=first))
        if len(own) > 3:  # a weld's other rows are the sine of half its turn, times its torque scale
            sine = float(np.linalg.norm(own[3:])) / float(model.eq_data[k, TORQUE_SCALE])
            widest = widest.or_worse(Deviation(angle=float(2 * np.arcsin(min(sine, 1.0)))))
    return widest


def loads_of(mechanism: Mechanism) -> Loads:
    """The constant external wrenches as arrays."""
    bodies = np.array([load.body + 1 for load in mechanism.wrenches], dtype=int)  # body 0 is the world
    vectors = np.array([(load.force, load.moment, load.point) for load in mechanism.wrenches]).reshape(-1, 3, 3)
    return bodies, vectors


def computed(model: Any, data: Any, loads: Loads) -> Any:
    """MJX's state with the quantities derived from positions and velocities, and with the wrenches that act there."""
    data = mjx.fwd_position(model, data)
    bodies, vectors = loads
    wrench = jax.numpy.zeros_like(data.xfrc_applied)
    for k in range(len(bodies)):
        (force, moment, point), body = vectors[k], bodies[k]
        arm = data.xpos[body] + data.xmat[body] @ point - data.xipos[body]  # MJX wants it about the mass centre
        about_center = jax.numpy.concatenate([force, moment + jax.numpy.cross(arm, force)])
        wrench = wrench.at[body].add(about_center)
    return mjx.fwd_velocity(model, data.replace(xfrc_applied=wrench))


def terms(mechanism: Mechanism, model: Any, q: PositionSeries, qd: VelocitySeries) -> Terms:
    """The engine's terms at some states, in the active precision, rows in the order of the equalities.

    Args:
        model: Its `MjModel`, without feedback on drift.
    """
    model.eq_solref[:] = 0  # what is left of the reference acceleration is −J̇q̇
    on_device, data = put(model)
    loads, joints, batches = loads_of(mechanism), joints_of(mechanism), []
    for start in range(0, len(q), BATCH):
        samples = np.minimum(np.arange(start, start + BATCH), len(q) - 1)
        batches.append(_terms(on_device, data, loads, q[samples], qd[samples], joints=joints))
    of_all = Terms(*(np.concatenate(parts)[: len(q)].astype(float) for parts in zip(*batches, strict=True)))
    rows = [row for of_one in rows_of(model) for row in of_one]
    in_rows = ("J", "opening", "closure_bias", "solver_bias")
    return of_all._replace(**{name: getattr(of_all, name)[:, rows] for name in in_rows})


@partial(jax.jit, static_argnames="joints", compiler_options=QUICK)
def _terms(model: Any, data: Any, loads: Loads, q: Any, qd: Any, *, joints: Joints) -> Any:
    def at_state(q: Any, qd: Any) -> Any:
        def near(displacement: Any) -> Any:
            now = computed(model, data.replace(qpos=moved(q, displacement, joints), qvel=qd), loads)
            return now._impl.efc_J @ qd, now

        _, closure_bias, now = jax.jvp(near, (0 * qd,), (qd,), has_aux=True)
        inner = now._impl  # where MJX keeps them, with no public way to them
        wrench = mjx.xfrc_accumulate(model, now) if len(loads[0]) else 0
        return Terms(
            M=mjx.full_m(model, now),
            bias=now.qfrc_bias,
            passive=now.qfrc_passive + wrench,
            J=inner.efc_J,
            opening=inner.efc_pos,
            closure_bias=closure_bias,
            solver_bias=-inner.efc_aref,
            transmission=inner.actuator_moment,
            tendons=inner.ten_J,
            center=now.xipos,
            R=now.ximat,
            axis=now.xaxis,
            anchor=now.xanchor,
            wrench=now.xfrc_applied,
        )

    return jax.vmap(at_state)(q, qd)


def joints_of(mechanism: Mechanism) -> Joints:
    """Kinds and places of the joints."""
    places = zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True)
    return tuple((str(joint.kind), q.start, dof.start) for joint, q, dof in places)


def moved(q: Any, displacement: Any, joints: Joints) -> Any:
    """Positions after a displacement, with turns in body axes."""
    parts = []
    for kind, place, dof in joints:
        shifts = {"free": 3, "ball": 0}.get(kind, 1)
        parts.append(q[place : place + shifts] + displacement[dof : dof + shifts])
        if kind in BALL_OR_FREE:
            first, turn = place + shifts, dof + shifts
            parts.append(_turned(q[first : first + 4], displacement[turn : turn + 3]))
    return jax.numpy.concatenate(parts)


def _turned(quaternion: Any, theta: Any) -> Any:
    """A quaternion times that of a turn, which may be zero."""
    square = theta @ theta
    angle = jax.numpy.sqrt(jax.numpy.where(square > 0, square, 1))
    c = jax.numpy.where(square > 0, jax.numpy.cos(angle / 2), 1)
    s = jax.numpy.where(square > 0, jax.numpy.sin(angle / 2) / angle, 0.5) * theta
    w, x = quaternion[:1], quaternion[1:]
    turned = jax.numpy.concatenate([w * c - x @ s, w * s + c * x + jax.numpy.cross(x, s)])
    return turned / jax.numpy.sqrt(turned @ turned)
