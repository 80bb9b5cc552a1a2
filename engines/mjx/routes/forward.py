"""MJX's own constraint solver on the closed loop, the driven joints and tendons held to the motion by equalities.

The method of `mujoco/forward`, applied to MuJoCo's port: targets with velocity and acceleration, a Runge-Kutta method
of fourth order, nearly rigid loops, two compliances extrapolated to zero. MJX lacks J̇v in the reference accelerations
of its loops; it is added from the derivative of MJX's own Jacobian, as the effort would be wrong at any step otherwise:
`loopcheck study refinement` shows the unmodified engine.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from loopcheck.engines.equations import held_drives
from loopcheck.engines.extrapolation import readings_at_zero, value_at_zero
from loopcheck.engines.forward import forward_history, surviving_rungs
from loopcheck.engines.mjx._model import compiled, guarded, joints_of, loads_of, put, rows_of
from loopcheck.engines.mjx._stepping import Layout, Robot, Run, body_forces, simulated
from loopcheck.engines.mjx.wrenches import wrenches
from loopcheck.engines.mujoco.equations import MujocoEquations
from loopcheck.engines.mujoco.model import gearing, holds_angle
from loopcheck.engines.mujoco.routes.forward import own_steps
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, ReadsWrenches, Refinable, Rung, deviation_of
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINEST = 2.5e-3
"""Upper bound of the finest step [s]; the ladder doubles it."""
FINEST_FREE = FINEST / 8
"""The same for robots with unactuated motions, which may vibrate on springs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulation."""

    steps: tuple[float, ...] = ()
    """Steps that divide the report grid, coarsest first [s]; empty for the route's own."""
    division: int = 1
    """Divisor of `FINEST` [-]."""
    double: bool = True
    """Double or single precision."""
    compliances: tuple[float, ...] = (2e-3, 4e-3)
    """Factors on the inverse weights of bodies and dofs, extrapolated to zero if there are several [-]."""
    iterations: int = 1
    """Iterations of Newton's method; a single iteration suffices, because all constraints are equalities."""
    impedance: float = 0.9999
    """Largest that MJX accepts [-]."""
    solref: tuple[float, float] = (100.0, 20.0)
    """Stiffness [1/s²] and damping [1/s] of the feedback on drift."""
    velocity_term: bool = True
    """Whether J̇v, missing in MJX, is added to the reference accelerations."""
    wrenches: bool = False
    """Whether forces in the joints are read."""


class _Simulation(NamedTuple):
    """Common data of the simulations at all step sizes."""

    mechanism: Mechanism
    motion: Motion
    drives: Sequence[int]
    settings: Settings
    model: Any
    """MuJoCo's, of which the robot is made."""
    robot: Robot
    layout: Layout
    gearing: Array
    """MuJoCo's own actuator velocities per rate of the drives [-], shape (na, drives)."""


OWN = Settings()
"""Settings of the route."""
OWN_SINGLE = Settings(double=False, compliances=(3.0, 6.0))
"""Settings of the route `forward_single`.

In single precision a nearly rigid constraint drowns in round-off: its force is the product of its stiffness and a
difference of accelerations. The constraints are therefore as soft as the extrapolation to rigid constraints allows.
"""


class MjxForward(Refinable, ReadsWrenches):
    """Efforts from a simulation of the closed loop in double precision, extrapolated to rigid constraints."""

    name = "mjx/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings
        self.name = "mjx/forward" if settings.double else "mjx/forward_single"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        settings = self.settings
        drives, undriven = held_drives(MujocoEquations(case.mechanism), motion)
        bound = (FINEST_FREE if undriven else FINEST) / settings.division
        steps = settings.steps or tuple(own_steps(motion.dt, finest=bound))
        settings = replace(settings, steps=steps)
        with guarded(self.name, double=settings.double):
            simulation = _prepared(case.mechanism, motion, drives, settings)
            ladder, diverged = surviving_rungs(partial(_rung, simulation), steps)
        notes = ["J̇v (missing from the loops of MJX) added" if settings.velocity_term else "without J̇v, as in MJX"]
        words, note = in_words(settings), "; ".join([*notes, *diverged])
        return forward_history(self.name, case.mechanism, motion, ladder, settings=words, note=note)

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True))

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; the tolerance is zero."""
        return type(self)(replace(self.settings, iterations=2 * self.settings.iterations))

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`."""
        settings = self.settings
        steps, compliances = (tuple(x / 2 for x in sizes) for sizes in (settings.steps, settings.compliances))
        return type(self)(replace(settings, steps=steps, division=2 * settings.division, compliances=compliances))


SINGLE = MjxForward(OWN_SINGLE)
"""The route `forward_single`, in the precision of MJX out of the box and on a GPU."""


def in_words(settings: Settings) -> Mapping[str, str]:
    """Every relevant setting, as text."""
    compliances = " and ".join(f"{compliance:g}" for compliance in settings.compliances)
    return {
        "precision": f"{'double' if settings.double else 'single'}, on the CPU",
        "integrator": "classical Runge-Kutta, 4th order, on MJX's forward dynamics",
        "steps": f"{', '.join(f'{1e3 * dt:g}' for dt in settings.steps)} ms; the finest is reported",
        "solver": f"Newton, {settings.iterations} iterations, no line search",
        "impedance": f"solimp {settings.impedance:g} {settings.impedance:g} 0.001 0.5 1",
        "drift feedback": f"solref {' '.join(f'{-x:g}' for x in settings.solref)}",
        "velocity term": "from the derivative of MJX's Jacobian" if settings.velocity_term else "absent, as in MJX",
        "compliance": f"body and dof inverse weights times {compliances}"
        + (", extrapolated to 0" if len(settings.compliances) > 1 else ""),
        "actuators": "a joint or tendon equality per drive; its constraint force is the effort",
    }


def _prepared(mechanism: Mechanism, motion: Motion, drives: Sequence[int], settings: Settings) -> _Simulation:
    """The model with the drives and the settings, on the device."""
    model = compiled(mechanism, [mechanism.drives[k] for k in drives])
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, settings.iterations, 0
    model.eq_solref[:] = [-x for x in settings.solref]
    model.eq_solimp[:] = (settings.impedance, settings.impedance, 0.001, 0.5, 1.0)
    rows = rows_of(model)
    loops, targets = rows[: model.neq - len(drives)], rows[model.neq - len(drives) :]
    layout = Layout(
        drives=tuple(row for of_one in targets for row in of_one),
        loops=tuple(map(tuple, loops)),
        holds_angle=tuple(holds_angle(model, k) for k in range(len(loops))),
        joints=joints_of(mechanism),
        samples=len(motion.t),
        velocity_term=settings.velocity_term,
    )
    return _Simulation(
        mechanism,
        motion,
        drives,
        settings,
        model,
        Robot(*put(model), loads_of(mechanism)),
        layout,
        gearing(model, len(drives)),
    )


def _rung(simulation: _Simulation, dt: float) -> Rung:
    """The simulation at a step; the compiled code is the same for all, because targets are padded to equal length."""
    mechanism, motion, _, settings, model, robot, layout, gears = simulation
    begin, kind = time.perf_counter(), np.float64 if settings.double else np.float32
    q, qd, targets = (x.astype(kind) for x in (motion.q[0], motion.qd[0], _constants(simulation, dt)))
    run = Run(q, qd, targets, kind(dt), round(motion.dt / dt))
    reports, drift = simulated(robot, run, np.array(settings.compliances, kind), layout=layout)
    force = np.asarray(reports.force, float)
    if not np.isfinite(force).all():
        raise EngineError(f"mjx: the simulation with dt = {dt:g} s diverged")
    drive_positions = motion.law(motion.t).q
    miss = [mechanism.values_of(mechanism.drives, np.asarray(one, float)) - drive_positions for one in reports.q]
    read: list[Mapping[str, Array]] = [{}]
    if settings.wrenches:
        read = [wrenches(mechanism, model, *one) for one in zip(reports.q, body_forces(robot, reports), force)]  # noqa: B905
    return Rung(
        dt=dt,
        effort=value_at_zero(settings.compliances, [*force[..., list(layout.drives)]]) @ np.linalg.pinv(gears),
        closure_drift=Deviation(*map(float, np.max(drift, axis=0))),
        tracking_error=deviation_of(mechanism, mechanism.drives, np.array(miss)),
        wall_time=time.perf_counter() - begin,
        wrenches=readings_at_zero(settings.compliances, read),
    )


def _constants(simulation: _Simulation, dt: float) -> Array:
    """Constants of the drives at half steps [m or rad], shape (many, drives); the last repeated.

    A row accelerates by −B v − K (q − qpos0 − constant); this makes it q̈ − B (v − q̇) − K (q − x).
    """
    mechanism, motion, drives, settings, *_ = simulation
    span = motion.t[-1] - motion.t[0]
    many, used = (2 * round(span / step) + 3 for step in (settings.steps[-1], dt))
    target = motion.law(motion.t[0] + np.minimum(np.arange(many), used - 1) * dt / 2)
    rest = mechanism.values_of(mechanism.drives, mechanism.rest_position[None])
    K, B = (x / settings.impedance for x in settings.solref)
    return (target.q - rest + (B * target.qd + target.qdd) / K)[:, drives]
