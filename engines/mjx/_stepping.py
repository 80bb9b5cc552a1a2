"""The classical Runge-Kutta method on MJX's forward dynamics, compiled once for all steps and settings of a robot.

MJX leaves J̇v out of the reference accelerations of its equalities, as MuJoCo did before 3.7. It is inserted between
two of MJX's stages, as the derivative of MJX's own Jacobian along the velocity, unless the unmodified engine is
requested.
"""

from functools import partial
from typing import Any, NamedTuple

from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.engines.mjx._mjx import jax, mjx
from loopcheck.engines.mjx._model import QUICK, Joints, Loads, computed, moved
from loopcheck.engines.mujoco.model import TORQUE_SCALE

jnp = jax.numpy
STAGES = ((0.0, 0.5, 0.5, 1.0), (0, 1, 1, 2), (1 / 6, 1 / 3, 1 / 3, 1 / 6))
"""Position of each stage in the step, the same in half steps, and the weight of its rates."""


class Layout(NamedTuple):
    """Places of quantities and requested outputs: the same for all simulations with the same compiled code."""

    drives: tuple[int, ...]
    """Rows of the drives in MJX's constraints."""
    loops: tuple[tuple[int, ...], ...]
    """Rows of each equality that closes a loop, in MuJoCo's order."""
    holds_angle: tuple[bool, ...]
    """Whether its first rows are angles."""
    joints: Joints
    samples: int
    """Number of reports."""
    velocity_term: bool
    """Whether J̇v is added to the reference accelerations."""


class Robot(NamedTuple):
    """Simulated robot."""

    model: Any
    data: Any
    loads: Loads


class Run(NamedTuple):
    """A simulation."""

    q: Any
    """Joint positions at its beginning [m or rad], shape (nq,)."""
    qd: Any
    """Joint velocities there [m/s or rad/s], shape (nv,)."""
    constants: Any
    """Targets of the drives' equalities at half steps, perhaps more than used [m or rad], shape (many, drives)."""
    dt: Any
    """Step [s]."""
    every: Any
    """Steps between two reports."""


class Reports(NamedTuple):
    """States of a simulation at the reports, with what MJX finds there."""

    q: Any
    qd: Any
    qdd: Any
    force: Any
    """Multipliers of all rows of MJX's constraints [N or N m]."""


@partial(jax.jit, static_argnames="layout", compiler_options=QUICK)
def simulated(robot: Robot, run: Run, compliances: Any, *, layout: Layout) -> tuple[Reports, Any]:
    """Simulate a robot at several compliances, one after the other.

    Args:
        robot: Simulated robot.
        compliances: Factors on the inverse weights of its bodies and dofs [-], shape (n,).
        layout: Places of quantities.

    Returns:
        What is reported, each of shape (n, samples, ...), and the largest opening of a loop at any step [m], [rad],
        shape (n, 2).
    """

    def at_compliance(factor: Any) -> Any:
        weights = ("body_invweight0", "dof_invweight0", "tendon_invweight0")
        model = robot.model.replace(**{name: factor * getattr(robot.model, name) for name in weights})
        return _simulated(robot._replace(model=model), run, layout)

    # vmap would trace the nested loops again
    return jax.lax.map(at_compliance, compliances)


def _simulated(robot: Robot, run: Run, layout: Layout) -> tuple[Reports, Any]:
    def step(k: Any, j: Any, state: Any) -> Any:
        q, qd, read, drift = state
        u, a, found, opening = _rates(robot, run, layout, q, qd, 2 * (k * run.every + j))
        read = jax.tree.map(partial(jnp.where, j == 0), found, read)
        return moved(q, run.dt * u, layout.joints), qd + run.dt * a, read, jnp.maximum(drift, opening)

    def report(state: Any, k: Any) -> Any:
        steps = jnp.where(k == layout.samples - 1, 1, run.every)  # the first stage of a step is what is reported
        after = jax.lax.fori_loop(0, steps, partial(step, k), state)
        return after, Reports(*state[:2], *after[2])

    read = (0 * run.qd, jnp.zeros_like(robot.data._impl.efc_force))
    start = (run.q, run.qd, read, jnp.zeros(2, run.qd.dtype))
    (_, _, _, drift), reports = jax.lax.scan(report, start, jnp.arange(layout.samples))
    return reports, drift


def _rates(robot: Robot, run: Run, layout: Layout, q: Any, qd: Any, half_step: Any) -> tuple[Any, ...]:
    """Mean rates of displacement and velocity over a step; accelerations, forces and opening at its beginning.

    Positions are integrated in the coordinates of the displacement since the beginning of the step, because the
    angular velocities of ball and free joints at different stages belong to different poses (Munthe-Kaas 1999).
    """
    first = robot.model.neq - len(layout.drives)

    def stage(state: Any, coefficients: Any) -> Any:
        (u, a, mean_u, mean_a), (c, h, weight) = state, coefficients
        displacement, velocity = c * run.dt * u, qd + c * run.dt * a
        targets = robot.model.eq_data.at[first:, 0].set(run.constants[half_step + h])
        now = robot._replace(model=robot.model.replace(eq_data=targets))
        data = solved(now, moved(q, displacement, layout.joints), velocity, layout)
        u, a = _rate_of_displacement(displacement, velocity, layout.joints), data.qacc
        opening = _opening(robot.model, data, layout)
        return (u, a, mean_u + weight * u, mean_a + weight * a), (a, data._impl.efc_force, opening)

    table = tuple(jnp.array(column, kind) for column, kind in zip(STAGES, (qd.dtype, int, qd.dtype), strict=True))
    (_, _, u, a), (first_a, force, opening) = jax.lax.scan(stage, (0 * qd, 0 * qd, 0 * qd, 0 * qd), table)
    return u, a, (first_a[0], force[0]), opening[0]


def _opening(model: Any, data: Any, layout: Layout) -> Any:
    """Gap of the widest loop [m], [rad], shape (2,)."""
    lengths, angles = ([jnp.zeros((), data.qpos.dtype)] for _ in range(2))
    for equality, rows in enumerate(layout.loops):
        gap = data._impl.efc_pos[jnp.array(rows, int)]
        (angles if layout.holds_angle[equality] else lengths).append(jnp.linalg.norm(gap[:3]))
        if len(rows) > 3:  # a weld's other rows are the sine of half its turn, times its torque scale
            sine = jnp.linalg.norm(gap[3:]) / model.eq_data[equality, TORQUE_SCALE]
            angles.append(2 * jnp.arcsin(jnp.minimum(sine, 1)))
    return jnp.stack([jnp.stack(lengths).max(), jnp.stack(angles).max()])


def solved(robot: Robot, q: Any, qd: Any, layout: Layout) -> Any:
    """MJX's state with the accelerations and the forces of all constraints, by MJX's own stages and solver."""
    model, data, loads = robot

    def drift_of_constraints(displacement: Any) -> Any:
        computed_data = computed(model, data.replace(qpos=moved(q, displacement, layout.joints), qvel=qd), loads)
        return computed_data._impl.efc_J @ qd, computed_data

    if layout.velocity_term:
        _, velocity_term, now = jax.jvp(drift_of_constraints, (0 * qd,), (qd,), has_aux=True)
        now = now.tree_replace({"_impl.efc_aref": now._impl.efc_aref - velocity_term})
    else:
        _, now = drift_of_constraints(0 * qd)
    return mjx.solve(model, mjx.fwd_acceleration(model, mjx.fwd_actuation(model, now)))


@partial(jax.jit, compiler_options=QUICK)
def body_forces(robot: Robot, reports: Reports) -> Any:
    """MJX's `cfrc_int` at reports [N m, N], shape (..., bodies, 6)."""

    def at_report(q: Any, qd: Any, qdd: Any, force: Any) -> Any:
        now = computed(robot.model, robot.data.replace(qpos=q, qvel=qd), robot.loads)
        now = now.tree_replace({"qacc": qdd, "_impl.efc_force": force})
        return mjx.rne_postconstraint(robot.model, now)._impl.cfrc_int

    return jnp.vectorize(at_report, signature="(q),(v),(v),(c)->(b,i)")(*reports)


def _rate_of_displacement(displacement: Any, velocity: Any, joints: Joints) -> Any:
    """Growth rate of a displacement, θ̇ = ω + θ × ω / 2 + θ × (θ × ω) / 12 for turns in body axes, (nv,)."""
    rate = velocity
    for kind, _, dof in joints:
        if kind in BALL_OR_FREE:
            turn = slice(dof + 3 * (kind == "free"), dof + 3 * (kind == "free") + 3)
            once = jnp.cross(displacement[turn], velocity[turn])
            rate = rate.at[turn].add(once / 2 + jnp.cross(displacement[turn], once) / 12)
    return rate
